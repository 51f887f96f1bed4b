"""Agent Framework: single calls of the provider and the strategies, without a run of an agent."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from agent_framework import (
    AgentSession,
    ChatContext,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    HistoryProvider,
    InMemoryHistoryProvider,
    Message,
    ResponseStream,
    SessionContext,
    UsageDetails,
    tool,
)

from compaction import Edit, MessageIndex, compact, first, last, nothing
from compaction.errors import ConfigurationError, StrategyError
from compaction.integrations.agent_framework import (
    ChatClientSummarizer,
    CompactionProvider,
    agent_framework,
    as_framework_strategy,
    from_framework_strategy,
)
from compaction.integrations.agent_framework.format import source_of, with_author
from compaction.integrations.agent_framework.provider import RunView
from compaction.strategies import Clear, Summarization, ToolResult, Truncation
from compaction.summarizers import SummaryOptions
from compaction.triggers import tokens_exceed
from tests.frameworks.model_server import SUMMARY
from tests.frameworks.turns import status_of, turn_of
from tests.support.scripted import Scripted, TooLong

SHORTEN = Truncation(trigger=tokens_exceed(300), keep=last(groups=2))
NEVER = Truncation(trigger=tokens_exceed(1_000_000), keep=last(groups=2))
HISTORY = {"source_id": "in_memory", "source_type": "InMemoryHistoryProvider"}


class Client(ChatMiddlewareLayer[Any]):
    """A client that takes middleware."""

    model = "gpt-5"

    def __init__(self) -> None:
        """Connect to nothing."""


FLAG = "_excluded"


def flags(messages: list[Message]) -> list[bool]:
    """Return which messages are excluded."""
    return [message.additional_properties.get(FLAG, False) for message in messages]


def same(one: list[Any], other: list[Any]) -> list[bool]:
    """Return whether each message is the same object."""
    return [each is it for each, it in zip(one, other, strict=False)]


AGENT = SimpleNamespace(client=Client(), name="Shop")


def loaded(text: str, role: str = "user", source: str | None = "in_memory") -> Message:
    """Return a message as a provider of this name adds it; ``None`` for the run itself."""
    properties = {} if source is None else {"_attribution": {**HISTORY, "source_id": source}}
    return Message(role, [text], additional_properties=properties)


def notes(number: int = 8) -> list[Message]:
    return [loaded(f"Note {place}: " + "the shop is open. " * 20) for place in range(number)]


def response(**usage: Any) -> ChatResponse:
    return ChatResponse(messages=[Message("assistant", ["ok"])], usage_details=UsageDetails(**usage) if usage else None)


async def begun(provider: CompactionProvider, session: AgentSession, context: SessionContext, agent: Any = AGENT) -> Any:
    state = session.state.setdefault("compaction", {})
    await provider.before_run(agent=agent, session=session, context=context, state=state)
    return state


class Call:
    """A model call inside a run. Holds state: the messages of each request.

    Args:
        answers: The responses, streams and errors of the client, in order.
        session: The session, by default a new one.
        agent: The agent.
    """

    def __init__(self, *answers: Any, session: AgentSession | None = None, agent: Any = AGENT) -> None:
        self.answers, self.session, self.sent = list(answers), session or AgentSession(), list[list[Message]]()
        self.agent = agent

    async def of(self, provider: CompactionProvider, messages: list[Message], **options: Any) -> ChatContext:
        """Send the messages through the provider's middleware."""
        context = SessionContext(session_id=self.session.session_id, input_messages=[])
        self.state = await begun(provider, self.session, context, self.agent)
        [middleware] = context.middleware["compaction"]
        chat = ChatContext(Client(), messages, options)

        async def call_next() -> None:
            self.sent.append(list(chat.messages))
            answer = self.answers.pop(0) if self.answers else response()
            if isinstance(answer, Exception):
                raise answer
            chat.result = answer

        await middleware(chat, call_next)  # type: ignore[operator, arg-type, misc]
        return chat


def provider_of(strategy: Any = SHORTEN, **options: Any) -> CompactionProvider:
    return CompactionProvider(before_strategy=strategy, counter="chars/4", **options)


# --- the messages of a run --------------------------------------------------------------------------------------------


