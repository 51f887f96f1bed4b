"""Candidates of a replay: the baselines, the presets, and the caller's strategies and functions, and their sessions.

A session is a candidate at work on one conversation, called once for every recorded model call.

The baselines are not strategies of this package and do not go through its index. They keep whole groups, the newest that fit,
and nothing else. A group that does not fit is dropped even if it is the newest.
"""

from __future__ import annotations

import abc
import inspect
import runpy
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import attrs

from .. import config
from ..config import FILE_SUFFIXES
from ..errors import ConfigurationError
from ..formats import MessageFormat
from ..index import COLLAPSED_BY, Edit, Grouping, Replace, Rewrite, named
from ..messages import Message
from ..presets import PRESETS
from ..result import Step
from ..session import CompactionSession
from ..strategies import FunctionStrategy, Strategy, StrategyLike, as_strategy
from ..tokens import MessageMeter, TokenCounter

_FILES: Final = (*FILE_SUFFIXES, ".py")


@attrs.frozen(kw_only=True)
class CandidateSetting:
    """Settings that a candidate is given when a conversation starts.

    Args:
        window: Tokens a request may have.
        counter: Counts tokens.
        format: The wire format of the messages.
        overhead_tokens: Tokens of every request outside the messages.
        clock: Returns seconds: the recorded time if the log has one, else one second per call.
    """

    window: int
    counter: TokenCounter
    format: MessageFormat
    overhead_tokens: int
    clock: Callable[[], float]


@attrs.frozen
class CandidateAction:
    """A change that a candidate made to the messages at one call.

    Args:
        by: The strategy's name.
        kind: ``"drop"``, ``"summarize"``, ``"collapse"`` (a tool call shortened to a line), ``"replace"`` (any other
            replacement), ``"rewrite"`` or ``"restore"``.
        reason: The reason the strategy gave.
        ordinals: The recorded messages it changed, from 0.
        texts: The texts of the messages that replace them, if any.
        read_tokens: Tokens of the messages that a summary replaces; 0 for other kinds.
        written_tokens: Tokens of the summary; 0 for other kinds.
    """

    by: str
    kind: str
    reason: str
    ordinals: tuple[int, ...]
    texts: tuple[str, ...] = ()
    read_tokens: int = 0
    written_tokens: int = 0


class CandidateSession(abc.ABC):
    """A candidate at work on one conversation."""

    @abc.abstractmethod
    def view(self, messages: list[Any]) -> list[Any]:
        """Return the request for this history, which has grown since the last call."""

    def actions(self) -> Sequence[CandidateAction]:
        """Return the changes the last `view` made; empty if they are not known."""
        return ()


@attrs.frozen
class FunctionSession(CandidateSession):
    """A session of a plain function from a history to a request."""

    function: Callable[[list[Any]], list[Any]]

    def view(self, messages: list[Any]) -> list[Any]:
        return self.function(messages)


class StrategySession(CandidateSession):
    """A strategy in a `CompactionSession`. Holds state: the session, and the steps of the last view."""

    def __init__(self, strategy: Strategy, setting: CandidateSetting) -> None:
        self._steps: list[Step] = []
        writers = [part for part in strategy.parts() if hasattr(part, "summarizer") or isinstance(part, FunctionStrategy)]
        self._summarizing = {part.name for part in writers}
        self._session = CompactionSession(
            strategy,
            counter=setting.counter,
            format=setting.format,
            window=setting.window,
            overhead_tokens=setting.overhead_tokens,
            clock=setting.clock,
            on_step=self._steps.append,
        )

    def view(self, messages: list[Any]) -> list[Any]:
        self._steps.clear()
        return self._session.view_sync(messages)

    def actions(self) -> Sequence[CandidateAction]:
        return [action for step in self._steps for edit in step.edits for action in self._actions_of(edit, step.strategy)]

    def _actions_of(self, edit: Edit, by: str) -> list[CandidateAction]:
        index = self._session.index
        parts: Sequence[Edit] = getattr(edit, "edits", (edit,))
        found: list[CandidateAction] = []
        for part in parts:
            ordinals = tuple(sorted({at for group in named(part) for at in index.ordinals(group)}))
            messages = part.messages if isinstance(part, Replace | Rewrite) else ()
            texts = tuple(["" if message is None else message.text for message in messages])
            kind = self._kind(part, by)
            read = written = 0
            if isinstance(part, Replace) and kind == "summarize":
                read = sum(index.group(group).tokens for group in part.groups)
                written = sum(index.measure(message)[0] for message in part.messages)
            found.append(CandidateAction(by, kind, edit.reason or part.reason, ordinals, texts, read, written))
        return found

    def _kind(self, edit: Edit, by: str) -> str:
        if not isinstance(edit, Replace):
            return type(edit).__name__.lower()
        if by in self._summarizing:
            return "summarize"
        return "collapse" if by == COLLAPSED_BY else "replace"


