"""The digest made without a model: what it holds, how long, and what is left of it after five rounds."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from compaction import GroupKind, MessageIndex, presets, run_sync
from compaction.errors import SummaryFailed
from compaction.strategies import SummaryText
from compaction.summarizers import DigestSummarizer, SummaryRequest

Chat = list[dict[str, Any]]

FACT = re.compile(
    r"""https?://[^\s"')]+|(?<![\w.])(?:[\w.-]+/)+[\w.-]+|\b\d[\d.,:]*\d\b|\b\w*[a-z]\w*_\w+\b|"[^"\n]{4,60}"|`[^`\n]{2,60}`"""
)


def facts(text: str) -> set[str]:
    """Paths, identifiers, numbers, quoted strings and addresses, by a pattern that is not the digest's own."""
    return {found.group(0).strip('"`.,:') for found in FACT.finditer(text)}


def digest_of(chat: Chat, budget: int = 400, **options: Any) -> str:
    index = MessageIndex(chat, counter="chars/4")
    summarizer = DigestSummarizer()
    request = SummaryRequest(
        summarizer=summarizer, groups=index.included_groups, budget=budget, counter=index.counter, **options
    )
    return summarizer.summarize(request)


def said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def ran(id: str, command: str, result: str) -> Chat:
    call = {"id": id, "type": "function", "function": {"name": "run", "arguments": f'{{"command": "{command}"}}'}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": id, "content": result},
    ]


WORK: Chat = [
    said("user", "Fix the rounding in src/ledger/parse.py. Never change the public API. Only use the standard library."),
    *ran("c1", "pytest tests/test_parse.py", "FAILED tests/test_parse.py::test_round - AssertionError: 19492.65 != 19492.64"),
    said("assistant", "The cause is the float in `to_cents`; I will use decimal.Decimal instead."),
    *ran("c2", "pytest tests/test_parse.py", "12 passed"),
    said("user", "Now the report. The reference is TK-2024-0631."),
]


def test_constraints_are_quoted_word_for_word() -> None:
    """What the user forbade or demanded stands in its section, as said."""
    text = digest_of(WORK)
    assert "Never change the public API." in text
    assert "Only use the standard library." in text


def test_it_holds_what_is_likely_needed_again() -> None:
    """The first and the latest request, paths and identifiers."""
    text = digest_of(WORK)
    assert "src/ledger/parse.py" in text
    assert "TK-2024-0631" in text


@pytest.mark.parametrize("budget", [120, 250, 2_000])
def test_it_stays_within_its_budget(budget: int) -> None:
    """As the request's counter counts, at any budget."""
    chat = WORK * 30
    index = MessageIndex(chat, counter="chars/4")
    assert index.counter.count_text(digest_of(chat, budget)) <= budget


def test_the_same_request_gives_the_same_text() -> None:
    """No clock and no randomness."""
    assert digest_of(WORK) == digest_of(WORK)


def test_korean_and_chinese_constraints_are_found() -> None:
    """The conversation's own language, word for word."""
    text = digest_of(
        [said("user", "배포 스크립트를 고쳐 주세요. 절대로 prod.db를 건드리지 마세요. " * 1), said("assistant", "네.")]
    )
    assert "prod.db" in text
    assert "请不要修改 config.yaml" in digest_of([said("user", "请不要修改 config.yaml。"), said("assistant", "好的。")])


def test_nothing_to_say_is_a_failure_not_an_empty_summary() -> None:
    """An empty digest is never given."""
    with pytest.raises(SummaryFailed):
        digest_of([said("user", ""), said("assistant", "")])


def test_long_and_hostile_texts_take_linear_time() -> None:
    """Megabytes of one character, of brackets, of quotes: no crash, no hang."""
    for text in ("a" * 1_000_000, "[" * 300_000, '"' * 300_000, " " * 1_000_000, "a_b." * 200_000):
        digest_of([said("user", "Look at this, never delete x_1.txt: " + text), said("assistant", "ok")])


@pytest.mark.parametrize("name", ["coding_long", "tau_long", "openhands"])
def test_five_rounds_keep_what_the_first_digest_held(name: str, corpus: Callable[[str], list[dict[str, Any]]]) -> None:
    """hermes() at a window that forces five rounds: nine tenths of the first digest's facts are in the fifth.

    Of all conversations of a file together, as some first digests hold only a handful.
    """
    held = kept = 0
    for recorded in corpus(name):
        source = recorded["messages"]
        window = max(2_000, int(MessageIndex(source, counter="chars/4").total.tokens / 3.5))
        digests = rounds(source, presets.hermes(window, protect_last_n=4))
        if len(digests) < 5:
            continue
        first = facts(digests[0])
        held += len(first)
        kept += sum(fact in digests[4] for fact in first)
    assert kept >= 0.9 * held > 0


def rounds(source: Chat, pipeline: Any) -> list[str]:
    """The digests of a conversation that grows message by message, up to the fifth."""
    index = MessageIndex(counter="chars/4")
    digests: list[str] = []
    for message in source:
        index.append([message])
        before = index.included.tokens
        run_sync(index, pipeline)
        assert index.included.tokens <= before
        for group in index.included_groups:
            text = SummaryText().read(group.messages[0]) if group.kind is GroupKind.SUMMARY else None
            if text is not None and text not in digests[-1:]:
                digests.append(text)
        if len(digests) == 5:
            break
    return digests
