"""The command line: its output, its messages, its exit codes."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest
import typer
from typer.testing import CliRunner, Result

from compaction import presets
from compaction.cli.app import app
from compaction.cli.exit_codes import CommandGroup
from compaction.files import read_conversations
from compaction.formats import validate
from compaction.run import compact_sync
from tests.support.chats import call, result, tool_turns, turns, user
from tests.support.programs import PROGRAM, ROOT, ended, started

ESCAPES = "\x1b]0;title\x07\x1b[2J\x1b[31m\u202e\x9b1m[bold red]a[/nothing]\ud800"
CHAT = tool_turns(6)
CHATS = str(ROOT / "examples" / "service_chats.jsonl")


def run(*arguments: str | Path, given: bytes | None = None) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=given)


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    """Return a file with a conversation of 24 messages and some 800 tokens, as an object with an id."""
    path = tmp_path / "chat.json"
    path.write_text(json.dumps({"id": "c", "messages": CHAT, "score": 1.50}, indent=1))
    return path


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    """Return a gzip file with three conversations of different lengths."""
    path = tmp_path / "chats.jsonl.gz"
    lines = [json.dumps({"id": f"chat-{count}", "messages": tool_turns(count)}) for count in (1, 3, 6)]
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    return path


# -------------------------------------------------------------------- compact


@pytest.mark.parametrize("name", sorted(presets.PRESETS))
def test_compact_knows_every_preset(chat: Path, tmp_path: Path, name: str) -> None:
    """Each preset takes its kind of size, and is the preset that the library returns for that size."""
    preset = presets.PRESETS[name]
    size = () if preset.size is None else (f"--{preset.size}", "600")
    done = run("compact", chat, "-o", tmp_path / "out.json", "--preset", name, *size, "--counter", "chars/4")
    strategy = preset.make() if preset.size is None else preset.make(600)
    assert done.exit_code in (0, 1)
    expected = compact_sync(CHAT, strategy, counter="chars/4").messages
    assert json.loads((tmp_path / "out.json").read_text())["messages"] == expected


@pytest.mark.parametrize(("budget", "deeds"), [(800, {"Replace"}), (100, {"Replace", "Rewrite"})])
def test_compact_reaches_a_budget(chat: Path, tmp_path: Path, budget: int, deeds: set[str]) -> None:
    """With --budget, the result is within it; groups are dropped only if gentler steps do not suffice."""
    done = run("compact", chat, "-o", tmp_path / "out.json", "--budget", str(budget), "--counter", "chars/4", "--json")
    [report] = json.loads(done.stdout)["conversations"]
    assert (done.exit_code, report["fits"]) == (0, True)
    assert report["after"]["tokens"] <= budget < report["before"]["tokens"]
    assert {deed["edit"] for step in report["steps"] for deed in step["did"]} == deeds


def test_untouched_messages_stay_byte_for_byte(tmp_path: Path) -> None:
    deep = "[" * 400 + "]" * 400  # within the depth that Python reads
    odd = f'{{ "role":"user" ,"content":"caf\\u00e9 \\/ \\ud83d\\ude00", "n": [1.0, 1E5, 1.50, {deep}] }}'
    path, out = tmp_path / "chat.jsonl", tmp_path / "out.jsonl"
    texts = [json.dumps(message) for message in CHAT]
    path.write_bytes(f'{{"messages":[{" , ".join([odd, *texts, odd])}]}}\r\n[]\r\n'.encode())
    assert run("compact", path, "-o", out, "--budget", "300", "--counter", "chars/4").exit_code == 0
    first, second = read_conversations(out)
    kept = [first.message_list.text[slice(*span)] for span in first.message_list.spans]
    assert kept[-1] == odd
    assert 1 < len([text for text in kept if text in texts]) < len(texts)
    assert first.message_list.text.endswith("]}\r\n")
    assert second.message_list.text == "[]\r\n"


def test_compact_reads_and_writes_streams() -> None:
    """- reads standard input; without -o the result alone is standard output, and the report goes to standard error."""
    done = run("compact", "-", "--window", "600", "--counter", "chars/4", given=gzip.compress(json.dumps(CHAT).encode()))
    expected = compact_sync(CHAT, presets.context_window(600), counter="chars/4").messages
    assert done.exit_code == 0
    assert json.loads(done.stdout) == expected
    assert "compacted; valid" in done.stderr


def test_the_report_on_one_conversation(chat: Path, tmp_path: Path) -> None:
    """It has the sizes and the result with the output's place; -v adds each step, its reason and edits."""
    done = run("compact", chat, "-o", tmp_path / "out.json", "--window", "600", "--counter", "chars/4", "-v")
    expected = compact_sync(CHAT, presets.context_window(600), counter="chars/4")
    before, after = expected.before, expected.after
    words = " ".join(done.stdout.split())
    assert words.startswith(
        f"before: {before.tokens:,} tokens in {before.messages} messages, counted by chars/4, an estimate "
        f"after: {after.tokens:,} tokens in {after.messages} messages ({100 * after.tokens / before.tokens:.1f} %); "
        "the limit is 600 result: compacted; valid; written to "
    )
    assert f"tokens {before.tokens:,} {after.tokens:,}" in words
    assert f"ToolResult tokens {before.tokens:,} > 300" in words
    assert "replaced: an old tool call" in words


