"""A Hypothesis strategy for conversations; Hypothesis itself is loaded when it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import CompactionError, ConfigurationError

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["MissingHypothesis", "conversations"]


class MissingHypothesis(CompactionError, ImportError):
    """Hypothesis is not installed; ``pip install hypothesis``, or use `sample_conversations`."""


def conversations(*, valid: bool = True, pending: bool = False, max_size: int = 12) -> SearchStrategy[list[dict[str, Any]]]:
    """Conversations in OpenAI's chat format, of every shape the format has, small ones first.

    Among them: developer messages and several system messages, an assistant that begins, several messages of one role in a
    row, string and list contents with images, sounds, files and refusals, parallel and custom calls, the legacy
    ``function_call``, ids used again, reasoning in every field and alone, names, unknown fields, empty texts, scripts and
    halves of signs, earlier summaries, and one object that is in the list twice.

    Args:
        valid: Whether `validate` accepts all of them. If not, some are as real logs are: results late, missing, orphan,
            repeated or without an id, ids used twice at once, messages moved, or without content, or of a role nobody knows.
        pending: Whether some end with calls that wait for results, which `validate` calls ``pending-call`` and nothing else.
        max_size: At most so many exchanges, >= 1; a call with its results is one.

    Raises:
        ConfigurationError: If ``max_size`` is below 1.
        MissingHypothesis: If Hypothesis is not installed.

    >>> from hypothesis import find
    >>> find(conversations(), lambda messages: True)
    [{'role': 'user', 'content': 'Fine.'}]
    """
    if max_size < 1:
        raise ConfigurationError(f"conversations(max_size={max_size}): a whole number >= 1")
    try:
        from .shapes import conversation, damaged
    except ModuleNotFoundError as error:
        raise MissingHypothesis(
            "conversations: hypothesis is not installed; pip install hypothesis, or use sample_conversations"
        ) from error
    whole = conversation(pending=pending, max_size=max_size)
    return whole if valid else damaged(whole)
