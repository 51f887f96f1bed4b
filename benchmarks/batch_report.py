"""Batches of files, measured: the section of docs/performance.md that ``make bench-batch`` writes.

    python -m benchmarks.batch_report --corpus FOLDER
    python -m benchmarks.batch_report --corpus FOLDER --date 2026-01-31 --write docs/performance.md

The loops measure CPU time of one process, in turn, on the same lines: a line is parsed, cut to half of its tokens by dropping
the oldest messages, and written as a line again. One loop has nothing to cut. All count a token for four characters. The runs
over files are whole runs of `compact_files`, with the CPU time of all processes and their total memory at the peak.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import agent_framework as af
import attrs
import orjson
from langchain_core.messages import convert_to_messages, convert_to_openai_messages
from langchain_core.messages.utils import trim_messages

from compaction import MessageIndex, compact_sync, last
from compaction.batch.job import Job
from compaction.batch.report import BatchCounts
from compaction.batch.rows import JsonLine
from compaction.batch.workers import compact_row
from compaction.run import unawaited
from compaction.strategies import Truncation
from compaction.tokens import CharsPerToken, Memoized, ToktokCounter
from compaction.triggers import tokens_exceed

from .batch import Texts, recorded
from .conversation import peer_messages
from .cpu import seconds
from .million import generate, memory
from .peer import COUNTER, awaited, our_tokens
from .report import written
from .tables import Claim, Section, claims_table, table

LONG = ("coding_long", "tau_long")
OWN_WORK = 8.0
AGAINST_PEER = 30.0
ROUNDS = 7
COUNT = CharsPerToken().count_text
EXACT = ToktokCounter("o200k_base")
CACHED = Memoized(EXACT, max_bytes=2_000_000)  # like "auto", but too small to remember the counts of the round before

RUN = """
import sys
from compaction import presets
from compaction.batch import Job, compact_files
if __name__ == "__main__":
    compact_files(sys.argv[1], sys.argv[2], Job(presets.context_window(2_000), counter=sys.argv[3]), workers=int(sys.argv[4]))
"""

RUN_FLOOR = """
import sys
import orjson
with open(sys.argv[1], "rb") as lines, open(sys.argv[2], "wb") as output:
    for line in lines:
        value = orjson.loads(line)
        for message in value["messages"]:
            message.get("content")
        output.write(orjson.dumps(value))
        output.write(b"\\n")
