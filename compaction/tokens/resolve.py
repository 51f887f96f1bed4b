"""`counter`: a token counter by its name, such as ``"auto"``, an encoding or a model; nothing is downloaded.

``counter("auto")`` returns the best counter on the machine: toktok, else tiktoken if its vocabulary is on disk, else an
estimate, with one warning. A named encoding or model gives exactly that counter or an error, because nobody would notice other
counts.
"""

from __future__ import annotations

from typing import Final, cast

from ..checks import refuse_uncalled, warn_caller
from ..errors import UnknownCounter
from ..installation import install_line
from .base import TokenCounter
from .estimate import ByteClassEstimate, BytesPerToken, CharsPerToken, EstimateWarning
from .memo import Memoized
from .tiktoken_counter import VOCABULARIES, load_tiktoken, vocabulary_file
from .toktok_counter import load_toktok

_AUTO_ENCODING: Final = "o200k_base"
_ESTIMATED: Final = (
    "tokens are estimated, because no vocabulary of a tokenizer is on this machine. To count exactly, run "
    f"{install_line('fast')}; to keep the estimate without this warning, pass counter='estimate'."
)
_INSTALL: Final = f"{install_line('fast')} installs toktok, which contains it"

_resolved: dict[str, TokenCounter] = {}


class _Shared(Memoized):
    """The counter of a name, one for each process; it is pickled as its name."""

    __slots__ = ()

    def __reduce__(self) -> tuple[object, ...]:
        return counter, (self.name,)


def counter(spec: str | TokenCounter = "auto") -> TokenCounter:
    """Return the token counter for a name.

    Args:
        spec: ``"auto"``, the best on this machine; ``"chars/4"``, ``"bytes/4"`` or ``"estimate"``, which need no vocabulary; an
            encoding, such as ``"o200k_base"``; an OpenAI model, such as ``"gpt-4o"``; or a counter, which is returned.

    Returns:
        The same object for the same name within a process. All but ``"chars/4"`` and ``"bytes/4"`` cache their counts.

    Raises:
        UnknownCounter: If the name is unknown, or the vocabulary is not on this machine.

    Warns:
        EstimateWarning: If ``"auto"`` found no vocabulary; once a process.

    >>> counter("chars/4").count_text("four characters a token")
    6
    >>> counter("gpt-4o") is counter("o200k_base")
    True
    """
    if not isinstance(spec, str):
        return _checked(spec)
    known = _resolved.get(spec)
    if known is None:
        known = _resolved.setdefault(spec, _resolve(spec))
        if spec == "auto" and not known.exact:
            warn_caller(_ESTIMATED, EstimateWarning)
    return known


def _checked(spec: object) -> TokenCounter:
    refuse_uncalled(spec, "a counter")
    if all(hasattr(spec, member) for member in ("name", "exact", "count_text")):  # isinstance would take 8 us an index
        return cast("TokenCounter", spec)
    raise UnknownCounter(
        f"counter {spec!r}: a counter needs 'name', 'exact' and 'count_text(text)'; add what is missing, or pass a name such as"
        " 'auto'"
    )


def _resolve(spec: str) -> TokenCounter:
    if spec == "chars/4":
        return CharsPerToken()
    if spec == "bytes/4":
        return BytesPerToken()
    if spec == "estimate":
        return _Shared(ByteClassEstimate())
    if spec == "auto":
        return _exact(_AUTO_ENCODING) or counter("estimate")
    encoding = spec if spec in VOCABULARIES else _encoding_of_model(spec)
    found = _exact(encoding)
    if found is None:
        raise UnknownCounter(f"counter {spec!r}: {_what_is_missing(encoding)}")
    return found


def _exact(encoding: str) -> TokenCounter | None:
    """Return the shared counter of an encoding; ``None`` if its vocabulary is not on this machine."""
    if encoding not in _resolved:
        inner = load_toktok(encoding) or load_tiktoken(encoding)
        if inner is None:
            return None
        _resolved.setdefault(encoding, _Shared(inner))
    return _resolved[encoding]


def _encoding_of_model(model: str) -> str:
    """Return the encoding of an OpenAI model; a provider's prefix, as in ``openai/gpt-4o``, is ignored."""
    remedy = f"name one of {', '.join(VOCABULARIES)}, use 'auto' or 'estimate', or pass an object that counts"
    try:
        from tiktoken.model import encoding_name_for_model
    except ImportError:
        raise UnknownCounter(f"counter {model!r}: not an encoding, and models are known only with tiktoken; {remedy}") from None
    try:
        return encoding_name_for_model(model.rpartition("/")[2])
    except KeyError:
        raise UnknownCounter(f"counter {model!r}: not an encoding or model with a published tokenizer; {remedy}") from None


def _what_is_missing(encoding: str) -> str:
    path = vocabulary_file(encoding) if encoding in VOCABULARIES else None
    if path is None:
        return f"the vocabulary of {encoding} is not on this machine; {_INSTALL}"
    return (
        f"the vocabulary of {encoding} is not on this machine; {_INSTALL}, or let tiktoken download it once "
        f"(tiktoken.get_encoding({encoding!r})) into {path}; 'estimate' needs neither"
    )
