"""Candidates of a replay and their sessions.

A session is a candidate at work on one conversation, called once for every recorded model call.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import attrs

from ..formats import MessageFormat
from ..index import COLLAPSED_BY, Edit, Replace, Rewrite, named
from ..result import Step
from ..session import CompactionSession
from ..strategies import FunctionStrategy, Strategy
from ..tokens import TokenCounter


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
    """A change that a candidate made to the messages at one call."""

    by: str  # the strategy's name
    # ``"drop"``, ``"summarize"`` (a replacement by a strategy with a summarizer, or by a plain function, which may ask a
    # model), ``"collapse"`` (a tool call shortened to a line), ``"replace"`` (any other replacement), ``"rewrite"`` or
    # ``"restore"``
    kind: str
    reason: str  # the reason the strategy gave
    ordinals: tuple[int, ...]  # the recorded messages it changed, from 0
    texts: tuple[str, ...] = ()  # the texts of the messages that replace them, if any
    read_tokens: int = 0  # tokens of the messages that a summary replaces; 0 for other kinds
    written_tokens: int = 0  # tokens of the summary; 0 for other kinds


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
