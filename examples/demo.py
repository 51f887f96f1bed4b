"""The demonstration of ``make demo``: a coding session compacted, beside a plain cut to the newest messages that fit.

It needs no API key, and computes every figure that it prints.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from rich.console import Console

from compaction import MessageIndex, compact_sync, presets
from compaction.formats import validate

BUDGET = 8_000
SHOWN = 5
SESSION = Path(__file__).parent / "coding_session.json"


def tokens_of(messages: list[Any]) -> int:
    """Return the number of tokens."""
    return MessageIndex(messages, format="openai-chat").total.tokens


def plain_cut(messages: list[Any]) -> list[Any]:
    """Return the newest messages that fit, which is the longest ``messages[-n:]`` within the budget."""
    start = 0
    while tokens_of(messages[start:]) > BUDGET:
        start += 1
    return messages[start:]


def sentences(messages: list[Any]) -> list[str]:
    """Return the sentences that the user wrote."""
    texts = [message["content"] for message in messages if message["role"] == "user"]
    return [" ".join(found.split()) for text in texts for found in re.split(r"(?<=[.?!])\s+|\n", text) if len(found) > 15]


def main() -> None:
    """Print the comparison in at most 24 lines of 80 columns."""
    messages: list[Any] = json.loads(SESSION.read_text(encoding="utf-8"))["messages"]
    result = compact_sync(messages, presets.token_budget(BUDGET), pin=lambda message: message.raw is messages[1])
    lists = {"before": messages, "plain cut": plain_cut(messages), "compaction": result.messages}
    wishes = sentences(messages)

    console = Console(highlight=False, width=None if Console().is_terminal else 80)
    console.print(f"[bold]A recorded coding session, to be sent within {BUDGET:,} tokens[/]")
    console.print("[dim]            tokens messages  instructions  user's words  valid[/]")
    kept: dict[str, list[str]] = {}
    for name, sent in lists.items():
        text = " ".join(" ".join([str(message.get("content")) for message in sent]).split())
        kept[name] = [wish for wish in wishes if wish in text]
        problems = validate(sent)
        valid = f"[red]no: {problems[0].rule}[/]" if problems else "[green]yes[/]"
        system = "kept" if sent[0]["role"] == "system" else "[red]lost[/]"
        share = f"{len(kept[name])} of {len(wishes)}"
        console.print(f"{name:<11}{tokens_of(sent):>7,}{len(sent):>9}  {system}          {share:<12}  {valid}")

    console.print("\n[bold]What compaction changed, and why[/]")
    for reason, times in Counter(edit.reason for edit in result.edits).items():
        console.print(f"{times:>3} x {reason}")
    lost = [wish for wish in kept["compaction"] if wish not in kept["plain cut"] and 30 < len(wish) <= 76]
    console.print("\n[bold]What the user said, kept here and lost by the plain cut[/]")
    for wish in lost[:SHOWN]:
        console.print(f"  {wish}", style="yellow", markup=False)
    console.print("\nYour own file: compaction compact FILE -o OUT --budget 8k", markup=False)


if __name__ == "__main__":
    main()
