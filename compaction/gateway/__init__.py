"""The gateway: an HTTP server between agents that nobody can change and their providers.

``compaction serve`` runs it. `create_app` returns it as an ASGI application, for a server of your own.
"""

from __future__ import annotations

from .app import create_app
from .client import is_worth_a_log as is_worth_a_log
from .settings import GatewaySettings
from .status import ConversationStatus, Cut, GatewaySnapshot, GatewayStatus

__all__ = ["ConversationStatus", "Cut", "GatewaySettings", "GatewaySnapshot", "GatewayStatus", "create_app"]
