"""The attempts at one summary: a model is asked once more after a bad answer.

Nothing here sends: `SummaryAttempts.ask` is a generator, and its driver sends what it yields. After temporary failures the
client sends again by itself.
"""

from __future__ import annotations

from typing import Final

import attrs

from ...errors import SummaryFailed
from .answers import SummaryPrompt
from .model_calls import ModelReply, SummarySteps

_LEAST_READ_TOKENS: Final = 2_048
_LEAST_READ_SHARE: Final = 0.5  # of a request, by our count
_SAME_SHARE: Final = 0.25


class RequestTooLong(Exception):
    """A request is longer than the model accepts; carries the server's words."""


@attrs.define
class SummaryAttempts:
    """The attempts at one summary. Holds state: the share of the last long request that the server read."""

    model: str  # its name
    _read_share: float | None = attrs.field(default=None, init=False)

    def ask(self, prompt: SummaryPrompt) -> SummarySteps:
        """Ask, and once more if the first answer is rejected; return the summary.

        Raises:
            RequestTooLong: If the request must be shorter.
            SummaryFailed: If the model gave no summary.
        """
        note = ""
        tried: list[str] = []
        cause: Exception | None = None
        for _ in range(2):
            verdict = yield prompt.call(self.model, note)
            if isinstance(verdict, ModelReply):
                self._check_read(verdict, prompt)
                checked = prompt.check(verdict)
                if isinstance(checked, str):
                    return checked
                verdict = checked
            if verdict.too_long:
                raise RequestTooLong(verdict.says) from verdict.cause
            tried.append(verdict.says)
            cause = verdict.cause or cause
            if verdict.again is None:
                break
            note = verdict.again and f"An earlier answer could not be used. {verdict.again}"
        raise self.failed(*tried) from cause

    def failed(self, *reasons: str) -> SummaryFailed:
        """Return the error that says what was tried."""
        return SummaryFailed(f"the summarizer failed: {self.model} {', then '.join(dict.fromkeys(reasons))}")

    def _check_read(self, reply: ModelReply, prompt: SummaryPrompt) -> None:
        """Check by the reported usage that the server did not cut the request without an error.

        If a shorter request gives the same share, the server counts tokens differently and cuts nothing.

        Raises:
            RequestTooLong: If the server read far less than was sent.
        """
        read = reply.prompt_tokens
        if read is None or prompt.tokens < _LEAST_READ_TOKENS or read >= _LEAST_READ_SHARE * prompt.tokens:
            return
        share, before = read / prompt.tokens, self._read_share
        if before is not None and abs(share - before) <= _SAME_SHARE * before:
            return
        self._read_share = share
        raise RequestTooLong(f"read {read:,} tokens of a request of about {prompt.tokens:,}")
