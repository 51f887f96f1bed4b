"""The data of a report, JSON-ready: figures over all conversations, and each conversation call by call."""

from __future__ import annotations

from collections import Counter
from typing import Any

import attrs

from ...formats import resolve
from ...messages import MediaPart, Message, ReasoningPart, ToolCallPart, ToolResultPart
from ..recommendation import recommend
from ..records import CandidateRun, ReplayedCall, ReplayedConversation
from ..result import CandidateSummary, ReplayResult
from ..scores import AGES, Score


def overview_data(result: ReplayResult, minimum_recall: float, calls_per_month: int) -> dict[str, Any]:
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
        "ages": [*(name for _, name in AGES), "over 200"],
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


def conversation_data(result: ReplayResult, conversation: ReplayedConversation) -> dict[str, Any]:
    """Return one conversation: its messages, what each call needed, and what each candidate did; JSON-ready."""
    read = resolve(conversation.recording.format).read
    messages = [read(raw, place) for place, raw in enumerate(conversation.recording.messages)]
    return {
        "messages": [[message.role, message.name or "", _text(message)] for message in messages],
        "calls": [needs.ordinal for needs in conversation.needs],
        "needs": [
            [[fact.kind.value, fact.text, fact.last, fact.age, fact.old] for fact in needs.facts]
            for needs in conversation.needs
        ],
        "notes": list(conversation.recording.notes),
        "runs": {name: _run(run) for name, run in conversation.runs.items()},
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
