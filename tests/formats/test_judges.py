"""Independent checks: the providers' own types accept compacted messages, and other converters agree on pairs.

A check whose package is not installed is skipped; ``docs/validity.md`` lists the differences.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter

from compaction import compact_sync
from compaction.formats import FORMATS, MessageFormat, anthropic, bedrock, gemini, openai_chat, openai_responses
from compaction.strategies import Strategy
from tests.support.conversion import convert
from tests.support.rulebook import rules
from tests.support.wires import STRATEGIES, valid_conversation

Raw = dict[str, Any]

OTHERS = [format for format in FORMATS if format is not openai_chat]
CHATS = st.sampled_from(OTHERS).flatmap(lambda format: st.tuples(valid_conversation(format), st.just(format)))
"""A conversation in another format than chat completions, and its format."""


def compacted(messages: list[Raw], strategy: Strategy, format: MessageFormat) -> list[Raw]:
    return compact_sync(messages, strategy, counter="chars/4", format=format).messages


@functools.cache
def types_of(name: str) -> Callable[[Any], object]:
    """Return a function that checks one message against the types in the provider's package."""
    if name == "openai-responses":
        return TypeAdapter(ResponseInputItemParam).validate_python
    if name == "anthropic":
        types = pytest.importorskip("anthropic.types", reason="the anthropic package is not installed")
        return TypeAdapter(types.MessageParam).validate_python
    if name == "bedrock":
        return service_model()
    types = pytest.importorskip("google.genai.types", reason="the google-genai package is not installed")
    return types.Content.model_validate


def service_model() -> Callable[[Any], object]:
    """Return a function that checks one message against the service model that boto3 checks requests against."""
    session = pytest.importorskip("botocore.session", reason="botocore is not installed")
    validator = pytest.importorskip("botocore.validate").ParamValidator()
    shape = session.get_session().get_service_model("bedrock-runtime").shape_for("Message")

    def take(message: Any) -> object:
        report = validator.validate(message, shape)
        assert not report.has_errors(), report.generate_report()
        return message

    return take


def read_whole(value: Any) -> None:
    """Iterate through a value, as pydantic validates the items of an iterable only on iteration."""
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, str | bytes) and isinstance(value, Iterable):
        for each in value:
            read_whole(each)


@pytest.mark.parametrize("format", OTHERS, ids=repr)
@given(data=st.data())
def test_the_providers_types_take_what_is_written(format: MessageFormat, data: st.DataObject) -> None:
    """Every message that compaction wrote has the shape the provider's own package declares; the others are the caller's."""
    take = types_of(format.name)
    messages = data.draw(valid_conversation(format))
    given_ids = {id(message) for message in messages}
    left = compacted(messages, data.draw(st.sampled_from(STRATEGIES)), format)
    for message in left:
        if id(message) not in given_ids:
            read_whole(take(message))


@given(messages=valid_conversation(bedrock))
def test_boto3_takes_what_the_rules_accept(messages: list[Raw]) -> None:
    take = types_of("bedrock")
    for message in [*messages, *convert(convert(messages, to=openai_chat), to=bedrock, format=openai_chat)]:
        take(message)


@functools.cache
def google() -> Any:
    """Return Google's client, which opens no connection before its first request."""
    genai = pytest.importorskip("google.genai", reason="the google-genai package is not installed")
    return genai.Client(api_key="none")


@given(messages=valid_conversation(gemini), strategy=st.sampled_from(STRATEGIES))
def test_googles_chat_keeps_every_turn(messages: list[Raw], strategy: Strategy) -> None:
    """A chat of its own package, begun with what is left, sends all of it: it leaves out turns that it holds to be invalid."""
    left = compacted(messages, strategy, gemini)
    chat = google().chats.create(model="gemini-3-pro", history=left)
    assert len(chat.get_history(curated=True)) == len(left)


@given(messages=valid_conversation(openai_responses), strategy=st.sampled_from(STRATEGIES))
def test_the_agents_sdk_finds_nothing_to_drop(messages: list[Raw], strategy: Strategy) -> None:
    """Its runner leaves out calls without results, the reasoning before them, and results without calls.

    In what compaction left there are none but the calls that wait.
    """
    items = pytest.importorskip("agents.run_internal.items", reason="openai-agents is not installed")
    left = compacted(messages, strategy, openai_responses)
    sent = items.drop_orphan_function_calls(left, output_pruning_indexes=set(range(len(left))))
    assert (len(sent) == len(left)) == (not openai_responses.validate(left))


def spoken_to(messages: list[Raw]) -> list[Raw]:
    """Return a chat that LangChain's converters accept: no system messages, text in every message, function calls only."""
    kept = [message for message in messages if message["role"] != "system"]
    return [{**message, "content": message["content"] or "words", **_functions(message)} for message in kept]


