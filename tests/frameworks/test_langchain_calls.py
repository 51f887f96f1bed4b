"""LangChain: single calls of the middlewares and of the summarizer, without an agent."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from langchain.agents.middleware import ExtendedModelResponse, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.types import Command

from compaction import CompactionResult, MessageIndex, last, run, run_sync
from compaction.errors import ConfigurationError
from compaction.integrations.langchain import (
    ChatModelSummarizer,
    CompactionMiddleware,
    RewritingMiddleware,
    _focus_of_call,
    conversation_id,
    langchain,
    model_name,
)
from compaction.strategies import Summarization, Truncation
from compaction.summarizers import CachedSummarizer, SummaryOptions
from compaction.triggers import tokens_exceed
from tests.frameworks.model_server import SUMMARY
from tests.frameworks.turns import status_of, turn_of
from tests.support.scripted import Awaited, TooLong

SHORTEN = Truncation(trigger=tokens_exceed(300), keep=last(groups=2))
NOTES = [HumanMessage(f"Note {place}: " + "the shop is open. " * 20, id=str(place)) for place in range(8)]
BOTH = pytest.mark.parametrize("kind", [CompactionMiddleware, RewritingMiddleware])


def request_of(messages: list[Any], **options: Any) -> ModelRequest[None]:
    given: dict[str, Any] = {"model": SimpleNamespace(model_name="gpt-5"), "state": {"messages": messages}, **options}
    return ModelRequest(messages=messages, **given)


def answer(tokens: int = 0) -> AIMessage:
    usage: Any = {"input_tokens": tokens, "output_tokens": 5, "total_tokens": tokens + 5}
    return AIMessage("ok", usage_metadata=usage)


@BOTH
def test_a_copy_has_the_tool(kind: Any) -> None:
    for middleware in (kind(SHORTEN, compact_tool=True), kind(SHORTEN)):
        for copied in (copy.deepcopy(middleware), pickle.loads(pickle.dumps(middleware))):
            assert [tool.name for tool in copied.tools] == [tool.name for tool in middleware.tools]
            assert copied.conversations.options == middleware.conversations.options
    [tool] = kind(SHORTEN, compact_tool=True).tools
    assert tool.name == "compact_conversation"
    assert tool.invoke({"focus": "prices"}) == "The conversation is compacted before your next answer."


@pytest.mark.parametrize("inner", ["message", "response", "extended", "extended without a command"])
def test_the_edits_are_saved_with_the_answer(inner: str) -> None:
    """The answer of each form is kept, with the state that an inner middleware saves; it is alone if nothing changed."""
    middleware = CompactionMiddleware(SHORTEN, counter="chars/4")
    given: Any = answer()
    if inner != "message":
        given = ModelResponse(result=[given])
    if inner.startswith("extended"):
        command = Command(update={"other": 1}) if inner == "extended" else None
        given = ExtendedModelResponse(model_response=given, command=command)
    sent: list[int] = []

    def handler(request: ModelRequest[None]) -> Any:
        sent.append(len(request.messages))
        return given

    done = middleware.wrap_model_call(request_of(NOTES), handler)
    assert isinstance(done, ExtendedModelResponse)
    assert done.model_response.result == [answer()]
    assert done.command is not None
    assert isinstance(done.command.update, dict)
    saved = done.command.update.pop("compaction")
    assert done.command.update == ({"other": 1} if inner == "extended" else {})
    resumed = CompactionMiddleware(Truncation(trigger=tokens_exceed(10_000)), counter="chars/4")
    request = request_of(NOTES, state={"messages": NOTES, "compaction": saved})
    assert resumed.wrap_model_call(request, handler) is given
    assert sent[0] == sent[1] < 8


@pytest.mark.parametrize("form", [lambda raw: raw, lambda raw: ModelResponse(result=[HumanMessage("x"), raw])])
def test_usage_of_an_answer_counts(form: Any) -> None:
    """The usage in an answer of any form corrects the counts; tools, the system prompt and the model's name count too."""
    tool = {"type": "function", "function": {"name": "look_up", "description": "Look up a price. " * 40, "parameters": {}}}
    middleware = CompactionMiddleware(SHORTEN, counter="chars/4", window="auto")
    request = request_of(NOTES[:1], tools=[tool], system_message=SystemMessage("You are a shop. " * 40))
    middleware.wrap_model_call(request, lambda request: form(answer(9_000)))
    assert (status_of(middleware).tokens, status_of(middleware).window) == (9_000, 272_000)
    bare = CompactionMiddleware(SHORTEN, counter="chars/4")
    bare.wrap_model_call(request, lambda request: answer())
    turn = turn_of(bare)
    assert 320 < turn.index.context.overhead_tokens < 400
    assert turn.index.context.window is None


