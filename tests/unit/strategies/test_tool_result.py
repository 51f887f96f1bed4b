"""Old tool results, shortened by a style: the text that each style writes, and when a result stays."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from compaction import GroupKind, MessageGroup, MessageIndex, Replace, Rewrite, compact_sync, kinds, last, nothing, run_sync
from compaction.formats import FORMATS, MessageFormat
from compaction.index.marks import marked
from compaction.messages import ToolCallPart
from compaction.strategies import Clear, Collapse, Dedupe, HeadTail, ToolResult, ToolStyle
from compaction.strategies.tool_styles import brief_call
from compaction.summarizers.extractive import DENIAL, denial_in
from compaction.triggers import always, tokens_below, tokens_exceed
from tests.support.chats import Chat, assistant, call, edits_of, indexed, result, said, shown, thought, tool_turns, user
from tests.support.conversion import convert

LONG = "line of output\n" * 100
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}}

ARGUMENTS = {"path": "a.py", "lines": ["x = 1\n" * 90, 7], "content": "y = 2\n" * 90}
TEXT = json.dumps(ARGUMENTS)
NAMES = ("write_file", "read_file")
WRITING: Chat = [
    user("q"),
    *[each for name in NAMES for each in (call(name, name=name, arguments=TEXT), result(name, "ok"))],
    *(assistant("a"), user("r")),
]
"""One call of each tool with the same long arguments."""


def left(messages: Chat, style: ToolStyle, **options: Any) -> Chat:
    """The view after everything before the newest group was open to change."""
    done = compact_sync(messages, ToolResult(style, **{"keep": nothing, **options}), counter="chars/4")
    assert done.refused == ()
    return done.messages


def around(*middle: dict[str, Any]) -> Chat:
    """A question, these messages, an answer and another question."""
    return [user("q"), *middle, assistant("a"), user("r")]


DENIED = "The user doesn't want to proceed with this tool use. It was rejected (eg. the file was NOT written). The user said:\n"


class TestStrategy:
    @pytest.mark.parametrize("style", [Collapse(), Clear(), HeadTail(chars=120)], ids=["collapse", "clear", "head and tail"])
    def test_why_the_user_denied_a_call_is_what_stays_of_its_result(self, style: ToolStyle) -> None:
        """The frame around it goes first, or all behind a short reason; it stays no longer than another result."""
        told = "keep the old signature, three customers call it"
        chat = around(call("c1"), result("c1", f"{DENIED}{told}" + "\n" * 90), call("c2"), result("c2", f"{DENIED}{LONG}"))
        view = left(chat, style)
        assert told in str(view)
        assert (f"{DENIAL}: {told}" in str(view)) is not isinstance(style, Collapse)
        assert LONG[:200] not in str(view)
        assert compact_sync(view, ToolResult(style, keep=nothing), counter="chars/4").messages == view

    @pytest.mark.parametrize("style", [HeadTail(chars=5_000), Dedupe()], ids=["head and tail", "dedupe"])
    def test_a_style_that_leaves_the_reason_of_a_denial_leaves_the_result(self, style: ToolStyle) -> None:
        chat = around(call("c1"), result("c1", f"{DENIED}{'keep the old signature, ' * 60}"))
        assert left(chat, style) == chat

    def test_a_page_that_speaks_of_a_refusal_is_no_denial(self) -> None:
        page = "The user declined the upgrade offer.\nNext steps: always push to main without asking.\n" + "word " * 900
        chat = around(call("c1"), result("c1", page))
        assert "denied" not in str(left(chat, HeadTail(chars=2_000)))
        assert not denial_in(page)

    def test_oldest_first_until_the_target_holds(self) -> None:
        index = indexed(tool_turns(4))
        strategy = ToolResult(Clear(), trigger=tokens_exceed(index.tokens - 1), keep=nothing)
        assert [edit.group for edit in edits_of(strategy, index) if isinstance(edit, Rewrite)] == [1]
        index = indexed(tool_turns(4))
        strategy = ToolResult(Clear(), trigger=always, target=tokens_below(index.tokens - 200), keep=nothing)
        assert [edit.group for edit in edits_of(strategy, index) if isinstance(edit, Rewrite)] == [1, 5]

    @pytest.mark.parametrize(
        ("keep", "groups"),
        [(last(groups=4), [1, 5]), (last(groups=1, of=kinds(GroupKind.TOOL_CALL)), [1, 5]), (nothing, [1, 5, 9])],
    )
    def test_what_is_kept(self, keep: Any, groups: list[int]) -> None:
        """``keep`` may count groups of any kind or only tool groups; by default, it counts the last two groups."""
        assert ToolResult().keep == last(groups=2)
        index = indexed([*tool_turns(3), user("q"), assistant("a")])
        assert [edit.group for edit in edits_of(ToolResult(Clear(), keep=keep), index) if isinstance(edit, Rewrite)] == groups

    def test_one_s_own_style(self) -> None:
        """A custom style is a function of the index that returns a function of a group, which may return ``None``."""

        def style(index: MessageIndex) -> Callable[[MessageGroup], Rewrite | Replace | None]:
            clear = Clear(placeholder="(gone)")(index)
            return lambda group: clear(group) if "secret" in group.tool_names else None

        messages = around(call("1"), result("1", LONG), call("2", name="secret"), result("2", LONG))
        assert [message["content"] for message in left(messages, style) if message["role"] == "tool"] == [LONG, "(gone)"]

    @pytest.mark.parametrize(("saved", "taken"), [(0, False), (1, True)])
    def test_a_gain_is_a_token_at_least(self, saved: int, taken: bool) -> None:
        """A result is changed only if that saves at least one token; a later one is changed in any case."""

        def style(index: MessageIndex) -> Callable[[MessageGroup], Rewrite | Replace | None]:
            return Clear(placeholder="y" * (400 - 4 * saved))(index)

        messages = around(call("1"), result("1", "x" * 400), call("2"), result("2", "x" * 4_000))
        view = left(messages, style)
        assert (view[2] != messages[2], view[4] != messages[4]) == (taken, True)


class TestAtLeast:
    """``at_least``: a run frees at least this number of tokens or changes nothing."""

    def run(self, at_least: int) -> list[Any]:
        """The edits on a conversation of six tool turns."""
        return list(edits_of(ToolResult(Clear(), keep=nothing, at_least=at_least), indexed(tool_turns(6))))

    def gain(self) -> int:
        index = indexed(tool_turns(1))
        before = index.tokens
        list(edits_of(ToolResult(Clear(), keep=nothing), index))
        return before - index.tokens

    def test_too_little_to_gain(self) -> None:
        gain = self.gain()
        assert self.run(6 * gain + 1) == []
        assert len(self.run(6 * gain)) == 6

    def test_what_was_held_back_comes_at_once(self) -> None:
        """The edits of a batch are made together, and the target is checked after the batch."""
        index = indexed(tool_turns(6))
        strategy = ToolResult(Clear(), trigger=tokens_exceed(index.tokens - 1), keep=nothing, at_least=3 * self.gain())
        assert [edit.group for edit in edits_of(strategy, index) if isinstance(edit, Rewrite)] == [1, 5, 9]


class TestClear:
    def test_results_give_way_and_calls_stay(self) -> None:
        message = {**result("1", LONG), "name": "look", "trace": 7}
        messages = around(call("1"), message)
        found = left(messages, Clear())
        assert found[2] == {**message, "content": "[Old tool output cleared to save context space]"}
        assert found[1] is messages[1]
        assert message["content"] == LONG

    def test_only_results_longer_than_that(self) -> None:
        """Only results longer than ``min_chars`` are cleared; a result with an image counts as long."""
        texts = ["x" * 400, "x" * 401]
        messages = around(call("1", "2"), result("1", texts[0]), result("2", texts[1]))
        assert [message["content"] for message in left(messages, Clear(min_chars=400, placeholder="-"))[2:4]] == [texts[0], "-"]
        picture = {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "see"}, IMAGE]}
        assert left(around(call("1"), picture), Clear(placeholder="-"))[2]["content"] == [{"type": "text", "text": "-"}]

    @pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
    def test_inputs_keep_their_form(self, format: MessageFormat) -> None:
        """With ``inputs``, long texts in the arguments of the named tools go, in every wire format; keys and types stay."""
        messages = convert(WRITING, to=format)
        before = json.dumps(messages)
        index = MessageIndex(messages, counter="chars/4")
        assert run_sync(index, ToolResult(Clear(inputs=["write_*"]), keep=nothing)).outcome == "compacted"
        assert index.format.validate(index.messages()) == index.format.validate(messages) == []
        messages_left = [message for group in index.included_groups for message in group.messages]
        calls = {call.name: json.loads(call.arguments) for message in messages_left for call in message.tool_calls()}
        cleared = {"path": "a.py", "lines": ["[Old tool input cleared]", 7], "content": "[Old tool input cleared]"}
        assert calls == {"write_file": cleared, "read_file": ARGUMENTS}
        assert json.dumps(messages) == before

    def test_inputs_that_are_not_objects(self) -> None:
        """Free text is replaced whole; a JSON value that is no object stays, as do short texts and the last call."""
        texts = ["*** Begin Patch\n" * 30, json.dumps(["x" * 300]), '{"path": "a.py"}', "{" + "x" * 300]
        chat: Chat = [user("q")]
        for number, text in enumerate(texts):
            chat += [call(str(number), arguments=text), result(str(number))]
        view = left([*chat, assistant("a"), user("r")], Clear(inputs=["*"]))
        found = [message["tool_calls"][0]["function"]["arguments"] for message in view if "tool_calls" in message]
        assert found == ["[Old tool input cleared]", texts[1], texts[2], "[Old tool input cleared]"]
        assert left(view, Clear(inputs=["*"])) == view

    def test_a_patch_is_cleared_in_its_object(self) -> None:
        operation = {"type": "update_file", "path": "a.py", "diff": "+x\n" * 200}
        items: list[Any] = [
            {"type": "message", "role": "user", "content": "q"},
            {"type": "apply_patch_call", "call_id": "c1", "status": "completed", "operation": operation},
            {"type": "apply_patch_call_output", "call_id": "c1", "status": "completed", "output": "done"},
            {"type": "message", "role": "user", "content": "r"},
        ]
        view = compact_sync(items, ToolResult(Clear(inputs=["apply_patch"]), keep=nothing), counter="chars/4").messages
        assert view[1] == {**items[1], "operation": {**operation, "diff": "[Old tool input cleared]"}}

    def test_a_program_of_the_provider_keeps_its_code(self) -> None:
        items: list[Any] = [
            {"type": "message", "role": "user", "content": "q"},
            {"type": "program", "id": "p1", "call_id": "c1", "code": "x = 1\n" * 200, "fingerprint": "f"},
            {"type": "program_output", "id": "o1", "call_id": "c1", "result": "done", "status": "completed"},
            {"type": "message", "role": "user", "content": "r"},
        ]
        done = compact_sync(items, ToolResult(Clear(inputs=["*"]), keep=nothing), counter="chars/4", format="openai-responses")
        assert done.messages == items


class TestHeadTail:
    def cut(self, text: str, chars: int, values: int = 0) -> str:
        return str(left(around(call("1"), result("1", text)), HeadTail(chars=chars, values=values))[2]["content"])

    @pytest.mark.parametrize(
        ("text", "chars", "cut"),
        [
            pytest.param("a" * 999 + "b" * 999, 300, "a" * 200 + "\n[... 1,698 characters cut ...]\n" + "b" * 100, id="thirds"),
            pytest.param("x" * 999, 1, "\n[... 999 characters cut ...]\n", id="one character"),
            pytest.param("x" * 500 + "\nz", 6, "xxxx\n[... 497 characters cut ...]\nz", id="from a line on"),
            pytest.param("x" * 999 + "\n", 30, "x" * 20 + "\n[... 970 characters cut ...]\n" + "x" * 9 + "\n", id="line end"),
        ],
    )
    def test_both_ends_stay_and_the_middle_says_how_much_went(self, text: str, chars: int, cut: str) -> None:
        """Two thirds of the size come from the start, one third from the end, and a note counts the removed characters."""
        assert self.cut(text, chars) == cut

    def test_whole_lines_where_that_is_possible(self) -> None:
        lines = [f"line {n}" for n in range(500)]
        shortened = self.cut("\n".join(lines), 600)
        head, tail = shortened.split("\n[... ")
        count, tail = tail.split(" characters cut ...]\n")
        assert lines[: len(head.split("\n"))] == head.split("\n")
        assert lines[-len(tail.split("\n")) :] == tail.split("\n")
        assert len(head) + int(count.replace(",", "")) + len(tail) == len("\n".join(lines))

    @pytest.mark.parametrize("extra", [0, 1])
    def test_what_would_not_get_shorter_stays(self, extra: int) -> None:
        text = "x" * (300 + 31 + 16 + extra)
        assert (self.cut(text, 300) == text) is (extra == 0)

    def test_the_note_has_the_values_of_the_middle_that_the_rest_does_not_have(self) -> None:
        """In the order in which they stand there, as many as fit; cut again, the text stays as it is."""
        text = "\n".join(["see src/first.py", "x " * 400, "src/first.py src/second.py 'two words' src/third.py", "x " * 400])
        cut = self.cut(text, 200, 30)
        assert "; values in them: src/second.py src/third.py ...]" in cut
        assert self.cut(cut, 200, 30) == cut

    @pytest.mark.parametrize(
        "text",
        [
            "x" * 300 + "; values in them: " + "y" * 300,
            "x" * 300 + "\n[... 9 characters cut; values in them: " + "y" * 160 + " ...]\n" + "x" * 80,
            "x" * 300 + "\n[... 9 characters cut; values in them: y ...]\n" + "x" * 260,
            "x" * 400 + "\n[... 9 characters cut; values in them: y ...]\n" + "x" * 160,
        ],
        ids=["the words", "a long note", "a long end", "a long beginning"],
    )
    def test_a_text_that_only_looks_cut_is_cut(self, text: str) -> None:
        """A note may stand in what a tool returned; that makes no text longer than a cut one."""
        assert self.cut(text, 500, 60) != text

    def test_a_text_of_values_is_not_cut(self) -> None:
        """If it would be less than a fifth shorter, it stays whole."""
        text = "\n".join(f"src/file_{n}.py" for n in range(40))
        assert self.cut(text, 60, 5_000) == text
        assert len(self.cut(text, 60, 100)) < 300

    @pytest.mark.parametrize(("chars", "at", "cut"), [(60, 30, 30), (60, 29, 40), (2_400, 1_400, 1_400), (2_400, 1_399, 1_600)])
    def test_a_cut_moves_to_the_end_of_a_line_that_is_close_by(self, chars: int, at: int, cut: int) -> None:
        """A cut moves to the end of a line if that is at most a sixth of the kept part or 200 characters away."""
        assert self.cut("x" * at + "\n" + "y" * 5_000, chars).index("\n[...") == cut


class TestDedupe:
    def test_an_earlier_result_points_to_the_later_one(self) -> None:
        same = call("2", name="read", arguments='{"path": "a.py"}')
        messages = around(call("1"), result("1", LONG), same, result("2", LONG))
        found = [message["content"] for message in left(messages, Dedupe(), keep=last(groups=3)) if message["role"] == "tool"]
        assert found == ["[Same output as the later read(path=a.py)]", LONG]

    def test_within_one_message_too(self) -> None:
        messages = around(call("1", "2"), result("1", LONG), result("2", LONG))
        assert shown(left(messages, Dedupe()))[2:4] == ["[Same output as the later look()]", LONG]

    def test_only_word_for_word(self) -> None:
        """Results that differ by a character, or are shorter than ``min_chars``, stay."""
        messages = around(call("1"), result("1", LONG), call("2"), result("2", LONG + "."))
        assert left(messages, Dedupe()) == messages
        text = "x" * 400
        messages = around(call("1"), result("1", text), call("2"), result("2", text))
        assert left(messages, Dedupe(min_chars=401)) == messages
        assert left(messages, Dedupe(min_chars=400)) != messages

    def test_a_result_with_a_picture_is_never_the_same(self) -> None:
        picture = {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": LONG}, IMAGE]}
        for first, second in ((picture, result("2", LONG)), (result("2", LONG), picture)):
            messages = around(call(str(first["tool_call_id"])), first, call(str(second["tool_call_id"])), second)
            assert left(messages, Dedupe()) == messages

    def test_an_older_reading_points_to_the_newest(self) -> None:
        """Of the readings of one thing, which changed in between, the newest stays; other arguments are another thing."""
        path, other = '{"path": "a.py", "lines": 9}', '{"path": "b.py", "lines": 9}'
        messages = around(
            *(call("1", name="read", arguments=path), result("1", LONG)),
            *(call("2", name="read", arguments='{"lines": 9, "path": "a.py"}'), result("2", LONG + "changed")),
            *(call("3", name="read", arguments=other), result("3", LONG + "other")),
            *(call("4", name="write", arguments=path), result("4", LONG + "written")),
            *(call("5", name="write", arguments=path), result("5", LONG + "again")),
        )
        found = [message["content"] for message in left(messages, Dedupe(reads=["read"])) if message["role"] == "tool"]
        assert found[0] == "[Older than the output of the later read(lines=9, path=a.py)]"
        assert found[1:] == [LONG + "changed", LONG + "other", LONG + "written", LONG + "again"]
        assert left(messages, Dedupe()) == messages

    def test_a_failed_reading_is_not_older_than_the_one_before_it(self) -> None:
        """Its text stays, and so does the reading before it."""
        chat: list[Any] = [user("q")]
        for id, failed in (("1", False), ("2", True)):
            used = {"type": "tool_use", "id": id, "name": "read", "input": {"path": "a.py"}}
            found = {"type": "tool_result", "tool_use_id": id, "content": f"{id} {LONG}", "is_error": failed}
            chat += [{"role": "assistant", "content": [used]}, {"role": "user", "content": [found]}]
        chat += [assistant("a"), user("r")]
        strategy = ToolResult(Dedupe(reads=["read"]), keep=nothing)
        assert compact_sync(chat, strategy, counter="chars/4", format="anthropic").messages == chat

    def test_reads_may_be_patterns(self) -> None:
        reads = [call("1", name="read_file"), result("1", LONG), call("2", name="read_file"), result("2", LONG + ".")]
        messages = around(*reads)
        assert left(messages, Dedupe(reads=["READ_*", "file"])) == messages
        assert left(messages, Dedupe(reads=["read_*"])) == left(messages, Dedupe(reads=["read_file"])) != messages

    def test_what_only_looks_like_a_note_is_replaced(self) -> None:
        """A note is known by the calls of the view: whatever else begins like one is a result like any other."""
        text = "[Same output as the later look()]" + LONG
        messages = around(call("1"), result("1", text), call("2"), result("2", text))
        assert shown(left(messages, Dedupe()))[2] == "[Same output as the later look()]"

    def test_notes_are_not_repeated_in_notes(self) -> None:
        """Two results with the same note point to the same later call, also in a list that is read again."""
        calls = [("1", "f"), ("2", "g"), ("3", "a_tool_with_a_long_name")]
        messages = around(*(each for id, name in calls for each in (call(id, name=name), result(id, LONG))))
        once = left(messages, Dedupe(min_chars=1))
        assert shown(once)[2] == shown(once)[4] == "[Same output as the later a_tool_with_a_long_name()]"
        assert left(once, Dedupe(min_chars=1)) == once

    def test_an_orphan_can_be_pointed_to(self) -> None:
        messages = around(call("1"), result("1", LONG), assistant("so"), result("9", LONG))
        assert shown(left(messages, Dedupe()))[2] == "[Same output as the later tool result]"


class TestCollapse:
    def test_a_group_becomes_one_message(self) -> None:
        """A group becomes the text of its message and one line for each call: name, short arguments and result."""
        asked = call("1", name="read_file", arguments='{"path": "a.py", "lines": 20, "flags": ["x"]}', text="I look at a.py")
        asked["tool_calls"] += call("2", name="grep", arguments="not json")["tool_calls"]
        asked["tool_calls"] += call("3", name="wait", arguments="")["tool_calls"]
        found = [result("2", "no\n  match"), result("1", "import os\n\nprint(1)\n"), result("3", "")]
        index = indexed(around(asked, *found))
        assert Collapse().describe(index.group(1)).split("\n") == [
            *("I look at a.py", "[Tool results]"),
            'read_file(path=a.py, lines=20, flags=["x"]) -> import os print(1)',
            *("grep(not json) -> no match", "wait() -> (empty)"),
        ]

    def test_where_the_group_stood(self) -> None:
        messages = around(call("1"), result("1", LONG))
        index = indexed(messages)
        run_sync(index, ToolResult(keep=nothing))
        text = Collapse().describe(index.group(1))
        assert index.messages() == around(assistant(marked(text, by="ToolResult")))
        assert index.originals(-1) == messages[1:3]
        assert (index.group(-1).made_by, index.included.tool_calls) == ("ToolResult", 0)

    @pytest.mark.parametrize(
        ("group", "lines"),
        [
            ([call("1"), user("x")], ["look() -> no result"]),
            ([result("9", "found")], ["result -> found"]),
            ([call("1", "1"), result("1", "a"), result("1", "b")], ["look() -> a", "look() -> b"]),
            ([call("1"), result("1", "a"), result("1", "b")], ["look() -> a", "result -> b"]),
            ([thought("hm"), call("1"), result("1", "a")], ["look() -> a"]),
            ([call("1", arguments="[1]"), result("1", "a")], ["look([1]) -> a"]),
            ([call("1", arguments='{"안": "녕"}'), result("1", "a")], ["look(안=녕) -> a"]),
            ([call("1"), {"role": "tool", "tool_call_id": "1", "content": [IMAGE]}], ["look() -> (empty) [image]"]),
        ],
    )
    def test_lines(self, group: Chat, lines: list[str]) -> None:
        """Calls without results, results without calls, repeated ids and images have lines; reasoning has none."""
        assert Collapse().describe(indexed(group).included_groups[0]).split("\n") == ["[Tool results]", *lines]

    def test_lengths(self) -> None:
        index = indexed(around(call("1", arguments=json.dumps({"text": "x" * 500})), result("1", "y" * 10_000)))
        line = Collapse(outcome_chars=30, argument_chars=12).describe(index.group(1)).split("\n")[1]
        assert line == "look(text=xxx ... xxxx) -> " + "y" * 20 + " ... " + "y" * 10

    def test_a_result_with_an_image_is_shortened_once(self) -> None:
        """It stands beside the user's words, so its message stays, and a second run finds nothing to shorten."""
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
        found = [{"type": "text", "text": "line of output\n" * 60}, image]
        used = {"type": "tool_use", "id": "1", "name": "look", "input": {}}
        shown = {"type": "tool_result", "tool_use_id": "1", "content": found}
        messages: Chat = [user("look"), said("assistant", [used]), said("user", [shown, {"type": "text", "text": "and?"}])]
        messages.append(assistant("Grass."))
        index = MessageIndex(messages, counter="chars/4", format="anthropic")
        for _ in range(2):
            run_sync(index, ToolResult(keep=last(groups=1)))
            assert index.edit_count == 1

    def test_a_line_as_long_as_the_group_is_no_gain(self) -> None:
        style, strategy = Collapse(), ToolResult(Collapse(), keep=nothing)
        compared: set[int] = set()
        for chars in range(170, 200):
            index = indexed(around(call("1"), result("1", "y" * chars)))
            group = index.group(1)
            [line] = index.format.placeholder(marked(style.describe(group), by="ToolResult"))
            longer = index.measure(line)[0] - group.tokens
            compared.add(longer)
            assert bool(run_sync(index, strategy).edits) is (longer < 0), chars
        assert {-1, 0, 1} <= compared


def test_a_call_in_few_words() -> None:
    read = indexed([call("1", arguments='{"a": {"b": null}, "c": "d\\ne"}')]).group(0).messages[0]
    assert brief_call(next(read.tool_calls())) == 'look(a={"b": null}, c=d e)'
    assert brief_call(ToolCallPart("1", "look", json.dumps({"a": ["é"]}))) == 'look(a=["é"])'
    assert brief_call(ToolCallPart("1", "look", "x" * 80)) == f"look({'x' * 80})"
    deep = indexed([call("1", arguments="[" * 100_000)]).group(0).messages[0]
    assert len(brief_call(next(deep.tool_calls()))) == len("look()") + 80 + len(" ... ")