def test_whose_messages_they_are() -> None:
    """The history and the run's own messages are the conversation, with the agent's name; others keep their place."""
    rules, note, late = loaded("rules", "system", None), loaded("NOTE", source="notes"), loaded("late", "system", None)
    history, question, answer = loaded("hi"), loaded("price?", source=None), Message("assistant", ["5"])
    signed = Message("assistant", ["6"], author_name="Kim")
    view = RunView("in_memory", "Shop")
    given = [rules, history, note, question, answer, signed, late]
    view.follow(given)
    assert [message.text for message in view.messages] == ["hi", "price?", "5", "6", "late"]
    assert [(place, message.text) for place, message in view.others] == [(0, "rules"), (1, "NOTE")]
    assert [message.author_name for message in view.messages] == [None, None, "Shop", "Kim", None]
    assert answer.author_name is None
    assert [message.text for message in view.request(view.messages)] == [message.text for message in given]
    before = list(view.messages)
    view.follow([*given, Message("tool", ["x"])])
    assert same(view.messages, before) == [True] * 5
    assert (len(view.messages), view.messages[-1].author_name) == (6, "Shop")
    view.follow([question])
    assert (view.messages, view.others) == ([question], [])
    view.use([history])
    assert view.messages == [history]
    view.use([history, question])
    assert view.messages == [history]


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        ([0, 1, 2, 3], ["rules", 0, "a", 1, 2, "b", 3, "end"]),
        ([2, 3], ["rules", "a", 2, "b", 3, "end"]),
        ([0, 3], ["rules", "a", 0, "b", 3, "end"]),
        ([2], ["rules", "a", "b", 2, "end"]),
        ([], ["rules", "a", "b", "end"]),
    ],
)
def test_where_other_messages_stand(view: list[int], expected: list[Any]) -> None:
    """Each stands before the message it preceded, and at the front if that one left; the last ones stay last."""
    own = [Message("user", [str(place)]) for place in range(4)]
    others = {name: loaded(name, source="notes") for name in ("rules", "a", "b", "end")}
    run = RunView("in_memory", "Shop")
    run.follow([others["rules"], own[0], others["a"], own[1], own[2], others["b"], own[3], others["end"]])
    made = run.request([own[place] for place in view])
    assert [message.text for message in made] == [str(each) for each in expected]
    behind_rules = run.request([Message("system", ["s"]), own[2]])
    assert [message.text for message in behind_rules] == ["rules", "s", "a", "b", "2", "end"]
    run.follow([own[0]])
    assert run.request(own) is own


def test_what_a_message_says_of_its_source() -> None:
    """Only the framework's own note names a source, and only an agent's or a tool's message without a name gets one."""
    odd = Message("user", ["hi"], additional_properties={"_attribution": "in_memory"})
    assert [source_of(each) for each in (loaded("hi"), loaded("hi", source=None), odd)] == ["in_memory", None, None]
    user = Message("user", ["hi"])
    assert with_author(user, "Shop") is user
    assert with_author(Message("tool", ["x"]), "Shop").author_name == "Shop"


