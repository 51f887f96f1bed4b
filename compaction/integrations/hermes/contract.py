"""The contract between a host and a context engine, as Hermes Agent documents it.

The life of an engine: it is created; ``on_session_start``; after each answer ``update_from_response``; on each turn
``should_compress``, and ``compress`` if that returns true; ``on_session_reset`` for a new conversation; ``on_session_end``.
"""

from __future__ import annotations

import abc
import json
from collections.abc import Mapping
from typing import Any

__all__ = ["ContextEngine"]


class ContextEngine(abc.ABC):
    """An engine that decides when to compact a conversation, and compacts it. Holds state: the tokens that its session used.

    Attributes:
        last_prompt_tokens: Tokens the provider reported for the last request; -1 while a host waits for the first report after
            a compaction.
        last_completion_tokens: Tokens the provider reported for the last answer.
        last_total_tokens: The sum of both.
        threshold_tokens: Tokens at which compaction is due.
        context_length: The model's context window in tokens.
        compression_count: The number of compactions.
        threshold_percent: The threshold as a share of the window, for `update_model`.
        protect_first_n: Messages at the start that stay, for a host's own estimates.
        protect_last_n: Messages at the end that stay.
    """

    last_prompt_tokens: int = 0
    last_completion_tokens: int = 0
    last_total_tokens: int = 0
    threshold_tokens: int = 0
    context_length: int = 0
    compression_count: int = 0
    threshold_percent: float = 0.75
    protect_first_n: int = 3
    protect_last_n: int = 6

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The engine's name in a host's configuration."""

    @abc.abstractmethod
    def update_from_response(self, usage: Mapping[str, Any]) -> None:
        """Record the tokens that a provider reported: ``prompt_tokens``, ``completion_tokens``, ``total_tokens``."""

    @abc.abstractmethod
    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        """Return whether the conversation should be compacted now.

        Args:
            prompt_tokens: Tokens of the request; by default the last reported.
        """

    @abc.abstractmethod
    def compress(
        self, messages: list[Any], current_tokens: int | None = None, focus_topic: str | None = None, force: bool = False
    ) -> list[Any]:
        """Return the compacted conversation: a valid list of messages in OpenAI's chat format.

        Args:
            messages: The conversation, oldest first; it is not changed.
            current_tokens: Tokens of the request, if known.
            focus_topic: A topic that a summary should give most room to.
            force: Whether a person asked for it.
        """

    def should_compress_preflight(self, messages: list[Any]) -> bool:
        """Return whether to compact before a request, by a cheap estimate; by default never."""
        return False

    def should_defer_preflight_to_real_usage(self, rough_tokens: int) -> bool:
        """Return whether to wait for a provider's report instead of trusting an estimate; by default never."""
        return False

    def has_content_to_compress(self, messages: list[Any]) -> bool:
        """Return whether there is anything to compact; by default always."""
        return True

    def on_session_start(self, session_id: str, **about: Any) -> None:  # noqa: B027 - an engine may have nothing to load
        """Handle the start of a conversation: load its saved state."""

    def on_session_end(self, session_id: str, messages: list[Any]) -> None:  # noqa: B027 - or nothing to keep
        """Handle the end of a conversation: save its state."""

    def on_session_reset(self) -> None:
        """Handle the start of another conversation: reset the counts."""
        self.last_prompt_tokens = 0
        self.last_completion_tokens = 0
        self.last_total_tokens = 0
        self.compression_count = 0

    def update_model(  # noqa: PLR0917 - the host's contract
        self,
        model: str,
        context_length: int,
        base_url: str = "",
        api_key: str = "",
        provider: str = "",
        api_mode: str = "",
    ) -> None:
        """Handle a switch of the model: compute the threshold again.

        Args:
            model: The model's name.
            context_length: Its context window in tokens.
            base_url: Its server.
            api_key: The server's key.
            provider: The provider.
            api_mode: The provider's API in use.
        """
        self.context_length = context_length
        self.threshold_tokens = int(context_length * self.threshold_percent)

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Return the engine's tools, each with ``name``, ``description`` and ``parameters``; by default none."""
        return []

    def handle_tool_call(self, name: str, args: Mapping[str, Any], **about: Any) -> str:
        """Answer a call of one of these tools, as JSON text."""
        return json.dumps({"error": f"there is no tool {name!r}"})

    def get_status(self) -> dict[str, Any]:
        """Return figures to show."""
        used = max(0, self.last_prompt_tokens)
        return {
            "last_prompt_tokens": used,
            "threshold_tokens": self.threshold_tokens,
            "context_length": self.context_length,
            "usage_percent": min(100, used / self.context_length * 100) if self.context_length else 0,
            "compression_count": self.compression_count,
        }
