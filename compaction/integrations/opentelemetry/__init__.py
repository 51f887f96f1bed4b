"""OpenTelemetry: the events of sessions as spans and metrics."""

from .telemetry import OpenTelemetryEvents

__all__ = ["OpenTelemetryEvents"]