def test_the_report_on_several_conversations(chats: Path, tmp_path: Path) -> None:
    """It has their sums, and names -v if one does not fit; -v shows a line for each."""
    options = ("compact", chats, "-o", tmp_path / "out.jsonl", "--budget", "1", "--counter", "chars/4")
    done = run(*options)
    words = " ".join(done.stdout.split())
    assert (done.exit_code, "of 3 conversations" in words, "; the limit is 1 for each" in words) == (1, True, True)
    assert "3 of 3 compacted; 3 over budget; valid" in words
    assert "-v shows a line for each conversation" in words
    lines = [line.split()[:3] for line in run(*options, "-v").stdout.splitlines() if line.startswith("line ")]
    assert lines == [["line", "1", "chat-1"], ["line", "2", "chat-3"], ["line", "3", "chat-6"]]


def test_report_as_json(chats: Path, tmp_path: Path) -> None:
    """With --json standard output is one JSON value: every conversation, its steps, and totals that add up."""
    done = run("compact", chats, "-o", tmp_path / "out.jsonl", "--budget", "300", "--counter", "chars/4", "--json")
    report = json.loads(done.stdout)
    each = report["conversations"]
    assert [one["id"] for one in each] == ["chat-1", "chat-3", "chat-6"]
    assert [one["outcome"] for one in each] == ["unchanged", "compacted", "compacted"]
    assert report["totals"]["after"]["tokens"] == sum(one["after"]["tokens"] for one in each)
    assert all(one["after"]["tokens"] <= 300 and one["problems"] == [] for one in each)
    assert {deed["edit"] for step in each[2]["steps"] for deed in step["did"]} == {"Replace"}
    assert (report["counter"], report["exact"], report["budget"]) == ("chars/4", False, 300)


def test_what_does_not_fit_is_written_and_told(chat: Path, tmp_path: Path) -> None:
    """With a budget too small for a summary, the smallest valid conversation is written, with exit code 1."""
    done = run("compact", chat, "-o", tmp_path / "out.json", "--budget", "1", "--counter", "chars/4")
    assert done.exit_code == 1
    assert "compacted, over budget, " in done.stdout
    assert " failures; valid" in done.stdout
    assert validate(json.loads((tmp_path / "out.json").read_text())["messages"]) == []