# ---------------------------------------------------------------- candidates


@attrs.frozen
class Candidate:
    """A strategy or function to replay.

    Args:
        name: Its name in the output.
        start: Returns, for the settings of a conversation, a strategy, a plain function from a history to a request, or a
            session. It must be picklable to be replayed in several processes.
        origin: ``"preset"``, the caller's ``"own"``, or a ``"baseline"``, which is compared with and never recommended.
        file: The pipeline file that it was read from.

    >>> last_nine = Candidate("last nine", lambda setting: lambda messages: messages[-9:])
    """

    name: str
    start: Callable[[CandidateSetting], Strategy | CandidateSession | Callable[[list[Any]], list[Any]]]
    origin: Literal["baseline", "preset", "own"] = "own"
    file: Path | None = None

    def session(self, setting: CandidateSetting) -> CandidateSession:
        """Return a new session for a conversation."""
        started = self.start(setting)
        if isinstance(started, Strategy):
            return StrategySession(started, setting)
        return started if isinstance(started, CandidateSession) else FunctionSession(started)


def _same(strategy: Strategy, setting: CandidateSetting) -> Strategy:
    return strategy


def _for_window(make: Callable[[int], StrategyLike], setting: CandidateSetting) -> Strategy:
    return as_strategy(make(setting.window))


def _in_file(path: Path) -> Candidate:
    """Return the candidate of a pipeline file, or of a Python file, which is run again for each conversation.

    Raises:
        ConfigurationError: If the file cannot be run or defines no ``strategy``, or contains no pipeline.
    """
    if path.suffix != ".py":
        return Candidate(path.stem, partial(_same, config.load(path)), file=path)
    _strategy_in(path, 1_000_000)  # so that a bad file fails before anything is replayed
    return Candidate(path.stem, partial(_for_window, partial(_strategy_in, path)))


def _strategy_in(path: Path, window: int) -> Strategy:
    """Return the ``strategy`` of a file; if it is a function of ``window``, what the function returns."""
    try:
        found = runpy.run_path(str(path)).get("strategy")
        if inspect.isfunction(found) and next(iter(inspect.signature(found).parameters), "") == "window":
            found = found(window)
    except Exception as error:
        raise ConfigurationError(f"{path}: cannot read a strategy from it ({error!r}); see docs/own-strategies.md") from error
    if found is None:
        raise ConfigurationError(f"{path}: it does not define 'strategy'; assign one, or define strategy(window)")
    return as_strategy(found)


def _send_all(setting: CandidateSetting) -> Callable[[list[Any]], list[Any]]:
    return list