@BOTH
async def test_only_a_length_error_is_compacted(kind: Any) -> None:
    """After another error nothing runs. A length error of messages that cannot be read is raised, and nothing is repeated."""
    results: list[CompactionResult] = []
    middleware = kind(SHORTEN, counter="chars/4", on_result=results.append)
    for messages, error in ((NOTES[:1], ZeroDivisionError()), (["no message"], TooLong("prompt is too long: 9 tokens > 4"))):
        before, calls = len(results), list[Any]()

        async def handler(request: Any, error: Exception = error, calls: list[Any] = calls) -> Any:
            calls.append(request)
            raise error

        with pytest.raises(type(error)):
            await middleware.awrap_model_call(request_of(messages), handler)
        assert len(calls) == 1
        assert len(results) - before == (kind is CompactionMiddleware or isinstance(error, TooLong))


async def test_rewriting() -> None:
    """Messages are replaced if anything changes; tokens outside them are remembered, and saved only if they changed."""
    middleware = RewritingMiddleware(SHORTEN, counter="chars/4")
    long, short = ({"messages": messages} for messages in (NOTES, NOTES[:3]))
    assert middleware.before_model(short, None) is await middleware.abefore_model(short, None) is None
    for update in (middleware.before_model(long, None), await middleware.abefore_model(long, None)):
        assert update is not None
        removal, *view = update["messages"]
        assert (removal.type, len(view) < 8, view[-1]) == ("remove", True, NOTES[-1])
    summarizing = Summarization(Awaited("Some notes."), trigger=tokens_exceed(300), keep=last(groups=1))
    update = await RewritingMiddleware(summarizing, counter="chars/4").abefore_model({"messages": NOTES}, None)
    assert update is not None
    request = request_of(NOTES[:1], system_message=SystemMessage("You are a shop. " * 100))
    done = middleware.wrap_model_call(request, lambda request: answer())
    assert done.command is not None
    seen = done.command.update["compaction"]
    assert (seen["model"], 400 < seen["overhead_tokens"] < 410) == (None, True)
    assert middleware.before_model({**short, "compaction": seen}, None) is not None
    again = request_of(NOTES[:1], system_message=request.system_message, state={"compaction": seen})
    assert middleware.wrap_model_call(again, lambda request: answer()) == answer()


OURS, OTHER = "compact_conversation", "look_up"


def called(*calls: tuple[str, str | None]) -> list[Any]:
    """Return an answer that calls these tools with a focus, and the results."""
    made = [
        {"name": name, "args": {} if focus is None else {"focus": focus}, "id": str(at)}
        for at, (name, focus) in enumerate(calls)
    ]
    results = [ToolMessage("done", name=name, tool_call_id=str(at)) for at, (name, _) in enumerate(calls)]
    return [AIMessage("", tool_calls=made), *results]


@pytest.mark.parametrize(
    ("messages", "focus"),
    [
        ([HumanMessage("hi")], None),
        (called((OURS, "tea")), "tea"),
        (called((OURS, None)), ""),
        (called((OTHER, "x")), None),
        (called((OURS, "a"), (OURS, "b")), "b"),
        (called((OURS, "a"), (OTHER, "b")), "a"),
        ([*called((OURS, "tea")), AIMessage("done")], None),
        (called((OURS, "tea"))[1:], None),
        ([], None),
    ],
)
def test_the_focus_of_the_models_call(messages: list[Any], focus: str | None) -> None:
    """The focus is that of the last call of our tool whose result is the newest; without the tool, nothing is looked for."""
    assert _focus_of_call(messages) == focus
    results: list[CompactionResult] = []
    strategy = Summarization(trigger=tokens_exceed(10_000), keep=last(groups=1))
    middleware = CompactionMiddleware(strategy, counter="chars/4", on_result=results.append)
    middleware.wrap_model_call(request_of([*NOTES, *messages]), lambda request: answer())
    assert results[0].outcome == "unchanged"


