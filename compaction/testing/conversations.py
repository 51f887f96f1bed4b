"""A Hypothesis strategy for conversations; Hypothesis is imported only when it is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..checks import checked_count
from ..errors import ConfigurationError
from ..formats import MessageFormat, openai_chat, resolve
from .written import write_chat

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


def conversations(
    *, valid: bool = True, pending: bool = False, max_size: int = 12, format: MessageFormat | str = openai_chat
) -> SearchStrategy[list[dict[str, Any]]]:
    """Return a Hypothesis strategy for conversations of every shape of OpenAI's chat format, or these in another format.

    They contain developer messages and several system messages, an assistant that begins, several messages of one role in a
    row, string and list contents with images, audio, files and refusals, parallel and custom calls, the legacy
    ``function_call``, reused ids, reasoning in every field and alone, names, unknown fields, empty texts, several scripts,
    lone surrogates, earlier summaries, and one object that is in the list twice.

    Args:
        valid: Whether `validate` accepts all of them. If not, some are as real logs are: results late, missing, orphan,
            repeated or without an id, ids used twice at once, messages moved, or without content, or of a role nobody knows.
        pending: Whether some end with calls that wait for results, which `validate` calls ``pending-call`` and nothing else.
        max_size: The maximum number of exchanges, >= 1; a call with its results is one.
        format: The wire format they are written in. In another than chat completions they are words, calls and results; in a
            format without `compose`, words alone.

    Raises:
        ConfigurationError: If ``max_size`` is below 1, or Hypothesis is not installed.
        UnknownFormat: If no format has that name.

    >>> from hypothesis import find
    >>> find(conversations(max_size=1), lambda messages: True)
    [{'role': 'user', 'content': 'Fine.'}]
    """
    checked_count("max_size", max_size, 1)
    try:
        from .message_shapes import conversation, damaged
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            "conversations: hypothesis is not installed; pip install hypothesis, or use sample_conversations"
        ) from error
    whole, target = conversation(pending=pending, max_size=max_size), resolve(format)
    if target is not openai_chat:
        whole = whole.map(lambda messages: target.repair(write_chat(messages, target)).messages)
        allowed = {"pending-call"} if pending else set[str]()
        whole = whole.filter(lambda messages: {problem.rule for problem in target.validate(messages)} <= allowed)
    return whole if valid else damaged(whole)
