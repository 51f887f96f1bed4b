"""The report of a replay: one HTML file, readable offline, that shows figures, requests and missing facts.

Charts are drawn as SVG by the page's own scripts: a chart library would add megabytes to each file to draw a few simple charts.
Transcripts are untrusted: the scripts insert them as text, never as markup, and the page's content security policy forbids
them to load or send anything.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
from collections import Counter
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import attrs

from ...files import write_text
from ...formats import resolve
from ...messages import MediaPart, Message, ReasoningPart, ToolCallPart, ToolResultPart
from ..recommendation import MINIMUM_RECALL, recommend
from ..records import CandidateRun, ReplayedCall, ReplayedConversation
from ..result import CandidateSummary, ReplayResult
from ..scores import AGES, Score

__all__ = ["CALLS_PER_MONTH", "conversation_data", "report_html", "write_report"]

_SCRIPTS: Final = ("draw.js", "advice.js", "frontier.js", "charts.js", "sizes.js", "fates.js", "transcript.js", "main.js")

CALLS_PER_MONTH: Final = 10_000
"""Calls a month for which a report states the money saved, until its reader enters another number."""


def write_report(
    result: ReplayResult, path: Path, *, minimum_recall: float = MINIMUM_RECALL, calls_per_month: int = CALLS_PER_MONTH
) -> None:
    """Write the report of a replay to a file, whole or not at all.

    Args:
        result: The result of the replay.
        path: The file; an existing file is replaced.
        minimum_recall: Share of the needed facts that a recommended strategy keeps, from 0 to 1.
        calls_per_month: Your model calls a month, for the money saved.

    Raises:
        UnwritableFile: If the file cannot be written.
    """
    with write_text(path, compress=False) as write:
        for piece in _pieces(result, minimum_recall, calls_per_month):
            write(piece)


def report_html(result: ReplayResult, *, minimum_recall: float = MINIMUM_RECALL, calls_per_month: int = CALLS_PER_MONTH) -> str:
    """Return the report as HTML, with the options of `write_report`; O(characters of the conversations)."""
    return "".join(_pieces(result, minimum_recall, calls_per_month))


def _pieces(result: ReplayResult, minimum_recall: float, calls_per_month: int) -> Iterator[str]:
    """Yield the page in order; each conversation is compressed, and decompressed in the browser when it is opened."""
    head, _, tail = _asset("page.html").partition("<!-- data -->")
    overview = _overview_data(result, minimum_recall, calls_per_month)
    advice = overview["recommended"]
    sentences = [text for text in (advice["headline"], advice["rule"], *advice["reasons"]) if text]
    plain = "".join(f"<p>{html.escape(text)}</p>\n" for text in sentences).encode(errors="replace").decode()
    yield head.replace("/* style */", _asset("style.css")).replace("<!-- recommendation -->", plain)
    yield f'<script type="application/json" id="overview">{_json(overview)}</script>\n'
    for place, conversation in enumerate(result.conversations):
        packed = gzip.compress(_json(conversation_data(result, conversation)).encode(), compresslevel=6, mtime=0)
        yield f'<script type="text/plain" id="conversation-{place}">{base64.b64encode(packed).decode()}</script>\n'
    yield tail.replace("/* scripts */", "\n".join(_asset(name) for name in _SCRIPTS))


def _asset(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8")


def _json(value: Any) -> str:
    """Return JSON that is safe inside a script element, whatever its strings contain."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


# -------------------------------------------------------------------- data, JSON-ready


def _overview_data(result: ReplayResult, minimum_recall: float, calls_per_month: int) -> dict[str, Any]:
    """Return the figures over all conversations, the recommendation, and one entry per conversation; JSON-ready."""
    setting = result.setting
    return {
        "window": setting.window,
        "model": setting.prices.model,
        "prices": setting.prices.date or "undated",
        "counter": setting.counter.name,
        "candidates": list(result.candidates),
        "baselines": list(result.baselines),
        "minimum_recall": minimum_recall,
        "calls_per_month": calls_per_month,
        "exceeding": len(result.exceeding),
        "calls": sum(len(each.needs) for each in result.exceeding),
        "summaries": [_summary(result, summary) for summary in result.summaries.values()] if result.exceeding else [],
        "recommended": attrs.asdict(recommend(result, minimum_recall=minimum_recall)),
        "ages": [name for _, name in AGES],
        "conversations": [
            {
                "id": each.recording.id,
                "where": each.recording.where,
                "messages": len(each.recording.messages),
                "calls": len(each.needs),
                "tokens": each.tokens,
                "exceeds": each.exceeds,
            }
            for each in result.conversations
        ],
        "notes": list(result.notes),
    }