# --- the provider -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"input_token_count": 900, "total_token_count": 905}, 900),
        ({"input_token_count": 900, "cache_read_input_token_count": 500, "total_token_count": 905}, 900),
        ({"input_token_count": 900, "cache_read_input_token_count": 500}, 1_400),
        ({"input_token_count": 900, "cache_creation_input_token_count": 50, "cache_read_input_token_count": 500}, 1_450),
        ({"input_token_count": 900, "anthropic.cache_read_input_tokens": 500}, 1_400),
        ({"input_token_count": 900}, 900),
        ({"input_token_count": 0}, None),
        ({"output_token_count": 5}, None),
        ({}, None),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_reported_usage(usage: dict[str, int], tokens: int | None, stream: bool) -> None:
    """The provider's figures correct the counts and are saved; without a total, cached tokens are beside the input."""
    provider = provider_of(NEVER)
    said = response(**usage)

    async def updates() -> AsyncIterator[str]:
        yield "o"
        yield "k"

    call = Call(ResponseStream(updates(), finalizer=lambda _: said) if stream else said)
    chat = await call.of(provider, notes(1))
    if stream:
        assert isinstance(chat.result, ResponseStream)
        assert [update async for update in chat.result] == ["o", "k"]
        assert await chat.result.get_final_response() is said
    else:
        assert chat.result is said
    expected = turn_of(provider).index.included.tokens if tokens is None else tokens
    assert status_of(provider).tokens == expected
    assert bool(call.state["conversation"]["learned"][1]) == (tokens is not None)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_request_that_was_too_long(stream: bool) -> None:
    """It is repeated with a shorter view, which is saved; messages of other providers are in both requests."""
    error = TooLong("prompt is too long: 740 tokens > 500 maximum")

    async def refused() -> AsyncIterator[str]:
        raise error
        yield ""

    async def updates() -> AsyncIterator[str]:
        yield "ok"

    answers: list[Any] = [error, response()]
    if stream:
        answers = [ResponseStream(each, finalizer=lambda _: response()) for each in (refused(), updates())]
    provider, call = provider_of(NEVER), Call(*answers)
    chat = await call.of(provider, [loaded("rules", "system", None), *notes()])
    if stream:
        assert [update async for update in chat.result] == ["ok"]
    first, second = call.sent
    assert (len(first), len(second) < 9, second[0].text) == (9, True, "rules")
    resumed = Call(session=AgentSession.from_dict(call.session.to_dict()))
    await resumed.of(provider_of(NEVER), notes())
    assert [message.text for message in resumed.sent[0]] == [message.text for message in second[1:]]


async def test_what_counts_besides_the_messages() -> None:
    """Other providers' messages, tools and instructions count; the window is that of the request's model, or the client's."""

    @tool(approval_mode="never_require")
    def look_up_price(item: str) -> str:
        """Look up what an item costs."""
        return item

    provider = provider_of(NEVER, window="auto")
    other = loaded("NOTE " * 80, source="notes")
    await Call().of(provider, [other, *notes(1)], tools=[look_up_price, {"a": 1}], instructions="Be brief. " * 40)
    conversations, tools = provider.conversations, [look_up_price.to_json_schema_spec(), {"a": 1}]
    counted = conversations.count_messages([other]) + conversations.count(tools) + conversations.count("Be brief. " * 40)
    assert turn_of(provider).index.context.overhead_tokens == counted > 200
    assert turn_of(provider).index.context.window == 272_000
    await Call().of(provider := provider_of(NEVER, window="auto"), notes(1), model="gpt-4o")
    assert turn_of(provider).index.context.window != 272_000
    assert turn_of(provider).session.id != "compaction"


@pytest.mark.parametrize("name", ["Shop", None])
async def test_an_agents_name(name: str | None) -> None:
    """An agent's messages have the name that the framework will give them, from the first request on."""
    call = Call(agent=SimpleNamespace(client=Client(), name=name))
    await call.of(provider_of(NEVER), [*notes(1), Message("assistant", ["5"])])
    assert [message.author_name for message in call.sent[0]] == [None, name or "UnnamedAgent"]


async def test_a_service_keeps_the_conversation() -> None:
    """A run or a request whose history a service keeps is not compacted; the reason goes when it no longer applies."""
    provider, session = provider_of(), AgentSession()
    for about in ({"service_session_id": "s1"}, {"options": {"conversation_id": "c1"}}):
        context = SessionContext(input_messages=[], context_messages={"in_memory": notes()}, **about)  # type: ignore[arg-type]
        assert "service keeps" in (await begun(provider, session, context))["skipped"]
        assert (len(context.context_messages["in_memory"]), context.middleware) == (8, {})
    state = await begun(provider, session, SessionContext(input_messages=[]))
    assert "skipped" not in state
    loading = SimpleNamespace(client=Client(), name=None, require_per_service_call_history_persistence=True)
    state = await begun(provider, session, SessionContext(input_messages=[]), loading)
    assert "require_per_service_call" in state["skipped"]
    call = Call()
    await call.of(provider, notes(), conversation_id="c1")
    assert len(call.sent) == 1
    assert len(call.sent[0]) == 8
    assert provider.conversations.last is None


