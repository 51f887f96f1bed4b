"""What a host may ask of an engine that manages its conversation's context: Hermes Agent's documented contract.

The life of an engine: it is made; ``on_session_start``; after each answer ``update_from_response``; on each turn
``should_compress``, and ``compress`` if that says so; ``on_session_reset`` for a new conversation; ``on_session_end``.
"""

from __future__ import annotations

import abc
import json
from collections.abc import Mapping
from typing import Any

__all__ = ["ContextEngine"]


class ContextEngine(abc.ABC):
    """An engine that decides when a conversation is compacted, and compacts it. Holds state: what its session used.

    Attributes:
        last_prompt_tokens: Tokens the provider reported for the last request; -1 while a host waits for the first report after
            a compaction.
        last_completion_tokens: Tokens it reported for the last answer.
        last_total_tokens: Their sum.
        threshold_tokens: Tokens at which compaction is due.
        context_length: The model's window.
        compression_count: How often the conversation was compacted.
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
        """What a host's configuration calls it."""

    @abc.abstractmethod
    def update_from_response(self, usage: Mapping[str, Any]) -> None:
        """Take the tokens a provider reported: ``prompt_tokens``, ``completion_tokens``, ``total_tokens``."""

    @abc.abstractmethod
    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        """Whether the conversation should be compacted now.

        Args:
            prompt_tokens: Tokens of the request; by default the last reported.
        """

    @abc.abstractmethod
    def compress(
        self, messages: list[Any], current_tokens: int | None = None, focus_topic: str | None = None, force: bool = False
    ) -> list[Any]:
        """The conversation, compacted: a valid list of messages in OpenAI's chat form.

        Args:
            messages: The conversation, oldest first; it is not changed.
            current_tokens: Tokens of the request it makes, if known.
            focus_topic: What a summary should give room to.
            force: Whether a person asked for it.
        """

    def should_compress_preflight(self, messages: list[Any]) -> bool:
        """Whether to compact before a request, by a cheap estimate; by default never."""
        return False

    def should_defer_preflight_to_real_usage(self, rough_tokens: int) -> bool:
        """Whether to wait for a provider's report instead of trusting an estimate; by default never."""
        return False

    def has_content_to_compress(self, messages: list[Any]) -> bool:
        """Whether there is anything to compact; by default always."""
        return True

    def on_session_start(self, session_id: str, **about: Any) -> None:  # noqa: B027 - an engine may have nothing to load
        """A conversation begins; load what is kept of it."""

    def on_session_end(self, session_id: str, messages: list[Any]) -> None:  # noqa: B027 - or nothing to keep
        """A conversation ends; keep what is to be kept."""

    def on_session_reset(self) -> None:
        """Another conversation begins: forget what was counted."""
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
        """The host goes on with another model; compute the threshold anew.

        Args:
            model: Its name.
            context_length: Its window in tokens.
            base_url: Its server.
            api_key: The server's key.
            provider: Who runs it.
            api_mode: Which of the provider's interfaces is used.
        """
        self.context_length = context_length
        self.threshold_tokens = int(context_length * self.threshold_percent)

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """The tools the engine offers the agent, each with ``name``, ``description`` and ``parameters``; by default none."""
        return []

    def handle_tool_call(self, name: str, args: Mapping[str, Any], **about: Any) -> str:
        """Answer a call of one of these tools, as JSON text."""
        return json.dumps({"error": f"there is no tool {name!r}"})

    def get_status(self) -> dict[str, Any]:
        """Figures to show."""
        used = max(0, self.last_prompt_tokens)
        return {
            "last_prompt_tokens": used,
            "threshold_tokens": self.threshold_tokens,
            "context_length": self.context_length,
            "usage_percent": min(100, used / self.context_length * 100) if self.context_length else 0,
            "compression_count": self.compression_count,
        }
