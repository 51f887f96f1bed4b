"""The sections of a summary: writing a digest, and reading an earlier summary, ours or a model's.

The headings are those of the Hermes Agent documentation. A heading is recognized by its words in English, Korean, Chinese or
Japanese. Text under an unknown heading, or under none, is read as Critical Context together with the heading, so that nothing
is lost.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping, Sequence
from typing import Final

from .lines import MARK, without_bullet

_HEADING: Final = re.compile(r"#{1,6}\s+(\S.*)")
_BOLD: Final = re.compile(r"\*\*([^*\n]{1,60})\*\*[:：]?")
_NOTHING: Final = frozenset({"(none)", "none", "none.", "n/a", "-", "(없음)", "없음", "无", "無", "なし"})


class Section(enum.Enum):
    """A section; the value is its heading."""

    GOAL = "## Goal"
    CONSTRAINTS = "## Constraints & Preferences"
    DONE = "### Done"
    IN_PROGRESS = "### In Progress"
    BLOCKED = "### Blocked"
    DECISIONS = "## Key Decisions"
    FILES = "## Relevant Files"
    NEXT = "## Next Steps"
    CONTEXT = "## Critical Context"


_WORDS: Final = (  # the first that occurs in a heading decides: whole words with their endings, or parts of unspaced ones
    (
        Section.NEXT,
        "un(?:finished|done|decided)|incomplete|(?:can)?not (?:be )?(?:done|finish|complete|decid)",
        "미완|未完|尚未",
    ),
    (Section.NEXT, "not yet|to be", "아직"),
    (Section.IN_PROGRESS, "in progress|in-progress|active state|current", "진행 중|진행중|进行中|進行中"),
    (Section.NEXT, "next|remaining|pending|todo|to do|open question", "다음|남은|할 일|下一步|待办|待辦|次の"),
    (Section.BLOCKED, "block|issue|problem|error", "차단|막힌|문제|阻|问题|問題"),
    (Section.DONE, "done|complete|finished|progress|actions", "완료|진행|完成|进展|進展|完了"),
    (Section.CONSTRAINTS, "constraint|preference|requirement|rule", "제약|조건|선호|约束|約束|限制|偏好|制約"),
    (Section.DECISIONS, "decision|decided", "결정|决定|決定|决策|決策"),
    (Section.FILES, "file", "파일|文件|檔案|ファイル"),
    (Section.GOAL, "goal|objective|task|intent|request", "목표|목적|요청|目标|目標|任务|任務"),
    (Section.CONTEXT, "context", "맥락|上下文|文脈"),
)
_TELLING: Final = [
    (section, re.compile(rf"(?<![a-z])(?:{words})(?:s|d|ed|ers?|ing|ly|ion)?(?![a-z])|{unspaced}"))
    for section, words, unspaced in _WORDS
]


def write_sections(items: Mapping[Section, Sequence[str]]) -> str:
    r"""Return the text of a digest: each section that has items, in a fixed order.

    >>> print(write_sections({Section.GOAL: ["Fix the build"], Section.DONE: ["make -> ok"]}))
    ## Goal
    - Fix the build
    <BLANKLINE>
    ## Progress
    ### Done
    - make -> ok
    """
    written = {each: "\n".join([each.value, *map(_item, items[each])]) for each in Section if items.get(each)}
    in_progress = [each for each in (Section.DONE, Section.IN_PROGRESS, Section.BLOCKED) if each in written]
    if in_progress:
        written[in_progress[0]] = f"## Progress\n{written[in_progress[0]]}"
    return "\n\n".join(written.values())


def _item(text: str) -> str:
    """Return a list item; further lines are indented, so that none is read as a heading, and blank lines are removed."""
    first, *further = [line for line in text.splitlines() if line.strip()] or [""]
    return "\n  ".join([f"- {first}", *further])


def read_sections(text: str) -> dict[Section, list[str]]:
    r"""Return the items of each section of a summary, in order; O(characters).

    >>> read_sections("Notes.\n## Goal\nShip it\n## Key Decisions\n1. Use SQLite\n   for now\n2. (none)")
    {<Section.CONTEXT: '## Critical Context'>: ['Notes.'], <Section.GOAL: '## Goal'>: ['Ship it'],
     <Section.DECISIONS: '## Key Decisions'>: ['Use SQLite\nfor now']}
    """
    found: dict[Section, list[str]] = {}
    section = Section.CONTEXT
    continues = False
    for line in text.splitlines():
        bare = line.strip()
        if line[:1] in ("#", "*") and (heading := _HEADING.fullmatch(line) or _BOLD.fullmatch(line)):
            known = _section(heading[1])
            section, continues = known or Section.CONTEXT, False
            if known is None:
                found.setdefault(section, []).append(heading[1].strip("#:： "))
        elif not bare or bare.lower() in _NOTHING:
            continues = continues and not bare
        elif continues and line[0].isspace():
            found[section][-1] += f"\n{bare}"
        else:
            item = without_bullet(bare, MARK.match)
            continues = item.lower() not in _NOTHING
            if continues:
                found.setdefault(section, []).append(item)
    return found


def _section(heading: str) -> Section | None:
    return next((section for section, telling in _TELLING if telling.search(heading.lower())), None)
