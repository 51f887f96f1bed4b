"""The demonstration of ``make demo``: a coding session compacted, beside a plain cut to the newest messages that fit.

It needs no API key, computes every figure that it prints, and uses no option that the command in its last line lacks.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from compaction import MessageIndex, compact_sync, presets
from compaction.formats import validate

BUDGET = 8_000
WIDTH = 80
FILE = "examples/coding_session.json"


def tokens_of(messages: list[Any]) -> int:
    """Return the number of tokens."""
    return MessageIndex(messages, format="openai-chat").total.tokens


def plain_cut(messages: list[Any]) -> list[Any]:
    """Return the newest messages that fit, which is the longest ``messages[-n:]`` within the budget."""
    start = 0
    while tokens_of(messages[start:]) > BUDGET:
        start += 1
    return messages[start:]


def one_line(text: str) -> str:
    """Return the text with single spaces."""
    return " ".join(text.split())


def sentences(messages: list[Any]) -> list[str]:
    """Return the sentences that the user wrote."""
    texts = [message["content"] for message in messages if message["role"] == "user"]
    return [one_line(found) for text in texts for found in re.split(r"(?<=[.?!])\s+|\n", text) if len(found) > 15]


def rules(messages: list[Any]) -> list[str]:
    """Return the ground rules, which are the numbered lines of the user's first message."""
    return [one_line(line) for line in messages[1]["content"].split("\n") if re.match(r"\d\. ", line)]


def kept_in(messages: list[Any]) -> Callable[[str], bool]:
    """Return a function that says whether a text of one line stands in the messages, word for word."""
    sent = one_line(" ".join(str(message.get("content")) for message in messages))
    return sent.__contains__


def cut_off(text: str) -> str:
    """Return the text, or so much of its beginning as fits a line."""
    return text if len(text) < WIDTH - 2 else f"{text[: WIDTH - 6]}..."


def command() -> str:
    """Return how to call the command line of this environment, which need not be on the PATH."""
    program = Path(sys.executable).with_name("compaction")
    return str(program.relative_to(Path.cwd()) if program.is_relative_to(Path.cwd()) else program)


def main() -> None:
    """Print the comparison in at most 24 lines of 80 columns."""
    session = Path(__file__).parents[1] / FILE
    messages: list[Any] = json.loads(session.read_text(encoding="utf-8"))["messages"]
    result = compact_sync(messages, presets.token_budget(BUDGET))
    said, asked = sentences(messages), rules(messages)

    console = Console(highlight=False, width=None if Console().is_terminal else WIDTH)
    console.print(f"[bold]A coding session, to be sent within {BUDGET:,} tokens[/]")
    console.print("[dim]            tokens messages  system prompt  ground rules  user's words  valid[/]")
    for name, sent in {"before": messages, "plain cut": plain_cut(messages), "compaction": result.messages}.items():
        problems, kept = validate(sent), kept_in(sent)
        valid = "[red]no[/]" if problems else "[green]yes[/]"
        system = "kept" if sent[0]["role"] == "system" else "[red]lost[/]"
        of_rules = f"{sum(map(kept, asked))} of {len(asked)}"
        of_words = f"{sum(map(kept, said))} of {len(said)}"
        console.print(
            f"{name:<11}{tokens_of(sent):>7,}{len(sent):>9}  {system}           {of_rules:<12}  {of_words:<12}  {valid}"
        )

    console.print("\n[bold]What compaction changed, and why[/]")
    for reason, times in Counter(edit.reason for edit in result.edits).items():
        console.print(f"{times:>3} x {reason}")

    kept = kept_in(result.messages)
    console.print("\n[bold]The ground rules of the first message, after compaction[/]")
    for rule in asked:
        console.print(f"  {cut_off(rule)}" if kept(rule) else f"  lost: {cut_off(rule)}", style="yellow", markup=False)
    lost = [sentence for sentence in said if not kept(sentence)]
    console.print(f"[bold]Sentences of the user that compaction lost: {len(lost)}{', such as' if len(lost) > 1 else ''}[/]")
    for sentence in lost[:1]:
        console.print(f"  {cut_off(sentence)}", style="red", markup=False)
    console.print(f"\n$ {command()} compact {FILE} -o OUT --budget 8k", markup=False, soft_wrap=True)


if __name__ == "__main__":
    main()
