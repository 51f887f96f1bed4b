"""Writes a reference page for the rules of each wire format, from the rules themselves and their examples.

    python -m benchmarks.rule_pages

The rules stand in ``compaction/formats/*/rules.py``; what a repair does, the sources and the examples in
``tests/formats/rule_examples``. A test checks that the pages are up to date.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from compaction.formats import anthropic, bedrock, gemini, openai_chat, openai_responses
from compaction.formats.rulebook import WireFormat

ROOT: Final = Path(__file__).resolve().parent.parent
FORMATS: Final[Mapping[WireFormat, str]] = {
    openai_chat: "OpenAI chat completions",
    openai_responses: "OpenAI Responses",
    anthropic: "Anthropic Messages",
    gemini: "Gemini contents",
    bedrock: "Amazon Bedrock Converse",
}
_REACH: Final = {"message": "one message", "join": "two neighbours", "reach": "the whole list"}


def examples_of(name: str) -> dict[str, Any]:
    """What is kept about a format's rules beside their code: ``about``, ``allowed``, and an entry for each rule."""
    data: dict[str, Any] = json.loads((ROOT / f"tests/formats/rule_examples/{name}.json").read_text(encoding="utf-8"))
    return data


def page_path(name: str) -> Path:
    """Where the page of a format is."""
    return ROOT / "docs" / "rules" / f"{name}.md"


def page_of(format: WireFormat) -> str:
    """The reference page of a format's rules."""
    return "\n".join(_lines(format, examples_of(format.name)))


def _lines(format: WireFormat, kept: Mapping[str, Any]) -> Iterator[str]:
    folder = format.name.replace("-", "_")
    yield f"# Rules of {FORMATS[format]}\n"
    yield f"Written by `python -m benchmarks.rule_pages` from `compaction/formats/{folder}/rules.py` and"
    yield f"`tests/formats/rule_examples/{format.name}.json`: change these, not this page. What the rules are"
    yield "for is on the page about [validity](../validity.md).\n"
    yield from kept["about"]
    yield "\n| Rule | What it says | It looks at | What `repair` does | Known from |\n|---|---|---|---|---|"
    for name, rule in format.book.rules.items():
        entry = kept["rules"][name]
        yield f"| [`{name}`](#{name}) | {rule.says} | {_REACH[rule.kind]} | {entry['repair']} | {entry['source']} |"
    yield "\n## What is no problem\n"
    yield from kept["allowed"]
    for name, rule in format.book.rules.items():
        entry = kept["rules"][name]
        yield f"\n## `{name}`\n\n{rule.says} Remedy: {rule.remedy}.\n\nRefused:\n\n{_json(entry['refused'])}"
        yield f"\nAccepted:\n\n{_json(entry['accepted'])}"
    yield ""


def _json(messages: list[Any]) -> str:
    """Messages as a block of JSON, one on each line."""
    if not messages:
        return "```json\n[]\n```"
    lines = ",\n".join(f"  {json.dumps(message, ensure_ascii=False)}" for message in messages)
    return f"```json\n[\n{lines}\n]\n```"


if __name__ == "__main__":
    for each in FORMATS:
        page_path(each.name).write_text(page_of(each), encoding="utf-8")
