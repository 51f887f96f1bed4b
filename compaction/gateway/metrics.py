"""The state of a gateway in the text format of Prometheus. Conversations are summed up, so that labels have few values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from .status import GatewaySnapshot

METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
"""The content type of the text."""

_SUMS: Final = (
    ("cuts", "Compactions that changed a request"),
    ("tokens_saved", "Tokens of messages that were not sent"),
    ("tokens_lost", "Tokens that a provider had cached and had to read again after a cut"),
    ("dollars_saved", "Price of the tokens that were not sent, as cached tokens"),
    ("dollars_lost", "Price of the tokens that were read again after a cut, less that of cached ones"),
    ("prompt_tokens", "Tokens of requests, as the providers reported them"),
    ("cached_tokens", "Tokens of requests that were read from the providers' caches"),
    ("completion_tokens", "Tokens of answers, as the providers reported them"),
    ("seconds_total", "Seconds that the gateway took before it sent requests"),
)


def prometheus_text(snapshot: GatewaySnapshot) -> str:
    """Return the state as text for Prometheus.

    >>> print(prometheus_text(GatewaySnapshot(started_at=0.0, at=9.0, passed_through={"not JSON": 2})).splitlines()[-1])
    compaction_gateway_conversation_bytes 0
    """
    lines: list[str] = []

    def add(name: str, kind: str, help: str, samples: Iterable[tuple[str, float]]) -> None:
        full = f"compaction_gateway_{name}"
        lines.extend((f"# HELP {full} {help}", f"# TYPE {full} {kind}"))
        lines.extend(f"{full}{labels} {value:.15g}" for labels, value in samples)

    requests = ((_labels(route=route, status=str(status)), count) for (route, status), count in snapshot.requests.items())
    add("requests_total", "counter", "Answers by route and status", requests)
    add(
        "passed_through_total",
        "counter",
        "Requests to a model that were sent unchanged",
        _by(snapshot.passed_through, "reason"),
    )
    add("failures_total", "counter", "Failures by kind", _by(snapshot.failures, "kind"))
    add("retries_total", "counter", "Second requests by reason", _by(snapshot.retries, "reason"))
    for name, help in _SUMS:
        add(f"{name.removesuffix('_total')}_total", "counter", help, [("", snapshot.totals.get(name, 0))])
    add("conversations", "gauge", "Conversations in memory", [("", snapshot.held)])
    add("conversation_bytes", "gauge", "Bytes of the messages of conversations in memory", [("", snapshot.held_bytes)])
    return "\n".join(lines) + "\n"


def _by(counts: Mapping[str, int], label: str) -> Iterator[tuple[str, float]]:
    for name, count in counts.items():
        yield _labels(**{label: name}), float(count)


def _labels(**values: str) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in values.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
