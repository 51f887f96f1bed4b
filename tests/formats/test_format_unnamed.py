"""``format=None``: every function that takes a format detects it, and raises a typed error if it cannot."""

from __future__ import annotations

import copy
import importlib
import inspect
import pkgutil
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import compaction
from compaction import MessageIndex, compact_sync, first, last, repair, validate
from compaction.errors import StateError, UnknownFormat
from compaction.formats import (
    FORMATS,
    MessageFormat,
    OpenAIChat,
    anthropic,
    detect,
    gemini,
    openai_chat,
    openai_responses,
    resolve,
)
from compaction.integrations.hermes import CompactionEngine, apply_cache_control, hygiene_due
from compaction.models import input_limit, prices_of
from compaction.session import CompactionSession
from compaction.strategies import Pipeline, Truncation
from compaction.testing import (
    agent_session,
    benchmark_strategy,
    check_strategy,
    check_trigger,
    conversations,
)
from compaction.triggers import messages_exceed
from tests.support.chats import Chat, call, indexed, result, system, turns, user
from tests.support.limits import examples
from tests.support.wires import any_conversation

ASKED = {"role": "user", "content": "What time is it?"}
OF_ANTHROPIC = [
    {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "now", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "noon"}]},
]
OF_GEMINI = [{"role": "model", "parts": [{"text": "noon"}]}]
ITEM = {"type": "message", "role": "user", "content": [{"type": "hologram", "hologram": "two formats may have it"}]}


@pytest.mark.parametrize("format", FORMATS, ids=repr)
@examples(25)
@given(data=st.data())
def test_what_is_found_reads_the_same(format: MessageFormat, data: st.DataObject) -> None:
    """The format itself, or chat completions where nothing shows another: then both find the same problems.

    A damaged list, in which a message of no format stands, may be refused instead.
    """
    messages = data.draw(any_conversation(format))
    try:
        found = resolve(None, messages)
    except UnknownFormat:
        assert format.validate(messages)
        return
    assert found in (format, openai_chat)
    assert validate(messages) == found.validate(messages)
    assert repair(messages) == found.repair(messages)
    assert indexed(messages).format is found


EVERYWHERE: list[Callable[[list[Any]], object]] = [
    validate,
    repair,
    lambda messages: compact_sync(messages, Pipeline(), counter="chars/4"),
    lambda messages: CompactionSession(Pipeline(), counter="chars/4").view_sync(messages),
    lambda messages: MessageIndex(counter="chars/4").sync(messages),
    lambda messages: check_strategy(Pipeline(), messages=messages),
    lambda messages: check_trigger(messages_exceed(1), messages=messages),
    lambda messages: benchmark_strategy(Pipeline(), [1], conversation=lambda _: messages, repeats=1),
    lambda messages: hygiene_due(messages, window=100),
    apply_cache_control,
]


@pytest.mark.parametrize("take", EVERYWHERE, ids=range(len(EVERYWHERE)))
@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ([call("1"), result("1"), *OF_GEMINI], r"messages\[2\] is gemini, but messages\[0\] is openai-chat"),
        ([*OF_ANTHROPIC, call("1")], r"messages\[2\] is openai-chat, but messages\[0\] is anthropic"),
        ([ITEM], "these messages can be openai-responses, anthropic; name one with format="),
    ],
)
def test_what_cannot_be_told_is_an_error(take: Callable[[list[Any]], object], messages: list[Any], text: str) -> None:
    """Messages of two formats, or of one that cannot be determined, raise ``UnknownFormat`` with the place or the remedy."""
    with pytest.raises(UnknownFormat, match=text):
        take(messages)


def test_a_name_that_no_format_has() -> None:
    for take in (lambda: agent_session(3, format="morse"), lambda: conversations(format="morse")):
        with pytest.raises(UnknownFormat, match="no such wire format"):
            take()


def takes_messages(function: Callable[..., object]) -> bool:
    """Return whether the function has a parameter for one or more conversations."""
    conversations = {"messages", "conversations", "conversation", "dataset", "table", "inputs"}
    takes = bool(inspect.signature(function).parameters.keys() & conversations)
    return takes and function not in (
        messages_exceed,
        first,
        last,
        detect,
        input_limit,
        prices_of,
    )


def test_every_function_that_takes_messages_takes_a_format() -> None:
    missing: list[str] = []
    for found in pkgutil.walk_packages(compaction.__path__, "compaction."):
        if ".integrations" in found.name or ".formats." in found.name or found.name.endswith("__main__"):
            continue
        module = importlib.import_module(found.name)
        public = [getattr(module, name) for name in getattr(module, "__all__", ()) if found.ispkg or "." not in found.name[11:]]
        for function in filter(inspect.isfunction, public):
            takes = inspect.signature(function).parameters
            if takes_messages(function) and not takes.keys() & {"format", "options", "job"}:
                missing.append(f"{found.name}.{function.__name__}")
    assert missing == []


