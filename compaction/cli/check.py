"""``compaction validate`` and ``compaction repair``: would a provider take these conversations, and what to do if not."""

from __future__ import annotations

import json
from typing import Annotated, Any

import attrs
import typer

from ..errors import UnreadableFile
from ..files import Conversation, write_text
from ..formats import Problem
from ..validity import repair as repaired
from ..validity import validate as problems_of
from .exits import ExitCode, complain, naming
from .options import STANDARD, AsJson, FormatName, Input, Output, conversations_of, output_of
from .terminal import counted, safe

__all__ = ["Checked", "repair", "validate"]


@attrs.frozen
class Checked:
    """A file that was looked at.

    Args:
        file: Its name as given.
        conversations: How many it holds, as far as it could be read.
        messages: How many messages these have.
        problems: Each rule that is broken: the conversation's place and id, and the problem's own fields.
        error: Why the file could not be read to its end, if so.
    """

    file: str
    conversations: int = 0
    messages: int = 0
    problems: list[dict[str, Any]] = attrs.field(factory=list[dict[str, Any]])
    error: str | None = None

    @property
    def words(self) -> str:
        """The result in words, if the file could be read."""
        found = counted(len(self.problems), "problem") if self.problems else "valid"
        return f"{self.file}: {found} in {counted(self.conversations, 'conversation')} of {counted(self.messages, 'message')}"


def validate(
    sources: Annotated[
        list[str], typer.Argument(metavar="IN...", show_default=False, help="Files of conversations; - is standard input.")
    ],
    format: FormatName = None,
    as_json: AsJson = False,
) -> int:
    """List the rules that conversations break.

    Of each: where, which, and what to do. The rules are those of the conversation's wire format. Exit code 1 if there is any
    problem, 2 if a file cannot be read; the other files are looked at all the same.
    """
    checked = [_checked(source, format) for source in sources]
    if as_json:
        typer.echo(json.dumps({"files": [attrs.asdict(one) for one in checked]}))
    for one in checked:
        if one.error is not None:
            complain(one.error)
        if not as_json:
            for problem in one.problems:
                typer.echo(_line(problem))
            if one.error is None:
                typer.echo(safe(one.words))
    if any(one.error is not None for one in checked):
        return ExitCode.UNUSABLE
    return ExitCode.FOUND if any(one.problems for one in checked) else ExitCode.DONE


def _checked(source: str, format: str | None) -> Checked:
    conversations = messages = 0
    problems: list[dict[str, Any]] = []
    try:
        for conversation in conversations_of(source):
            with naming(conversation.where):
                found = problems_of(conversation.messages, format=format)
                problems += [_entry(conversation, problem) for problem in found]
            conversations += 1
            messages += len(conversation.messages)
    except UnreadableFile as error:
        return Checked(source, conversations, messages, problems, str(error))
    return Checked(source, conversations, messages, problems)


def repair(source: Input, output: Output = STANDARD, format: FormatName = None, as_json: AsJson = False) -> int:
    """Make conversations valid, and say what was changed.

    Nothing is invented, and what needs nothing is written byte for byte as it was read. Exit code 1: a problem remains; the
    output is written all the same.
    """
    target, stream = output_of(output)
    changes: list[dict[str, Any]] = []
    remaining: list[dict[str, Any]] = []
    count = 0
    with write_text(target) as write:
        for conversation in conversations_of(source):
            with naming(conversation.where):
                result = repaired(conversation.messages, format=format)
                write(conversation.with_messages(result.messages))
            changes += [_entry(conversation, change) for change in result.changes]
            remaining += [_entry(conversation, problem) for problem in result.remaining]
            count += 1
    if as_json:
        stream.write(json.dumps({"conversations": count, "changes": changes, "remaining": remaining}) + "\n")
    else:
        stream.writelines(f"changed: {_line(change)}\n" for change in changes)
        stream.writelines(f"left: {_line(problem)}\n" for problem in remaining)
        ended = f"{counted(len(changes), 'change')}, {counted(len(remaining), 'problem')} left"
        stream.write(f"{counted(count, 'conversation')}: {ended}\n")
    return ExitCode.FOUND if remaining else ExitCode.DONE


def _entry(conversation: Conversation, problem: Problem) -> dict[str, Any]:
    """A problem with its conversation's place and id."""
    return {"conversation": conversation.where, "id": conversation.id, **attrs.asdict(problem)}


def _line(entry: dict[str, Any]) -> str:
    return safe(f"{entry['conversation']}: {entry['where']}: {entry['message']} [{entry['rule']}]; {entry['remedy']}")