async def test_once_before_a_run() -> None:
    """Without the loop, or with a client without middleware, the loaded history is compacted, and summaries are history."""
    raw = SimpleNamespace(client=object(), name="Shop")
    summary = Summarization(trigger=tokens_exceed(300), keep=last(groups=2))
    for provider, agent in ((provider_of(summary, in_loop=False), AGENT), (provider_of(summary), raw)):
        history = {"notes": [loaded("NOTE", source="notes")], "in_memory": notes()}
        asked = [Message("user", ["and now?"])]
        context = SessionContext(session_id="s", input_messages=asked, context_messages=history)  # type: ignore[arg-type]
        state = await begun(provider, AgentSession(), context, agent)
        made = context.context_messages["in_memory"]
        assert (len(made) < 8, context.middleware) == (True, {})
        assert {source_of(message) for message in made} == {"in_memory"}
        assert state["last"]["outcome"] == "compacted"
        others = [context.context_messages["notes"][0], *context.input_messages]
        assert turn_of(provider).index.context.overhead_tokens == provider.conversations.count_messages(others)
    empty = SessionContext(input_messages=[])
    await begun(provider_of(in_loop=False), AgentSession(), empty)
    assert empty.context_messages == {}


async def test_excluded_messages_are_not_loaded() -> None:
    """Messages that are flagged in the history are left out, even if nothing else is done; all flagged leave the list."""
    messages = notes(3)
    messages[0].additional_properties["_excluded"] = True
    for provider in (provider_of(), CompactionProvider(after_strategy=SHORTEN)):
        context = SessionContext(input_messages=[], context_messages={"in_memory": list(messages)})
        await begun(provider, AgentSession(), context)
        assert context.context_messages["in_memory"] == messages[1:]
        assert bool(context.middleware) == (provider.before_strategy is not None)


async def test_the_stored_history() -> None:
    """After a run the stored messages are compacted, with a report; a session without them, or of a service, is left alone."""
    provider, session = CompactionProvider(after_strategy=SHORTEN, counter="chars/4"), AgentSession()
    local, kept = SessionContext(input_messages=[]), SessionContext(input_messages=[], service_session_id="s1")

    async def ended(context: SessionContext, provider: CompactionProvider = provider) -> dict[str, Any]:
        state: dict[str, Any] = {}
        await provider.after_run(agent=AGENT, session=session, context=context, state=state)
        return state

    assert await ended(local) == {}
    for stored in ("text", {"messages": []}):
        session.state["in_memory"] = stored
        assert await ended(local) == {}
    session.state["in_memory"] = {"messages": notes()}
    assert list(await ended(kept)) == ["skipped"]
    assert await ended(local, provider_of()) == {}
    assert provider.after_run_once_per_turn is True
    for message in (flagged := notes()):
        message.additional_properties["_excluded"] = True
    session.state["in_memory"] = {"messages": flagged}
    assert await ended(local) == {"last_stored": None}
    session.state["in_memory"] = {"messages": notes()}
    state = await ended(local)
    assert state["last_stored"]["outcome"] == "compacted"
    assert [bool(message.additional_properties) for message in session.state["in_memory"]["messages"]] == [True] * 8
    excluded = flags(session.state["in_memory"]["messages"])
    assert excluded == sorted(excluded, reverse=True)
    assert 0 < sum(excluded) < 8


async def test_a_request_to_compact() -> None:
    """The host's request, and the model's call of the tool, apply once, to the session's next request."""
    scripted = Scripted("Prices were looked up.")
    summary = Summarization(scripted, trigger=tokens_exceed(1_000_000), keep=last(groups=1))
    provider, call = provider_of(summary), Call()
    provider.compact_next(call.session, "prices")
    for _ in range(2):
        await call.of(provider, notes())
        assert len(call.sent[-1]) < 8
    assert [request.focus for request in scripted.requests] == ["prices"]
    assert call.state.get("focus") is None
    provider = provider_of(summary, compact_tool=True)
    session, context = AgentSession(), SessionContext(input_messages=[])
    state = await begun(provider, session, context)
    [made] = context.tools
    assert made.name == "compact_conversation"
    [said] = await made.invoke(arguments={"focus": "tea"})
    assert said.text == "The conversation is compacted before your next answer."
    assert state["focus"] == "tea"
    plain = SessionContext(input_messages=[])
    await begun(provider_of(summary), session, plain)
    assert plain.tools == []


