"""Prompts and templates: their content, their placeholders, and that inserted texts are never read as placeholders."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.errors import ConfigurationError
from compaction.summarizers import SummaryTemplate, as_template, default_template
from compaction.summarizers.prompts import FIRST, UPDATE

BLOG = "{max_summary_tokens} 토큰 이내로 요약해주세요.\n\n{existing_summary_section}새로운 대화:\n{messages_text}\n\n요약:"
SECTIONS = (
    *("Goal", "Constraints & Preferences", "Progress", "Done", "In Progress", "Blocked"),
    *("Key Decisions", "Relevant Files", "Next Steps", "Critical Context"),
)


class Loader:
    def __init__(self, prompts: dict[tuple[str, str], Any]) -> None:
        self.prompts = prompts

    def load_or_default(self, category: str, name: str, default: str) -> str:
        return self.prompts.get((category, name), default)


def test_default_sections() -> None:
    """The default template has the sections of the Hermes documentation, in the same order."""
    assert default_template().headings == SECTIONS


def test_first_round() -> None:
    prompt = default_template().render("THE RECORD", max_summary_tokens=1_234)
    assert [section for section in SECTIONS if section not in prompt] == []
    assert "THE RECORD" in prompt
    assert "1234 tokens" in prompt
    assert "language in which the user writes" in prompt
    assert "summary so far" not in prompt
    assert "{" not in prompt


def test_focus_and_language() -> None:
    prompt = default_template().render("X", max_summary_tokens=500, focus="the {failing} tests", language="Korean")
    assert "brief about the rest: the {failing} tests" in prompt
    assert "Write in this language: Korean." in prompt
    assert "language in which the user writes" not in prompt


def test_template_of_three_placeholders() -> None:
    """A ``str.format`` prompt with the three placeholders works unchanged, in both rounds."""
    template = SummaryTemplate(BLOG, existing="이전 요약:\n{existing_summary}\n\n")
    first = template.render("user: 안녕", max_summary_tokens=512)
    later = template.render("user: 안녕", existing_summary="인사", max_summary_tokens=512)
    for prompt, section in ((first, ""), (later, "이전 요약:\n인사\n\n")):
        assert prompt == BLOG.format(max_summary_tokens=512, existing_summary_section=section, messages_text="user: 안녕")
    assert template.headings == ()


def test_focus_without_a_place_is_not_lost() -> None:
    prompt = SummaryTemplate(BLOG).render("X", max_summary_tokens=9, focus="tea", language="Korean")
    assert "brief about the rest: tea\n\nWrite in this language: Korean." in prompt


@given(st.text(alphabet="{}ab_messages_text\\", max_size=60))
def test_what_is_put_in_is_never_filled(text: str) -> None:
    """A record, a summary or a focus full of braces and placeholders arrives as it was."""
    prompt = default_template().render(f"<{text}>", existing_summary=f"[{text}]", max_summary_tokens=9, focus=f"({text})")
    assert f"<{text}>" in prompt
    assert f"[{text}]" in prompt
    assert f"({text})" in prompt


def test_braces_of_json_stay() -> None:
    """Single braces without a placeholder's name stay, and doubled braces become single."""
    template = SummaryTemplate('Like {"a": 1} or {{b}}: {max_summary_tokens}{existing_summary_section}{messages_text}')
    assert template.render("X", max_summary_tokens=7) == 'Like {"a": 1} or {b}: 7X'


def test_a_plain_instruction() -> None:
    sentence = "Summarize the key decisions and user preferences only."
    template = as_template(sentence)
    first = template.render("THE RECORD", max_summary_tokens=99)
    later = template.render("THE RECORD", existing_summary="OLD", max_summary_tokens=99, focus="tea", language="Korean")
    assert template == SummaryTemplate.plain(sentence)
    assert template.headings == ()
    for prompt in (first, later):
        assert prompt.startswith(sentence)
        assert "THE RECORD" in prompt
        assert "At most 99 tokens." in prompt
        assert not any(section in prompt for section in ("headings, unchanged", "## ", "(none)"))
    assert "summary so far" not in first
    assert later.index("Keep every point of the summary so far") < later.index("OLD") < later.index("THE RECORD")
    assert "the rest: tea" in later
    assert "Write in this language: Korean." in later
    assert eval(repr(template), {"SummaryTemplate": SummaryTemplate}) == template


