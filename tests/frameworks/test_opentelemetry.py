"""The events of a session as spans and metrics, recorded by the OpenTelemetry SDK itself."""

from __future__ import annotations

from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from compaction import last
from compaction.integrations.opentelemetry import OpenTelemetryEvents
from compaction.session import CompactionSession
from compaction.strategies import Truncation
from compaction.triggers import tokens_below, tokens_exceed


class TooLong(Exception):
    """A provider's answer 400."""

    status_code = 400


def talk(turns: int) -> list[dict[str, Any]]:
    """Return a conversation with a secret in every message."""
    return [{"role": "user", "content": f"my secret is {turn} " + "word " * 40} for turn in range(turns)]


def test_what_happens_is_recorded_without_texts() -> None:
    """Each compaction is a span, other events are on the current span, counters count, and no message text is recorded."""
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    spans, meters = TracerProvider(), MeterProvider(metric_readers=[reader])
    spans.add_span_processor(SimpleSpanProcessor(exporter))
    events = OpenTelemetryEvents(tracer_provider=spans, meter_provider=meters)
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
    first = dict(compact[0].attributes or {})
    assert first["gen_ai.conversation.id"] == "chat-7"
    assert first["gen_ai.operation.name"] == "compact"
    assert first["compaction.tokens.before"] > first["compaction.tokens.after"] > 0
    assert {event.name for event in call.events} >= {"compaction.host_changed", "compaction.overflowed"}
    used, left = dict(call.attributes or {}), session.status().tokens
    assert [used[f"compaction.context.{name}"] for name in ("tokens", "window", "share")] == [left, 300, left / 300]
    measured = metrics_of(reader)
    assert measured["compaction.compactions"] == len(compact)
    assert measured["compaction.overflows"] == 1
    assert measured["compaction.tokens.saved"] > 500
    assert "secret" not in repr([(span.attributes, [event.attributes for event in span.events]) for span in finished])


def metrics_of(reader: InMemoryMetricReader) -> dict[str, float]:
    """Return the sum of each counter."""
    data = reader.get_metrics_data()
    assert data is not None
    metrics = [metric for each in data.resource_metrics for scope in each.scope_metrics for metric in scope.metrics]
    counters = [metric for metric in metrics if metric.name != "compaction.context.share"]
    return {metric.name: sum(point.value for point in metric.data.data_points) for metric in counters}  # type: ignore[union-attr]
