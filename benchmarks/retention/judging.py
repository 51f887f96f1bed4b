"""Judges what is sent after a compaction: what survives, with its meaning, what is stale, what is false."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from .matching import Group, Passage, holds, normalised, text_passages
from .planted import Conversation, Planted, message_text, own_passages

_HEADING: Final = re.compile(r"\s*(?:#{1,6}\s+(.+?)\s*#*|\*\*(.+?)\*\*:?|<([\w &-]+)>|([^-*•\d\s][^.!?。]{0,60}[:：]))\s*$")
_LABEL: Final = re.compile(r"\s*(?:[-*+•]\s+)?(?:\*\*|\[)?([\w &]{3,30}?)(?:\*\*|\])?\s*[:：]")
_OF_RULES: Final = re.compile(
    r"constraint|preference|rule|instruction|requirement|guideline|guidance|directive|obligation|prohibit|polic(?:y|ies)|standing"
    r"|must|do not|keep in mind|users? (?:own )?(?:said|says|words|wants|states)"
    r"|vorgabe|regel|vorlieb|anweisung|einschränkung|pflicht|verbot|nutzer sagt"
    r"|규칙|제약|선호|지시|요구|금지|지침"
    r"|规则|約束|约束|偏好|指示|要求|禁止|限制"
)
_MESSAGE: Final = re.compile(r"\((?:earlier, )?message (\d+)\)$")
_SEEN: Final = re.compile(r"- [a-z ]+ seen: ")
_ORDER: Final = re.compile(
    r"->|→|=>|\b(?:was|were|until|now|previous(?:ly)?|former(?:ly)?|earlier|instead|changed|updated|replace[sd]?|"
    r"superseded?s?|old|new|no longer|anymore|current(?:ly)?|latest|originally|initially|back)\b"
    r"|\b(?:war|bis|jetzt|nun|zuvor|vorher|früher|statt|stattdessen|geändert|ersetzt|alt|neu|nicht mehr|aktuell|zuletzt"
    r"|zurück|inzwischen|ab sofort|ursprünglich)\b"
    r"|이전|까지|이제|지금|변경|바뀌|바뀐|바꿔|바꾸|원래|대신|새로|현재|다시|처음|옛|더 이상"
    r"|之前|原来|原來|原先|直到|现在|現在|改为|改成|改到|变成|变更|不再|最新|目前|当前|以前|起初|恢复|换成|调整"
)
_CONDITION: Final = re.compile(
    r"\b(?:if|suppose|supposing|imagine|were|would|had|hypothetical\w*|assume|assuming|could|might)\b"
    r"|\b(?:wenn|falls|angenommen|wäre|wären|würde|würden|hätte|hätten|gesetzt|stell dir|hypothetisch|könnte)\b"
    r"|만약|만일|가정|라면|다면|이면|였으면|가령|했다면|더라도|치면|치고"
    r"|如果|假如|假设|要是|倘若|若是|万一|设想|假定|就算|哪怕"
)


@attrs.frozen
class Sent:
    """The request that is sent after a compaction.

    Args:
        passages: The pieces of text whose words belong together, in order.
        summaries: Those of them that stand in messages which are neither the conversation's own nor shortened tool results.
        before: The conversation's own messages, all of them.
    """

    passages: tuple[Passage, ...]
    summaries: tuple[Passage, ...]
    before: tuple[Passage, ...]


@attrs.frozen
class Verdict:
    """The parts of one planted item or distractor that are found.

    Args:
        planted: The item or distractor.
        survives: Whether its core is found; of a value that changed, the last value.
        means: Whether it survives together with what it needs to be understood.
        stale: Whether an old value is found without the last one, or both without their order.
        false: Whether a distractor is presented as a rule of the user, or a hypothetical value as one that holds.
    """

    planted: Planted
    survives: bool = False
    means: bool = False
    stale: bool = False
    false: bool = False


def sent(conversation: Conversation, messages: Sequence[Mapping[str, Any]]) -> Sent:
    """Return what is sent as passages: a message of the conversation is one, any other message has one a line.

    Args:
        conversation: The conversation before.
        messages: The messages after compaction, in the OpenAI chat format.
    """
    own: dict[str, list[int]] = {}
    for place, each in enumerate(conversation.messages):
        own.setdefault(_key(each), []).append(place)
    whole = own_passages(conversation.messages)
    passages: list[Passage] = []
    for place, message in enumerate(messages):
        if known := own.get(_key(message)):
            passages.append(attrs.evolve(whole[known.pop(0)], message=place))
        else:
            passages += _lines(message_text(message), place)
    summaries = (each for each in passages if each.original is None and messages[each.message]["role"] != "tool")
    return Sent(tuple(passages), tuple(summaries), tuple(whole))


def _key(message: Mapping[str, Any]) -> str:
    """Return what a message says and answers; other fields, such as those a framework adds, do not count."""
    return json.dumps([message["role"], message_text(message), message.get("tool_call_id")], ensure_ascii=False)


def _lines(text: str, place: int) -> list[Passage]:
    section, found = "", []
    for line in text_passages(text):
        heading = _HEADING.match(line)
        if heading:
            section = normalised(next(filter(None, heading.groups())))
        found.append(Passage(normalised(line), place, None, section))
    return found


def judge(conversation: Conversation, messages: Sequence[Mapping[str, Any]]) -> list[Verdict]:
    """Return the verdict on everything that was planted into a conversation."""
    found = sent(conversation, messages)
    return [_verdict(planted, found) for planted in conversation.planted]


def _verdict(planted: Planted, found: Sent) -> Verdict:
    if not planted.is_item:
        others = [each for each in found.before if each.original not in planted.places]
        told = [group for group in planted.core if not holds(others, [group])]
        return Verdict(planted, false=_is_false(planted, told, found.summaries))
    survives = holds(found.passages, planted.core)
    return Verdict(
        planted,
        survives=survives,
        means=survives and _means(planted, found.passages),
        stale=any(_is_stale(old, planted.core, found.passages) for old in planted.old),
    )


def _means(planted: Planted, passages: Sequence[Passage]) -> bool:
    """Return whether core and meaning stand together, in one passage or in the item's own messages."""
    words = (*planted.core, *planted.meaning)
    if holds(passages, words):
        return True
    own = " ".join(each.text for each in passages if each.original in planted.places)
    return Passage(own, 0).has_all(words)


