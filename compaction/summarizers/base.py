"""The summarizer protocol, the request it answers, and the budget of a summary.

A summarizer is any object with ``summarize(request) -> str``, sync or async. It returns text that can stand for the groups in
the request, or it raises; it never returns an apology, an error text or nothing. After an error, the strategy's ``on_failure``
decides.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol, TypeVar, cast, runtime_checkable

import anyio
import attrs

from ..checks import count, share
from ..errors import ConfigurationError, SummaryFailed
from ..index import MessageGroup, Notes, Request
from ..messages import Message
from ..tokens import TokenCounter
from .templates import SummaryTemplate, default_template

TIMEOUT_SECONDS: Final = 60.0
"""Seconds that an awaited summarizer may take by default."""

_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+>")
_T = TypeVar("_T")


@runtime_checkable
class Summarizer(Protocol):
    """Writes a text that stands for groups of a conversation.

    An answer that is awaited must come within the summarizer's ``timeout_seconds``, by default 60; ``None`` if it limits its
    own requests. A sync summarizer cannot be interrupted: it needs a timeout of its own. One that has ``asks_model = False``
    writes without a model: it is not limited, paused, asked ahead or counted in an estimate.
    """

    def summarize(self, request: SummaryRequest) -> str | Awaitable[str]:
        """Return the summary, at most ``request.budget`` tokens.

        Raises:
            SummaryFailed: If the summarizer has no usable summary.
        """
        ...


@attrs.frozen(kw_only=True)
class SummaryBudget:
    """The allowed length of a summary: a share of what it stands for, within bounds. The first figures are Hermes Agent's.

    Between two compactions a conversation can grow by what the kept groups and the summary leave free below the trigger. With a
    quarter of what the kept groups leave, a summary never shortens that time by more than a quarter, however many rounds it
    stands for.

    Args:
        ratio: Share of the summarized tokens, above 0 and at most 1.
        floor: Tokens it may always have, >= 1.
        ceiling: Tokens it never exceeds, whatever the floor; ``None`` for no bound.
        room_ratio: Share that it never exceeds either, of the tokens that a trigger with a token limit leaves beside the kept
            groups; above 0 and at most 1.

    Raises:
        ConfigurationError: If a figure is out of range.

    >>> SummaryBudget(ceiling=10_000).tokens(30_000), SummaryBudget().tokens(30_000, room=3_600)
    (6000, 900)
    """

    ratio: float = attrs.field(default=0.20, validator=share)
    floor: int = attrs.field(default=2_000, validator=count(1))
    ceiling: int | None = attrs.field(default=cast("int | None", 12_000), validator=attrs.validators.optional(count(1)))
    room_ratio: float = attrs.field(default=0.25, validator=share)

    def tokens(self, content: int, *, update_of: int = 0, room: int | None = None) -> int:
        """Return the budget for summarizing ``content`` tokens.

        Args:
            content: Tokens of everything the summary will stand for: in a later round, the new messages and those that the
                earlier summary stands for. A share of the new messages alone would shrink whenever there are few of them.
            update_of: Tokens of the earlier summary; the new one may have at least as many, within the bounds.
            room: Tokens that the trigger leaves beside the kept groups; ``None`` if it has no token limit.
        """
        tokens = max(int(content * self.ratio), self.floor, update_of)
        if room is not None:
            tokens = max(1, min(tokens, int(room * self.room_ratio)))
        return tokens if self.ceiling is None else min(tokens, self.ceiling)


@attrs.frozen(kw_only=True)
class SummaryRequest(Request):
    """A request for a summary.

    Args:
        summarizer: The summarizer to ask.
        groups: The groups that the summary will replace, oldest first, without an earlier summary.
        previous: The text of the earlier summary that this one replaces, without its mark; ``None`` in the first round.
        originals: The source messages that ``previous`` and the strategy's other summaries in ``kept`` replaced, if this
            process still has them. `DigestSummarizer` reads them; a model gets only ``previous``.
        sources: The messages of ``groups`` before other strategies shortened them, then those of the groups in ``kept`` that
            were shortened; if it is empty, read ``groups``.
        shortened: How many of the last of ``sources`` belong to groups in ``kept``.
        kept: The groups that stay in the view together with the summary.
        said: What the user said in the replaced messages, word for word, see `compaction.summarizers.extractive.excerpt`. The
            strategy puts it behind the answer, so the answer need not repeat it.
        budget: Tokens the answer may have, without ``said``.
        counter: The token counter.
        focus: A topic to give most room to, in the user's words; ``None`` for no preference.
        template: The prompts and the sections to fill.
        language: The language to write in, such as ``"Korean"``; ``None`` for the conversation's own.
        notes: What summarizers remember of the conversation between its rounds; by default, nothing.

    Attributes:
        failures: Failures that the summarizer made up for, such as those of the first summarizers of a `FirstOf`; the strategy
            reports them. Holds state.
    """

    summarizer: Summarizer = attrs.field(eq=False, repr=False)
    groups: tuple[MessageGroup, ...]
    budget: int = attrs.field(validator=count(1))
    counter: TokenCounter = attrs.field(eq=False, repr=False)
    previous: str | None = None
    originals: tuple[Message, ...] = attrs.field(default=(), eq=False, repr=False)
    sources: tuple[Message, ...] = attrs.field(default=(), eq=False, repr=False)
    shortened: int = attrs.field(default=0, eq=False, repr=False)
    kept: tuple[MessageGroup, ...] = attrs.field(default=(), eq=False, repr=False)
    said: str = attrs.field(default="", eq=False, repr=False)
    focus: str | None = None
    template: SummaryTemplate = attrs.field(factory=default_template)
    language: str | None = None
    notes: Notes = attrs.field(factory=Notes, eq=False, repr=False)
    failures: list[Exception] = attrs.field(factory=list[Exception], init=False, eq=False, repr=False)

    def call(self) -> Any:
        return self.summarizer.summarize(self)

    async def wait(self, answer: Awaitable[_T]) -> _T:
        return await answer_in_time(self.summarizer, answer)


def asks_model(summarizer: object) -> bool:
    """Return whether a summarizer asks a model; one that does not say so does."""
    return bool(getattr(summarizer, "asks_model", True))


def timeout_of(summarizer: object) -> float | None:
    """Return how many seconds an awaited answer may take; ``None`` for a summarizer that limits its own requests."""
    seconds: object = getattr(summarizer, "timeout_seconds", TIMEOUT_SECONDS)
    return seconds if isinstance(seconds, int | float) else None


def cache_key_of(summarizer: object) -> str:
    """Return what a summarizer's answers depend on besides the request: its ``cache_key``, else its `repr`."""
    key: object = getattr(summarizer, "cache_key", None)
    if isinstance(key, str):
        return f"{type(summarizer).__qualname__} {key}"
    shown = repr(summarizer)
    if _ADDRESS.search(shown):
        raise ConfigurationError(
            f"CachedSummarizer: {type(summarizer).__qualname__} has no 'cache_key', and its repr holds an address; give it a"
            " 'cache_key', a text with everything its answers depend on"
        )
    return shown


