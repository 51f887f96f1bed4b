"""What an OpenAI-compatible server sends back, read whatever it is: a reply, or a fault with what may be done about it.

Servers that speak this protocol differ most in how they fail: errors in the body of a success, choices that are missing or
null, a page of HTML, a limit that is reported under five names. Nothing here trusts a type that was only announced.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, Final, cast

from ..errors import InputError
from ..tokens import Usage
from .exchange import Fault, Reply
from .redaction import redact

__all__ = ["fault_of", "is_too_long", "reply_of", "usage_of"]

_TRANSIENT: Final = frozenset({408, 409, 429})
_MAY_BE_TOO_LONG: Final = frozenset({0, 400, 413, 422, 500})
_TOO_LONG: Final = re.compile(
    r"(?i)context[ _-]?(?:length|window|size)|maximum (?:context|prompt|input)|(?:prompt|input|request) is too (?:long|large)"
    r"|too many (?:input |prompt )?tokens|exceeds? the (?:maximum|available|model|limit)|reduce the length|exceed_context"
)
_TOO_LARGE: Final = "request too large"
_NEVER: Final = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
_SHOWN_CHARS: Final = 300


def reply_of(completion: object) -> Reply | Fault:
    """What stands in the body of a success.

    Args:
        completion: The client's object, or the text it gives for a body that is no JSON.
    """
    if isinstance(completion, str):
        return Fault(kind="transient", says=f"sent a body that is no JSON: {_shown(completion)}")
    error = _member(completion, "error")
    if error is not None:
        code = _member(error, "code")
        return _fault(code if isinstance(code, int) else 0, error, f"sent an error as its answer: {_words(error)}")
    choices = _member(completion, "choices")
    choice = cast("list[object]", choices)[0] if isinstance(choices, list) and choices else None
    message = _member(choice, "message")
    if message is None:
        return Fault(kind="transient", says="sent an answer without a message in it")
    read = _member(_member(completion, "usage"), "prompt_tokens")
    return Reply(
        text=_text(_member(message, "content")),
        finish=str(_member(choice, "finish_reason") or ""),
        refusal=str(_member(message, "refusal") or ""),
        prompt_tokens=read if isinstance(read, int) and read > 0 else None,
    )


def usage_of(completion: object) -> Usage | None:
    """The usage a body reports, if it reports one that can be read."""
    usage = _member(completion, "usage")
    if usage is None:
        return None
    try:
        return Usage.read(usage)
    except InputError:
        return None


def fault_of(error: Exception, *, timeout_seconds: float) -> Fault:
    """What may be done about an exception of the client.

    Args:
        error: What was raised while sending or reading.
        timeout_seconds: How long was waited at most.
    """
    import openai

    if isinstance(error, TimeoutError | openai.APITimeoutError):
        return Fault(kind="transient", says=f"did not answer within {timeout_seconds:g} s", cause=error)
    if isinstance(error, openai.APIStatusError):
        says = f"answered HTTP {error.status_code}: {_words(error.body) or _shown(error.message)}"
        return _fault(error.status_code, error.body, says, error)
    if isinstance(error, openai.APIConnectionError):
        says = f"could not be reached, or hung up ({_shown(str(error.__cause__ or error))})"
        return Fault(kind="transient", says=says, cause=error)
    if isinstance(error, ValueError):
        return Fault(kind="transient", says=f"sent a body that cannot be read ({_shown(str(error))})", cause=error)
    return Fault(kind="final", says=f"could not be asked ({_shown(str(error))})", cause=error)


def _fault(status: int, body: object, says: str, error: Any = None) -> Fault:
    if is_too_long(status, says):
        return Fault(kind="too_long", says=says, cause=error)
    if _code(body) in _NEVER:
        return Fault(kind="final", says=says, cause=error)
    if status in _TRANSIENT or status >= 500:
        wait = None if error is None else _retry_after(error.response.headers)
        return Fault(kind="transient", says=says, wait_seconds=wait, cause=error)
    return Fault(kind="final", says=says, cause=error)


def is_too_long(status: int, says: str) -> bool:
    """Whether a shorter request may succeed; a rate limit counts if the request alone is above it."""
    if status == 429:
        return _TOO_LARGE in says.lower()
    return status == 413 or (status in _MAY_BE_TOO_LONG and _TOO_LONG.search(says) is not None)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds a server asks to wait: in milliseconds, in seconds, or as a date, read against the date it gives itself."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        return max(0.0, seconds) if math.isfinite(seconds) else None
    try:
        until, now = parsedate_to_datetime(headers["retry-after"]), parsedate_to_datetime(headers["date"])
        return max(0.0, (until - now).total_seconds())
    except (KeyError, ValueError, TypeError):
        return None


def _member(source: object, name: str) -> Any:
    return cast("Mapping[str, Any]", source).get(name) if isinstance(source, Mapping) else getattr(source, name, None)


def _text(content: object) -> str:
    """The words of a message's content: a text, or parts some of which are texts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return ""
    texts = [_member(part, "text") for part in cast("Sequence[object]", content)]
    return "\n".join([text for text in texts if isinstance(text, str)])


def _code(body: object) -> object:
    return _member(body, "code") or _member(_member(body, "error"), "code")


def _words(body: object) -> str:
    """What an error says of itself."""
    said = body if isinstance(body, str) else _member(body, "message") or _member(_member(body, "error"), "message") or ""
    return _shown(f"{said} [{code}]" if (code := _code(body)) and str(code) not in str(said) else str(said))


def _shown(text: str) -> str:
    """The beginning of a text on one line, without secrets."""
    line = " ".join(redact(text[: 4 * _SHOWN_CHARS]).split())
    return line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 3] + "..."
