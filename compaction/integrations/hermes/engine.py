"""The context engine that compacts with a session of this package, with the methods that Hermes Agent documents."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, cast

import attrs
from anyio.from_thread import start_blocking_portal

from ... import presets
from ...checks import is_count
from ...errors import InputError
from ...formats import MessageFormat, apply_cache_control, same, should_cache
from ...index import GroupKind, MessageIndex, UselessRuns
from ...result import CompactionResult, space_report
from ...session import CallLock, CompactionSession
from ...stores import TOOLS, SQLiteStore, Store, handle_tool_call, tool_schemas
from ...strategies import Lossless, Offload, Pipeline, Strategy, StrategyLike, ToolResult, as_strategy, within
from ...summarizers import SummarizerLike
from ...tokens import TokenCounter
from ...triggers import tokens_exceed
from .settings import EngineSettings, MainModel

_STORED_CHARS: Final = 200
"""Results with at least so many characters are stored, if there is a store."""
_NEAR: Final = 0.85  # of the window, or of the threshold; Hermes Agent's figures
_LEAST_MESSAGES: Final = 4
_NEW_SHARE: Final = 10  # a tenth of the threshold must be new

_Why: TypeAlias = Literal["requested", "due", "first", "refused"]
"""Why the host calls `compress`. All but ``"due"`` compact whatever the triggers say.

