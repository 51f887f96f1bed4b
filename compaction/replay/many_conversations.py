"""Replay of many conversations under many candidates, in one process or several."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeAlias

import attrs

from ..checks import checked_count
from ..errors import ConfigurationError, InputError, UnknownFormat
from ..formats import MessageFormat, resolve
from ..models import ModelPrices, prices_of
from ..strategies import StrategyLike
from ..tokens import TokenCounter
from ..tokens import counter as resolve_counter
from .candidate_names import candidates_of, unique_name
from .candidates import Candidate
from .one_conversation import replay_conversation
from .recordings import Recording, without_unreadable
from .records import ReplayedConversation, ReplaySetting
from .result import ReplayResult
from .transcript import answers_in

RecordingLike: TypeAlias = Recording | Sequence[Any]  # a recording, or a list of messages

ReplayProgress: TypeAlias = Callable[[int, int], object]  # called with the number of calls replayed and the number of all calls


def replay(
    conversations: Iterable[RecordingLike],
    strategies: Iterable[str | StrategyLike | Candidate] = (),
    *,
    window: int,
    model: str | ModelPrices = "gpt-5",
    counter: TokenCounter | str = "auto",
    format: MessageFormat | str | None = None,
    overhead_tokens: int = 0,
    charge_summaries: bool = False,
    jobs: int = 1,
    on_progress: ReplayProgress | None = None,
) -> ReplayResult:
    """Replay recorded conversations under strategies, without a model call.

    Every assistant message is one call, whose input is the history before it. Each candidate starts a new session for each
    conversation.

    Args:
        conversations: The recorded conversations.
        strategies: Names from `compaction.replay.strategy_names`, strategies, or candidates; the baselines are always added.
        window: Tokens a request may have, > 0.
        model: The model whose prices and cache rules apply, or these themselves, such as from `compaction.models.prices_of`
            with your own table.
        counter: A token counter or the name of one.
        format: The wire format of all messages; ``None`` to detect it for each conversation. A conversation in several
            formats is skipped.
        overhead_tokens: Tokens of every request outside the messages, such as tool schemas.
        charge_summaries: Whether summaries cost as if the model had written them; if not, they are free, and counted.
        jobs: Processes, >= 1. With more than one, strategies must be picklable.
        on_progress: Called after each conversation.

    Raises:
        ConfigurationError: If an argument is out of range, a strategy or model is unknown, or a strategy cannot be pickled.

    >>> chat = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    >>> result = replay([chat], window=8_000, counter="chars/4")
    >>> result.candidates, len(result.short)
    (('none', 'truncate', 'hysteresis'), 1)
    """
    setting = ReplaySetting(
        window=window,
        prices=prices_of(model),
        counter=resolve_counter(counter),
        format=None if format is None else resolve(format),
        overhead_tokens=overhead_tokens,
        charge_summaries=charge_summaries,
    )
    checked_count("jobs", jobs, 1)
    candidates = candidates_of(strategies)
    skipped: list[str] = []
    recordings = list(_readable(conversations, setting.format, skipped))
    calls = [_calls(each) * len(candidates) for each in recordings]
    told: ReplayProgress = on_progress or (lambda done, total: None)
    done = 0
    told(done, sum(calls))
    replayed: dict[int, ReplayedConversation] = {}
    for place, outcome in _outcomes(recordings, calls, candidates, setting, min(jobs, len(recordings))):
        done += calls[place]
        told(done, sum(calls))
        if isinstance(outcome, str):
            skipped.append(_skipped(recordings[place], outcome))
        else:
            replayed[place] = attrs.evolve(outcome, recording=attrs.evolve(recordings[place], notes=outcome.recording.notes))
    return ReplayResult(
        conversations=tuple([replayed[place] for place in sorted(replayed)]),
        candidates=tuple([candidate.name for candidate in candidates]),
        baselines=tuple([each.name for each in candidates if each.origin == "baseline"]),
        presets=tuple([each.name for each in candidates if each.origin == "preset"]),
        files={each.name: each.file for each in candidates if each.file is not None},
        setting=setting,
        skipped=tuple(skipped),
    )


def _recording(conversation: RecordingLike, number: int) -> Recording:
    if isinstance(conversation, Recording):
        return conversation
    if not isinstance(conversation, list | tuple):
        raise InputError(f"conversation {number} has no list of messages; pass recordings, or lists of messages")
    return Recording(id=str(number), messages=conversation)


def _readable(conversations: Iterable[RecordingLike], format: MessageFormat | None, skipped: list[str]) -> Iterator[Recording]:
    """Yield the recordings whose format is known, each under a unique id; for the others, add the reason to ``skipped``."""
    seen: set[str] = set()
    for number, conversation in enumerate(conversations, 1):
        recording = _recording(conversation, number)
        recording = attrs.evolve(recording, id=unique_name(recording.id, seen))
        try:
            yield without_unreadable(recording, format)
        except UnknownFormat as error:
            skipped.append(_skipped(recording, str(error)))


def _skipped(recording: Recording, why: str) -> str:
    return f"{recording.where or recording.id}: {why}"


def _calls(recording: Recording) -> int:
    read = resolve(recording.format).read
    return len(answers_in([read(message) for message in recording.messages]))


_Outcome: TypeAlias = "ReplayedConversation | str"  # a replayed conversation, or why it was skipped


def _outcomes(
    recordings: Sequence[Recording], calls: Sequence[int], candidates: Sequence[Candidate], setting: ReplaySetting, jobs: int
) -> Iterator[tuple[int, _Outcome]]:
    """Replay each recording, in several processes if there are several jobs; yield its place and outcome as it ends."""
    if jobs < 2:
        yield from enumerate(_replayed(each, candidates, setting) for each in recordings)
        return
    _check_picklable(candidates, setting)
    order = sorted(range(len(recordings)), key=calls.__getitem__, reverse=True)  # so that no long one is started last
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = {pool.submit(_replayed, recordings[place], candidates, setting): place for place in order}
        try:
            for future in as_completed(futures):
                broken = isinstance(future.exception(), BrokenProcessPool)
                yield futures[future], "its process died; use fewer jobs, or more memory" if broken else future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _check_picklable(candidates: Sequence[Candidate], setting: ReplaySetting) -> None:
    for name, value in (*((f"strategy {each.name!r}", each) for each in candidates), ("the counter", setting.counter)):
        try:
            pickle.dumps(value)
        except Exception as error:
            raise ConfigurationError(
                f"jobs: {name} cannot be pickled ({error}); use jobs=1, or define it at the top of a module"
            ) from error


def _replayed(recording: Recording, candidates: Sequence[Candidate], setting: ReplaySetting) -> _Outcome:
    """Replay a conversation; a process does not send the messages back, as the caller has them."""
    try:
        outcome = replay_conversation(recording, candidates, setting)
    except InputError as error:
        return str(error)
    except RecursionError:
        return "a message is nested too deeply; write the inner part as a string"
    return attrs.evolve(outcome, recording=attrs.evolve(outcome.recording, messages=(), times=()))