def test_known_problems_are_told_but_not_blamed(tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    path.write_text(json.dumps([*turns(2), call("c9")]))
    done = run("compact", path, "-o", tmp_path / "out.json", "--budget", "10k")
    assert done.exit_code == 0
    assert "pending-call" in done.stdout
    assert "unchanged; 1 problem, none new" in done.stdout


# -------------------------------------------------------------------- inspect


def test_inspect_shows_groups_and_kinds(chat: Path) -> None:
    """The table has a line for each group with a bar by its tokens, and one for each kind."""
    done = run("inspect", chat, "--counter", "chars/4")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert done.exit_code == 0
    assert lines[2][:4] == ["0", "user", "1", "1"]
    assert lines[3][:4] == ["1", "tool_call", "1", "2"]
    assert lines[3][-2:] == ["█" * 20, "look"]
    assert [line[:3] for line in lines if line[:1] == ["all"]] == [["all", "18", "24"]]
    assert [line[1:3] for line in lines[22:] if line[:1] == ["tool_call"]] == [["6", "12"]]


def test_inspect_as_json(chats: Path) -> None:
    """With --json every conversation comes with its groups, whose shares add up to one."""
    report = json.loads(run("inspect", chats, "--counter", "chars/4", "--json").stdout)
    assert [one["id"] for one in report["conversations"]] == ["chat-1", "chat-3", "chat-6"]
    longest = report["conversations"][2]
    assert [group["kind"] for group in longest["groups"][:3]] == ["user", "tool_call", "assistant"]
    assert sum(group["tokens"] for group in longest["groups"]) == longest["total"]["tokens"]
    assert sum(group["share"] for group in longest["groups"]) == pytest.approx(1)


def test_inspect_lists_several_and_chooses_one(chats: Path, tmp_path: Path) -> None:
    """Several conversations get a line each; --id shows the groups of one. Calls and results without each other are marked."""
    assert [line.split()[2] for line in run("inspect", chats).stdout.splitlines()[2:5]] == ["chat-1", "chat-3", "chat-6"]
    assert "tool_call" in run("inspect", chats, "--id", "chat-3").stdout
    missing = run("inspect", chats, "--id", "chat-9")
    assert (missing.exit_code, missing.stdout) == (2, "")
    assert "no conversation" in missing.stderr
    path = tmp_path / "chat.json"
    path.write_text(json.dumps([user(), result("gone"), user(), call("c1")]))
    shown = run("inspect", path).stdout
    assert ("[orphan]" in shown, "[open] [pending]" in shown) == (True, True)


# -------------------------------------------------------------------- validate, repair

BROKEN = [user("go"), call("c1", "c2"), result("c1"), user("well?"), result("c2"), result("c3")]


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """Return a file with a valid conversation and one that breaks rules."""
    path = tmp_path / "broken.jsonl"
    path.write_text(f"{json.dumps(turns(1))}\n{json.dumps(BROKEN)}\n")
    return path


def test_validate_lists_problems(chat: Path, broken: Path) -> None:
    """Each problem is a line with file, line, place, rule and remedy; any gives exit code 1."""
    done = run("validate", chat, broken)
    lines = done.stdout.splitlines()
    assert done.exit_code == 1
    assert lines[0] == f"{chat}: valid in 1 conversation of 24 messages"
    assert lines[1:4] == [f"{broken}, line 2: {problem}" for problem in validate(BROKEN)]
    assert lines[4] == f"{broken}: 3 problems in 2 conversations of 8 messages"
    assert run("validate", chat).exit_code == 0


def test_validate_goes_on_after_a_file_it_cannot_read(chat: Path, broken: Path, tmp_path: Path) -> None:
    """It is reported and gives exit code 2; the others are checked. With --json standard output is one value with all of it."""
    done = run("validate", tmp_path / "missing", broken, chat)
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert done.stdout.endswith(f"{chat}: valid in 1 conversation of 24 messages\n")
    report = json.loads(run("validate", broken, tmp_path / "missing", "--json").stdout)
    assert [problem["rule"] for problem in report["files"][0]["problems"]] == [problem.rule for problem in validate(BROKEN)]
    assert report["files"][0]["errors"] == []
    assert "No such file" in report["files"][1]["errors"][0]


def test_a_damaged_line_stops_neither_inspect_nor_validate(tmp_path: Path) -> None:
    """It is told on standard error and gives exit code 2; the conversations before and after it are shown."""
    path = tmp_path / "some.jsonl"
    whole = json.dumps(turns(2))
    path.write_text(f'{whole}\n{{"messages": [\n{whole}\n[{{"what": "is this?"}}]\n')
    for command in ("inspect", "validate"):
        done = run(command, path)
        assert done.exit_code == 2
        assert [line.partition(": it")[0].partition(": m")[0] for line in done.stderr.splitlines()] == [
            f"compaction: {path}, line {number}" for number in (2, 4)
        ]
        assert "line 3" in done.stdout if command == "inspect" else "valid in 2 conversations of 8 messages" in done.stdout
    report = json.loads(run("inspect", path, "--json").stdout)
    assert ([each["id"] for each in report["conversations"]], len(report["errors"])) == (["1", "3"], 2)
    path.write_text('{"messages": [')
    assert (run("inspect", path).exit_code, run("inspect", path).stdout) == (2, "")


def test_repair_tells_each_change(broken: Path, tmp_path: Path) -> None:
    """The result is valid, each change is listed, and valid conversations are written unchanged."""
    out = tmp_path / "out.jsonl"
    done = run("repair", broken, "-o", out)
    assert done.exit_code == 0
    assert done.stdout.splitlines()[-1] == "2 conversations: 2 changes, 0 problems left"
    assert all(line.startswith(f"changed: {broken}, line 2: messages[") for line in done.stdout.splitlines()[:-1])
    assert out.read_text().splitlines()[0] == broken.read_text().splitlines()[0]
    assert run("validate", out).exit_code == 0


def test_repair_says_what_remains(tmp_path: Path) -> None:
    """A problem that only invented content could repair remains; the output is written, with exit code 1."""
    path, out = tmp_path / "chat.json", tmp_path / "out.json"
    path.write_text(json.dumps([*turns(1), call("c1")]))
    done = run("repair", path, "-o", out, "--json")
    assert done.exit_code == 1
    assert [problem["rule"] for problem in json.loads(done.stdout)["remaining"]] == ["pending-call"]
    assert out.read_text() == path.read_text()


# -------------------------------------------------------------------- what cannot be used


@pytest.mark.parametrize(
    ("line", "said"),
    [('{"messages": [', "line 2: it is not JSON"), ('[{"role": "user"}, {"content": "b"}]', "line 2: messages[1].role")],
    ids=["a broken line", "a message without role"],
)
def test_bad_input_is_one_line(tmp_path: Path, line: str, said: str) -> None:
    """Unreadable input gives one line with the place and the reason, exit code 2, and no output."""
    path, chat = tmp_path / "in.json", json.dumps(turns(1))
    path.write_text(f"{chat}\n{line}\n{chat}\n")
    done = run("compact", path, "-o", tmp_path / "out.json", "--window", "1k")
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"compaction: {path}, {said}")
    assert [entry.name for entry in tmp_path.iterdir()] == ["in.json"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compact", "CHAT"], "one of --window and --budget"),
        (["compact", "CHAT", "--window", "1k", "--budget", "1k"], "not both"),
        (["compact", "CHAT", "--budget", "1k", "--reserve-output", "1"], "--reserve-output"),
        (["compact", "CHAT", "--window", "0.5"], "32k"),
        (["compact", "CHAT", "--window", "0"], "--window 0: it must be larger than 0"),
        (["compact", "CHAT", "--window", "8k", "--reserve-output", "9k"], "larger than --reserve-output 9000"),
        (["compact", "CHAT", "--window", "1k", "--preset", "none"], "context_window"),
        (["compact", "CHAT", "--window", "1k", "--preset", "token_budget"], "--preset token_budget takes --budget"),
        (["compact", "CHAT", "--budget", "1k", "--preset", "adaptive"], "--preset adaptive takes --window"),
        (["compact", "CHAT", "--preset", "langgraph_summary", "--reserve-output", "1"], "--reserve-output"),
        (["compact", "CHAT", "--window", "1k", "--counter", "none"], "counter 'none'"),
        (["compact", "CHAT", "--window", "1k", "-o", "FOLDER"], "cannot be written"),
        (["compact", "FOLDER", "--window", "1k"], "cannot be read"),
        (["compact", "MISSING", "--window", "1k"], "No such file"),
        (["compact"], "Missing argument"),
        (["shrink"], "No such command"),
        (["--loud"], "No such option"),
        (["compact", "CHAT", "--budget", "0"], "--budget must be a whole number >= 1 (got 0)"),
        (["compact", "CHAT", "--window", "8q"], "'--window': '8q' is not a number of tokens"),
        (["compact", "CHAT", "--budget", "8q"], "'--budget': '8q' is not a number of tokens"),
        (["compact", "MISSING", "--window", "8k", "--config", "missing.toml"], "missing.toml: No such file or directory"),
        (["compact", "MISSING", "--config", "missing.toml", "--reserve-output", "1k"], "--reserve-output"),
        (["compact", "CHAT", "--budget", "8k", "--preset", "token_budget", "--config", "x.toml"], "--preset and --config"),
        (["config", "check", "missing.toml"], "missing.toml: No such file or directory"),
        (["batch", "CHAT", "-o", "OUT", "--budget", "9", "--requests-per-minute", "0"], "--requests-per-minute must be"),
        (["batch", CHATS, "-o", "OUT", "--budget", "9", "--address", "ray://h"], "--address ray://h: only --engine ray"),
        (["batch", CHATS, "-o", "OUT", "--budget", "9", "--to=csv"], "--to': 'csv' is not one of 'jsonl'"),
        (["replay", "CHAT", "--window", "8k", "--strategy", "none", "--format", "morse"], "morse"),
    ],
)
def test_bad_arguments_are_one_line(chat: Path, tmp_path: Path, arguments: list[str], said: str) -> None:
    """Unusable arguments give one line that names the option and the remedy, exit code 2, and no standard output."""
    places = {"CHAT": chat, "FOLDER": tmp_path, "MISSING": tmp_path / "missing", "OUT": tmp_path / "o.jsonl"}
    done = run(*[places.get(argument, argument) for argument in arguments])
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("compaction: ")
    assert said in done.stderr
    assert "UTF-8" not in done.stderr