- ``"requested"``: a person wants it. A pause after compactions without effect ends.
- ``"due"``: `should_compress` returned true.
- ``"first"``: it did not, but no tokens were reported yet.
- ``"refused"``: it did not, so the provider refused the request as too long. At most half of the messages' tokens may stay.
"""


@attrs.define
class Progress:
    """The reports of one model about one conversation, and the success of the last compactions. Holds state.

    A compaction after which the reported tokens are still at the threshold or above it is a strike; one that changed nothing
    is not. After two strikes in a row the next compaction waits until the request has grown by a tenth of the threshold, or
    fills the window.

    >>> progress = Progress()
    >>> for _ in range(2):
    ...     progress.ran(changed=True)
    ...     progress.reported(5_000, 4_000)
    >>> progress.waits(5_100, 4_000, window=8_000), progress.waits(5_500, 4_000, window=8_000)
    (True, False)
    """

    last_tokens: int = 0  # the newest prompt tokens above 0
    unrecorded_tokens: int = 0  # the prompt tokens of a report that the session has not recorded yet; 0 if there is none
    has_recorded: bool = False  # whether it has recorded one, so that estimates of the host are ignored
    is_due: bool = False  # whether `CompactionEngine.should_compress` last returned true
    _useless: UselessRuns = attrs.field(factory=UselessRuns)
    _awaits_report: bool = False
    _first_estimate: int | None = None

    def restart(self) -> None:
        """Forget the success of the last compactions."""
        self._useless, self._awaits_report = UselessRuns(), False

    def ran(self, *, changed: bool) -> None:
        """Record that a compaction ended."""
        self._awaits_report = self._awaits_report or changed

    def reported(self, tokens: int, threshold: int) -> None:
        """Record the tokens that a provider reported; 0 if it reported none."""
        self.unrecorded_tokens = tokens
        if not tokens:
            return
        self.last_tokens = tokens
        if tokens < threshold:
            self._useless = UselessRuns()
        elif self._awaits_report:
            self._useless = self._useless.and_another(0, until_tokens=tokens + threshold // _NEW_SHARE)
            self._first_estimate = None
        self._awaits_report = False

    def waits(self, tokens: int, threshold: int, *, window: int) -> bool:
        """Return whether too little is new in a request since the last strike.

        Reported tokens are compared with reported ones, and a host's estimates with its first estimate since.
        """
        if self._useless.until_tokens is None or tokens >= window:
            return False
        if tokens == self.last_tokens:
            return self._useless.is_paused(tokens)
        if self._first_estimate is None:
            self._first_estimate = tokens
        return tokens < self._first_estimate + threshold // _NEW_SHARE


class CompactionEngine:
    """A context engine that runs a pipeline, by default `compaction.presets.hermes`. Holds state: one session.

    If a compaction fails, `compress` returns the given list, with the reason in ``last_error``. After two compactions in a row
    that did not bring the reported tokens below the threshold, the engine waits until the request has grown, the window is
    full, the model is switched, or a person requests a compaction.

    If the host calls `compress` although `should_compress` returned false, and not with ``force``, the provider has refused the
    request as too long. The engine then keeps at most half of the messages' tokens, and no more than the threshold.

    With a store (``settings.store``, or one in the pipeline), the engine's tools read back the messages that left the
    conversation. The default pipeline then leaves stubs, which name the stored messages, instead of its placeholder.

    Args:
        settings: The settings; by default those that Hermes Agent documents.
        context_length: The model's context window in tokens, until `update_model`.
        strategy: The strategy, in place of the settings' pipeline; its trigger is ignored, because the host decides when to
            compact.
        summarizer: The summarizer, in place of the settings' model.
        counter: A token counter or the name of one.
        format: The wire format; ``None`` to detect it, see `compaction.formats.resolve`. Hermes Agent has chat completions.
        clock: Returns seconds, for stored messages and for pauses after failures.
        session_id: The conversation's name in the store, until `on_session_start`.

    Raises:
        ConfigurationError: If the pipeline's file cannot be used.
        StateError: If the store cannot be opened.

    >>> engine = CompactionEngine(context_length=128_000)
    >>> engine.threshold_tokens, engine.should_compress(63_999), engine.should_compress(64_000)
    (64000, False, True)
    """

    name = "compaction"

    # Set by `on_session_reset` or, where another model ends it too, by `_forget_reports`; Hermes uses some of both by name.
    last_error: str | None
    last_result: CompactionResult | None
    notice: str | None  # for the user: the next compaction is near
    _last_summary_dropped_count = 0

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
        session_id: str = "default",
    ) -> None:
        self.settings = EngineSettings() if settings is None else settings
        self.context_length = context_length
        self.threshold_percent = self.settings.threshold  # the host may lower both, for a model or a session
        self.threshold_tokens = int(context_length * self.threshold_percent)
        self.protect_first_n, self.protect_last_n = self.settings.protect_first_n, self.settings.protect_last_n
        self._given: Strategy | None = None if strategy is None else as_strategy(strategy)
        if self._given is None and self.settings.pipeline is not None:
            from ...config import load

            self._given = load(self.settings.pipeline)
        self._summarizer, self._counter, self._format, self._clock = summarizer, counter, format, clock
        self._store: Store | None = None if self.settings.store is None else SQLiteStore(self.settings.store)
        self._main: MainModel = MainModel()
        self._lock = CallLock()
        self._conversation = session_id
        self.on_session_reset()

    def on_session_reset(self) -> None:
        """Start another conversation: the counts start from zero."""
        self.session = CompactionSession(
            self._running_strategy(),
            counter=self._counter,
            format=self._format,
            window=self.context_length,
            clock=self._clock,
            id=self._conversation,
        )
        self.compression_count = self.last_compression_rough_tokens = 0
        self.last_error = self.last_result = None
        self.awaiting_real_usage_after_compression = False
        self._note_end(changed=False)
        self._forget_reports()

    def _forget_reports(self) -> None:
        """Forget the reported tokens, and what followed from them: they are of another conversation or model."""
        self.last_prompt_tokens = self.last_completion_tokens = self.last_total_tokens = 0
        self.notice = None
        self._reports = Progress()

    def __deepcopy__(self, memo: dict[int, Any]) -> CompactionEngine:
        """Return an engine with the same settings and its own conversation; the host makes a copy for each agent."""
        made = copy.copy(self)
        made._lock = CallLock()
        made.on_session_reset()
        return made

    @property
    def store(self) -> Store | None:
        """The store of messages that leave the conversation, if there is one."""
        return next(iter(_stores_in(self._strategy())), None)

    def _strategy(self) -> Strategy:
        given = self._given
        strategy: Strategy = self._preset() if given is None else given
        if self._store is not None and not _stores_in(strategy):
            strategy = _lossless_compressor(self._preset(), self._store) if given is None else Lossless(strategy, self._store)
        return _with_session_name(strategy, self._conversation)

    def _running_strategy(self) -> Strategy:
        """Return the strategy without its trigger, because the host decides when; one that was given is forced."""
        strategy = self._strategy()
        is_preset = self._given is None and isinstance(strategy, Pipeline)
        return Pipeline(*strategy.children) if is_preset else strategy.forced()

    def _preset(self) -> Pipeline:
        summarizer = self._summarizer or self.settings.summarizer(self._main)
        return self.settings.preset(self.context_length, summarizer, self.threshold_percent)

    def update_from_response(self, usage: Mapping[str, Any]) -> None:
        """Record the tokens that a provider reported; a missing figure counts as 0.

        Raises:
            InputError: If it is not a mapping, or a figure in it is not a whole number >= 0.
        """
        prompt, completion = _reported(usage, "prompt_tokens"), _reported(usage, "completion_tokens")
        if prompt:
            self.notice = pressure_notice(prompt, self.threshold_tokens, self._reports.last_tokens)
        self.last_prompt_tokens, self.last_completion_tokens = prompt, completion
        self.last_total_tokens = _reported(usage, "total_tokens") or prompt + completion
        self.awaiting_real_usage_after_compression = False
        self._reports.reported(prompt, self.threshold_tokens)

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        """Return whether to compact now, at these tokens of the request; by default the last reported ones."""
        tokens = self.last_prompt_tokens if prompt_tokens is None else prompt_tokens
        is_full = self.settings.enabled and tokens >= self.threshold_tokens > 0
        self._reports.is_due = is_full and not self._reports.waits(tokens, self.threshold_tokens, window=self.context_length)
        return self._reports.is_due

    def should_compress_preflight(self, messages: list[Any]) -> bool:
        """Return whether a rough estimate, four characters a token, reaches the threshold; O(characters).

        For a list that cannot be read, it returns false, with the reason in ``last_error``.
        """
        try:
            tokens = MessageIndex(messages, counter="chars/4", format=self._format).tokens
        except InputError as error:
            self.last_error = f"{type(error).__name__}: {error}"
            return False
        return self.should_compress(tokens)

    def should_defer_preflight_to_real_usage(self, rough_tokens: int) -> bool:
        """Return whether no usage has been reported since the last compaction."""
        return self.awaiting_real_usage_after_compression and rough_tokens >= self.threshold_tokens

    def has_content_to_compress(self, messages: list[Any]) -> bool:
        """Return whether there are more messages than the protected ones, if the default pipeline runs."""
        return self._given is not None or len(messages) > self.protect_first_n + self.protect_last_n

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
            why: _Why = "requested" if force else "due" if self._reports.is_due else "refused"
            if why == "refused" and self.last_prompt_tokens == 0:  # it is -1 after a compaction, which Hermes sets
                why = "first"
            self.last_error, self.last_result, self._reports.is_due = None, None, False
            if why == "requested":
                self._reports.restart()
            compacted = messages
            try:
                self.session.follow(messages)
                self._record_report(current_tokens)
                compacted = self._noted(messages, await self._compacted(why, focus_topic))
            except Exception as error:  # the host's conversation continues, whatever fails here
                self.last_error = f"{type(error).__name__}: {error}"
            if why == "refused" and compacted is messages and self.last_error is None:
                self.last_error = f"nothing more can be removed: {'; '.join(map(str, space_report(self.session.index)))}"
            self._note_end(changed=compacted is not messages)
            return compacted

    def _note_end(self, *, changed: bool) -> None:
        """Set the flags that Hermes reads after a compaction."""
        failed = self.last_error is not None
        self._last_compression_made_progress = changed
        self._last_compress_aborted, self._last_summary_fallback_used = failed and not changed, failed and changed
        self._last_summary_error = self.last_error

    async def _compacted(self, why: _Why, focus: str | None) -> CompactionResult:
        """Run the strategy, and the last resort if the result exceeds `_limit`."""
        session, limit = self.session, self._limit(why)
        async with session.lock.task:
            result = await (session.compact_due() if why == "due" and focus is None else session.compact_now(focus))
            if limit is None or session.index.tokens <= limit:
                return result
            last_resort = _with_session_name(_last_resort(limit, self.store), self._conversation)
            session.reconfigure(last_resort, window=self.context_length)
            try:
                more = await session.compact_due()
            finally:
                session.reconfigure(self._running_strategy(), window=self.context_length)
        edits, refusals = (*result.edits, *more.edits), (*result.refused, *more.refused)
        return attrs.evolve(more, before=result.before, edits=edits, refused=refusals).with_failures(*result.failures)

    def _limit(self, why: _Why) -> int | None:
        """Return the tokens that a request may have after a compaction; ``None`` if a pipeline of the user's decides.

        A quarter of the messages' tokens always stays.
        """
        if self._given is not None and why != "refused":
            return None
        included = self.session.index.included.tokens
        outside = self.session.index.tokens - included
        most = min(self.threshold_tokens, outside + included // 2) if why == "refused" else self.context_length
        return max(1, most, outside + included // 4)

    def _noted(self, messages: list[Any], result: CompactionResult) -> list[Any]:
        """Record the result, and return the messages; the given list itself if nothing changed."""
        self.last_result = result
        self.last_error = "; ".join(f"{each.error}: {each.policy}" for each in result.failures) or None
        if result.edits:
            self.compression_count += 1
            self.notice = None
        self._reports.ran(changed=bool(result.edits))
        return messages if same(messages, result.messages) else list(result.messages)

    def _record_report(self, current_tokens: int | None) -> None:
        """Record the provider's last report in the session, or else the host's estimate of this request.

        The report is for a request before the assistant's last message, so the tokens from that message on are added. The
        session relates usage to its last view, so the tokens added since that view are subtracted.
        """
        included, last = self.session.index.included.tokens, self.session.last_result
        reports = self._reports
        if reports.unrecorded_tokens:
            tokens = reports.unrecorded_tokens + self._since_last_request()
            reports.unrecorded_tokens, reports.has_recorded = 0, True
        elif current_tokens is not None and current_tokens > included and not reports.has_recorded:
            tokens = current_tokens
        else:
            return
        added = included - (0 if last is None else last.after.tokens)
        self.session.record_usage({"prompt_tokens": max(0, tokens - added)})

    def _since_last_request(self) -> int:
        tokens = 0
        for group in reversed(self.session.index.included_groups):
            tokens += group.tokens
            if group.kind in (GroupKind.ASSISTANT, GroupKind.TOOL_CALL):
                return tokens
        return 0

    def on_session_start(self, session_id: str, **about: Any) -> None:
        """Start a conversation, or continue it under another name (``boundary_reason="compression"``) with its store."""
        if about.get("boundary_reason") == "compression" and about.get("old_session_id"):
            return
        if session_id != self._conversation:
            self._conversation = session_id
            self.on_session_reset()

    def on_session_end(self, session_id: str, messages: list[Any]) -> None:
        """Do nothing: messages are stored as soon as they leave the conversation."""

    def update_model(  # noqa: PLR0917 - the host's contract
        self, model: str, context_length: int, base_url: str = "", api_key: str = "", provider: str = "", api_mode: str = ""
    ) -> None:
        """Compute every budget for the new model's window; the edits of earlier compactions remain applied.

        Raises:
            ConfigurationError: If the window is not above 0; then nothing changes.
        """
        before = self.context_length, self._main, self.threshold_percent
        self.context_length, self._main = context_length, MainModel(model, base_url, api_key, provider)
        self.threshold_percent = self.settings.threshold
        try:
            self.session.reconfigure(self._running_strategy(), window=context_length)
        except Exception:
            self.context_length, self._main, self.threshold_percent = before
            raise
        self.threshold_tokens = int(context_length * self.threshold_percent)
        self._forget_reports()

    def with_breakpoints(self, messages: Sequence[Any]) -> list[Any]:
        """Return a request with prompt-cache breakpoints (`apply_cache_control`), if the main model and its provider use them.

        They last as long as the setting ``cache_ttl`` says. Hermes Agent sets its own; call this in another host.
        """
        model, provider = self._main.model, self._main.provider
        if not should_cache(model, provider):
            return list(messages)
        return apply_cache_control(messages, self.settings.cache_ttl, native=provider == "anthropic", format=self._format)

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Return the tools that read stored messages back; none without a store."""
        return [] if self.store is None else [schema["function"] for schema in tool_schemas()]

    def handle_tool_call(self, name: str, args: Mapping[str, Any], **about: Any) -> str:
        """Answer a call of one of these tools, as JSON text."""
        store = self.store
        if store is None or name not in TOOLS:
            return json.dumps({"error": f"there is no tool {name!r}"})
        return handle_tool_call(name, args, store=store, session=self._conversation)

    def get_status(self) -> dict[str, Any]:
        """Return the five figures that the host shows, the result of the last compaction, and a notice for the user."""
        result, used = self.last_result, max(0, self.last_prompt_tokens)
        return {
            "last_prompt_tokens": used,
            "threshold_tokens": self.threshold_tokens,
            "context_length": self.context_length,
            "usage_percent": min(100, used / self.context_length * 100),
            "compression_count": self.compression_count,
            "engine": self.name,
            "outcome": None if result is None else result.outcome,
            "error": self.last_error,
            "notice": self.notice,
            "waiting": self.last_prompt_tokens >= self.threshold_tokens
            and self._reports.waits(self.last_prompt_tokens, self.threshold_tokens, window=self.context_length),
        }


