"""Prompt-cache breakpoints: ignored in comparisons, kept when messages are replaced, and never increased in number."""

from __future__ import annotations

from typing import Any

from compaction.formats import MessageFormat, anthropic, for_comparison, gemini, keep_breakpoints, openai_chat, openai_responses

HOUR = {"type": "ephemeral", "ttl": "1h"}
SHORT = {"type": "ephemeral"}


def text(words: str, mark: Any = None) -> dict[str, Any]:
    return {"type": "text", "text": words, **({} if mark is None else {"cache_control": mark})}


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(parts)}


def kept(sent: list[Any], given: list[Any], format: MessageFormat = anthropic) -> list[Any]:
    return keep_breakpoints(sent, given, for_comparison(given, format), format)


SUMMARY = {"role": "assistant", "content": "A summary."}


def test_messages_are_compared_without_breakpoints() -> None:
    """Breakpoints are removed at every level before messages are compared; a message without one stays the same object."""
    result = {"type": "tool_result", "tool_use_id": "t", "content": [text("a", SHORT), text("b")], "cache_control": HOUR}
    bare = {"type": "tool_result", "tool_use_id": "t", "content": [text("a"), text("b")]}
    marked = [user(text("one", HOUR)), user(text("one"), text("two", SHORT)), user(result)]
    found = for_comparison(marked, anthropic)
    assert found == [{"role": "user", "content": "one"}, user(text("one"), text("two")), user(bare)]
    assert marked[0] == user(text("one", HOUR))
    plain = [{"role": "user", "content": "plain"}, user({"type": "image", "source": {}}), "not a message"]
    assert [one is other for one, other in zip(for_comparison(plain, anthropic), plain, strict=True)] == [True] * 3


def test_a_text_with_and_without_a_breakpoint_is_the_same() -> None:
    """Some agents send a plain text instead. In a format without breakpoints, a field of that name is not changed."""
    one, other = user(text("x", HOUR)), {"role": "user", "content": "x"}
    assert for_comparison([one], openai_chat) == for_comparison([other], openai_chat)
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    plain = {"role": "assistant", "content": "", "tool_calls": [call]}
    marked = {**plain, "tool_calls": [{**call, "cache_control": SHORT}]}
    assert for_comparison([marked], openai_chat) == [plain]
    assert kept([{"role": "user", "content": "summary"}], [marked]) == [user(text("summary", SHORT))]
    message = {"role": "user", "parts": [{"text": "x", "cache_control": 7}]}
    assert for_comparison([message], gemini)[0] is message
    marked = user(text("x", SHORT))
    assert for_comparison([marked], openai_responses)[0] is marked


def test_the_breakpoint_of_a_cut_message_moves_to_what_stands_for_it() -> None:
    """A removed message's breakpoint moves, with its ttl, to the message that replaces it; other messages stay unchanged."""
    given = [user(text("task")), user(text("old", HOUR)), user(text("older")), user(text("new", SHORT))]
    found = kept([given[0], SUMMARY, given[3]], given)
    assert found == [given[0], {"role": "assistant", "content": [text("A summary.", HOUR)]}, given[3]]
    assert found[2] is given[3]
    assert SUMMARY["content"] == "A summary."


def test_there_are_never_more_breakpoints() -> None:
    """Two breakpoints replaced by one message become one, and are dropped if no message replaces them."""
    given = [user(text("task")), user(text("a", HOUR)), user(text("b", SHORT)), user(text("new"))]
    summary = user(text("A summary."), text("Its end."))
    assert kept([given[0], summary, given[3]], given)[1] == user(text("A summary."), text("Its end.", HOUR))
    assert kept([given[0], given[3]], given) == [given[0], given[3]]


def test_a_rewritten_message_keeps_its_own() -> None:
    """A breakpoint is never put on a thinking block, which the provider would refuse."""
    given = [user(text("a", HOUR)), user(text("b")), user(text("c", SHORT))]
    short = [{"role": "user", "content": "A"}, {"role": "user", "content": "C"}]
    assert kept([short[0], given[1], short[1]], given) == [user(text("A", HOUR)), given[1], user(text("C", SHORT))]
    given = [user(text("a", HOUR))]
    thought = {"role": "assistant", "content": [{"type": "thinking", "thinking": "x", "signature": "s"}]}
    assert kept([thought], given) == [thought]


def test_what_has_nothing_to_carry_keeps_its_shape() -> None:
    """A text stays a plain string in messages that are kept, and in those that stand for messages without a breakpoint."""
    plain = [{"role": "user", "content": f"{number}"} for number in range(4)]
    assert kept([plain[0], plain[3]], plain) == [plain[0], plain[3]]
    assert kept([plain[0], SUMMARY], plain) == [plain[0], SUMMARY]
    given = [plain[0], plain[1], user(text("a", HOUR)), plain[3], user(text("b", SHORT))]
    marked = {"role": "assistant", "content": [text("A summary.", HOUR)]}
    found = kept([plain[0], SUMMARY, SUMMARY, *given[3:]], given)
    assert found == [plain[0], {"role": "assistant", "content": [text("A summary.")]}, marked, *given[3:]]
    assert found[0] is plain[0]
    first = user(text("a", HOUR))
    summary = {**SUMMARY, "content": [text("A summary.")]}
    assert kept([first, SUMMARY, plain[3]], [first, *plain[1:]]) == [first, summary, plain[3]]


def test_a_result_in_chat_completions_stays_a_text() -> None:
    """Some providers do not read a result in parts, so it carries no breakpoint. In Anthropic's format, a message may."""
    given = [{"role": "tool", "tool_call_id": "c", "content": [text("long", SHORT)]}]
    short = {"role": "tool", "tool_call_id": "c", "content": "short"}
    assert kept([short], given, openai_chat) == [short]
    other, empty = {"role": "user", "content": "short"}, {"role": "user", "content": ""}
    assert kept([other, empty], given, openai_chat) == [user(text("short", SHORT)), empty]