each_other_format = pytest.mark.parametrize("format", [each for each in FORMATS if each is not openai_chat], ids=repr)


@each_other_format
@examples(15)
@given(data=st.data())
def test_conversations_are_drawn_in_the_format(format: MessageFormat, data: st.DataObject) -> None:
    """Valid ones are valid in it, but for calls that wait where that is asked for."""
    waiting = data.draw(st.booleans())
    messages = data.draw(conversations(format=format.name, pending=waiting))
    assert {problem.rule for problem in format.validate(messages)} <= ({"pending-call"} if waiting else set())
    assert isinstance(format.validate(data.draw(conversations(format=format, valid=False))), list)


class Meeting(OpenAIChat):
    """A custom format, which has no registered name."""

    name = "meeting"


class TestSavedSessions:
    """A reopened session uses the format that its caller names."""

    def test_a_format_of_ones_own(self) -> None:
        session = CompactionSession(Pipeline(), counter="chars/4", format=Meeting())
        session.view_sync([ASKED])
        again = CompactionSession.from_dict(session.to_dict(), Pipeline(), counter="chars/4", format=Meeting())
        assert (again.view_sync([ASKED]), again.index.format.name) == ([ASKED], "meeting")
        with pytest.raises(StateError, match="meeting"):
            CompactionSession.from_dict(session.to_dict(), Pipeline(), counter="chars/4")

    def test_a_guess_gives_way_to_a_name(self) -> None:
        """A detected format is replaced by a format named at loading; a format named before cannot be replaced."""
        for keep in (True, False):
            saved = indexed([ASKED]).to_dict(messages=keep)
            index = MessageIndex.from_dict(saved, counter="chars/4", format=anthropic)
            index.sync([ASKED, call("1")])
            assert (index.format, index.included.tool_calls) == (anthropic, 0)
        named = indexed([ASKED], format=openai_chat).to_dict()
        with pytest.raises(StateError, match=r"openai-chat.*not .anthropic"):
            MessageIndex.from_dict(named, counter="chars/4", format=anthropic)


def test_an_engine_takes_it() -> None:
    """An engine uses its named format in its session, in deep copies and in preflight estimates."""
    engine = copy.deepcopy(CompactionEngine(counter="chars/4", format="openai-responses"))
    assert engine.session.index.format is openai_responses
    assert not engine.should_compress_preflight([ITEM])
    assert engine.last_error is None


class TestGrowing:
    """A conversation whose format shows only after some turns."""

    @pytest.mark.parametrize("way", ["append", "sync", "view"])
    def test_it_is_read_anew_when_the_format_shows(self, way: str) -> None:
        index = indexed(turns(3))
        assert index.format is openai_chat
        compact = Truncation(trigger=messages_exceed(4), keep=last(groups=2))
        edited = [edit for edit in compact(index) if hasattr(edit, "groups")]
        for edit in edited:
            index.apply(edit)
        more = [ASKED, *OF_ANTHROPIC]
        if way == "append":
            index.append(more)
        else:
            index.sync([*(index.source if way == "sync" else index.messages()), *more])
        assert index.format is anthropic
        known = indexed(turns(3), format=anthropic)
        for edit in edited:
            known.apply(edit)
        known.append(more)
        assert (index.included_groups[-1].tool_names, index.edits) == (("now",), tuple(edited))
        assert (index.messages(), index.included) == (known.messages(), known.included)
        assert index.rollback() is None
        assert index.messages() == [*turns(3), *more]

    def test_a_session_goes_on(self) -> None:
        """A session whose first turns fit several formats detects the format when it shows, without being told."""
        session = CompactionSession(Truncation(trigger=messages_exceed(3), keep=last(groups=2)), counter="chars/4")
        messages: Chat = [ASKED]
        assert session.view_sync(messages) == [ASKED]
        messages += OF_ANTHROPIC
        messages += [*turns(1), ASKED]
        assert anthropic.validate(session.view_sync(messages)) == []
        assert session.index.format is anthropic

    @pytest.mark.parametrize("keep", [True, False])
    def test_a_stored_index_still_looks(self, keep: bool) -> None:
        """A detected format is saved as a guess, with or without the messages; a named format is saved as final."""
        for named, found in ((None, anthropic), ("openai-chat", openai_chat)):
            saved = indexed([ASKED], format=named).to_dict(messages=keep)
            index = MessageIndex.from_dict(saved, counter="chars/4")
            index.sync([ASKED, *OF_ANTHROPIC])
            assert index.format is found

    def test_another_conversation_altogether(self) -> None:
        index = indexed([system(), user(), call("1"), result("1")])
        index.sync([{"role": "user", "parts": [{"text": "hi"}]}, *OF_GEMINI])
        assert (index.format, len(index.included_groups)) == (gemini, 2)