def test_names_that_are_none() -> None:
    """A model without a name, with an empty one, or with one that is not a text counts as unknown."""
    for name in (7, "", None):
        assert model_name(SimpleNamespace(model=name, _get_ls_params=lambda name=name: {"ls_model_name": name})) is None


def test_a_conversations_id() -> None:
    assert [conversation_id(config) for config in (None, {}, {"configurable": {"checkpoint_ns": "a:1"}})] == [None] * 3
    assert conversation_id({"configurable": {"thread_id": 7}}) == "7"


class Scripted:
    """A chat model. Holds state: the calls."""

    def __init__(self, **fields: Any) -> None:
        self.answer = SimpleNamespace(text=SUMMARY, response_metadata=None, **fields)
        self.calls: list[tuple[str, Any]] = []

    def invoke(self, messages: Any, **options: Any) -> Any:
        self.calls.append(("invoke", options))
        return self.answer

    async def ainvoke(self, messages: Any, **options: Any) -> Any:
        self.calls.append(("ainvoke", options))
        return self.answer


class Timed(Scripted):
    """A chat model with an option ``timeout`` among others."""

    model_fields = {"a": SimpleNamespace(alias=None), "request_timeout": SimpleNamespace(alias="timeout")}  # noqa: RUF012


class Untimed(Scripted):
    """A chat model without such an option."""

    model_fields = {"a": SimpleNamespace(alias="b")}  # noqa: RUF012


@pytest.mark.parametrize(
    ("sync", "awaited", "expected"),
    [(None, False, "invoke"), (None, True, "ainvoke"), (True, True, "invoke"), (False, True, "ainvoke")],
)
def test_which_method_is_called(sync: bool | None, awaited: bool, expected: str) -> None:
    """Without an event loop, or on request, the model is called at once, with a time limit if it has one."""
    index = MessageIndex(list(NOTES), format=langchain, counter="chars/4")
    for model, limit in ((Timed(), {"timeout": 7.0}), (Untimed(), {}), (Scripted(), {})):
        options = SummaryOptions(timeout_seconds=7.0)
        summarizer = ChatModelSummarizer(model, sync=sync, options={"seed": 1}, summary_options=options)
        strategy = Summarization(summarizer, keep=last(messages=1), on_failure="raise")
        if awaited:
            anyio.run(run, copy.deepcopy(index), strategy)
        else:
            run_sync(copy.deepcopy(index), strategy)
        assert model.calls == [(expected, {**(limit if expected == "invoke" else {}), "seed": 1})]


@pytest.mark.parametrize("metadata", [None, {"finish_reason": "content_filter"}, {"stop_reason": "content_filter"}])
def test_why_an_answer_ended(metadata: Any) -> None:
    """A reason to stop, in the names of the providers, makes an answer unusable."""
    model = Scripted()
    model.answer.response_metadata = metadata
    index = MessageIndex([{"role": "user", "content": "word " * 4_000}] * 4, counter="chars/4")
    failures = run_sync(index, Summarization(ChatModelSummarizer(model), keep=last(messages=1))).failures
    assert ["content filter" in str(failed) for failed in failures] == [True] * (metadata is not None)


def test_a_summarizer_is_a_value(tmp_path: Path) -> None:
    """It has a hash, does not show the model, which may hold a key, is cached by the model's name and its settings."""
    model = Scripted()
    summarizer = ChatModelSummarizer(model, options={"seed": 1})
    assert hash(summarizer) == hash(ChatModelSummarizer(model, options={"seed": 1}))
    assert "Scripted" not in repr(summarizer)
    with pytest.raises(ConfigurationError, match="Scripted has no 'model' or 'model_name'"):
        CachedSummarizer(summarizer, tmp_path / "answers.db")
    model.model_name = "first"  # type: ignore[attr-defined]
    cached = CachedSummarizer(summarizer, tmp_path / "answers.db")
    keys = [cached.cache_key]
    model.model_name = "second"  # type: ignore[attr-defined]
    keys += [cached.cache_key, CachedSummarizer(ChatModelSummarizer(model), tmp_path / "answers.db").cache_key]
    assert len(set(keys)) == 3
    with pytest.raises(TypeError):
        ChatModelSummarizer(model, True)  # type: ignore[misc]
