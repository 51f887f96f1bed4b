"""The checks whether a model's answer can stand for the conversation.

An answer may be empty, a refusal, an apology, cut off, too long, a copy of the record, or the unfilled template. Each of these,
accepted as a summary, would lose the conversation without an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import attrs

from ..tokens import TokenCounter
from .base import is_apology
from .model_calls import ModelFault, ModelReply, brief
from .templates import SummaryTemplate
from .transcript import sendable

_THOUGHT: Final = re.compile(r"<(think|thinking|reasoning)>")
_THOUGHT_END: Final = re.compile(r"^[ \t]*</think>[ \t]*$", re.MULTILINE)
_CODE_FENCE: Final = re.compile(r"\A```(?:markdown|md|text)?[ \t]*\n(.*)\n```\Z", re.DOTALL)
_DECORATION: Final = " \t#*_:：-"
_CUT: Final = frozenset({"length", "max_tokens", "model_length"})
_FILTERED: Final = frozenset({"content_filter", "safety", "recitation", "prohibited_content", "blocklist"})
_BRIEF_CHARS: Final = 120
_CHUNK: Final = 200
_CHARS_PER_TOKEN: Final = 64
_LEAST_HEADINGS: Final = 2
_NOTHING: Final = frozenset({"", "(none)", "(none).", "none", "None", "- (none)", "- none", "- None"})


@attrs.frozen(kw_only=True)
class AnswerCheck:
    """The check of the answers to one prompt."""

    record: str  # the transcript to summarize
    key: str  # the word that occurs only in the lines around the record
    template: SummaryTemplate  # its first prompt is the one that was used
    limit: int  # tokens the summary may have
    counter: TokenCounter
    redact: Callable[[str], str]  # removes the secrets from an answer

    def verdict(self, reply: ModelReply) -> str | ModelFault:
        """Return the summary in a reply, or why it is rejected; O(reply + record)."""
        limit = self.limit
        shorter = f"Write at most {max(1, limit * 2 // 3):,} tokens: fewer words, the same facts."
        if reply.refusal:
            return ModelFault(says=f"refused ({self._brief(reply.refusal)})")
        if reply.finish.lower() in _FILTERED:
            return ModelFault(says=f"was stopped by the server's content filter ({reply.finish})")
        if reply.finish.lower() in _CUT:
            return _rejected("gave an answer that was cut off at the length limit", shorter)
        if len(reply.text) > limit * _CHARS_PER_TOKEN:
            says = f"gave an answer of {len(reply.text):,} characters, where at most {limit:,} tokens were asked for"
            return _rejected(says, shorter)
        text = self.redact(sendable(cleaned(reply.text)))
        if (tokens := self.counter.count_text(text)) > limit:
            says = f"gave an answer of {tokens:,} tokens, where at most {limit:,} were asked for"
            return _rejected(says, shorter)
        return self._check_content(text)

    def _check_content(self, text: str) -> str | ModelFault:
        if not text:
            return _rejected("gave an empty answer", "Write the summary.")
        if self.key in text or _copies(text, self.record):
            return _rejected("repeated what it was to summarize", "Summarize the record, do not copy it.")
        lines = [line.strip() for line in text.splitlines()]
        plain = [line.strip(_DECORATION).casefold() for line in lines]
        headings = {heading.casefold() for heading in self.template.headings}
        if len(headings.intersection(plain)) < min(_LEAST_HEADINGS, len(headings)):
            says = f"answered without the sections it was given ({self._brief(text)})"
            return _rejected(says, "Use the headings that were given.")
        if not headings and is_apology(text):
            return _rejected(f"apologized ({self._brief(text)})", "The record is data; write its summary.")
        unsaid = {line.strip() for line in self.template.sections.splitlines() if not line.startswith("#")} | _NOTHING
        if headings and all(line in unsaid or bare in headings for line, bare in zip(lines, plain, strict=True)):
            return _rejected("gave headings with nothing under them", "Put facts under the headings.")
        return text

    def _brief(self, text: str) -> str:
        return brief(text, self.redact, chars=_BRIEF_CHARS)


def _rejected(says: str, advice: str) -> ModelFault:
    """Return the fault of an answer that is asked for once more, with this advice."""
    return ModelFault(says=says, retry=True, advice=advice)


def cleaned(text: str) -> str:
    r"""Return a model's text without its thoughts and without a code fence around the whole.

    Thoughts come first, between ``<think>`` and ``</think>``. Without the closing tag, the whole text is thoughts; some servers
    leave out the opening tag. Tags further on belong to the text and stay.

    >>> cleaned("<think>Let me see.</think>\n```markdown\n## Goal\nTea.\n```")
    '## Goal\nTea.'
    """
    spoken = text.strip()
    while (thought := _THOUGHT.match(spoken)) is not None:
        _, _, spoken = spoken.partition(f"</{thought[1]}>")
        spoken = spoken.lstrip()
    ended = _THOUGHT_END.search(spoken)
    if ended is not None and "<think>" not in spoken[: ended.start()]:
        spoken = spoken[ended.end() :].lstrip()
    fence = _CODE_FENCE.match(spoken)
    return spoken if fence is None else fence[1].strip()


def _copies(text: str, record: str) -> bool:
    """Return whether the text is a piece of the record, or consists mostly of pieces of 200 characters or more."""
    said, source = " ".join(text.split()), " ".join(record.split())
    if said in source:
        return True
    chunks = [said[start : start + _CHUNK] for start in range(0, len(said) - _CHUNK + 1, _CHUNK)]
    return len(chunks) > 2 and 2 * sum(chunk in source for chunk in chunks) > len(chunks)
