"""Summary templates: the prompts and sections, given as a string, a file, or an application's prompt loader.

A template is filled in one pass. Inserted text is never searched for placeholders or braces, so a conversation about templates
changes nothing.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final, Protocol

import attrs

from ..errors import ConfigurationError
from .prompts import EXISTING, FIRST, FOCUS, LANGUAGE, OWN_LANGUAGE, PLAIN_FIRST, PLAIN_UPDATE, SECTIONS, UPDATE

_UPDATE: Final = attrs.Factory(lambda template: UPDATE if template.first == FIRST else template.first, takes_self=True)
_REQUIRED: Final = frozenset({"messages_text", "existing_summary_section", "max_summary_tokens"})
_OPTIONAL: Final = frozenset({"sections", "focus_section", "language_section"})
_FIELD: Final = re.compile(r"\{\{|\}\}|\{([A-Za-z_]\w{0,63})\}")


class PromptLoader(Protocol):
    """An object that loads an application's prompts."""

    def load_or_default(self, category: str, name: str, default: str) -> str:
        """Return the prompt of that category and name, or ``default`` if there is none."""
        ...


def _fields(text: str) -> set[str]:
    return {field[1] for field in _FIELD.finditer(text) if field[1]}


def _check_text(instance: SummaryTemplate, attribute: attrs.Attribute[str], text: object) -> None:
    if not isinstance(text, str):
        raise ConfigurationError(f"SummaryTemplate: {attribute.name!r} must be a text (got {text!r}); use read() for a file")


def _check_prompt(instance: SummaryTemplate, attribute: attrs.Attribute[str], text: str) -> None:
    _check_text(instance, attribute, text)
    fields = _fields(text)
    if missing := _REQUIRED - fields:
        wanted = ", ".join(f"{{{name}}}" for name in sorted(missing))
        raise ConfigurationError(
            f"SummaryTemplate: {attribute.name!r} lacks {wanted}; put each placeholder where its text belongs,"
            " or use SummaryTemplate.plain() for an instruction without placeholders"
        )
    if unknown := fields - _REQUIRED - _OPTIONAL:
        found = ", ".join(f"{{{name}}}" for name in sorted(unknown))
        known = ", ".join(sorted(_REQUIRED | _OPTIONAL))
        raise ConfigurationError(
            f"SummaryTemplate: {attribute.name!r} holds {found}; the known placeholders are {known}; write a plain brace twice"
        )


def _check_existing(instance: SummaryTemplate, attribute: attrs.Attribute[str], text: str) -> None:
    _check_text(instance, attribute, text)
    if _fields(text) != {"existing_summary"}:
        raise ConfigurationError(f"SummaryTemplate: {attribute.name!r} must hold {{existing_summary}} alone (got {text!r})")


