"""Replaying many conversations, in one process or several."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, TypeAlias, cast

import attrs

from ..errors import ConfigurationError, InputError, UnknownFormat
from ..formats import MessageFormat, resolve
from ..strategies import StrategyLike
from ..tokens import TokenCounter
from ..tokens import counter as resolve_counter
from .contenders import Contender
from .names import contenders_of
from .playing import ReplaySetting, play
from .prices import ModelPrices, prices_of
from .recording import Recording, readable
from .records import ConversationRecord
from .result import ReplayResult
from .transcript import RECENT_MESSAGES, answers_in

__all__ = ["Progress", "RecordingLike", "replay"]

RecordingLike: TypeAlias = Recording | Sequence[Any] | Mapping[str, Any]
"""A recording, its bare messages, or an object with ``messages`` and perhaps an ``id``."""

Progress: TypeAlias = Callable[[int, int], object]
"""Called with the number of calls played and the number of all of them."""


def replay(
    conversations: Iterable[RecordingLike],
    strategies: Iterable[str | StrategyLike | Contender] = (),
    *,
    window: int,
    model: str | ModelPrices = "gpt-5",
    counter: TokenCounter | str = "auto",
    format: MessageFormat | str | None = None,
    overhead_tokens: int = 0,
    prices: Path | None = None,
    charge_summaries: bool = False,
    baselines: bool = True,
    recent: int = RECENT_MESSAGES,
    jobs: int = 1,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> ReplayResult:
    """Replay recorded conversations under strategies, without a model call.

    Every assistant message is one call, whose input is the history before it. Each contender gets each conversation anew.

    Args:
        conversations: What was recorded.
        strategies: Names (`compaction.replay.strategy_names`), strategies, or contenders.
        window: Tokens a request may have, > 0.
        model: Whose prices and cache rules hold, or these themselves.
        counter: A token counter or the name of one.
        format: The wire format of all messages; ``None`` to look at each conversation: one that shows several is not played.
        overhead_tokens: Tokens of every request outside the messages, such as tool schemas.
        prices: A price table of one's own.
        charge_summaries: Whether summaries cost as if the model had written them; else they are counted, and free.
        baselines: Whether to add those baselines that are not named. Sending everything always is played.
        recent: How many messages before an action count as in view of any policy.
        jobs: Processes, >= 1. With more than one, strategies must be picklable.
        seed: Of the intervals.
        on_progress: Called as calls are played.

    Raises:
        ConfigurationError: If an argument is out of range, a strategy or model is unknown, or a strategy cannot be pickled.

    >>> chat = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    >>> result = replay([chat], window=8_000, counter="chars/4")
    >>> result.contenders, len(result.short)
    (('none', 'truncate', 'hysteresis'), 1)
    """
    setting = ReplaySetting(
        window=window,
        prices=prices_of(model, prices),
        counter=resolve_counter(counter),
        format=None if format is None else resolve(format),
        overhead_tokens=overhead_tokens,
        recent=recent,
        charge_summaries=charge_summaries,
    )
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise ConfigurationError(f"jobs={jobs!r}: a whole number of processes >= 1")
    contenders = contenders_of(strategies, baselines=baselines)
    unplayed: list[str] = []
    recordings = list(_readable(_named(conversations), setting.format, unplayed))
    counted = _Counted([_calls(each) * len(contenders) for each in recordings], on_progress)
    played: dict[int, ConversationRecord] = {}
    players = _in_processes if jobs > 1 and len(recordings) > 1 else _here
    for place, record in players(recordings, contenders, setting, jobs, counted):
        if isinstance(record, str):
            unplayed.append(_unplayed(recordings[place], record))
        else:
            notes = record.recording.notes
            played[place] = attrs.evolve(record, recording=attrs.evolve(recordings[place], notes=notes))
    return ReplayResult(
        conversations=tuple([played[place] for place in sorted(played)]),
        contenders=tuple([contender.name for contender in contenders]),
        setting=setting,
        unplayed=tuple(unplayed),
        seed=seed,
    )


def _named(conversations: Iterable[RecordingLike]) -> Iterator[Recording]:
    """Recordings whose ids differ."""
    seen: set[str] = set()
    for number, conversation in enumerate(conversations, 1):
        recording = _recording(conversation, number)
        name, count = recording.id, 2
        while name in seen:
            name, count = f"{recording.id}#{count}", count + 1
        seen.add(name)
        yield recording if name == recording.id else attrs.evolve(recording, id=name)


def _recording(conversation: RecordingLike, number: int) -> Recording:
    if isinstance(conversation, Recording):
        return conversation
    fields: Mapping[str, Any] = conversation if isinstance(conversation, Mapping) else {"messages": conversation}
    messages: Any = fields.get("messages")
    if not isinstance(messages, list | tuple):
        raise InputError(f"conversation {number}: it has no list of messages; pass recordings, or lists of messages")
    return Recording(id=str(fields.get("id", number)), messages=cast("list[Any]", messages))


def _readable(recordings: Iterable[Recording], format: MessageFormat | None, unplayed: list[str]) -> Iterator[Recording]:
    """The recordings whose format is known; what is wrong with the others is noted."""
    for recording in recordings:
        try:
            yield readable(recording, format)
        except UnknownFormat as error:
            unplayed.append(_unplayed(recording, str(error)))


def _unplayed(recording: Recording, why: str) -> str:
    return f"{recording.where or recording.id}: {why}"


class _Counted:
    """Tells how far a replay is. Holds state."""

    def __init__(self, calls: Sequence[int], tell: Progress | None) -> None:
        self._calls = calls
        self._total = sum(calls)
        self._done = 0
        self._tell = tell
        self.played(0)

    def of(self, place: int) -> int:
        return self._calls[place]

    def played(self, calls: int) -> None:
        self._done += calls
        if self._tell is not None:
            self._tell(min(self._done, self._total), self._total)


def _calls(recording: Recording) -> int:
    read = resolve(recording.format).read
    return len(answers_in([read(message) for message in recording.messages]))


_Played: TypeAlias = Iterator[tuple[int, "ConversationRecord | str"]]


def _here(
    recordings: Sequence[Recording], contenders: Sequence[Contender], setting: ReplaySetting, jobs: int, counted: _Counted
) -> _Played:
    for place, recording in enumerate(recordings):
        yield place, _played(recording, contenders, setting, counted.played)


def _in_processes(
    recordings: Sequence[Recording], contenders: Sequence[Contender], setting: ReplaySetting, jobs: int, counted: _Counted
) -> _Played:
    """The longest first, so that no process is left with it at the end."""
    _check_sendable(contenders, setting)
    order = sorted(range(len(recordings)), key=counted.of, reverse=True)
    with ProcessPoolExecutor(min(jobs, len(recordings)), mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = {pool.submit(_sent_back, recordings[place], contenders, setting): place for place in order}
        try:
            for future in as_completed(futures):
                place = futures[future]
                try:
                    record = future.result()
                except BrokenProcessPool:
                    record = "the process that played it died; use fewer jobs, or more memory"
                counted.played(counted.of(place))
                yield place, record
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _check_sendable(contenders: Sequence[Contender], setting: ReplaySetting) -> None:
    for name, value in (*((f"strategy {each.name!r}", each) for each in contenders), ("the counter", setting.counter)):
        try:
            pickle.dumps(value)
        except Exception as error:
            raise ConfigurationError(
                f"jobs: {name} cannot be sent to another process ({error}); use jobs=1, or define it in a module"
            ) from error


def _sent_back(recording: Recording, contenders: Sequence[Contender], setting: ReplaySetting) -> ConversationRecord | str:
    """A conversation played in a worker process; its messages stay there, the caller has them."""
    record = _played(recording, contenders, setting, None)
    if isinstance(record, str):
        return record
    return attrs.evolve(record, recording=attrs.evolve(record.recording, messages=(), times=()))


def _played(
    recording: Recording,
    contenders: Sequence[Contender],
    setting: ReplaySetting,
    on_run: Callable[[int], object] | None,
) -> ConversationRecord | str:
    try:
        return play(recording, contenders, setting, on_run=on_run)
    except InputError as error:
        return str(error)
    except RecursionError:
        return "a message is nested too deeply; write the inner part as a string"