"""


@attrs.frozen
class Chat:
    """One line, half of its tokens, a job that leaves so many, the same with exact counts, and a job that changes nothing."""

    line: bytes
    half: int
    messages: int
    job: Job
    exact: Job
    idle: Job


def chats_of(lines: Sequence[str]) -> list[Chat]:
    """The conversations that all sides can read: some of them ask for fields that a provider may leave out."""
    parsed = [(line.encode(), orjson.loads(line)["messages"]) for line in lines]
    parsed = [(line, messages) for line, messages in parsed if is_common(messages)]
    return [chat_of(line, messages) for line, messages in parsed]


def chat_of(line: bytes, messages: list[dict[str, Any]]) -> Chat:
    half = max(1, our_tokens(messages) // 2)
    exact = max(1, MessageIndex(messages, counter=EXACT).total.tokens // 2)
    jobs = [
        Job(strategy=Truncation(trigger=tokens_exceed(limit), keep=last(groups=1)), counter=counter)
        for limit, counter in ((half, "chars/4"), (exact, CACHED), (len(line), "chars/4"))
    ]
    return Chat(line, half, len(messages), *jobs)


def is_common(messages: list[dict[str, Any]]) -> bool:
    try:
        convert_to_messages(messages)
        peer_messages(messages)
    except (ValueError, KeyError, TypeError):
        return False
    return all(isinstance(message.get("content", 0), str | None) for message in messages)


# ---------------------------------------------------------------- the loops


def floor(chat: Chat) -> bytes:
    """Parsed, walked and written: what any of the others has to do at least."""
    value = orjson.loads(chat.line)
    for message in value["messages"]:
        message.get("content")
    return orjson.dumps(value)


def exact_floor(chat: Chat) -> bytes:
    """The same, with every text counted by toktok."""
    value: dict[str, Any] = orjson.loads(chat.line)
    for message in value["messages"]:
        EXACT.count_text(message.get("content") or "")
        for call in message.get("tool_calls") or ():
            for text in (call.get("function") or {}).values():
                EXACT.count_text(str(text))
    return orjson.dumps(value)


def ours(chat: Chat) -> bytes:
    done: bytes = unawaited(compact_row(chat.job, JsonLine(chat.line), BatchCounts(), sync=True))
    return done


def ours_exact(chat: Chat) -> bytes:
    done: bytes = unawaited(compact_row(chat.exact, JsonLine(chat.line), BatchCounts(), sync=True))
    return done


def nothing_to_do(chat: Chat) -> bytes:
    done: bytes = unawaited(compact_row(chat.idle, JsonLine(chat.line), BatchCounts(), sync=True))
    return done


def agent_framework(chat: Chat) -> bytes:
    messages = peer_messages(orjson.loads(chat.line)["messages"])
    strategy = af.TruncationStrategy(max_n=chat.half, compact_to=chat.half, tokenizer=COUNTER)
    left = awaited(af.apply_compaction(messages, strategy=strategy, tokenizer=COUNTER))
    return orjson.dumps([message.to_dict() for message in left])


def langchain(chat: Chat) -> bytes:
    messages = convert_to_messages(orjson.loads(chat.line)["messages"])
    left = trim_messages(messages, max_tokens=chat.half, token_counter=langchain_tokens, strategy="last", include_system=True)
    return orjson.dumps(convert_to_openai_messages(left))


def langchain_tokens(messages: Sequence[Any]) -> int:
    texts = [text for message in messages for text in (message.text, *map(str, getattr(message, "tool_calls", ())))]
    return 4 * len(messages) + sum(map(COUNT, texts))


FLOOR = "the floor: parse, walk, write"
EXACT_FLOOR = "the floor with exact counts: parse, count with toktok, write"
LOOPS: dict[str, tuple[Callable[[Chat], bytes], str]] = {
    FLOOR: (floor, FLOOR),
    "ours": (ours, FLOOR),
    "ours, nothing to do": (nothing_to_do, FLOOR),
    "langchain_core `trim_messages`": (langchain, FLOOR),
    "agent_framework `apply_compaction`": (agent_framework, FLOOR),
    EXACT_FLOOR: (exact_floor, EXACT_FLOOR),
    "ours, exact counts": (ours_exact, EXACT_FLOOR),
}


def loops_section(sets: dict[str, list[Chat]]) -> Section:
    """Each loop on each set, in turn."""
    rows: list[list[str]] = []
    claims: list[Claim] = []
    for name, chats in sets.items():
        size, messages = sum(len(chat.line) for chat in chats), sum(chat.messages for chat in chats)
        took = {loop: fastest_of(action, chats) for loop, (action, _) in LOOPS.items()}
        for loop, spent in took.items():
            rate = [f"{size / spent / 1e6:.1f}", f"{len(chats) / spent:,.0f}", f"{spent / messages * 1e6:.1f}"]
            least = took[LOOPS[loop][1]]
            rows.append([f"{name}: {loop}", *rate, f"{spent / took['ours']:.2f}x", f"{spent / least:.1f}x"])
        ratio = took["agent_framework `apply_compaction`"] / took["ours"]
        if name != "all":
            claims.append(Claim(f"throughput against agent_framework, {name}", AGAINST_PEER, ratio))
    return Section(
        "batch-loops",
        table(["", "MB/s", "conversations/s", "us a message", "time, of ours", "of the floor"], rows),
        tuple(claims),
    )


def fastest_of(action: Callable[[Chat], bytes], chats: Sequence[Chat]) -> float:
    """CPU seconds for all, the fastest of some rounds; of what takes long, one."""
    first, _ = seconds(lambda: [action(chat) for chat in chats])
    if first > 10:
        return first
    return min([first, *(seconds(lambda: [action(chat) for chat in chats])[0] for _ in range(ROUNDS - 1))])


# ---------------------------------------------------------------- where the time goes


def shares_section(sets: dict[str, list[Chat]]) -> Section:
    """Our loop taken apart: what is neither parsing nor counting is our own work."""
    rows: list[list[str]] = []
    claims: list[Claim] = []
    for name, chats in sets.items():
        messages = sum(chat.messages for chat in chats)
        whole = fastest_of(ours, chats)
        parsing = fastest_of(lambda chat: orjson.loads(chat.line), chats)
        noted = Texts()
        for chat in chats:
            compact_sync(orjson.loads(chat.line)["messages"], Truncation(trigger=tokens_exceed(1 << 40)), counter=noted)
        counting = min(seconds(count_all, noted.texts)[0] for _ in range(ROUNDS))
        writing = min(seconds(write_all, compacted_lines(chats))[0] for _ in range(ROUNDS))
        rest = whole - parsing - counting - writing
        parts = [whole, parsing, counting, writing, rest]
        rows.append([name, *(f"{part / messages * 1e6:.2f}" for part in parts)])
        own = (writing + rest) / messages * 1e6
        claims.append(
            Claim(f"our own work a message, writing the line included: {name}", OWN_WORK, own, unit="us", at_most=True)
        )
    heads = ["us a message", "whole", "parsing", "counting", "writing the line", "reading, grouping, compacting"]
    return Section("batch-shares", table(heads, rows), tuple(claims), in_page=False)


def compacted_lines(chats: Sequence[Chat]) -> list[tuple[JsonLine, list[Any], list[Any]]]:
    """Each line, its messages, and those of them that stay."""
    found: list[tuple[JsonLine, list[Any], list[Any]]] = []
    for chat in chats:
        line = JsonLine(chat.line)
        messages = line.read()
        found.append((line, messages, compact_sync(messages, chat.job.strategy, **chat.job.options).messages))
    return found


def write_all(lines: Sequence[tuple[JsonLine, list[Any], list[Any]]]) -> None:
    for line, read, messages in lines:
        line.write(read, messages)


def count_all(texts: Sequence[str]) -> None:
    for text in texts:
        COUNT(text)


# ---------------------------------------------------------------- whole runs


def runs_section(corpus: Path, count: int) -> Section:
    """Runs over a file: processes, CPU time, memory."""
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "in.jsonl")
        generate(corpus, source, count)
        size = source.stat().st_size
        least = 0.0
        for program, counter, workers in [
            (RUN_FLOOR, "", 1),
            *((RUN, *each) for each in product(("chars/4", "auto"), (1, 2, 4))),
        ]:
            output = Path(folder, f"{workers}-{counter[:4]}.jsonl")
            wall, spent, peak = one_run(program, source, output, counter, workers)
            least = least or spent
            name = f"{counter}, {workers} process{'es' if workers > 1 else ''}" if counter else FLOOR
            rates = [f"{wall:.1f}", f"{size / wall / 1e6:.1f}", f"{spent:.1f}", f"{size / spent / 1e6:.1f}"]
            rows.append([name, *rates, f"{spent / least:.1f}x", f"{count / spent:,.0f}", f"{peak / 1e6:.0f}"])
    first = f"{count:,} conversations, {size / 1e6:,.0f} MB"
    heads = [first, "s", "MB/s", "CPU s", "MB a CPU s", "CPU, of the floor", "conversations a CPU s", "peak MB"]
    return Section("batch-runs", table(heads, rows))


def one_run(program: str, source: Path, output: Path, counter: str, workers: int) -> tuple[float, float, int]:
    """Seconds, CPU seconds of all processes, and bytes at the peak."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start, peak = time.monotonic(), 0
    output = output.with_name(output.name.replace("/", "-"))
    with subprocess.Popen([sys.executable, "-c", program, str(source), str(output), counter, str(workers)]) as process:
        while process.poll() is None:
            peak = max(peak, memory(process.pid))
            time.sleep(0.3)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        raise SystemExit(f"a run ended with {process.returncode}")
    return time.monotonic() - start, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True, help="folder of recorded conversations")
    parser.add_argument("--count", type=int, default=20_000, help="conversations of the runs over files")
    parser.add_argument("--date", default="", help="what the page shall say of when this was")
    parser.add_argument("--write", type=Path, help="the page whose tables to write")
    arguments = parser.parse_args()
    files = dict(recorded(arguments.corpus))
    sets = {
        "all": chats_of([line for lines in files.values() for line in lines]),
        "long": chats_of([line for name in LONG for line in files[name]]),
    }
    parts = [loops_section(sets), shares_section(sets), runs_section(arguments.corpus, arguments.count)]
    versions = ", ".join(f"{name} {version(name)}" for name in ("agent-framework-core", "langchain-core", "orjson", "pyarrow"))
    when = f"Measured on {arguments.date or 'no date'} with Python {sys.version.split()[0]}, {versions}."
    claims = claims_table([claim for part in parts for claim in part.claims])
    parts = [Section("batch-claims", (when, "", *claims)), *parts]
    for part in parts:
        print(f"\n{part.name}\n\n" + "\n".join(part.lines))
    if arguments.write:
        arguments.write.write_text(written(arguments.write.read_text("utf-8"), parts), "utf-8")


if __name__ == "__main__":
    main()
