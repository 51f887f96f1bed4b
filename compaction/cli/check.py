"""``compaction validate`` and ``compaction repair``: check conversations against their format's rules, and repair them."""

from __future__ import annotations

from typing import Annotated, Any

import attrs
import typer

from ..files import FileConversation, write_text
from ..formats import Problem, repair, validate
from .exit_codes import ExitCode, error_context, print_error
from .options import STANDARD, AsJson, FormatName, Input, Output, open_output, read_input, read_usable
from .printing import plural, print_json, printable


def validate_command(
    sources: Annotated[
        list[str], typer.Argument(metavar="IN...", show_default=False, help="Files of conversations; - is standard input.")
    ],
    format: FormatName = None,
    as_json: AsJson = False,
) -> int:
    """List the rules of their wire format that conversations break.

    Each line names the place, the rule, and what to do. Exit code 1 if there is any problem, 2 if a conversation or a file
    cannot be read; the others are checked all the same.
    """
    checked = [_checked(source, format) for source in sources]
    if as_json:
        print_json({"files": checked})
    for one in checked:
        for error in one["errors"]:
            print_error(error)
        if not as_json:
            for problem in one["problems"]:
                typer.echo(_line(problem))
            if one["conversations"] or not one["errors"]:
                found = plural(len(one["problems"]), "problem") if one["problems"] else "valid"
                sizes = f"{plural(one['conversations'], 'conversation')} of {plural(one['messages'], 'message')}"
                typer.echo(printable(f"{one['file']}: {found} in {sizes}"))
    if any(one["errors"] for one in checked):
        return ExitCode.UNUSABLE
    return ExitCode.FOUND if any(one["problems"] for one in checked) else ExitCode.DONE


def _checked(source: str, format: str | None) -> dict[str, Any]:
    """Return a file's name, its counts, the rules it breaks, and the errors of what could not be read."""
    found, errors = read_usable(source, lambda each: (each, validate(each.messages, format=format)))
    return {
        "file": source,
        "conversations": len(found),
        "messages": sum(len(each.messages) for each, _ in found),
        "problems": [_entry(each, problem) for each, problems in found for problem in problems],
        "errors": errors,
    }


def repair_command(source: Input, output: Output = STANDARD, format: FormatName = None, as_json: AsJson = False) -> int:
    """Make conversations valid, and list the changes.

    No content is invented, and what is valid is written byte for byte as it was read. Exit code 1: a problem remains; the
    output is written all the same.
    """
    target, stream = open_output(output)
    changes: list[dict[str, Any]] = []
    remaining: list[dict[str, Any]] = []
    count = 0
    with write_text(target) as write:
        for conversation in read_input(source):
            with error_context(conversation.where):
                result = repair(conversation.messages, format=format)
                write(conversation.with_messages(result.messages))
            changes += [_entry(conversation, change) for change in result.changes]
            remaining += [_entry(conversation, problem) for problem in result.remaining]
            count += 1
    if as_json:
        print_json({"conversations": count, "changes": changes, "remaining": remaining}, stream)
    else:
        stream.writelines(f"changed: {_line(change)}\n" for change in changes)
        stream.writelines(f"left: {_line(problem)}\n" for problem in remaining)
        summary = f"{plural(len(changes), 'change')}, {plural(len(remaining), 'problem')} left"
        stream.write(f"{plural(count, 'conversation')}: {summary}\n")
    return ExitCode.FOUND if remaining else ExitCode.DONE


def _entry(conversation: FileConversation, problem: Problem) -> dict[str, Any]:
    """Return a problem's fields with its conversation's place and id."""
    return {"conversation": conversation.where, "id": conversation.id, **attrs.asdict(problem)}


def _line(entry: dict[str, Any]) -> str:
    return printable(f"{entry['conversation']}: {entry['where']}: {entry['message']} [{entry['rule']}]; {entry['remedy']}")
