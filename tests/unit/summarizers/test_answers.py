"""A model's answer is accepted as a summary only if it can replace the conversation."""

from __future__ import annotations

import pytest

from compaction.summarizers import SummaryTemplate, default_template, redact
from compaction.summarizers.answers import AnswerCheck, cleaned
from compaction.summarizers.model_calls import ModelFault, ModelReply
from compaction.tokens import counter

GOOD = "## Goal\nMove the blog to a new host.\n\n## Next Steps\n- copy the database\n- change the DNS record"
PLAIN = SummaryTemplate("{max_summary_tokens}{existing_summary_section}{messages_text}")
FIXED = "Error 404 on /login was fixed by renaming the route; the tests pass."
KEY = "5f1c09ab"
RECORD = f"[{KEY} user]\n" + "Please move the blog to the new host, and copy the database before you change any record. " * 20


def judged(reply: ModelReply | str, *, template: SummaryTemplate | None = None, limit: int = 100) -> str | ModelFault:
    """The summary or the fault of a reply to a request for at most 100 tokens."""
    tokens, template = counter("chars/4"), template or default_template()
    check = AnswerCheck(record=RECORD, key=KEY, template=template, limit=limit, counter=tokens, redact=redact)
    return check.verdict(ModelReply(text=reply, finish="stop") if isinstance(reply, str) else reply)


def test_a_good_answer_is_the_summary() -> None:
    assert judged(GOOD) == GOOD
    assert judged(f"\n{GOOD}\n\n") == GOOD


@pytest.mark.parametrize("decorated", ["**Goal**\nTea.\n**Next Steps**\nBoil.", "# goal:\nTea.\n### NEXT STEPS\nBoil."])
def test_headings_in_other_dress(decorated: str) -> None:
    assert judged(decorated) == decorated


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (ModelReply(text="", finish="stop"), "gave an empty answer"),
        (ModelReply(text=" \n ", finish="stop"), "gave an empty answer"),
        (ModelReply(text="<think>All thought, no word", finish="stop"), "gave an empty answer"),
        (ModelReply(text=GOOD, finish="length"), "cut off at the length limit"),
        (ModelReply(text=GOOD, finish="MAX_TOKENS"), "cut off at the length limit"),
        (ModelReply(text=GOOD * 20, finish="stop"), "where at most 100 were asked for"),
        (ModelReply(text="x" * 10_000_000, finish="stop"), "10,000,000 characters"),
        (ModelReply(text=RECORD[15:300], finish="stop"), "repeated what it was to summarize"),
        (ModelReply(text=f"## Goal\n<record {KEY}>\n## Done\nx", finish="stop"), "repeated what it was to summarize"),
        (ModelReply(text="I'm sorry, but I don't see any events to summarize.", finish="stop"), "without the sections"),
        (ModelReply(text="Error: 502 Bad Gateway", finish="stop"), "without the sections"),
        (ModelReply(text="Sure! I moved the blog and copied the database.", finish="stop"), "without the sections"),
        (ModelReply(text="## Goal\n(none)\n## Done\n(none)\n## Next Steps\n- None", finish="stop"), "nothing under them"),
        (ModelReply(text=default_template().sections, finish="stop"), "nothing under them"),
        (ModelReply(text="", refusal="I cannot help with that."), "refused (I cannot help with that.)"),
        (ModelReply(text=GOOD, finish="content_filter"), "stopped by the server's content filter"),
        (ModelReply(text="", finish="SAFETY"), "stopped by the server's content filter"),
    ],
)
def test_answers_that_cannot_be_used(reply: ModelReply, why: str) -> None:
    """The model gets a hint and a second try, but not after a refusal or a content filter."""
    verdict = judged(reply, limit=1_000 if reply.text == default_template().sections else 100)
    assert isinstance(verdict, ModelFault)
    assert why in verdict.says
    is_final = bool(reply.refusal) or "filter" in why
    assert (verdict.retry, bool(verdict.advice)) == (not is_final, not is_final)


@pytest.mark.parametrize(
    "text",
    [
        *("I'm sorry, I can't do that.", "죄송합니다. 도와드릴 수 없습니다.", "抱歉，我无法总结。"),
        *("Error: upstream", "Error 502 Bad Gateway"),
    ],
)
def test_apologies_without_sections(text: str) -> None:
    verdict = judged(text, template=PLAIN)
    assert isinstance(verdict, ModelFault)
    assert "apologized" in verdict.says


def test_words_without_sections() -> None:
    for text in ("The user wants the blog moved; the database is first.", "Error messages are to be in Korean.", FIXED):
        assert judged(text, template=PLAIN) == text
        assert judged(text, template=SummaryTemplate.plain("Summarize the decisions.")) == text


def test_copy_with_an_introduction() -> None:
    verdict = judged(f"Here is what happened.\n{RECORD[15:1200]}", template=PLAIN, limit=1_000)
    assert isinstance(verdict, ModelFault)
    assert "repeated" in verdict.says


def test_quotations_are_no_copy() -> None:
    quoting = f"{GOOD}\n\n## Constraints & Preferences\n- {RECORD[16:103]}\n\n## Done\n- The old host was read, file by file."
    assert judged(quoting, limit=500) == quoting


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<think>hm</think>\nTea.", "Tea."),
        ("<thinking>a</thinking><think>b</think>Tea.", "Tea."),
        ("a thought without a beginning\n</think>\n\nTea.", "Tea."),
        ("<think>never ends: ## Goal", ""),
        ("The tag `</think>` is written\nby some models.", "The tag `</think>` is written\nby some models."),
        ("Tea.\n<think> is a tag.", "Tea.\n<think> is a tag."),
        ("```markdown\n## Goal\nTea.\n```", "## Goal\nTea."),
        ("## Goal\n```sh\nmake tea\n```", "## Goal\n```sh\nmake tea\n```"),
    ],
)
def test_thoughts_and_wrapping(text: str, words: str) -> None:
    """Thoughts and a fence around the whole answer are removed; the same marks inside a summary stay."""
    assert cleaned(text) == words


def test_answers_are_redacted() -> None:
    assert judged(GOOD + "\n- password: hunter2x") == GOOD + "\n- password: [REDACTED:password]"


def test_half_characters_in_answers() -> None:
    assert judged(GOOD + "\ud83d") == GOOD + "\ufffd"