async def test_providers_that_disturb_each_other() -> None:
    """Two on one history, or one state for two histories, are errors that say what to do; the same one twice is none."""
    provider, context, session = provider_of(), SessionContext(input_messages=[]), AgentSession()
    for _ in range(2):
        await begun(provider, session, context)
    with pytest.raises(ConfigurationError, match="keep one, or chain their strategies"):
        await begun(provider_of(source_id="other"), session, context)
    with pytest.raises(ConfigurationError, match="give each compaction provider another source_id"):
        await begun(provider_of(history_source_id="elsewhere"), session, context)


def broken(index: MessageIndex) -> Iterator[Edit]:
    """A strategy that fails."""
    raise ZeroDivisionError("broken strategy")
    yield  # makes it a generator


async def test_what_the_state_says() -> None:
    """The state has the decisions, and a report of the last run that changed something or failed."""
    call, provider = Call(), provider_of()
    await call.of(provider, notes(2))
    assert call.state["last"]["outcome"] == "unchanged"
    await call.of(provider, notes())
    decided = call.state["conversation"]
    assert call.state["last"]["outcome"] == "compacted"
    call.state["last"] = "as it was"
    await call.of(provider, notes())
    assert call.state["conversation"] is decided
    assert call.state["last"] == "as it was"
    await call.of(provider_of(broken), notes())
    assert call.state["last"]["failures"]
    unread = Call()
    odd: Any = SimpleNamespace(role="user", contents=None, additional_properties={}, author_name=None)
    await unread.of(provider_of(), [odd])
    assert (unread.sent, "conversation" in unread.state) == ([[odd]], False)


# --- strategies -------------------------------------------------------------------------------------------------------


async def test_ours_in_a_list_of_theirs() -> None:
    """It flags copies of what left, inserts what the view adds, and says whether anything changed."""
    ours = as_framework_strategy(Summarization(trigger=tokens_exceed(300), keep=last(groups=2)), counter="chars/4")
    assert (await ours([]), ours.conversations.last) == (False, None)
    assert repr(ours).startswith("as_framework_strategy(Summarization(")
    messages = notes()
    given = list(messages)
    assert await ours(messages) is True
    flagged = [message for message in messages if message.additional_properties.get("_excluded")]
    [made] = [message for message in messages if message not in flagged and all(message is not each for each in given)]
    assert (len(messages), len(flagged), messages.index(made)) == (9, 6, 0)
    assert [message.additional_properties["_exclude_reason"] for message in flagged] == ["compacted"] * 6
    assert not any("_excluded" in message.additional_properties for message in given)
    assert same(messages[-2:], given[-2:]) == [True] * 2
    before = list(messages)
    assert await ours(messages) is False
    assert same(messages, before) == [True] * 9
    assert await as_framework_strategy(NEVER, counter="chars/4")(notes(2)) is False
    options = ours.conversations.options
    assert (copy.deepcopy(ours).conversations.options, ours.__name__) == (options, "Summarization")
    named, answered = as_framework_strategy(NEVER, agent_name="Shop"), [Message("assistant", ["5"])]
    assert (await named(answered), answered[0].author_name) == (False, "Shop")
    cut = as_framework_strategy(SHORTEN, counter="chars/4")
    assert await cut(given) is True
    assert len(given) == 8
    unread: list[Any] = [SimpleNamespace(additional_properties={})]
    assert await as_framework_strategy(SHORTEN)(unread) is False


def called(turn: int, result: str) -> list[Message]:
    call = Content.from_function_call(f"c{turn}", "look_up", arguments="{}")
    return [Message("assistant", [call]), Message("tool", [Content.from_function_result(f"c{turn}", result=result)])]


async def test_where_new_messages_stand_in_the_list() -> None:
    """Each message that the view adds stands where the view has it, before what it replaced; a later one of others stays."""
    messages = [*notes(1), *called(1, "5 euros. " * 60), *called(2, "6 euros. " * 60), loaded("NOTE", source="notes")]
    messages[-1].additional_properties["_attribution"]["source_type"] = "Noting"
    given = list(messages)
    ours = as_framework_strategy(ToolResult(Clear(min_chars=1), keep=nothing), counter="chars/4")
    assert await ours(messages) is True
    kinds = ["made" if all(each is not old for old in given) else "kept" for each in messages]
    assert messages[-1] is given[-1]
    assert flags(messages) == [False, False, False, True, False, False, True, False]
    assert [kinds[place] for place in (0, 1, 2, 4, 5, 7)] == ["kept", "kept", "made", "kept", "made", "kept"]
    first_and_last = Summarization(trigger=tokens_exceed(300), keep=first(messages=1) | last(groups=2))
    messages = notes()
    await as_framework_strategy(first_and_last, counter="chars/4")(messages)
    assert flags(messages) == [False] * 2 + [True] * 5 + [False] * 2
    assert "[compaction" in messages[1].text