def _summary(result: ReplayResult, summary: CandidateSummary) -> dict[str, Any]:
    score = summary.score
    return {
        "name": summary.candidate,
        "cost": attrs.astuple(summary.macro["cost"]),
        "usable": attrs.astuple(summary.macro["usable"]),
        **{name: summary.macro[name].value for name in ("old", "words", "spans", "said", "sentences", "constraints")},
        "over": score.over,
        "bad": score.invalid,
        "edited": score.compactions,
        "breaks": score.breaks,
        "peak": score.peak,
        "seconds": round(score.seconds, 2),
        "dollars_per_call": result.dollars_per_call(summary.candidate),
        "kinds": {name: attrs.astuple(share) for name, share in score.kinds.items()},
        "ages": {name: attrs.astuple(share) for name, share in score.ages.items()},
        "causes": _causes(result, summary.candidate, score),
    }


def _causes(result: ReplayResult, candidate: str, score: Score) -> list[tuple[str, int, int]]:
    """Return each cause of a broken prefix with its count and lost tokens, most tokens first."""
    lost: Counter[str] = Counter()
    for each in result.exceeding:
        for call in each.runs[candidate].calls:
            if call.broken is not None:
                lost[call.broken.cause] += call.broken.lost_tokens
    return [(cause, score.causes[cause], tokens) for cause, tokens in lost.most_common(12)]


# ---------------------------------------------------------------- one conversation


def conversation_data(result: ReplayResult, replayed: ReplayedConversation) -> dict[str, Any]:
    """Return one conversation: its messages, what each call needed, and what each candidate did; JSON-ready."""
    read = resolve(replayed.recording.format).read
    messages = [read(raw, place) for place, raw in enumerate(replayed.recording.messages)]
    return {
        "messages": [[message.role, message.name or "", _text(message)] for message in messages],
        "calls": [needs.ordinal for needs in replayed.needs],
        "needs": [
            [[fact.kind.value, fact.text, fact.last, fact.age, fact.old] for fact in needs.facts] for needs in replayed.needs
        ],
        "notes": list(replayed.recording.notes),
        "runs": {name: _run(run) for name, run in replayed.runs.items()},
    }


def _text(message: Message) -> str:
    """Return a message as a reader sees it: its text, its calls with their arguments, its results."""
    pieces: list[str] = []
    for part in message.parts:
        if isinstance(part, ToolCallPart):
            pieces.append(f"{part.name}({part.arguments})")
        elif isinstance(part, MediaPart):
            pieces.append(f"[{part.kind}]")
        elif isinstance(part, ToolResultPart):
            pieces += [part.text, *(f"[{media.kind}]" for media in part.media)]
        else:
            pieces.append(f"[reasoning] {part.text}" if isinstance(part, ReasoningPart) else part.text)
    return "\n".join(pieces)


def _run(run: CandidateRun) -> dict[str, Any]:
    calls = run.calls
    return {
        "tokens": [call.tokens for call in calls],
        "edited": [place for place, call in enumerate(calls) if call.compacted],
        "failing": [[place, _failure_reason(call)] for place, call in enumerate(calls) if call.would_fail],
        "breaks": [
            [place, call.broken.lost_tokens, call.broken.message, call.broken.cause]
            for place, call in enumerate(calls)
            if call.broken is not None
        ],
        "missing": [[place, call.missing_facts] for place, call in enumerate(calls) if call.missing_facts],
        "moves": [[place, call.left, call.back] for place, call in enumerate(calls) if call.left or call.back],
        "actions": [
            [place, action.by, action.kind, action.reason, action.ordinals, "\n\n".join(filter(None, action.texts))]
            for place, call in enumerate(calls)
            for action in call.actions
        ],
        "failures": list(run.failures),
    }


def _failure_reason(call: ReplayedCall) -> str:
    return ", ".join([*(["exceeds the window"] if call.over else []), *(f"breaks {rule}" for rule in call.broken_rules)])