def _is_stale(old: Sequence[Group], current: Sequence[Group], passages: Sequence[Passage]) -> bool:
    """Return whether an old value stands alone, or beside the current one without their order."""
    olds = [each for each in passages if each.has_all(old)]
    currents = [each for each in passages if each.has_all(current)]
    if not olds:
        return False
    last = max(each.message for each in olds)
    if any(each.message > last for each in currents):
        return False
    numbers = [_number(each) for each in (olds, currents)]
    if 0 < numbers[0] < numbers[1]:
        return False
    same = [each for each in passages if each.message == last and (each in olds or each in currents)]
    return not any(each.message == last for each in currents) or not any(_ORDER.search(each.text) for each in same)


def _number(passages: Sequence[Passage]) -> int:
    """Return the highest number of a message that passages name; 0 if one of them names none. Lists of values do not count."""
    numbers = [_MESSAGE.search(each.text) for each in passages if not _SEEN.match(each.text)]
    return max((int(each[1]) if each else 0 for each in numbers), default=0) if all(numbers) else 0


def _is_false(planted: Planted, told: Sequence[Group], summaries: Sequence[Passage]) -> bool:
    """Return whether a summary presents a distractor as a rule, or a hypothetical value without its condition.

    Args:
        planted: The distractor.
        told: Those of its words that stand nowhere else in the conversation.
        summaries: The passages of summaries.
    """
    shown = [each for each in summaries if any(map(each.has, told))]
    if planted.kind == "hypothetical":
        meant = [each for each in shown if any(map(each.has, planted.meaning))]
        return any(is_of_rules(each) or not _CONDITION.search(each.text) for each in meant)
    return any(map(is_of_rules, shown))


def is_of_rules(passage: Passage) -> bool:
    """Return whether a passage of a summary stands under a heading, or behind a label, that announces the user's rules."""
    label = _LABEL.match(passage.text)
    return bool(_OF_RULES.search(passage.section) or (label and _OF_RULES.search(label[1])))