# -------------------------------------------------------------------- hostile text


def test_nothing_of_a_transcript_reaches_the_terminal(tmp_path: Path) -> None:
    """Escape sequences, control characters and markup in messages, ids and names are shown, never interpreted."""
    path = tmp_path / "chat.jsonl"
    hostile = [user(ESCAPES), call(ESCAPES, name=ESCAPES), result(ESCAPES, ESCAPES * 90), user(ESCAPES), result(ESCAPES)]
    path.write_text(json.dumps({"id": ESCAPES, "messages": hostile}) + "\n" + json.dumps([{"role": ESCAPES, "content": ""}]))
    shown = ""
    written = ("-o", tmp_path / "out")
    cut = ("compact", "--budget", "200", *written)
    for command, *options in (["inspect"], ["inspect", "--id", ESCAPES], ["validate"], ["repair", *written], cut):
        done = run(command, path, *options)
        shown += done.stdout + done.stderr
    assert [mark for mark in shown if not mark.isprintable() and mark != "\n"] == []
    assert "\\x1b[2J" in shown
    assert "[bold red]a" in shown


@pytest.mark.parametrize("name", ["~old.json", ">x.json", "^cut.json"])
def test_a_file_name_is_not_layout(chat: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The report's heading shows the whole name of a file, whatever character it begins with."""
    monkeypatch.chdir(chat.parent)
    chat.rename(name)
    assert name in run("compact", name, "-v", "--budget", "600", "-o", "out.json").stdout.splitlines()[4].split()


def test_a_terminal_without_blocks_gets_plain_bars(chat: Path) -> None:
    code, shown, complaints = ended("inspect", chat, env={"PYTHONIOENCODING": "ascii"})
    assert (code, complaints) == (0, "")
    assert "#" * 20 in shown


# -------------------------------------------------------------------- the program


def test_help_loads_nothing_heavy() -> None:
    loaded = "sorted({'openai', 'tiktoken', 'toktok', 'numpy'} & set(sys.modules))"
    program = f"import atexit, sys; atexit.register(lambda: print({loaded})); {PROGRAM}"
    for option in ("-h", "-V"):
        code, output, complaints = ended(option, program=program)
        assert (code, complaints, output.splitlines()[-1]) == (0, "", "[]")


def test_help_is_as_wide_as_the_terminal() -> None:
    """The help has whole sentences and no line wider than the terminal."""
    shown = {columns: ended("compact", "-h", env={"COLUMNS": str(columns)})[1] for columns in (80, 120)}
    widths = {columns: max(map(len, text.splitlines())) for columns, text in shown.items()}
    assert "..." not in "".join(shown.values()).replace("[ARGS]...", "")
    assert 60 < widths[80] <= 80 < widths[120] <= 120


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_a_missing_extra_is_one_line(missing: str) -> None:
    """Without typer or rich the program names the extra to install."""
    program = f"import sys; sys.modules[{missing!r}] = None; {PROGRAM}"
    code, output, complaints = ended("inspect", "-", program=program)
    assert (code, output, complaints.count("\n")) == (2, "", 1)
    assert f"needs {missing}: pip install '.[cli]'" in complaints


def test_an_estimate_is_told(chat: Path, tmp_path: Path) -> None:
    """Without a vocabulary on the machine, the report says that tokens are estimated; standard error stays empty."""
    program = f"import sys; sys.modules['toktok'] = None; {PROGRAM}"
    env = {"TIKTOKEN_CACHE_DIR": str(tmp_path)}
    code, output, complaints = ended("inspect", chat, program=program, env=env)
    assert (code, complaints) == (0, "")
    assert "tokens are estimated" in output


@pytest.mark.skipif(sys.platform == "win32", reason="signals of other systems")
def test_output_that_nobody_reads(chat: Path) -> None:
    for arguments in (["inspect", chat], ["compact", chat, "-o", "-", "--window", "5k", "--json"]):
        read, written = os.pipe()
        os.close(read)
        code, _, complaints = ended(*arguments, stdout=written)
        os.close(written)
        assert (code, complaints) == (-signal.SIGPIPE, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_output_that_does_not_fit(chat: Path) -> None:
    """A full disk is reported in one line, for a file and for standard output."""
    with Path("/dev/full").open("wb") as full:
        code, _, complaints = ended("inspect", chat, stdout=full)
    assert (code, complaints.count("\n")) == (2, 1)
    done = run("compact", chat, "-o", "/dev/full", "--window", "600")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)


def stopped_halfway(folder: Path, number: signal.Signals) -> tuple[int, str]:
    """Return the exit code and standard error of a command that a signal ends halfway through its output."""
    line = json.dumps(turns(2, words=20_000)).encode() + b"\n"
    command = ("compact", "-", "-o", folder / "out.jsonl", "--budget", "1m")
    program = (
        f"import signal; signal.signal({int(number)}, signal.default_int_handler); {PROGRAM}"
        if number == signal.SIGINT
        else PROGRAM
    )
    with started(*command, program=program, stdin=subprocess.PIPE) as process:  # a parent may ignore SIGINT
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(line * 3)
        process.stdin.flush()
        until(lambda: any(path.stat().st_size for path in folder.glob(".*.part")))
        process.send_signal(number)
        return process.wait(60), process.stderr.read().decode()


def until(holds: Callable[[], object]) -> None:
    """Wait until a condition holds in another process."""
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of other systems")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_a_signal_leaves_no_half_file(tmp_path: Path, number: signal.Signals, code: int) -> None:
    """After a signal in the middle, the output is unchanged, temporary files are removed, and no traceback is printed."""
    (tmp_path / "out.jsonl").write_text("old")
    returned, complaints = stopped_halfway(tmp_path, number)
    assert returned == code
    assert complaints == ("compaction: interrupted\n" if number == signal.SIGINT else "")
    assert (tmp_path / "out.jsonl").read_text() == "old"
    left = [path.name for path in tmp_path.iterdir() if path.name != "out.jsonl"]
    assert left == [] or (number == signal.SIGKILL and all(name.endswith(".part") for name in left))


# -------------------------------------------------------------------- recorded conversations


def test_a_defect_is_one_line() -> None:
    """An unexpected error gives one line with its class and place, and exit code 3."""
    broken = typer.Typer(cls=CommandGroup)

    @broken.callback()
    def group() -> None:
        """A group of one command."""

    @broken.command()
    def fail() -> None:
        raise ZeroDivisionError("by\nzero")

    done = CliRunner().invoke(broken, ["fail"])
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    assert "ZeroDivisionError: by zero (test_cli.py:" in done.stderr


class TestFormat:
    """Conversations of every wire format, with and without --format."""

    CALL: ClassVar = {"role": "model", "parts": [{"functionCall": {"name": "now", "args": {}}}]}

    @pytest.mark.parametrize("options", [[], ["--format", "gemini"]])
    def test_is_looked_for_or_named(self, tmp_path: Path, options: list[str]) -> None:
        """The rules are those of the format, in ``validate``, ``repair`` and ``compact`` alike."""
        path = tmp_path / "gemini.json"
        path.write_text(json.dumps([self.CALL]), encoding="utf-8")
        assert "[misplaced-call]" in run("validate", path, *options).output
        assert "misplaced-call" in run("repair", path, *options).output
        asked = {"role": "user", "parts": [{"text": "word " * 400}]}
        path.write_text(json.dumps([asked, {"role": "model", "parts": [{"text": "a"}]}] * 9), encoding="utf-8")
        done = run("compact", path, "--budget", "1200", "--counter", "chars/4", "-o", tmp_path / "out.json", *options)
        assert (done.exit_code, "valid" in done.output) == (0, True)
        assert validate(json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))) == []
        assert "parts" not in run("inspect", path, "--counter", "chars/4", *options).output

    def test_what_cannot_be_told_or_is_unknown(self, tmp_path: Path) -> None:
        path = tmp_path / "mixed.json"
        path.write_text(json.dumps([*CHAT, self.CALL]), encoding="utf-8")
        for command in ("validate", "repair", "inspect"):
            done = run(command, path)
            assert (done.exit_code, "one list has one format" in done.output) == (2, True)
        assert run("validate", path, "--format", "morse").exit_code == 2


