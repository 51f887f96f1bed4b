"""How a summary is asked for: prompts and sections, replaceable by a string, a file, or what loads an application's prompts.

A template is filled in one pass. Text that is put in is never looked at for placeholders or braces, so a conversation about
templates, or one that wants to be one, changes nothing.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final, Protocol

import attrs

from ..errors import ConfigurationError
from .prompts import EXISTING, FIRST, FOCUS, LANGUAGE, OWN_LANGUAGE, SECTIONS, UPDATE

__all__ = ["PromptLoader", "SummaryTemplate", "as_template", "default_template"]

_REQUIRED: Final = frozenset({"messages_text", "existing_summary_section", "max_summary_tokens"})
_OPTIONAL: Final = frozenset({"sections", "focus_section", "language_section"})
_FIELD: Final = re.compile(r"\{\{|\}\}|\{([A-Za-z_]\w{0,63})\}")


class PromptLoader(Protocol):
    """Whatever holds an application's prompts."""

    def load_or_default(self, category: str, name: str, default: str) -> str:
        """The prompt of that category and name, or ``default`` if there is none."""
        ...


def _fields(text: str) -> set[str]:
    return {field[1] for field in _FIELD.finditer(text) if field[1]}


def _check_text(instance: SummaryTemplate, attribute: attrs.Attribute[str], text: object) -> None:
    if not isinstance(text, str):
        raise ConfigurationError(f"SummaryTemplate: {attribute.name!r} must be a text (got {text!r}); a file is read by read()")


def _check_prompt(instance: SummaryTemplate, attribute: attrs.Attribute[str], text: str) -> None:
    _check_text(instance, attribute, text)
    fields = _fields(text)
    if missing := _REQUIRED - fields:
        wanted = ", ".join(f"{{{name}}}" for name in sorted(missing))
        raise ConfigurationError(f"SummaryTemplate: {attribute.name!r} lacks {wanted}; put each where its text belongs")
    if unknown := fields - _REQUIRED - _OPTIONAL:
        found = ", ".join(f"{{{name}}}" for name in sorted(unknown))
        known = ", ".join(sorted(_REQUIRED | _OPTIONAL))
        raise ConfigurationError(
            f"SummaryTemplate: {attribute.name!r} holds {found}; known are {known}, and a plain brace is written twice"
        )


def _check_existing(instance: SummaryTemplate, attribute: attrs.Attribute[str], text: str) -> None:
    _check_text(instance, attribute, text)
    if _fields(text) != {"existing_summary"}:
        raise ConfigurationError(f"SummaryTemplate: {attribute.name!r} must hold {{existing_summary}} alone (got {text!r})")


def _update_for(template: SummaryTemplate) -> str:
    return UPDATE if template.first == FIRST else template.first


@attrs.frozen
class SummaryTemplate:
    r"""The prompts for a summary, and the sections it is to have.

    A prompt must hold ``{messages_text}`` (the record), ``{existing_summary_section}`` (what was summarized before, or
    nothing) and ``{max_summary_tokens}``. It may hold ``{sections}``, ``{focus_section}`` and ``{language_section}``; a focus
    or a language that it has no place for is put after it. A doubled brace is a plain one, as in ``str.format``; a single
    one that names nothing stays as it is.

    Args:
        first: The prompt of the first round.
        update: The prompt of later rounds; by default ``first``, if that was given.
        sections: Markdown headings, each with what belongs in it, for ``{sections}``. An answer must have them.
        existing: What ``{existing_summary_section}`` becomes when there is something in ``{existing_summary}``.

    Raises:
        ConfigurationError: If a placeholder is missing, or one is not known.

    >>> terse = SummaryTemplate("Up to {max_summary_tokens} tokens.\n{existing_summary_section}{messages_text}")
    >>> terse.render("the record", max_summary_tokens=512)
    'Up to 512 tokens.\nthe record'
    """

    first: str = attrs.field(default=FIRST, validator=_check_prompt)
    update: str = attrs.field(default=attrs.Factory(_update_for, takes_self=True), validator=_check_prompt, kw_only=True)
    sections: str = attrs.field(default=SECTIONS, validator=_check_text, kw_only=True)
    existing: str = attrs.field(default=EXISTING, validator=_check_existing, kw_only=True)

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, update: str | os.PathLike[str] | None = None) -> SummaryTemplate:
        """A template from a UTF-8 file, and one for later rounds from another.

        Raises:
            ConfigurationError: If a file cannot be read, or is no template.
        """
        first = _read_file(path)
        return cls(first) if update is None else cls(first, update=_read_file(update))

    @classmethod
    def load(
        cls,
        loader: PromptLoader,
        *,
        category: str = "summarization",
        name: str = "context_compress",
        update_name: str | None = None,
        default: SummaryTemplate | None = None,
    ) -> SummaryTemplate:
        """A template from an application's prompts.

        Args:
            loader: What holds them.
            category: Where to look.
            name: The prompt of the first round, and of later ones unless ``update_name`` is given.
            update_name: The prompt of later rounds.
            default: What to fall back on, prompt by prompt; the default template if not given.

        Raises:
            ConfigurationError: If the loader raises, or what it gives is no template.
        """
        base = default_template() if default is None else default
        first = _loaded(loader, category, name, base.first)
        if update_name is not None:
            return attrs.evolve(base, first=first, update=_loaded(loader, category, update_name, base.update))
        return attrs.evolve(base, first=first, update=base.update if first == base.first else first)

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings an answer to its prompts has; none if the first prompt does not give ``{sections}``."""
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
        """The prompt for one request.

        Args:
            messages_text: The record, fenced.
            existing_summary: What was summarized before, fenced; ``None`` in the first round.
            max_summary_tokens: Tokens the answer may have.
            focus: What to give room to.
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
    """The prompts and sections of `compaction.summarizers.prompts`."""
    return SummaryTemplate()


def as_template(template: SummaryTemplate | str | os.PathLike[str]) -> SummaryTemplate:
    """A template itself, a prompt as a template, or the template in a file.

    Raises:
        ConfigurationError: If it is none of these.
    """
    if isinstance(template, SummaryTemplate):
        return template
    return SummaryTemplate(template) if isinstance(template, str) else SummaryTemplate.read(template)


def _filled(text: str, values: dict[str, str]) -> str:
    """The text with its placeholders filled, in one pass."""

    def value(field: re.Match[str]) -> str:
        return values[field[1]] if field[1] else field[0][0]

    return _FIELD.sub(value, text)


def _read_file(path: str | os.PathLike[str]) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, TypeError) as error:
        raise ConfigurationError(f"template {path!s}: cannot be read as UTF-8 text ({error}); name a file that can") from error


def _loaded(loader: PromptLoader, category: str, name: str, default: str) -> str:
    try:
        text: object = loader.load_or_default(category=category, name=name, default=default)
    except Exception as error:
        raise ConfigurationError(f"template {category}/{name}: its loader failed ({error!r}); pass the text itself") from error
    if not isinstance(text, str):
        raise ConfigurationError(f"template {category}/{name}: its loader gave {type(text).__name__}; a template is a text")
    return text
