"""The gateway: an HTTP server between agents and their providers, which keeps requests inside the context window.

``compaction serve`` runs it. `create_app` returns it as an ASGI application for any ASGI server.
"""

from __future__ import annotations

from .app import create_app
from .settings import LOOPBACK_NAMES as LOOPBACK_NAMES
from .settings import GatewaySettings
from .upstream import is_worth_a_log as is_worth_a_log
from .workers import Workers

__all__ = ["GatewaySettings", "Workers", "create_app"]