def _functions(message: Raw) -> Raw:
    """Return the message's calls as function calls, the only kind that LangChain has."""
    calls = message.get("tool_calls") or ()
    made = [{"id": call["id"], "type": "function", "function": {"name": "look", "arguments": "{}"}} for call in calls]
    return {"tool_calls": made} if made else {}


def to_anthropic(messages: list[Any]) -> list[Raw]:
    models = pytest.importorskip("langchain_anthropic.chat_models", reason="langchain-anthropic is not installed")
    return list(models._format_messages(messages, model="claude-sonnet-4-5")[1])


def to_gemini(messages: list[Any]) -> list[Raw]:
    models = pytest.importorskip("langchain_google_genai.chat_models", reason="langchain-google-genai is not installed")
    return list(models._parse_chat_history(messages)[1])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("target", "write"), [(anthropic, to_anthropic), (gemini, to_gemini)], ids=["anthropic", "gemini"])
@given(chat=CHATS, strategy=st.sampled_from(STRATEGIES))
def test_what_langchain_writes_is_valid(
    target: MessageFormat, write: Callable[[list[Any]], list[Raw]], chat: tuple[list[Raw], MessageFormat], strategy: Strategy
) -> None:
    """The view, sent through LangChain's converters, breaks none of our rules; in Gemini a call may be first, and wait."""
    core = pytest.importorskip("langchain_core.messages", reason="langchain-core is not installed")
    messages, format = chat
    left = convert(compacted(messages, strategy, format), to=openai_chat, format=format)
    written = write(core.convert_to_messages(spoken_to(left)))
    waiting = {"pending-call", "trailing-space", "call-without-result"} if format.validate(messages) else set[str]()
    fine = waiting if target is anthropic else {"misplaced-call", "pending-call"}
    assert set(rules(target, written)) - fine == set()


def of_pydantic_ai(messages: list[Raw]) -> list[Any]:
    """Return a chat as pydantic-ai messages: requests contain user text and results, responses the rest."""
    parts = pytest.importorskip("pydantic_ai.messages", reason="pydantic-ai-slim is not installed")
    names = {call["id"]: call["function"]["name"] for message in messages for call in message.get("tool_calls") or ()}
    history: list[Any] = []
    for message in messages:
        if message["role"] == "assistant":
            made = [(call["function"], call["id"]) for call in message.get("tool_calls") or ()]
            calls = [parts.ToolCallPart(function["name"], function["arguments"], id) for function, id in made]
            history.append(parts.ModelResponse([parts.TextPart(message["content"]), *calls]))
            continue
        part, id = parts.UserPromptPart(message["content"]), message.get("tool_call_id")
        if message["role"] == "tool":
            part = parts.ToolReturnPart(names.get(id, "lost"), message["content"], id)
        if history and isinstance(history[-1], parts.ModelRequest):
            history[-1] = parts.ModelRequest([*history[-1].parts, part])
        else:
            history.append(parts.ModelRequest([part]))
    return history


def words_alone(messages: list[Raw]) -> list[Raw]:
    """Return the chat with a string as every content."""
    return [message if isinstance(message["content"], str) else {**message, "content": "parts"} for message in messages]


@given(chat=CHATS, strategy=st.sampled_from(STRATEGIES))
def test_pydantic_ai_finds_nothing_to_repair(chat: tuple[list[Raw], MessageFormat], strategy: Strategy) -> None:
    """Its agent answers calls that have no result; in what compaction left there are none but those that wait."""
    graph = pytest.importorskip("pydantic_ai._agent_graph", reason="pydantic-ai-slim is not installed")
    messages, format = chat
    left = compacted(messages, strategy, format)
    written = words_alone(spoken_to(convert(left, to=openai_chat, format=format)))
    history = of_pydantic_ai(written)
    repaired = graph._repair_dangling_tool_calls(history, repair_last_response=True)
    assert (repaired is history) == (not format.validate(left))


@given(chat=CHATS, strategy=st.sampled_from(STRATEGIES))
def test_pydantic_ais_anthropic_messages_are_valid(chat: tuple[list[Raw], MessageFormat], strategy: Strategy) -> None:
    """The view, sent through its converter to Anthropic messages, breaks none of our rules for these."""
    models = pytest.importorskip("pydantic_ai.models.anthropic", reason="pydantic-ai-slim is not installed")
    providers = pytest.importorskip("pydantic_ai.providers.anthropic", reason="anthropic is not installed")
    messages, format = chat
    left = compacted(messages, strategy, format)
    written = words_alone(spoken_to(convert(left, to=openai_chat, format=format)))
    model = models.AnthropicModel("claude-sonnet-4-5", provider=providers.AnthropicProvider(api_key="none"))
    parameters = pytest.importorskip("pydantic_ai.models").ModelRequestParameters()
    _, formatted = anyio.run(model._map_message, of_pydantic_ai(written), parameters, {})
    waiting = {"pending-call", "trailing-space"} if format.validate(left) else set[str]()
    assert set(rules(anthropic, formatted)) - waiting == set()