async def test_ours_counts_other_providers_messages() -> None:
    """Messages of other providers count and stay; those of any history provider, also of one's own, are the conversation."""

    class Mine(HistoryProvider):
        """A history of one's own."""

    ours = as_framework_strategy(SHORTEN, counter="chars/4")
    note = Message("user", ["NOTE " * 40], additional_properties={"_attribution": {"source_type": "Noting"}})
    mine = Message("user", ["hi"], additional_properties={"_attribution": {"source_type": Mine.__name__}})
    odd = Message("user", ["hi"], additional_properties={"_attribution": "x"})
    messages = [note, mine, odd, *notes()]
    await ours(messages)
    assert turn_of(ours).index.context.overhead_tokens == ours.conversations.count_messages([note])
    assert flags(messages[:3]) == [False, True, True]
    assert InMemoryHistoryProvider.__name__ == HISTORY["source_type"]


async def test_theirs_in_ours() -> None:
    """Their exclusions are drops, their linked summaries replace what they link to, and ours gets the name of theirs."""

    async def summarized(messages: list[Any]) -> bool:
        for message in messages[:2]:
            message.additional_properties |= {"_excluded": True, "_group": {"_summarized_by_summary_id": "s1"}}
            message.contents.clear()
        messages[2].additional_properties["_excluded"] = True
        messages.insert(0, Message("assistant", ["Some notes."], message_id="s1"))
        messages.insert(0, Message("assistant", ["linked to nothing"], message_id=None))
        return True

    given = notes(5)
    steps: list[Any] = []
    strategy = from_framework_strategy(summarized)
    result = await compact(given, strategy, format=agent_framework, counter="chars/4", on_step=steps.append)
    assert (result.outcome, result.refused) == ("compacted", ())
    assert [(step.strategy, step.reached) for step in steps] == [("summarized", True)]
    assert [edit.reason for edit in result.edits] == ["summarized by summarized", "excluded by summarized"]
    assert ["Some notes." in message.text for message in result.messages] == [True, False, False]
    assert [len(message.contents) for message in given] == [1] * 5
    assert from_framework_strategy(copy.copy).name == "copy"
    assert from_framework_strategy(partial(summarized)).name == "partial"
    with pytest.raises(StrategyError, match="async callable"):
        from_framework_strategy("summarize")  # type: ignore[arg-type]


# --- the summarizer ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("finish", [None, "content_filter"])
async def test_the_summarizers_request(finish: str | None) -> None:
    """It sends the options and a limit, reads why the answer ended, shows no client, and takes its settings by name."""
    asked: list[Any] = []

    class Scripted:
        async def get_response(self, messages: list[Message], *, options: dict[str, Any]) -> Any:
            asked.append((messages, options))
            return SimpleNamespace(text=SUMMARY, finish_reason=finish)

    client = Scripted()
    settings = SummaryOptions(headroom=2)
    summarizer = ChatClientSummarizer(client, options={"seed": 1}, summary_options=settings)
    result = await compact(notes(), Summarization(summarizer, keep=last(groups=1)), format=agent_framework, counter="chars/4")
    assert result.outcome == ("compacted" if finish is None else "degraded")
    [messages, options], *_ = asked
    assert [message.role for message in messages] == ["system", "user"]
    assert (options["seed"], options["max_tokens"] > 0) == (1, True)
    assert "Scripted" not in repr(summarizer)
    client.model = "first"  # type: ignore[attr-defined]
    key = summarizer.cache_key
    client.model = "second"  # type: ignore[attr-defined]
    assert summarizer.cache_key != key
    assert hash(summarizer) == hash(ChatClientSummarizer(client, options={"seed": 2}, summary_options=settings))
    with pytest.raises(TypeError):
        ChatClientSummarizer(client, {})  # type: ignore[misc]