class KeepNewest(CandidateSession):
    """A session that keeps the system messages, the last user message and the newest groups that fit, and drops the rest.

    Holds state: the groups so far, and those kept. A call costs O(kept and new messages).

    Args:
        threshold: Share of the window above which it cuts; below it, it only appends.
        target: Share of the window it cuts to.
        setting: The settings of the conversation.

    With both shares at 1 it does what most applications do first: it keeps the newest messages that fit and cuts again at
    almost every call. With .8 and .5 it is the baseline to beat: about half the cost of sending everything, never over the
    window, always valid.
    """

    def __init__(self, threshold: float, target: float, setting: CandidateSetting) -> None:
        self._threshold = int(threshold * setting.window) - setting.overhead_tokens
        self._target = int(target * setting.window) - setting.overhead_tokens
        self._format = setting.format
        self._measure = MessageMeter(setting.counter).measure
        self._grouping = Grouping()
        self._read = 0
        self._tokens: dict[int, int] = {}  # of the groups that are kept
        self._shown: list[tuple[Message, int]] = []
        self._dropped: set[int] = set()
        self._dropped_now: list[int] = []

    def view(self, messages: list[Any]) -> list[Any]:
        for ordinal in range(self._read, len(messages)):
            message = self._format.read(messages[ordinal], ordinal)
            group = self._grouping.add(message, 0)
            if group not in self._dropped:
                self._tokens[group] = self._tokens.get(group, 0) + self._measure(message)[0]
                self._shown.append((message, group))
        self._read = len(messages)
        self._dropped_now = []
        if sum(self._tokens.values()) > self._threshold:
            self._cut()
        return [message.raw for message, _ in self._shown]

    def _cut(self) -> None:
        heads = {group: message for message, group in reversed(self._shown)}
        fixed = [group for group in self._tokens if group == self._grouping.last_user or heads[group].is_system]
        newest = [group for group in self._tokens if group not in fixed]
        room = self._target - sum(self._tokens[group] for group in fixed)
        start = len(newest)
        while start and self._tokens[newest[start - 1]] <= room:
            start -= 1
            room -= self._tokens[newest[start]]
        while start < len(newest):
            earlier = [heads[group] for group in fixed if group < newest[start] and not heads[group].is_system]
            if self._format.prefers(earlier[-1] if earlier else None, heads[newest[start]]):
                break
            start += 1
        self._dropped_now = newest[:start]
        self._dropped.update(self._dropped_now)
        for group in self._dropped_now:
            del self._tokens[group]
        self._shown = [(message, group) for message, group in self._shown if group not in self._dropped]

    def actions(self) -> Sequence[CandidateAction]:
        ordinals = tuple(sorted(at for group in self._dropped_now for at in self._grouping.ordinals(group)))
        return (CandidateAction("KeepNewest", "drop", "the oldest go first", ordinals),) if ordinals else ()


BASELINES = {
    "none": Candidate("none", _send_all, "baseline"),
    "truncate": Candidate("truncate", partial(KeepNewest, 1.0, 1.0), "baseline"),
    "hysteresis": Candidate("hysteresis", partial(KeepNewest, 0.8, 0.5), "baseline"),
}
"""The baselines by name."""


def strategy_names() -> list[str]:
    """Return every name that can be replayed: the baselines and the presets."""
    return [*BASELINES, *PRESETS]


def candidate_of(strategy: str | StrategyLike | Candidate) -> Candidate:
    """Return the candidate for a name or a strategy.

    Args:
        strategy: A name from `strategy_names`; a preset gets the replay's window as its window or budget. Or the
            path of a pipeline in TOML or YAML, or of a Python file that defines ``strategy``, which may be a function of the
            window; it is run with all the user's rights. Or a strategy, or a candidate.

    >>> from compaction.strategies import SlidingWindow
    >>> candidate_of("hysteresis").name, candidate_of(SlidingWindow()).name
    ('hysteresis', 'SlidingWindow')
    """
    if isinstance(strategy, Candidate):
        return strategy
    if not isinstance(strategy, str):
        lifted = as_strategy(strategy)
        return Candidate(lifted.name, partial(_same, lifted))
    if strategy in BASELINES:
        return BASELINES[strategy]
    if strategy.endswith(_FILES):
        return _in_file(Path(strategy))
    if (preset := PRESETS.get(strategy)) is None:
        raise ConfigurationError(
            f"strategy {strategy!r} is unknown; use one of {', '.join(strategy_names())}, or a file ({', '.join(_FILES)})"
        )
    start = partial(_same, preset.make()) if preset.size is None else partial(_for_window, preset.make)
    return Candidate(strategy, start, "preset")


def candidates_of(strategies: Iterable[str | StrategyLike | Candidate]) -> list[Candidate]:
    """Return the candidates of a replay, each under a unique name: the baselines, and the strategies asked for.

    >>> [each.name for each in candidates_of(["context_window", "truncate"])]
    ['none', 'truncate', 'hysteresis', 'context_window']
    """
    wanted: list[str | StrategyLike | Candidate] = list(BASELINES)
    for strategy in strategies:
        if strategy not in wanted:
            wanted.append(strategy)
    names: set[str] = set()
    return [attrs.evolve(each, name=unique_name(each.name, names)) for each in map(candidate_of, wanted)]


def unique_name(name: str, taken: set[str]) -> str:
    """Return the name, with a number if it is taken; the result is added to ``taken``.

    >>> taken = {"a"}
    >>> unique_name("a", taken), unique_name("a", taken)
    ('a#2', 'a#3')
    """
    found, count = name, 2
    while found in taken:
        found, count = f"{name}#{count}", count + 1
    taken.add(found)
    return found
