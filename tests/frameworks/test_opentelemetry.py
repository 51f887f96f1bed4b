"""The events of a session as spans and metrics, recorded by the OpenTelemetry SDK itself."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from compaction import CompactionResult, last
from compaction.index import HostChanges, Metrics
from compaction.integrations.opentelemetry import OpenTelemetryEvents
from compaction.session import (
    CacheBroken,
    Compacted,
    Compacting,
    CompactionSession,
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
from compaction.strategies import Failed, Truncation
from compaction.triggers import tokens_below, tokens_exceed
from tests.support.scripted import TooLong


def talk(turns: int) -> list[dict[str, Any]]:
    return [{"role": "user", "content": f"my secret is {turn} " + "word " * 40} for turn in range(turns)]


def recording() -> tuple[InMemorySpanExporter, InMemoryMetricReader, TracerProvider, OpenTelemetryEvents]:
    """Return where spans and metrics are recorded, and what records the events of a session there."""
    exporter, reader, spans = InMemorySpanExporter(), InMemoryMetricReader(), TracerProvider()
    spans.add_span_processor(SimpleSpanProcessor(exporter))
    events = OpenTelemetryEvents(tracer_provider=spans, meter_provider=MeterProvider(metric_readers=[reader]))
    return exporter, reader, spans, events


def test_what_happens_is_recorded_without_texts() -> None:
    """Each compaction is a span, other events are on the current span, counters count, and no message text is recorded."""
    exporter, reader, spans, events = recording()
    strategy = Truncation(trigger=tokens_exceed(1_000), target=tokens_below(500), keep=last(groups=1))
    session = CompactionSession(strategy, counter="chars/4", window=1_200, on_event=events, id="chat-7")

    with spans.get_tracer("test").start_as_current_span("chat model"):
        session.view_sync(talk(18))
        session.view_sync(talk(19))
        tokens = session.index.tokens
        session.view_sync(talk(18))
        said = f"maximum context length is 300 tokens. However, your messages resulted in {tokens} tokens; secret 17"
        session.overflowed_sync(TooLong(said))

    finished = exporter.get_finished_spans()
    compact = [span for span in finished if span.name == "compact"]
    (call,) = [span for span in finished if span.name == "chat model"]
    assert {event.name for event in call.events} >= {"compaction.host_changed", "compaction.overflowed"}
    used = dict(call.attributes or {})
    tokens, window, share = (used[f"compaction.context.{name}"] for name in ("tokens", "window", "share"))
    assert (tokens, share, 250 < window < 300) == (session.status().tokens, tokens / window, True)  # less than 300 fit
    measured = metrics_of(reader)
    assert (measured["compaction.compactions"], measured["compaction.overflows"]) == (len(compact), 1)
    assert measured["compaction.tokens.saved"] > 500
    assert "secret" not in repr([(span.attributes, [event.attributes for event in span.events]) for span in finished])


def metrics_of(reader: InMemoryMetricReader) -> dict[str, float]:
    data: Any = reader.get_metrics_data()
    scopes = [scope for resource in ([] if data is None else data.resource_metrics) for scope in resource.scope_metrics]
    points = {metric.name: metric.data.data_points for scope in scopes for metric in scope.metrics}
    return {name: sum(getattr(point, "value", getattr(point, "sum", 0)) for point in each) for name, each in points.items()}


FAILED = Failed("Summarization", ValueError("secret"), "the unchanged view was sent")
SIZES: Any = {"before": Metrics(tokens=900, messages=9), "after": Metrics(tokens=300, messages=3)}
RESULT = CompactionResult(messages=[], **SIZES, edits=(), refused=(), failures=(), outcome="compacted")
LARGER = attrs.evolve(RESULT, before=RESULT.after, after=RESULT.before)
BROKEN = CacheBroken(session="a", tokens=900, why="edited")
TOO_MUCH = Overflowed(session="a", tokens=900, window=800, error=TooLong("secret"))
CHANGES = HostChanges(altered=(1,), removed=(2, 3), rewound=(4,), added=5)


@pytest.mark.parametrize(
    ("event", "name", "attributes", "measured"),
    [
        (NearLimit(session="a", tokens=900, window=1_000), "near_limit", {"tokens": 900, "window": 1_000}, {}),
        (BROKEN, "cache_broken", {"reason": "edited"}, {"tokens.billed_again": 900}),
        (StepFailed(session="a", failure=FAILED), "step_failed", {"strategy": "Summarization"}, {"failures": 1}),
        (SaveFailed(session="a", failure=FAILED), "save_failed", {"strategy": "Summarization"}, {"failures": 1}),
        (TOO_MUCH, "overflowed", {"tokens": 900}, {"overflows": 1}),
        (LittleSaved(session="a", saved_tokens=9, until_tokens=99), "little_saved", {"tokens.saved": 9}, {}),
        (Evicted(session="a", why="limit", is_saved=True), "evicted", {"reason": "limit", "saved": True}, {}),
        (HostChanged(session="a", changes=CHANGES), "host_changed", {"altered": 1, "removed": 3, "added": 5}, {}),
        (Compacting(session="a", edits=(), before=RESULT.before, after=RESULT.after), "compacting", {}, {}),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Event) else "",
)
def test_every_event(event: Event, name: str, attributes: dict[str, Any], measured: dict[str, float]) -> None:
    """An event is on the current span, with its figures and the type of an error, and counts where the table says so."""
    spans, found = recorded(event)
    errors = {"StepFailed": "ValueError", "SaveFailed": "ValueError", "Overflowed": "TooLong"}
    expected = {"gen_ai.operation.name": "compact", "gen_ai.conversation.id": "a"}
    expected |= {f"compaction.{key}": value for key, value in attributes.items()}
    expected |= {"error.type": errors[type(event).__name__]} if type(event).__name__ in errors else {}
    [(_, [told], _)] = spans
    assert told == (f"compaction.{name}", expected)
    assert found == {f"compaction.{key}": value for key, value in measured.items()}


@pytest.mark.parametrize(("result", "saved"), [(RESULT, 600), (LARGER, 0)])
def test_a_compaction_is_a_span(result: CompactionResult, saved: int) -> None:
    """The span has the sizes before and after; what was saved is never below nothing."""
    [(name, events, attributes), (current, others, _)], found = recorded(Compacted(session="a", result=result))
    assert (name, events, current, others) == ("compact", [], "chat model", [])
    assert attributes == {
        "gen_ai.operation.name": "compact",
        "gen_ai.conversation.id": "a",
        "compaction.outcome": "compacted",
        "compaction.edits": 0,
        "compaction.tokens.before": result.before.tokens,
        "compaction.messages.before": result.before.messages,
        "compaction.tokens.after": result.after.tokens,
        "compaction.messages.after": result.after.messages,
    }
    assert found == {"compaction.compactions": 1, "compaction.tokens.saved": saved}


@pytest.mark.parametrize("window", [1_000, None])
def test_how_full_the_window_is(window: int | None) -> None:
    """The share is on the current span and in the histogram, if the window is known."""
    [(_, events, attributes)], found = recorded(ContextUsed(session="a", tokens=250, window=window, triggered=("Truncation",)))
    share = {} if window is None else {"compaction.context.window": 1_000, "compaction.context.share": 0.25}
    assert attributes == {"compaction.context.tokens": 250, "compaction.context.triggered": ("Truncation",), **share}
    assert (events, found) == ([], {} if window is None else {"compaction.context.share": 0.25})


def recorded(event: Event) -> tuple[list[tuple[str, list[Any], dict[str, Any]]], dict[str, float]]:
    """Return the name, the events and the attributes of each span, and the sum of each metric."""
    exporter, reader, spans, events = recording()
    with spans.get_tracer("test").start_as_current_span("chat model"):
        events(event)
    told = [
        (span.name, [(each.name, dict(each.attributes or {})) for each in span.events], dict(span.attributes or {}))
        for span in exporter.get_finished_spans()
    ]
    return told, metrics_of(reader)
