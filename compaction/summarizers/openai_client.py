"""Clients of the ``openai`` package, and what an OpenAI-compatible server sends back: a reply, or a failure.

Servers of this protocol differ most in how they fail: errors in the body of a success, missing or null choices, a page of
HTML, five names for the same limit. So no field is trusted to have its documented type.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from types import ModuleType
from typing import Any, Final, cast

import anyio

from ..errors import ConfigurationError, InputError
from ..json_data import member_of
from ..tokens import Usage, is_too_long
from .model_calls import ModelFault, ModelReply, brief


def openai_package(by: str) -> ModuleType:
    """Import and return the ``openai`` package, which the class ``by`` needs.

    Raises:
        ConfigurationError: If it cannot be imported.
    """
    try:
        import openai
    except ImportError as error:
        raise ConfigurationError(
            f"{by} needs the openai package, which cannot be imported ({error}); install openai"
        ) from error
    return openai


def is_sync_client(client: object, by: str) -> bool:
    """Return whether a client, given to the class ``by``, is the synchronous one.

    Raises:
        ConfigurationError: If it is not a client of the ``openai`` package.
    """
    openai = openai_package(by)
    if isinstance(client, openai.OpenAI):
        return True
    if isinstance(client, openai.AsyncOpenAI):
        return False
    raise ConfigurationError(f"{by}: 'client' must be an openai.AsyncOpenAI or openai.OpenAI (got {client!r})")


def opened_client(
    client: Any, by: str, *, timeout: float, max_retries: int, **server: str | None
) -> AbstractAsyncContextManager[Any]:
    """Return the context of the caller's client, which stays open, or of a new one for a server, which is closed.

    Raises:
        ConfigurationError: If a client cannot be created.
    """
    if client is not None:
        return nullcontext(client.with_options(max_retries=max_retries, timeout=timeout))
    openai = openai_package(by)
    try:
        new: AbstractAsyncContextManager[Any] = openai.AsyncOpenAI(timeout=timeout, max_retries=max_retries, **server)
    except Exception as error:
        remedy = "set OPENAI_API_KEY, or pass client="
        if server:
            remedy += " or a valid base_url and an api_key, which may be any text for a server that needs no key"
        raise ConfigurationError(f"{by}: the openai client cannot be created ({error}); {remedy}") from error
    return new


async def in_time(answer: Any, seconds: float) -> Any:
    """Return an answer; one that is awaitable is awaited for at most so many seconds.

    Raises:
        TimeoutError: If it takes longer.
    """
    if not inspect.isawaitable(answer):
        return answer
    with anyio.fail_after(seconds):
        return await answer


_TOO_MANY_REQUESTS: Final = 429
_SERVER_ERRORS: Final = 500


def read_reply(completion: object, redact: Callable[[str], str]) -> ModelReply | ModelFault:
    """Read the body of a success: the client's object, or the text that it returns for a body that is not JSON.

    What the server says of a failure is redacted, as it is by `read_error`.
    """
    if isinstance(completion, str):
        return ModelFault(says=f"sent a body that is not JSON: {brief(completion, redact)}", retry=True)
    error = member_of(completion, "error")
    if error is not None:
        code, says = member_of(error, "code"), f"sent an error as its answer: {brief(_words(error), redact)}"
        status = code if isinstance(code, int) else 0
        retry = status == _TOO_MANY_REQUESTS or status >= _SERVER_ERRORS
        return ModelFault(says=says, retry=retry, too_long=is_too_long(status, says))
    choices = member_of(completion, "choices")
    choice = cast("list[object]", choices)[0] if isinstance(choices, list) and choices else None
    message = member_of(choice, "message")
    if message is None:
        return ModelFault(says="sent an answer without a message in it", retry=True)
    read = member_of(member_of(completion, "usage"), "prompt_tokens")
    return ModelReply(
        text=_text(member_of(message, "content")),
        finish=str(member_of(choice, "finish_reason") or ""),
        refusal=str(member_of(message, "refusal") or ""),
        prompt_tokens=read if isinstance(read, int) and read > 0 else None,
    )


def read_usage(completion: object) -> Usage | None:
    """Return the usage that a body reports; ``None`` if there is none that can be read."""
    usage = member_of(completion, "usage")
    if usage is None:
        return None
    try:
        return Usage.read(usage)
    except InputError:
        return None


def read_error(error: Exception, *, timeout_seconds: float, redact: Callable[[str], str]) -> ModelFault:
    """Return the failure that an exception stands for which the client raised while sending or reading."""
    import openai

    if isinstance(error, TimeoutError | openai.APITimeoutError):
        return ModelFault(says=f"did not answer within {timeout_seconds:g} s", cause=error)
    if isinstance(error, openai.APIStatusError):
        says = f"answered HTTP {error.status_code}: {brief(_words(error.body) or error.message, redact)}"
        return ModelFault(says=says, too_long=is_too_long(error.status_code, says), cause=error)
    if isinstance(error, openai.APIConnectionError):
        says = f"could not be reached, or closed the connection ({brief(str(error.__cause__ or error), redact)})"
        return ModelFault(says=says, cause=error)
    if isinstance(error, ValueError):
        return ModelFault(says=f"sent a body that cannot be read ({brief(str(error), redact)})", retry=True, cause=error)
    return ModelFault(says=f"could not be called ({brief(str(error), redact)})", cause=error)


def _text(content: object) -> str:
    """Return the text of a message's content, which is a string or a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return ""
    texts = [member_of(part, "text") for part in cast("Sequence[object]", content)]
    return "\n".join([text for text in texts if isinstance(text, str)])


def _words(body: object) -> str:
    """Return an error's own message, with its code."""
    inner = member_of(body, "error")
    said = str(body if isinstance(body, str) else member_of(body, "message") or member_of(inner, "message") or "")
    code = member_of(body, "code") or member_of(inner, "code")
    return f"{said} [{code}]" if code and str(code) not in said else said
