"""Playing one conversation: call by call, what a contender would have sent, and what that would have meant."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from ..checks import count
from ..formats import MessageFormat, resolve
from ..tokens import MessageMeter, TokenCounter
from .contenders import Contender, Deed, Player, Setting
from .prices import ModelPrices
from .prompt_cache import PromptCache
from .recording import Recording, readable
from .records import Break, CallRecord, ConversationRecord, Run, Survival
from .sent import Sent, Step
from .transcript import RECENT_MESSAGES, Needs, Transcript

__all__ = ["ReplaySetting", "play"]

_MOST_COMPACTIONS = 4


@attrs.frozen(kw_only=True)
class ReplaySetting:
    """What holds for a whole replay.

    Args:
        window: Tokens a request may have.
        prices: The model's prices and cache rules.
        counter: Counts tokens.
        format: The wire format of all messages; ``None``: of each conversation the one its messages show.
        overhead_tokens: Tokens of every request outside the messages.
        recent: How many messages before an action count as in view of any policy.
        charge_summaries: Whether summaries cost as if the model had written them.

    Raises:
        ConfigurationError: If a figure is out of range.
    """

    window: int = attrs.field(validator=count(1))
    prices: ModelPrices
    counter: TokenCounter
    format: MessageFormat | None = None
    overhead_tokens: int = attrs.field(default=0, validator=count())
    recent: int = attrs.field(default=RECENT_MESSAGES, validator=count())
    charge_summaries: bool = False


def play(
    recording: Recording,
    contenders: Sequence[Contender],
    setting: ReplaySetting,
    *,
    on_run: Callable[[int], object] | None = None,
) -> ConversationRecord:
    """One conversation under every contender.

    Args:
        recording: What was recorded.
        contenders: Whom to replay.
        setting: What holds for all of them.
        on_run: Called after each contender with the number of calls it played.

    Raises:
        UnknownFormat: If nobody said the format, and the messages do not show one.
    """
    recording = readable(recording, setting.format)
    meter = MessageMeter(setting.counter)
    transcript = Transcript(
        recording,
        format=resolve(recording.format),
        meter=meter,
        window=setting.window,
        overhead_tokens=setting.overhead_tokens,
        recent=setting.recent,
    )
    inherited = _inherited_rules(transcript, setting, meter)
    runs: dict[str, Run] = {}
    for contender in contenders:
        runs[contender.name] = _Playing(transcript, contender, setting, meter, inherited).run()
        if on_run is not None:
            on_run(len(transcript.calls))
    return ConversationRecord(
        recording=attrs.evolve(recording, notes=(*recording.notes, *_notes(transcript))),
        tokens=transcript.cumulative[-1],
        exceeds=any(need.tokens > setting.window for need in transcript.needs),
        needs=tuple([need.without_places() for need in transcript.needs]),
        output_tokens=tuple([sum(transcript.tokens[at] for at in answer) for answer in transcript.answers]),
        timed=bool(recording.times) and None not in recording.times,
        runs=runs,
    )


def _inherited_rules(transcript: Transcript, setting: ReplaySetting, meter: MessageMeter) -> list[Counter[str]]:
    """How often the whole history breaks each rule, at each call: a log may be broken before anything is compacted."""
    sent = Sent(transcript, meter=meter, overhead_tokens=setting.overhead_tokens)
    found: list[Counter[str]] = []
    for call in range(len(transcript.calls)):
        sent.follow(list(transcript.history(call)))
        found.append(sent.broken_rules())
    return found


def _notes(transcript: Transcript) -> list[str]:
    """What is odd about a log, in words."""
    rules = Counter(problem.rule for problem in transcript.format.validate(transcript.recording.messages))
    rules.pop("no-messages", None)
    notes = [f"the log itself breaks {rule}, {count} times" for rule, count in sorted(rules.items())]
    if transcript.messages and transcript.messages[0].role == "assistant":
        notes.append("it starts with an answer; the question is not in the log, and that call is not played")
    if not transcript.calls:
        notes.append("it holds no call: no assistant message with a history before it")
    return notes


class _Playing:
    """One conversation under one contender. Holds state: the clock, the chain of requests, what failed."""

    def __init__(
        self,
        transcript: Transcript,
        contender: Contender,
        setting: ReplaySetting,
        meter: MessageMeter,
        inherited: Sequence[Counter[str]],
    ) -> None:
        self._transcript = transcript
        self._contender = contender
        self._setting = setting
        self._inherited = inherited
        self._sent = Sent(transcript, meter=meter, overhead_tokens=setting.overhead_tokens)
        self._cache = PromptCache(setting.prices)
        self._now = 0.0
        self._failed: Counter[str] = Counter()
        self._first_failed: dict[str, int] = {}
        self._last: tuple[int, list[Any]] = (0, [])
        self._compacted_at: list[int] = []
        self._survival: dict[int, list[int]] = {}

    def run(self) -> Run:
        start = self._attempt(0, lambda: self._contender.start(self._player_setting()))
        calls = [] if start is None else [self._call(number, start) for number in range(len(self._transcript.calls))]
        return Run(
            contender=self._contender.name,
            calls=tuple(calls),
            survival=tuple([Survival(times, *counts) for times, counts in sorted(self._survival.items())]),
            failures=tuple(
                [
                    f"{error}, {times} times, first at message {self._first_failed[error]}"
                    for error, times in self._failed.items()
                ]
            ),
        )

    def _player_setting(self) -> Setting:
        setting = self._setting
        return Setting(
            window=setting.window,
            counter=setting.counter,
            format=self._transcript.format,
            overhead_tokens=setting.overhead_tokens,
            clock=lambda: self._now,
        )

    def _attempt(self, ordinal: int, act: Callable[[], Any]) -> Any:
        """What a contender's code returns, or ``None`` if it raised, which is noted."""
        try:
            return act()
        except Exception as error:  # whatever a user's strategy raises is named in the output, and the replay goes on
            words = f"{type(error).__name__}: {error}"
            self._failed[words] += 1
            self._first_failed.setdefault(words, ordinal)
            return None

    def _call(self, number: int, player: Player) -> CallRecord:
        transcript, setting = self._transcript, self._setting
        needs = transcript.needs[number]
        now = self._tick(number)
        view, deeds, seconds = self._view(number, player)
        before = self._sent.visible
        step = self._sent.follow(view)
        self._last = needs.ordinal, view
        shared = step.shared_tokens if setting.prices.block_tokens else step.whole_tokens
        use = self._cache.send(step.tokens, shared_tokens=shared, now=now)
        rules = self._sent.broken_rules() - self._inherited[number]
        compacted = step.broken or bool(deeds)
        left, back = self._moved(before, number) if compacted else ((), ())
        if compacted:
            self._note_survival(needs.ordinal)
        return CallRecord(
            ordinal=needs.ordinal,
            tokens=step.tokens,
            messages=len(view),
            over=step.tokens > setting.window,
            broken_rules=tuple(sorted(rules)),
            read=use.read,
            written=use.written,
            fresh=use.fresh,
            expired=use.expired,
            broken=Break(step.lost_tokens, step.shared_messages, _cause(deeds, step)) if step.broken else None,
            compacted=compacted,
            seconds=seconds,
            summary_read=sum(deed.read_tokens for deed in deeds),
            summary_written=sum(deed.written_tokens for deed in deeds),
            deeds=tuple(deeds),
            left=left,
            back=back,
            **self._missing(needs),
        )

    def _tick(self, number: int) -> float | None:
        """Set the clock for a call: to when its last message was written, if that was recorded, or else a second on."""
        times = self._transcript.recording.times
        time_of_call = times[self._transcript.calls[number] - 1] if times else None
        self._now = self._now + 1.0 if time_of_call is None else max(self._now, time_of_call)
        return time_of_call

    def _view(self, number: int, player: Player) -> tuple[list[Any], Sequence[Deed], float]:
        """What is sent, what was done for it, and how long that took."""
        history = list(self._transcript.history(number))
        ordinal = len(history)
        start = time.thread_time()
        view = self._attempt(ordinal, lambda: list(player.view(history)))
        seconds = time.thread_time() - start
        if view is None:
            view = self._attempt(ordinal, player.unchanged)
            known, last = self._last
            return (last + history[known:] if view is None else view), (), seconds
        return view, self._attempt(ordinal, player.deeds) or (), seconds

    def _missing(self, needs: Needs) -> dict[str, Any]:
        """What the next action needs and cannot read."""
        holds, holds_span = self._sent.holds, self._sent.holds_span
        return {
            "missing_facts": tuple([at for at, fact in enumerate(needs.facts) if not holds(fact.text, fact.places)]),
            "missing_words": sum(not holds(word, places) for word, places in needs.words),
            "missing_spans": sum(not holds_span(span, places) for span, places in needs.spans),
        }

    def _moved(self, before: set[int], number: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The recorded messages that went out of view at a call, and those that came back."""
        calls = self._transcript.calls
        seen = calls[number - 1] if number else 0
        now = self._sent.visible
        left = [at for at in (*before, *range(seen, calls[number])) if at not in now]
        return tuple(sorted(left)), tuple(sorted(at for at in now if at < seen and at not in before))

    def _note_survival(self, ordinal: int) -> None:
        """Look which of the user's instructions still stand, after the compaction that just happened."""
        self._compacted_at.append(ordinal)
        for constraint in self._transcript.constraints:
            if constraint.ordinal >= ordinal:
                break
            times = len(self._compacted_at) - bisect_right(self._compacted_at, constraint.ordinal)
            counts = self._survival.setdefault(min(times, _MOST_COMPACTIONS), [0, 0])
            counts[0] += 1
            counts[1] += self._sent.quotes(constraint.text, constraint.ordinal)


def _cause(deeds: Sequence[Deed], step: Step) -> str:
    """Which edit broke the prefix: the one that concerns the earliest message."""
    if not deeds:
        return "the request was put together anew"
    first = min(deeds, key=lambda deed: deed.ordinals[:1] or (step.shared_messages,))
    return f"{first.by}: {first.reason or first.kind}"
