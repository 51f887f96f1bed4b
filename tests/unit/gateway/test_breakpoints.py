"""Breakpoints of a prompt cache: not compared, not lost, never more than came."""

from __future__ import annotations

from typing import Any

from compaction.formats import anthropic, gemini, openai_chat
from compaction.gateway.breakpoints import keep_breakpoints, without_breakpoints

HOUR = {"type": "ephemeral", "ttl": "1h"}
SHORT = {"type": "ephemeral"}


def text(words: str, mark: Any = None) -> dict[str, Any]:
    """A part with words, and perhaps a breakpoint."""
    return {"type": "text", "text": words, **({} if mark is None else {"cache_control": mark})}


def user(*parts: Any) -> dict[str, Any]:
    """A user message."""
    return {"role": "user", "content": list(parts)}


def test_messages_are_compared_without_breakpoints() -> None:
    """Wherever one may stand; what has none stays the same object."""
    result = {"type": "tool_result", "tool_use_id": "t", "content": [text("a", SHORT), text("b")], "cache_control": HOUR}
    messages = [
        {"role": "user", "content": "plain"},
        user(text("one", HOUR)),
        user(text("one"), text("two", SHORT)),
        user(result),
        user({"type": "image", "source": {}}),
        "not a message",
    ]
    found = without_breakpoints(messages, anthropic)
    assert found == [
        {"role": "user", "content": "plain"},
        {"role": "user", "content": "one"},
        user(text("one"), text("two")),
        user({"type": "tool_result", "tool_use_id": "t", "content": [text("a"), text("b")]}),
        user({"type": "image", "source": {}}),
        "not a message",
    ]
    assert [one is other for one, other in zip(found, messages, strict=True)] == [True, False, False, False, True, True]
    assert messages[1] == user(text("one", HOUR))


def test_a_text_with_and_without_a_breakpoint_is_the_same() -> None:
    """Some agents write an unmarked text as a plain string."""
    one, other = user(text("x", HOUR)), {"role": "user", "content": "x"}
    assert without_breakpoints([one], openai_chat) == without_breakpoints([other], openai_chat)


def test_formats_without_breakpoints_are_not_changed() -> None:
    """A field of that name means something else there."""
    message = {"role": "user", "parts": [{"text": "x", "cache_control": 7}]}
    assert without_breakpoints([message], gemini)[0] is message


def kept(sent: list[Any], given: list[Any]) -> list[Any]:
    """What is sent with the breakpoints it keeps."""
    return keep_breakpoints(sent, given, without_breakpoints(given, anthropic), anthropic)


def test_the_breakpoint_of_a_cut_message_moves_to_what_stands_for_it() -> None:
    """With its ttl; those of messages that stay are not touched."""
    given = [user(text("task")), user(text("old", HOUR)), user(text("older")), user(text("new", SHORT))]
    summary = {"role": "assistant", "content": "A summary."}
    found = kept([given[0], summary, given[3]], given)
    assert found == [given[0], {"role": "assistant", "content": [text("A summary.", HOUR)]}, given[3]]
    assert found[2] is given[3]
    assert summary == {"role": "assistant", "content": "A summary."}


def test_there_are_never_more_breakpoints() -> None:
    """Two of cut messages become one where one message stands for both; without such a message they are gone."""
    given = [user(text("task")), user(text("a", HOUR)), user(text("b", SHORT)), user(text("new"))]
    summary = user(text("A summary."), text("Its end."))
    assert kept([given[0], summary, given[3]], given)[1] == user(text("A summary."), text("Its end.", HOUR))
    assert kept([given[0], given[3]], given) == [given[0], given[3]]


def test_a_rewritten_message_keeps_its_own() -> None:
    """Each in its own place."""
    given = [user(text("a", HOUR)), user(text("b")), user(text("c", SHORT))]
    short = [{"role": "user", "content": "A"}, {"role": "user", "content": "C"}]
    assert kept([short[0], given[1], short[1]], given) == [user(text("A", HOUR)), given[1], user(text("C", SHORT))]


def test_a_thought_carries_none() -> None:
    """The provider refuses a breakpoint there."""
    given = [user(text("a", HOUR))]
    thought = {"role": "assistant", "content": [{"type": "thinking", "thinking": "x", "signature": "s"}]}
    assert kept([thought], given) == [thought]
