"""The headings of a summary that a model wrote, in several languages."""

from __future__ import annotations

import pytest

from compaction.summarizers.extractive.sections import Section, read_sections


@pytest.mark.parametrize(
    ("heading", "section"),
    [
        *(("Completed Actions", Section.DONE), ("Completed:", Section.DONE), ("完成事项", Section.DONE)),
        *(("Unfinished", Section.NEXT), ("Incomplete tasks", Section.NEXT), ("Not done yet", Section.NEXT)),
        *(("To be completed", Section.NEXT), ("Undecided", Section.NEXT), ("Cannot be done yet", Section.NEXT)),
        *(("未完成", Section.NEXT), ("미완료 작업", Section.NEXT), ("未完了", Section.NEXT), ("尚未完成", Section.NEXT)),
        *(("Blockers", Section.BLOCKED), ("Blocked by:", Section.BLOCKED), ("Open issues", Section.BLOCKED)),
        *(("Blockchain", Section.CONTEXT), ("Nextcloud", Section.CONTEXT)),
        *(("User profile", Section.CONTEXT), ("Files read", Section.FILES), ("Ruler", Section.CONTEXT)),
        *(("Currently running", Section.IN_PROGRESS), ("User Requests and Intents", Section.GOAL)),
        *(("Required rules", Section.CONSTRAINTS), ("Task progress", Section.DONE), ("API완료", Section.DONE)),
    ],
)
def test_the_section_of_a_heading(heading: str, section: Section) -> None:
    """A whole word decides, with its usual endings; one that says that something is not done comes first."""
    assert [*read_sections(f"## {heading}\n- Port the parser to Rust.")] == [section]