def function_key(function: Callable[..., object]) -> str:
    """Return the name of a function, for a ``cache_key``; it must tell the function from others.

    Raises:
        ConfigurationError: If it is a lambda, or defined in a function: others have the same name.
    """
    name: object = getattr(function, "__qualname__", None)
    shown = repr(function) if name is None else f"{function.__module__}.{name}"
    if "<" in shown:
        raise ConfigurationError(
            f"CachedSummarizer: {shown} has no name that distinguishes it; define 'redact' as a function of a module"
        )
    return shown


async def answer_in_time(summarizer: object, answer: Awaitable[_T]) -> _T:
    """Await the answer of a summarizer or of another model, at most as long as it may take.

    Raises:
        SummaryFailed: If it takes longer; the wait is cancelled.
    """
    seconds = timeout_of(summarizer)
    with anyio.move_on_after(seconds):
        return await answer
    raise SummaryFailed(f"{type(summarizer).__name__} did not answer within {seconds:g} s")


_APOLOGY: Final = re.compile(
    r"(?i)(?:i(?:['’]m| am) (?:sorry|unable|not able|afraid)|sorry\b|i (?:can(?:['’]t|not)|don['’]t|do not) |as an ai\b"
    r"|unfortunately\b|error(?:[:.!]| \d++(?! (?:at|from|in|on|was)\b)| occurred)"  # not "Error 404 on /login was fixed"
    r"|죄송|申し訳|抱歉|很抱歉|对不起|lo siento|désolé|es tut mir leid)"
)
_APOLOGY_CHARS: Final = 600


def is_apology(text: str) -> bool:
    """Return whether a text is a short one that begins like a refusal or the report of an error.

    >>> is_apology("I'm sorry, but I can't help with that request."), is_apology("The user wants tea.")
    (True, False)
    """
    return len(text) < _APOLOGY_CHARS and _APOLOGY.match(text) is not None


def usable_text(answer: object) -> str:
    """Return a summarizer's answer, if it is a text that says something and is not a refusal.

    Raises:
        SummaryFailed: If it is not.

    >>> usable_text([{"tool_call": "search"}])
    Traceback (most recent call last):
    compaction.errors.SummaryFailed: the summarizer answered [{'tool_call': 'search'}]: a summary is a text that says something
    """
    if not isinstance(answer, str) or not answer.strip():
        raise SummaryFailed(f"the summarizer answered {answer!r:.200}: a summary is a text that says something")
    if is_apology(answer.strip()):
        raise SummaryFailed(f"the summarizer answered {answer!r:.200}: this is not a summary")
    return answer
