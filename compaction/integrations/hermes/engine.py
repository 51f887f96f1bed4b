"""The context engine that compacts with a session of this package."""

from __future__ import annotations

import operator
import os
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs
from anyio.from_thread import start_blocking_portal

from ... import presets
from ...errors import InputError
from ...formats import MessageFormat
from ...index import MessageIndex
from ...result import CompactionResult
from ...session import CompactionSession, TurnLock
from ...stores import TOOLS, SQLiteStore, Store, handle_tool_call, tool_schemas
from ...strategies import Lossless, Pipeline, Strategy, StrategyLike, as_strategy
from ...summarizers import OpenAISummarizer, Summarizer, SummarizerLike
from ...tokens import TokenCounter
from .contract import ContextEngine
from .lossless import lossless_compressor, stores_in, with_session_name
from .pressure import ContextPressure, PressureNotice
from .settings import EngineSettings

__all__ = ["CompactionEngine"]

_STRIKES: Final = 2
_OPENROUTER: Final = "https://openrouter.ai/api/v1"


@attrs.frozen
class _Main:
    """The host's main model."""

    model: str = ""
    base_url: str = ""
    api_key: str = attrs.field(default="", repr=False)


class CompactionEngine(ContextEngine):
    """A context engine that runs a pipeline, by default `compaction.presets.hermes`. Holds state: one session.

    Nothing is lost when it fails: `compress` then returns the list it was given, with the reason in ``last_error``. After two
    compactions in a row that did not bring the reported tokens below the threshold, it waits until they fall, the model is
    switched, or a person asks.

    With a store (``settings.store``, or one in the pipeline), the engine's tools read back what left the conversation. The
    default pipeline then leaves stubs, which name the stored messages, in place of its placeholder.

    Args:
        settings: The settings; by default those that Hermes Agent documents.
        context_length: The model's context window in tokens, until `update_model`.
        strategy: The strategy, in place of the settings' pipeline; its own trigger is not used, because the host decides when.
        summarizer: The summarizer, in place of the settings' model.
        counter: A token counter or the name of one.
        format: The wire format; ``None`` to detect it, see `compaction.formats.resolve`. Hermes Agent has chat completions.
        clock: Returns seconds, for stored messages and for pauses after failures.
        pressure: Makes notices that a compaction is near, for the host to show; ``None`` for none.
        session_id: The conversation's name in the store, until `on_session_start`.

    Raises:
        ConfigurationError: If the pipeline's file cannot be used.
        StateError: If the store cannot be opened.

    >>> engine = CompactionEngine(context_length=128_000)
    >>> engine.threshold_tokens, engine.should_compress(63_999), engine.should_compress(64_000)
    (64000, False, True)
    """

    def __init__(
        self,
        settings: EngineSettings | None = None,
        *,
        context_length: int = 200_000,
        strategy: StrategyLike | None = None,
        summarizer: SummarizerLike | None = None,
        counter: TokenCounter | str = "auto",
        format: MessageFormat | str | None = None,
        clock: Callable[[], float] = time.time,
        pressure: ContextPressure | None = None,
        session_id: str = "default",
    ) -> None:
        self.settings = EngineSettings() if settings is None else settings
        self.context_length = context_length
        self.threshold_percent = self.settings.threshold
        self.threshold_tokens = int(context_length * self.threshold_percent)
        self.protect_first_n, self.protect_last_n = self.settings.protect_first_n, self.settings.protect_last_n
        self.last_error: str | None = None
        self.last_notice: PressureNotice | None = None
        self.last_result: CompactionResult | None = None
        self.awaiting_real_usage_after_compression = False
        self._given: dict[str, Any] = {
            "strategy": self._from_file() if strategy is None else as_strategy(strategy),
            "summarizer": summarizer,
            "counter": counter,
            "format": format,
            "clock": clock,
            "pressure": pressure,
        }
        self._store: Store | None = None if self.settings.store is None else SQLiteStore(self.settings.store)
        self._pressure = pressure
        self._main = _Main()
        self._strikes = 0
        self._unproven = False
        self._lock = TurnLock()
        self._conversation = session_id
        self._session = self._new_session()

    def __deepcopy__(self, memo: dict[int, Any]) -> CompactionEngine:
        """Return an engine with the same settings and its own conversation: a host copies one for each agent."""
        copy = type(self)(self.settings, context_length=self.context_length, session_id=self._conversation, **self._given)
        copy.threshold_tokens, copy.threshold_percent = self.threshold_tokens, self.threshold_percent
        return copy

    @property
    def name(self) -> str:
        return "compaction"

    @property
    def session(self) -> CompactionSession:
        """The conversation's session."""
        return self._session

    @property
    def store(self) -> Store | None:
        """The store of messages that leave the conversation, if there is one."""
        return next(iter(stores_in(self._strategy())), None)

    # ---------------------------------------------------------------- what compacts

    def _from_file(self) -> Strategy | None:
        if self.settings.pipeline is None:
            return None
        from ...config import load

        return load(self.settings.pipeline)

    def _strategy(self) -> Strategy:
        """Return the strategy for the current model and conversation."""
        given: Strategy | None = self._given["strategy"]
        strategy: Strategy = self._preset() if given is None else given
        if self._store is not None and not stores_in(strategy):
            strategy = lossless_compressor(self._preset(), self._store) if given is None else Lossless(strategy, self._store)
        return with_session_name(strategy, self._conversation)

    def _preset(self) -> Pipeline:
        summarizer = self._given["summarizer"] or self._model()
        return presets.hermes(
            self.context_length,
            summarizer,
            threshold=self.threshold_percent,
            target_ratio=self.settings.target_ratio,
            protect_first_n=self.settings.protect_first_n,
            protect_last_n=self.settings.protect_last_n,
            on_failure="keep" if summarizer is None else "digest",
        )

    def _model(self) -> Summarizer | None:
        settings, main = self.settings, self._main
        model = settings.summary_model or (main.model if settings.summary_provider == "main" else "")
        if not model:
            return None
        url, key_env, key = settings.summary_base_url, settings.summary_key_env, None
        if url is None and settings.summary_provider == "openrouter":
            url, key_env = _OPENROUTER, key_env or "OPENROUTER_API_KEY"
        elif url is None:
            url, key = main.base_url or None, (main.api_key or None) if key_env is None else None
        if key is None and key_env is None and "OPENAI_API_KEY" not in os.environ:
            key = "none"  # a local server needs no key; any other refuses it, and a digest takes over
        return OpenAISummarizer(model, base_url=url, api_key=key, api_key_env=key_env)

    def _new_session(self) -> CompactionSession:
        return CompactionSession(
            self._strategy(),
            counter=self._given["counter"],
            format=self._given["format"],
            window=self.context_length,
            clock=self._given["clock"],
            id=self._conversation,
        )

    # ---------------------------------------------------------------- when

    def update_from_response(self, usage: Mapping[str, Any]) -> None:
        """Record the tokens that a provider reported; a missing figure counts as 0.

        Raises:
            InputError: If it is not a mapping, or a figure in it is not a whole number >= 0.
        """
        prompt, completion = _reported(usage, "prompt_tokens"), _reported(usage, "completion_tokens")
        self.last_prompt_tokens, self.last_completion_tokens = prompt, completion
        self.last_total_tokens = _reported(usage, "total_tokens") or prompt + completion
        self.awaiting_real_usage_after_compression = False
        if prompt < self.threshold_tokens:
            self._strikes = 0
        elif self._unproven:
            self._strikes += 1
        self._unproven = False
        if self._pressure is not None:
            self._pressure, self.last_notice = self._pressure.seen(prompt, self.threshold_tokens)

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        tokens = self.last_prompt_tokens if prompt_tokens is None else prompt_tokens
        return self.settings.enabled and tokens >= self.threshold_tokens > 0 and self._strikes < _STRIKES

    def should_compress_preflight(self, messages: list[Any]) -> bool:
        """Return whether a rough estimate, four characters a token, reaches the threshold; O(characters).

        A list that cannot be read cannot be compacted: the answer is then no, with the reason in ``last_error``.
        """
        try:
            tokens = MessageIndex(messages, counter="chars/4", format=self._given["format"]).tokens
        except InputError as error:
            self.last_error = f"{type(error).__name__}: {error}"
            return False
        return self.should_compress(tokens)

    def should_defer_preflight_to_real_usage(self, rough_tokens: int) -> bool:
        """Return whether no usage has been reported since the last compaction."""
        return self.awaiting_real_usage_after_compression and rough_tokens >= self.threshold_tokens

    def has_content_to_compress(self, messages: list[Any]) -> bool:
        """Return whether there are more messages than the protected ones, if the default pipeline runs."""
        return self._given["strategy"] is not None or len(messages) > self.protect_first_n + self.protect_last_n

    # ---------------------------------------------------------------- compacting

    def compress(
        self, messages: list[Any], current_tokens: int | None = None, focus_topic: str | None = None, force: bool = False
    ) -> list[Any]:
        """Compact the conversation now and return it; works in a thread with or without an event loop.

        If the list cannot be read or anything fails, it is returned unchanged, with the reason in ``last_error``.
        """
        with start_blocking_portal() as portal:
            return portal.call(self.compress_async, messages, current_tokens, focus_topic, force)

    async def compress_async(
        self, messages: list[Any], current_tokens: int | None = None, focus_topic: str | None = None, force: bool = False
    ) -> list[Any]:
        """`compress` for a host that awaits."""
        async with self._lock.task:
            self.last_error, self.last_result = None, None
            if force:
                self._strikes = 0
            try:
                self._session.follow(messages)
                self._note_tokens(current_tokens)
                result = await self._session.compact(focus=focus_topic)
            except Exception as error:  # the host's conversation continues, whatever fails here
                self.last_error = f"{type(error).__name__}: {error}"
                return messages
            return self._noted(messages, result)

    def _noted(self, messages: list[Any], result: CompactionResult) -> list[Any]:
        """Record the result, and return the messages; the given list itself if nothing changed."""
        self.last_result = result
        self.last_error = "; ".join(f"{each.error}: {each.policy}" for each in result.failures) or None
        self.compression_count += bool(result.edits)
        self._unproven = True
        changed = len(result.messages) != len(messages) or any(map(operator.is_not, result.messages, messages))
        return list(result.messages) if changed else messages

    def _note_tokens(self, current_tokens: int | None) -> None:
        """Count the tokens that a request has beyond its messages as sent with every request."""
        included = self._session.index.included.tokens
        if current_tokens is not None and current_tokens > included:
            self._session.record_usage({"prompt_tokens": current_tokens, "completion_tokens": 0})

    # ---------------------------------------------------------------- sessions and models

    def on_session_start(self, session_id: str, **about: Any) -> None:
        """Start a conversation, or continue it under another name (``boundary_reason="compression"``) with its store."""
        if about.get("boundary_reason") == "compression" and about.get("old_session_id"):
            return
        if session_id != self._conversation:
            self._conversation = session_id
            self._session = self._new_session()

    def on_session_reset(self) -> None:
        super().on_session_reset()
        self._strikes, self._unproven, self._pressure = 0, False, self._given["pressure"]
        self.last_error = self.last_notice = self.last_result = None
        self.awaiting_real_usage_after_compression = False
        self._session = self._new_session()

    def update_model(  # noqa: PLR0917 - the host's contract
        self,
        model: str,
        context_length: int,
        base_url: str = "",
        api_key: str = "",
        provider: str = "",
        api_mode: str = "",
    ) -> None:
        """Compute every budget for the new model's window; earlier compactions stay in force.

        Raises:
            ConfigurationError: If the window is not above 0; then nothing changes.
        """
        before = self.context_length, self._main, self.threshold_percent
        self.context_length, self._main = context_length, _Main(model, base_url, api_key)
        self.threshold_percent = self.settings.threshold
        try:
            self._session.reconfigure(self._strategy(), window=context_length)
        except Exception:
            self.context_length, self._main, self.threshold_percent = before
            raise
        self.threshold_tokens = int(context_length * self.threshold_percent)
        self.last_prompt_tokens = self.last_completion_tokens = self.last_total_tokens = 0
        self._strikes, self._unproven = 0, False

    # ---------------------------------------------------------------- tools and status

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Return the tools that read stored messages back; none without a store."""
        return [] if self.store is None else [schema["function"] for schema in tool_schemas()]

    def handle_tool_call(self, name: str, args: Mapping[str, Any], **about: Any) -> str:
        store = self.store
        if store is None or name not in TOOLS:
            return super().handle_tool_call(name, args)
        return handle_tool_call(name, args, store=store, session=self._conversation)

    def get_status(self) -> dict[str, Any]:
        """Return the host's five figures, and the result of the last compaction."""
        result = self.last_result
        return {
            **super().get_status(),
            "engine": self.name,
            "outcome": None if result is None else result.outcome,
            "error": self.last_error,
            "notice": None if self.last_notice is None else str(self.last_notice),
            "waiting": self._strikes >= _STRIKES,
        }


def _reported(usage: Mapping[str, Any], name: str) -> int:
    value: Any = usage.get(name, 0) if isinstance(usage, Mapping) else None
    if value is None and isinstance(usage, Mapping):
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"usage {name}={value!r}: pass a mapping with the tokens a provider reported, whole numbers >= 0")
    return value
