"""Orders: whether a sentence tells somebody to do something, in English, German, Korean and Chinese."""

from __future__ import annotations

import re
from typing import Final

from .cues import MUST, NOT, OTHERS, SAYS, SCOPE, SELF, WANT, YOU, cues_of, words_of


def words_in(listed: str) -> frozenset[str]:
    """Return the words of a list."""
    return frozenset(listed.split())


_AFTER_VERB: Final = words_in(
    "the a an it them this that these those each any every all my your our me us him her into out up down on off away "
    "back with only from in at as nothing anything sure by twice under clear no not sie bitte dort nur es ihn sie die "
    "den das dem der einen eine keine nicht niemals mir zweimal auf für im stets immer"
)
_COMMANDS: Final = words_in(
    "prefer please kindly never always don't avoid refrain keep stay leave make ensure use no bitte kein keine nie niemals"
)
_REPORTS: Final = words_in("got saw found came sent heard took gave went had told made wrote read bought left kept brought")
CLOSED: Final = words_in(
    "the a an and but or if when while as since because that this these those there here it he she they we i you my "
    "your our their his her its in on at of to from for with by about under over after before until once so then also "
    "just even what which who how why where is are was were be been has have had do does did will would can could "
    "should may might must not let's there's that's it's one some many most more both either der die das ein eine und "
    "oder aber wenn als weil dass es er sie wir ich du man mein meine unser unsere sein ihr ihre im in am an auf aus "
    "bei mit nach von vor zu zum zur für über unter um durch bis seit so dann auch noch schon nur was wer wie wo warum "
    "ist sind war waren hat haben wird werden kann können"
)
_CLAUSE: Final = re.compile(r"[,;:–—]\s+(?:so\s+|und\s+|and\s+|also\s+|but\s+|aber\s+)?")
KOREAN_ORDER: Final = re.compile(r"(?:세요|십시오|시오|줘요?|마요?|[말할] 것|주셨으면 (?:해요|합니다|좋겠어요))[.!~\s]*$")
# Formulas of conversation, exclamations, and infinitives, which tell nobody to do anything.
_FORMULA: Final = re.compile(
    r"(?:don['’]t|do not|never) (?:you|ask me|get me|worry|mind|laugh)\b|(?:trust|believe) me\b|"
    r"(?:frag mich|lach|sorg dich) \w*\s?nicht|glaub(?:t|en sie)? mir\b|leave it to |keep (?:your )?fingers|"
    r"(?:no|nein)$|no (?:wonder|idea|way|doubt|matter|problem|rush|worries|joke|kidding|luck)\b|"
    r"keine? (?:wunder|ahnung|sorge|frage|problem|witz)\b|"
    r"(?:never|always|nie|niemals|immer) (?:an?|the|in|so|such|again|schon|noch|wieder|ein\w*|das\w*) |"
    r"(?:never|always) (?:\w+[^eb\W]ed|\w{3,}ing|seen|heard|been|had|thought|knew|known|felt|understood|told|said|"
    r"found|got|went|was)\b|"
    r"(?:nie|niemals|immer)\b.* ge\w+[tn][.!]*$|"
    r"(?:nie|niemals|nicht|kein\w*|immer|stets)\b.* zu \w+en\b",
    re.IGNORECASE,
)
EASTERN: Final = re.compile(r"[가-힣\u4e00-\u9fff]")
_LABEL: Final = 12
_EASTERN_LABEL: Final = 5


def is_order(sentence: str) -> bool:
    """Whether a sentence tells somebody to do something."""
    return is_command(sentence) or bool(KOREAN_ORDER.search(sentence)) or "请" in sentence


def is_command(sentence: str, cues: int = 0) -> bool:
    """Whether a clause begins with a verb that tells somebody to do something, as far as its first two words show.

    If the speaker or somebody else is its subject, only the first clause counts: the others may say what they did.
    """
    for clause in _CLAUSE.split(sentence)[: 1 if cues & (SELF | OTHERS) else None]:
        if _FORMULA.match(clause):
            continue
        first, *more = clause.split(maxsplit=2)[:2] or [""]
        first = first.lower().replace("’", "'").strip(",.!:")
        second = more[0].strip(",.!:").lower() if more else ""
        if first in _COMMANDS or (first, second) == ("do", "not"):
            return True
        if first in _REPORTS:
            return False
        ends_well = not first.endswith(("s", "ed", "ing", "ly", "ung"))
        ends_well = ends_well and (not first.endswith("en") or second in ("sie", "the", "it", "a"))
        if ends_well and first.isalpha() and first not in CLOSED and second in _AFTER_VERB:
            return True
    return False


def demands(sentence: str) -> bool:
    """Whether a sentence says what the user wants of the assistant."""
    cues = cues_of(sentence, words_of(sentence))
    return not cues & SAYS and (is_order(sentence) or bool(cues & YOU and cues & MUST))


def concerns_user(sentence: str) -> bool:
    """Whether a sentence speaks of what the user wants or does."""
    return bool(cues_of(sentence, words_of(sentence)) & (YOU | MUST | WANT | SELF)) or is_order(sentence)


def is_announced(sentence: str) -> bool:
    """Whether words before a colon, which demand nothing themselves, announce the rule: it may be somebody else's."""
    head, colon, _ = sentence.replace("：", ": ").partition(": ")
    if not colon or len(head) <= (_EASTERN_LABEL if is_eastern(head) else _LABEL):
        return False
    cues = cues_of(head, words_of(head))
    return not cues & (YOU | MUST | NOT | SCOPE) and not is_command(head)


def is_eastern(text: str) -> bool:
    """Whether a text has Korean or Chinese characters."""
    return not text.isascii() and EASTERN.search(text) is not None
