"""``compaction inspect``: show the groups of a conversation and their tokens."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from ..files import FileConversation
from ..index import GroupKind, MessageGroup, MessageIndex, Metrics
from ..tokens import TokenCounter
from .exit_codes import ExitCode, print_error
from .options import AsJson, CounterName, FormatName, Input, find_counter, read_usable
from .printing import Column, bar, number_columns, open_console, percent, print_json, print_table, printable

if TYPE_CHECKING:
    from rich.console import Console

_BAR_WIDTH = 20
_WIDE = 110  # columns
_CONTENT_CHARS = 80


def _conversation_report(conversation: FileConversation, counter: TokenCounter, format: str | None) -> dict[str, Any]:
    """Return the sizes and groups of a conversation, as ``--json`` writes them."""
    index = MessageIndex(conversation.messages, counter=counter, format=format)
    groups = [_group_report(group, index.total.tokens) for group in index.included_groups]
    return {"where": conversation.where, "id": conversation.id, "total": index.total, "groups": groups}


def _group_report(group: MessageGroup, total: int) -> dict[str, Any]:
    """Return a group's figures and its first words; ``total`` is the tokens of its conversation."""
    words = " ".join([message.text[: 4 * _CONTENT_CHARS] for message in group.messages])
    if group.made_by is not None:
        words = f"{group.made_by}: {words.partition(chr(10))[2]}"
    return {
        "id": group.id,
        "kind": group.kind.value,
        "turn": group.turn,
        "messages": len(group.messages),
        "tokens": group.tokens,
        "share": group.tokens / (total or 1),
        "tools": group.tool_names,
        "states": [state for state in ("open", "pending", "orphan") if getattr(group, state)],
        "content": printable(words, _CONTENT_CHARS),
    }


def inspect_command(
    source: Input,
    *,
    id: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="The conversation to show: its id, or its number if it has none."),
    ] = None,
    counter: CounterName = "auto",
    format: FormatName = None,
    as_json: AsJson = False,
) -> int:
    """Show the groups of a conversation and their tokens.

    For each group: its kind, turn, messages, tokens and their share of the whole. Several conversations get a line each; --id
    selects one. Exit code 2 if a conversation cannot be read; the others are shown all the same.
    """
    counting, note = find_counter(counter)

    def report(read: FileConversation) -> dict[str, Any] | None:
        return _conversation_report(read, counting, format) if id is None or read.id == id else None

    reports, errors = read_usable(source, report)
    found = [each for each in reports if each is not None]
    for error in errors:
        print_error(error)
    code = ExitCode.UNUSABLE if errors else ExitCode.DONE
    if errors and not found:
        return code
    if not found:
        raise InputError(f"--id {id}: no conversation of {source} has this id; without --id, inspect lists them")
    if as_json:
        print_json({"counter": counting.name, "exact": counting.exact, "note": note, "conversations": found, "errors": errors})
        return code
    with open_console(sys.stdout) as console:
        if len(found) == 1:
            _show_one(console, found[0])
        else:
            names = [Column("conversation", if_narrow="cut"), Column("id", if_narrow="cut")]
            columns = [*names, *number_columns("tokens", "messages", "groups", "turns", "calls")]
            print_table(console, columns, [_overview(one, source) for one in found])
        console.print(printable(note or f"tokens counted by {counting.name}"))
    return code


def _overview(one: dict[str, Any], source: str) -> Sequence[str]:
    total: Metrics = one["total"]
    sizes = (total.tokens, total.messages, total.groups, total.turns, total.tool_calls)
    return one["where"].removeprefix(f"{source}, "), one["id"], *(f"{size:,}" for size in sizes)


def _show_one(console: Console, one: dict[str, Any]) -> None:
    largest = max((group["tokens"] for group in one["groups"]), default=0) or 1
    draw = partial(bar, width=_BAR_WIDTH, ascii_only=console.options.ascii_only)
    rows = [_row(group, draw(group["tokens"] / largest)) for group in one["groups"]]
    content = Column("content", if_narrow="cut")
    figures = number_columns("turn", "messages", "tokens", "share")
    columns = [*number_columns("id"), Column("kind"), *figures, Column(""), content]
    if console.width < _WIDE:  # a narrow terminal has no room for shares and bars beside the content
        columns, rows = [*columns[:5], content], [[*row[:5], row[7]] for row in rows]
    print_table(console, columns, rows)
    columns = [Column("kind"), *number_columns("groups", "messages", "tokens", "share"), Column("")]
    print_table(console, columns, _kind_rows(one, draw))


def _row(group: dict[str, Any], drawn: str) -> Sequence[str]:
    """Return a group's line; its content is its states, and the tools it calls or else its first words."""
    turn = "" if group["turn"] is None else f"{group['turn']:,}"
    calls: Counter[str] = Counter(group["tools"])
    tools = [f"{name} x{count}" if count > 1 else name for name, count in calls.items()]
    content = " ".join([*(f"[{state}]" for state in group["states"]), ", ".join(tools) or group["content"]])
    figures = (f"{group['messages']:,}", f"{group['tokens']:,}", percent(group["share"]))
    return str(group["id"]), group["kind"], turn, *figures, drawn, content


def _kind_rows(one: dict[str, Any], draw: Callable[[float], str]) -> Iterator[Sequence[str]]:
    """Yield a line for each kind of group that occurs, and one for all."""
    total: Metrics = one["total"]
    for kind in GroupKind:
        groups = [group for group in one["groups"] if group["kind"] == kind.value]
        messages, tokens = sum(group["messages"] for group in groups), sum(group["tokens"] for group in groups)
        share = tokens / (total.tokens or 1)
        if groups:
            yield kind.value, f"{len(groups):,}", f"{messages:,}", f"{tokens:,}", percent(share), draw(share)
    yield "all", f"{total.groups:,}", f"{total.messages:,}", f"{total.tokens:,}", "", ""