@attrs.frozen
class SummaryTemplate:
    r"""The prompts for a summary, and its sections.

    A prompt must hold ``{messages_text}`` (the record), ``{existing_summary_section}`` (the earlier summary, or nothing) and
    ``{max_summary_tokens}``. It may hold ``{sections}``, ``{focus_section}`` and ``{language_section}``; a focus or a language
    without a placeholder is added at the end. A doubled brace is a plain one, as in ``str.format``; a single brace that
    surrounds no name stays as it is.

    Args:
        first: The prompt of the first round.
        update: The prompt of later rounds; by default ``first``, if that was given.
        sections: Markdown headings, each with a description of its content, for ``{sections}``. An answer must have them.
        existing: The text of ``{existing_summary_section}``, around ``{existing_summary}``.

    Raises:
        ConfigurationError: If a placeholder is missing or unknown.

    >>> terse = SummaryTemplate("Up to {max_summary_tokens} tokens.\n{existing_summary_section}{messages_text}")
    >>> terse.render("the record", max_summary_tokens=512)
    'Up to 512 tokens.\nthe record'
    """

    first: str = attrs.field(default=FIRST, validator=_check_prompt)
    update: str = attrs.field(default=_UPDATE, validator=_check_prompt, kw_only=True)
    sections: str = attrs.field(default=SECTIONS, validator=_check_text, kw_only=True)
    existing: str = attrs.field(default=EXISTING, validator=_check_existing, kw_only=True)

    @classmethod
    def plain(cls, instruction: str) -> SummaryTemplate:
        """Return the template of an instruction in a sentence or more; the model is asked for no sections.

        The record, the earlier summary, the budget, a focus and the language are added to it. ``template="..."`` of a strategy
        does the same with a text that holds no placeholder.

        Args:
            instruction: What to summarize, and how. Its braces stay as they are.

        Raises:
            ConfigurationError: If it is empty, or not a text.

        >>> SummaryTemplate.plain("Summarize the key decisions and user preferences only.").headings
        ()
        """
        if not isinstance(instruction, str) or not instruction.strip():
            raise ConfigurationError(f"SummaryTemplate.plain(): an instruction says what to summarize (got {instruction!r})")
        verbatim = instruction.strip().replace("{", "{{").replace("}", "}}")
        first, update = (prompt.replace("{instruction}", verbatim) for prompt in (PLAIN_FIRST, PLAIN_UPDATE))
        return cls(first, update=update)

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, update: str | os.PathLike[str] | None = None) -> SummaryTemplate:
        """Read a template from a UTF-8 file, and the prompt of later rounds from another.

        Raises:
            ConfigurationError: If a file cannot be read, or is not a template.
        """
        first = _read_file(path)
        return cls(first) if update is None else cls(first, update=_read_file(update))

    @classmethod
    def load(cls, loader: PromptLoader, *, category: str = "summarization", name: str = "context_compress") -> SummaryTemplate:
        """Load a template from an application's prompts; the default template if the loader has none.

        Args:
            loader: The application's prompt loader.
            category: The prompt's category.
            name: The prompt's name.

        Raises:
            ConfigurationError: If the loader raises, or returns something that is not a template.
        """
        where = f"template {category}/{name}"
        try:
            text = loader.load_or_default(category=category, name=name, default=FIRST)
        except Exception as error:
            raise ConfigurationError(f"{where}: its loader failed ({error!r}); pass the text itself") from error
        return cls(text)

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings that an answer must have; none if the first prompt does not hold ``{sections}``."""
        if "sections" not in _fields(self.first):
            return ()
        return tuple([line.lstrip("#").strip() for line in self.sections.splitlines() if line.startswith("#")])

    def render(
        self,
        messages_text: str,
        *,
        existing_summary: str | None = None,
        max_summary_tokens: int,
        focus: str | None = None,
        language: str | None = None,
    ) -> str:
        """Return the prompt for one request.

        Args:
            messages_text: The record, fenced.
            existing_summary: The earlier summary, fenced; ``None`` in the first round.
            max_summary_tokens: Tokens the answer may have.
            focus: A topic to give most room to.
            language: The language to write in; ``None`` for the conversation's own.
        """
        prompt = self.first if existing_summary is None else self.update
        focused = "" if focus is None else _filled(FOCUS, {"focus": focus})
        spoken = OWN_LANGUAGE if language is None else _filled(LANGUAGE, {"language": language})
        earlier = "" if existing_summary is None else _filled(self.existing, {"existing_summary": existing_summary})
        values = {
            "messages_text": messages_text,
            "existing_summary_section": earlier,
            "max_summary_tokens": str(max_summary_tokens),
            "sections": self.sections,
            "focus_section": focused,
            "language_section": spoken,
        }
        homeless = [focused] if focused and "focus_section" not in _fields(prompt) else []
        if language is not None and "language_section" not in _fields(prompt):
            homeless.append(spoken)
        return "\n\n".join([_filled(prompt, values), *homeless])


def default_template() -> SummaryTemplate:
    """Return the template with the prompts and sections of `compaction.summarizers.prompts`."""
    return SummaryTemplate()


def as_template(template: SummaryTemplate | str | os.PathLike[str]) -> SummaryTemplate:
    """Return the template itself, that of a prompt with placeholders, of an instruction without any, or of a file.

    Raises:
        ConfigurationError: If it is none of these.
    """
    if isinstance(template, SummaryTemplate):
        return template
    if not isinstance(template, str):
        return SummaryTemplate.read(template)
    return SummaryTemplate(template) if _fields(template) else SummaryTemplate.plain(template)


def _filled(text: str, values: dict[str, str]) -> str:
    """Return the text with its placeholders filled, in one pass."""
    return _FIELD.sub(lambda field: values[field[1]] if field[1] else field[0][0], text)


def _read_file(path: str | os.PathLike[str]) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, TypeError) as error:
        raise ConfigurationError(f"template {path!s}: cannot be read as UTF-8 text ({error}); name another file") from error
