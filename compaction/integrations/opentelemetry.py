"""OpenTelemetry: the events of sessions as spans, span events and metrics.

    session = CompactionSession(strategy, on_event=OpenTelemetryEvents())

The names ``gen_ai.operation.name``, ``gen_ai.conversation.id`` and ``error.type`` are those of the GenAI semantic conventions
(1.41). The conventions have no names for compaction; those begin with ``compaction``. No text of a message is recorded.
"""

from __future__ import annotations

import re
from typing import Any

from ..session import (
    CacheBroken,
    Compacted,
    ContextUsed,
    Event,
    Evicted,
    HostChanged,
    LittleSaved,
    NearLimit,
    Overflowed,
    SaveFailed,
    StepFailed,
)
from .requirements import OPENTELEMETRY, import_framework

__all__ = ["OpenTelemetryEvents"]


class OpenTelemetryEvents:
    """Receives the events of sessions, pools and integrations as ``on_event=``. Holds state: a tracer and its instruments.

    Each compaction is a span ``compact``. How full the window is stands on the span that is current, such as the model call, as
    ``compaction.context.tokens``, ``.window``, ``.share`` and ``.triggered``. Each other event is an event of that span.

    ===================================  ==========  =========================================================
    metric                               unit        counts
    ===================================  ==========  =========================================================
    ``compaction.compactions``           {run}       runs that changed the view, by ``compaction.outcome``
    ``compaction.tokens.saved``          {token}     tokens that left the view
    ``compaction.tokens.billed_again``   {token}     tokens behind a changed beginning, see `CacheBroken`
    ``compaction.failures``              {failure}   steps and saves that failed, by ``error.type``
    ``compaction.overflows``             {error}     requests that a provider refused as too long
    ``compaction.context.share``         1           a histogram: the share of the window that each request fills
    ===================================  ==========  =========================================================

    Args:
        tracer_provider: Where spans go; by default the global provider.
        meter_provider: Where metrics go; by default the global provider.

    Raises:
        ConfigurationError: If the framework is missing or too old.
    """

    def __init__(self, *, tracer_provider: Any = None, meter_provider: Any = None) -> None:
        OPENTELEMETRY.check()
        self._trace: Any = import_framework("opentelemetry.trace")
        metrics: Any = import_framework("opentelemetry.metrics")
        self._tracer = self._trace.get_tracer("compaction", tracer_provider=tracer_provider)
        meter = metrics.get_meter("compaction", meter_provider=meter_provider)
        self._compactions = meter.create_counter("compaction.compactions", "{run}", "Runs that changed the view")
        self._saved = meter.create_counter("compaction.tokens.saved", "{token}", "Tokens that left the view")
        self._billed = meter.create_counter("compaction.tokens.billed_again", "{token}", "Tokens behind a changed beginning")
        self._failures = meter.create_counter("compaction.failures", "{failure}", "Steps and saves that failed")
        self._overflows = meter.create_counter("compaction.overflows", "{error}", "Requests refused as too long")
        self._share = meter.create_histogram("compaction.context.share", "1", "Share of the window that a request fills")

    def __call__(self, event: Event) -> None:
        """Record one event."""
        if isinstance(event, Compacted):
            self._compacted(event)
            return
        if isinstance(event, ContextUsed):
            self._used(event)
            return
        attributes = _attributes(event)
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", type(event).__name__).lower()  # such as ``near_limit``
        self._trace.get_current_span().add_event(f"compaction.{name}", _of(event) | attributes)
        if isinstance(event, CacheBroken):
            self._billed.add(event.tokens, attributes)
        elif isinstance(event, StepFailed | SaveFailed):
            self._failures.add(1, attributes)
        elif isinstance(event, Overflowed):
            self._overflows.add(1)

    def _used(self, event: ContextUsed) -> None:
        span = self._trace.get_current_span()
        span.set_attribute("compaction.context.tokens", event.tokens)
        span.set_attribute("compaction.context.triggered", event.triggered)
        if event.share is not None:
            span.set_attribute("compaction.context.window", event.window)
            span.set_attribute("compaction.context.share", event.share)
            self._share.record(event.share)

    def _compacted(self, event: Compacted) -> None:
        result = event.result
        with self._tracer.start_as_current_span("compact", attributes=_of(event)) as span:
            span.set_attribute("compaction.outcome", result.outcome)
            span.set_attribute("compaction.edits", len(result.edits))
            for name, sizes in (("before", result.before), ("after", result.after)):
                span.set_attribute(f"compaction.tokens.{name}", sizes.tokens)
                span.set_attribute(f"compaction.messages.{name}", sizes.messages)
        self._compactions.add(1, {"compaction.outcome": result.outcome})
        self._saved.add(max(0, result.before.tokens - result.after.tokens))


def _of(event: Event) -> dict[str, Any]:
    return {"gen_ai.operation.name": "compact", "gen_ai.conversation.id": event.session}


def _attributes(event: Event) -> dict[str, Any]:
    """Return the figures of an event; of an error only its type, because its text may quote a message."""
    match event:
        case NearLimit(tokens=tokens, window=window):
            return {"compaction.tokens": tokens, "compaction.window": window}
        case CacheBroken(why=why):
            return {"compaction.reason": why}
        case StepFailed(failure=failure) | SaveFailed(failure=failure):
            return {"error.type": type(failure.error).__qualname__, "compaction.strategy": failure.strategy}
        case Overflowed(tokens=tokens, error=error):
            return {"error.type": type(error).__qualname__, "compaction.tokens": tokens}
        case LittleSaved(saved_tokens=saved):
            return {"compaction.tokens.saved": saved}
        case Evicted(why=why, is_saved=is_saved):
            return {"compaction.reason": why, "compaction.saved": is_saved}
        case HostChanged(changes=changes):
            counts = {"altered": len(changes.altered), "removed": len(changes.removed) + len(changes.rewound)}
            return {f"compaction.{name}": count for name, count in {**counts, "added": changes.added}.items()}
        case _:
            return {}
