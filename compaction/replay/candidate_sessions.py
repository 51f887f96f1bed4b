"""Candidate sessions: a candidate at work on one conversation, called once for every recorded model call."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from ..index import COLLAPSED_BY, Edit, Replace, Rewrite, named
from ..result import Step
from ..session import CompactionSession
from ..strategies import FunctionStrategy, StrategyLike, as_strategy
from .settings import CandidateSetting


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


class FunctionSession(CandidateSession):
    """A session of a plain function from a history to a request; ``start`` makes the function."""

    def __init__(
        self, start: Callable[[CandidateSetting], Callable[[list[Any]], list[Any]]], setting: CandidateSetting
    ) -> None:
        self._function = start(setting)

    def view(self, messages: list[Any]) -> list[Any]:
        return self._function(messages)


class StrategySession(CandidateSession):
    """A strategy in a `CompactionSession`. Holds state: the session, and the steps of the last view."""

    def __init__(self, strategy: StrategyLike, setting: CandidateSetting) -> None:
        self._steps: list[Step] = []
        lifted = as_strategy(strategy)
        writers = [part for part in lifted.parts() if hasattr(part, "summarizer") or isinstance(part, FunctionStrategy)]
        self._summarizing = {part.name for part in writers}
        self._session = CompactionSession(
            lifted,
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