def test_a_key_from_the_environment_signs_summaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only summaries signed with one of the keys are updated."""
    chat = [{"role": "user", "content": f"Shelf {n} holds box {n * 7}. " * 60} for n in range(30)]
    (tmp_path / "in.json").write_text(json.dumps(chat))
    options = ("--preset", "hermes", "--window", "8k", "--counter", "chars/4")
    monkeypatch.setenv("COMPACTION_KEY", "first-key-of-letters second-key-of-letters")
    assert run("compact", tmp_path / "in.json", "-o", tmp_path / "out.json", *options).exit_code < 2
    made = json.loads((tmp_path / "out.json").read_text())
    [mark] = [message["content"] for message in made if message["content"].startswith("[compaction ")]
    assert re.match(r"\[compaction [0-9a-f]{16} by ", mark)
    monkeypatch.setenv("COMPACTION_KEY", "short")
    assert "at least 16 characters" in run("compact", tmp_path / "in.json", "-o", "-", *options).stderr


def test_a_window_by_the_models_name(chat: Path) -> None:
    """The window is the model's input limit, or its context window minus the reserve if that is smaller."""
    named = run("compact", chat, "-o", "-", "--window", "gpt-4", "--reserve-output", "8k", "--counter", "chars/4")
    number = run("compact", chat, "-o", "-", "--window", "192", "--counter", "chars/4")
    assert (named.exit_code, named.stdout) == (number.exit_code, number.stdout)
    wrong = run("compact", chat, "-o", "-", "--window", "gpt-5-huge")
    assert (wrong.exit_code, wrong.stderr.count("\n")) == (2, 1)
    assert "gpt-5-huge" in wrong.stderr
    assert "32000 or 32k" in wrong.stderr


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("compact --preset a", "adaptive"),
        ("batch --preset ", "token_budget"),
        ("replay --strategy hy", "hysteresis"),
        ("compact --counter ch", "chars/4"),
        ("inspect --format op", "openai-responses"),
        ("batch --to par", "parquet"),
        ("serve --preset h", "hermes"),
        ("co", "config"),
        ("compact --w", "--window"),
    ],
)
def test_names_are_completed(words: str, offered: str) -> None:
    """A shell offers the names of commands, options, presets, strategies, counters, formats and kinds."""
    line = f"compaction {words}"
    asked = {"_COMPACTION_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    assert offered in CliRunner().invoke(app, [], prog_name="compaction", env=asked).output.split()


@pytest.mark.parametrize("name", ["coding_session.json", "service_chats.jsonl"])
def test_inspect_has_room_at_80_columns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The content of a group, or a conversation's id, is readable in a narrow terminal."""
    monkeypatch.setenv("COLUMNS", "80")
    done = CliRunner().invoke(app, ["inspect", str(ROOT / "examples" / name), "--counter", "chars/4"])
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert any("You are a coding agent" in line or "museum-group-booking" in line for line in lines)