@pytest.mark.parametrize("sentence", ['As {"a": 1}, please.', "Set {{x}} and }{ and {{{.", "  Short.\n"])
def test_braces_of_a_plain_instruction_stay(sentence: str) -> None:
    assert SummaryTemplate.plain(sentence).render("R", max_summary_tokens=9).startswith(sentence.strip())
    assert SummaryTemplate.plain("Say {name}.").render("R", max_summary_tokens=9).startswith("Say {name}.")


def test_a_prompt_that_lacks_a_placeholder_is_not_an_instruction() -> None:
    with pytest.raises(ConfigurationError, match=r"lacks .* or use SummaryTemplate.plain\(\) for an instruction"):
        as_template("Summarize {messages_text}.")
    with pytest.raises(ConfigurationError, match="an instruction says what to summarize"):
        as_template("  ")


@pytest.mark.parametrize("missing", ["max_summary_tokens", "existing_summary_section", "messages_text"])
def test_missing_placeholder(missing: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"'first' lacks {{{missing}}}"):
        SummaryTemplate(BLOG.replace(f"{{{missing}}}", ""))
    with pytest.raises(ConfigurationError, match=rf"'update' lacks {{{missing}}}"):
        SummaryTemplate(update=BLOG.replace(f"{{{missing}}}", ""))


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: SummaryTemplate(BLOG + "{message_text}"), id="unknown placeholder"),
        pytest.param(lambda: SummaryTemplate(existing="The summary so far."), id="existing without its place"),
        pytest.param(lambda: SummaryTemplate(5), id="no text"),  # type: ignore[arg-type]
        pytest.param(lambda: SummaryTemplate(sections=None), id="no sections"),  # type: ignore[arg-type]
        pytest.param(lambda: as_template(None), id="nothing"),  # type: ignore[arg-type]
        pytest.param(lambda: as_template(Path("nowhere/at/all.txt")), id="no file"),
        pytest.param(lambda: SummaryTemplate.load(Loader({("a", "b"): 5}), category="a", name="b"), id="loaded: no text"),
        pytest.param(lambda: SummaryTemplate.load(Loader({("a", "b"): "x"}), category="a", name="b"), id="loaded: no template"),
        pytest.param(lambda: SummaryTemplate.load(object()), id="no loader"),  # type: ignore[arg-type]
    ],
)
def test_bad_templates(make: Any) -> None:
    with pytest.raises(ConfigurationError):
        make()


def test_template_from_files(tmp_path: Path) -> None:
    first, update = tmp_path / "first.txt", tmp_path / "update.txt"
    first.write_text(BLOG, encoding="utf-8")
    update.write_text("Update. " + BLOG, encoding="utf-8")
    assert as_template(first) == SummaryTemplate(BLOG)
    assert SummaryTemplate.read(first, update=update) == SummaryTemplate(BLOG, update="Update. " + BLOG)
    update.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match="cannot be read as UTF-8"):
        as_template(update)


def test_template_from_a_loader() -> None:
    loader = Loader({("summarization", "context_compress"): BLOG})
    assert SummaryTemplate.load(loader) == SummaryTemplate(BLOG)
    assert SummaryTemplate.load(loader, name="unknown") == default_template()


def test_loader_that_fails() -> None:
    class Broken:
        def load_or_default(self, category: str, name: str, default: str) -> str:
            raise OSError("the disk is gone")

    with pytest.raises(ConfigurationError, match="template summarization/context_compress: its loader failed") as raised:
        SummaryTemplate.load(Broken())
    assert isinstance(raised.value.__cause__, OSError)


def test_templates_are_values() -> None:
    assert SummaryTemplate() == SummaryTemplate(FIRST, update=UPDATE)
    assert SummaryTemplate(BLOG).update == BLOG
    assert pickle.loads(pickle.dumps(SummaryTemplate(BLOG))) == SummaryTemplate(BLOG)
    assert as_template(BLOG) == SummaryTemplate(BLOG)