# Hermes Agent once warned the model itself and removed the warning, because the model then gave up on complex tasks early. A
# notice is therefore for the user: the host shows it, or leaves it out.


def pressure_notice(tokens: int, threshold_tokens: int, last_tokens: int = 0) -> str | None:
    """Return a notice for the user that the next compaction is near, at 85 % of the threshold; ``None`` for nothing new.

    Args:
        tokens: Tokens reported.
        threshold_tokens: Tokens at which compaction is due.
        last_tokens: Tokens reported before. If they were near the threshold too, the user has been told.

    >>> pressure_notice(42_500, 50_000)
    'Context is 85% to compaction threshold (42,500/50,000 tokens)'
    >>> pressure_notice(45_000, 50_000, last_tokens=42_500) is None
    True
    """
    near = threshold_tokens * _NEAR
    if threshold_tokens <= 0 or tokens < near or last_tokens >= near:
        return None
    return f"Context is {tokens / threshold_tokens:.0%} to compaction threshold ({tokens:,}/{threshold_tokens:,} tokens)"


def hygiene_due(
    messages: Sequence[Any], window: int, *, reported_tokens: int | None = None, format: MessageFormat | str | None = None
) -> bool:
    """Return whether to compact before the agent runs, because the session has outgrown 85 % of its window between turns.

    The limit is above the engine's threshold; at the same share, a compaction would be due on every turn of a long session. Ask
    only if `EngineSettings.enabled`. Cost: O(1) with reported tokens, otherwise O(characters).

    Args:
        messages: The whole session; with fewer than four messages, nothing is due.
        window: The model's context window in tokens, > 0.
        reported_tokens: Tokens that the provider reported for the last turn; by default one for every four characters.
        format: The wire format; ``None`` to detect it, see `compaction.formats.resolve`.

    Raises:
        InputError: If tokens must be estimated and the session is not a list of messages.

    >>> hygiene_due([{"role": "user", "content": "word " * 80}] * 5, window=500)
    True
    """
    tokens = reported_tokens or 0
    if tokens <= 0:
        tokens = MessageIndex(messages, counter="chars/4", format=format).tokens
    return len(messages) >= _LEAST_MESSAGES and tokens >= int(window * _NEAR)


