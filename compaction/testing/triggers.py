"""The check that a trigger keeps its contract: it returns a bool, always the same, and changes nothing.

>>> from compaction.triggers import has_tool_calls, tokens_exceed
>>> check_trigger(tokens_exceed(500) & ~has_tool_calls)
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from typing import Any

from ..formats import MessageFormat, openai_chat
from ..index import MessageIndex, RunContext
from ..tokens import TokenCounter
from ..triggers import Trigger, TriggerLike, as_trigger
from .laws import LawBroken
from .samples import sample_conversations

__all__ = ["check_trigger"]


def check_trigger(
    trigger: TriggerLike,
    *,
    messages: Iterable[Any] | None = None,
    counter: TokenCounter | str = "chars/4",
    format: MessageFormat | str | None = None,
    context: RunContext | None = None,
) -> None:
    """Check that a trigger, or a plain function used as one, is a pure condition on an index; its cost is not checked.

    Called with an index it must return the same bool each time and not change the index, and ``~`` must negate it. A
    `Trigger` must also equal its unpickled copy, have the same ``repr`` as it, and explain itself.

    Args:
        trigger: A trigger or a plain function.
        messages: One conversation; ``None`` for all of `sample_conversations` and the empty one.
        counter: A token counter or the name of one.
        format: The wire format of ``messages`` or of the samples; ``None`` to detect it, and OpenAI chat for the samples.
        context: The run context; by default a window of 8,000 tokens and a time.

    Raises:
        LawBroken: If the trigger breaks the contract.
        Exception: Whatever the trigger raises.
    """
    context = RunContext(window=8_000, now=0.0) if context is None else context
    for conversation in [[], *sample_conversations(format or openai_chat)] if messages is None else [list(messages)]:
        index = MessageIndex(conversation, counter=counter, format=format, context=context)
        if what := _wrong_answer(trigger, index):
            raise LawBroken(0, f"{trigger!r} {what}", conversation)
        if isinstance(trigger, Trigger) and (what := _wrong_value(trigger, index)):
            raise LawBroken(0, f"{trigger!r} {what}", conversation)


def _wrong_answer(trigger: TriggerLike, index: MessageIndex) -> str | None:
    before = _state(index)
    answer: object = trigger(index)
    if not isinstance(answer, bool):
        return f"returns {answer!r}, which is not a bool"
    if trigger(index) != answer:
        return f"returns {answer}, then something else for the same index"
    if (~as_trigger(trigger))(index) == answer:
        return f"returns {answer}, and so does its negation"
    if _state(index) != before:
        return "changes the index"
    return None


def _state(index: MessageIndex) -> object:
    return index.to_dict(), index.included_groups, index.included, index.total, index.refused, index.context


def _wrong_value(trigger: Trigger, index: MessageIndex) -> str | None:
    try:
        twin = pickle.loads(pickle.dumps(trigger))  # pickled in this line, not foreign data
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        return f"cannot be pickled ({error}); build it from classes and functions at the top of a module"
    if twin != trigger or hash(twin) != hash(trigger):
        return "is not equal to its unpickled copy; make it a frozen value"
    if repr(twin) != repr(trigger):
        return f"has another repr after pickling: {twin!r}"
    if twin(index) != trigger(index):
        return "returns something else after pickling"
    words: object = trigger.explain(index)
    if not isinstance(words, str) or not words:
        return f"explains itself with {words!r}, which is not a non-empty text"
    return None