def _reported(usage: Mapping[str, Any], name: str) -> int:
    value: Any = usage.get(name) if isinstance(usage, Mapping) else "nothing"
    if value is None:
        return 0
    if not is_count(value):
        raise InputError(f"usage {name}={value!r}: pass a mapping with the tokens a provider reported, whole numbers >= 0")
    return value


def _lossless_compressor(preset: Pipeline, store: Store) -> Pipeline:
    """Return the default pipeline with stubs in place of its placeholder; each stub names the stored result."""
    results, *others = preset.steps
    keep = cast("ToolResult", results).keep
    stubs = Offload(store, min_chars=_STORED_CHARS, keep=keep)
    return Pipeline(stubs, *(Lossless(step, store) for step in others), trigger=preset.trigger)


def _last_resort(tokens: int, store: Store | None) -> Strategy:
    """Return a strategy that brings a request down to so many tokens, with what leaves stored first if there is a store.

    All but the newest messages become a digest, made without a model; if that is not enough, `within` does the rest.
    """
    digest = presets.hermes(tokens, threshold=1.0, protect_first_n=0, protect_last_n=1, trigger=tokens_exceed(tokens))
    return within(digest, tokens) if store is None else Lossless(within(_lossless_compressor(digest, store), tokens), store)


def _stores_in(strategy: Strategy) -> list[Store]:
    return [part.store for part in strategy.parts() if isinstance(part, Lossless | Offload)]


def _with_session_name(strategy: Strategy, conversation: str) -> Strategy:
    """Return the strategy with everything stored under the conversation's name."""
    return strategy.changed(
        lambda part: attrs.evolve(part, session=conversation) if isinstance(part, Lossless | Offload) else part
    )
