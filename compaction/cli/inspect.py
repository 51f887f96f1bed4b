"""``compaction inspect``: what a conversation is made of, and where its tokens are."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import attrs
import typer

from ..errors import InputError
from ..files import Conversation
from ..groups import GroupKind, MessageGroup
from ..index import MessageIndex
from ..tokens import TokenCounter
from .exits import ExitCode, naming
from .options import AsJson, CounterName, Input, conversations_of, counter_named
from .terminal import bar, console_on, percent, safe, show_table

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Inspected", "inspect"]

_BAR_WIDTH = 20
_CONTENT_CHARS = 80


@attrs.frozen
class Inspected:
    """A conversation as groups.

    Args:
        where: Its file, and its line where the file holds several.
        id: Its id.
        index: The groups.
    """

    where: str
    id: str
    index: MessageIndex

    @classmethod
    def of(cls, conversation: Conversation, counter: TokenCounter) -> Inspected:
        """Read a conversation."""
        with naming(conversation.where):
            return cls(conversation.where, conversation.id, MessageIndex(conversation.messages, counter=counter))

    def share(self, tokens: int) -> float:
        """The share of these tokens in the whole."""
        return tokens / (self.index.total.tokens or 1)

    def kinds(self) -> dict[str, dict[str, Any]]:
        """Of each kind of group that occurs: how many groups, messages and tokens, and their share of the tokens."""
        found: dict[str, dict[str, Any]] = {}
        for kind in GroupKind:
            groups = [group for group in self.index.included_groups if group.kind is kind]
            tokens = sum(group.tokens for group in groups)
            messages = sum(len(group.messages) for group in groups)
            if groups:
                found[kind.value] = {"groups": len(groups), "messages": messages, "tokens": tokens, "share": self.share(tokens)}
        return found

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON-ready data."""
        return {
            "where": self.where,
            "id": self.id,
            "total": attrs.asdict(self.index.total),
            "kinds": self.kinds(),
            "groups": [
                {
                    "id": group.id,
                    "kind": group.kind.value,
                    "turn": group.turn,
                    "messages": len(group.messages),
                    "tokens": group.tokens,
                    "share": self.share(group.tokens),
                    "tools": list(group.tool_names),
                    **{state: getattr(group, state) for state in ("open", "pending", "orphan", "made_by")},
                }
                for group in self.index.included_groups
            ],
        }


def inspect(
    source: Input,
    id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="Which conversation of several: its id, or its number.")
    ] = None,
    counter: CounterName = "auto",
    as_json: AsJson = False,
) -> int:
    """Show what a conversation is made of, and its tokens.

    Of each group its kind, turn, messages, tokens and their share of the whole. Of several conversations, one line each; --id chooses one.
    """
    counting, note = counter_named(counter)
    found = [Inspected.of(read, counting) for read in conversations_of(source) if id is None or read.id == id]
    if not found:
        raise InputError(f"--id {id}: no conversation of {source} has this id; inspect without --id lists them")
    if as_json:
        report = {
            "counter": counting.name,
            "exact": counting.exact,
            "note": note,
            "conversations": [one.to_dict() for one in found],
        }
        typer.echo(json.dumps(report))
        return ExitCode.DONE
    console = console_on(typer.get_text_stream("stdout"))
    _show(console, found)
    console.print(safe(note or f"tokens counted by {counting.name}"))
    return ExitCode.DONE


def _show(console: Console, found: Sequence[Inspected]) -> None:
    if len(found) > 1:
        columns = ["conversation", "id", ">tokens", ">messages", ">groups", ">turns", ">tool calls"]
        show_table(console, columns, map(_overview, found))
        return
    [one] = found
    largest = max((group.tokens for group in one.index.included_groups), default=1) or 1
    ascii_only = console.options.ascii_only
    rows = [
        (*_cells(one, group), bar(group.tokens / largest, _BAR_WIDTH, ascii_only=ascii_only), _content(group))
        for group in one.index.included_groups
    ]
    show_table(console, [">id", "kind", ">turn", ">messages", ">tokens", ">share", "", "~content"], rows)
    show_table(console, ["kind", ">groups", ">messages", ">tokens", ">share", ""], _kind_rows(one, ascii_only))


def _overview(one: Inspected) -> Sequence[str]:
    total = one.index.total
    return (
        one.where,
        one.id,
        *(f"{size:,}" for size in (total.tokens, total.messages, total.groups, total.turns, total.tool_calls)),
    )


def _cells(one: Inspected, group: MessageGroup) -> Sequence[str]:
    turn = "" if group.turn is None else str(group.turn)
    return (
        str(group.id),
        group.kind.value,
        turn,
        str(len(group.messages)),
        f"{group.tokens:,}",
        percent(one.share(group.tokens)),
    )


def _content(group: MessageGroup) -> str:
    """What a group is about: its state if that is unusual, its tools, or its first words."""
    states = [state for state in ("open", "pending", "orphan") if getattr(group, state)]
    names = [f"{name} x{count}" if count > 1 else name for name, count in Counter(group.tool_names).items()]
    words = "" if names else " ".join(safe(message.text, _CONTENT_CHARS) for message in group.messages)
    return safe(" ".join([*(f"[{state}]" for state in states), ", ".join(names) or words]), _CONTENT_CHARS)


def _kind_rows(one: Inspected, ascii_only: bool) -> Iterable[Sequence[str]]:
    for kind, sizes in one.kinds().items():
        figures = (f"{sizes['groups']:,}", f"{sizes['messages']:,}", f"{sizes['tokens']:,}", percent(sizes["share"]))
        yield kind, *figures, bar(sizes["share"], _BAR_WIDTH, ascii_only=ascii_only)
    total = one.index.total
    yield "all", f"{total.groups:,}", f"{total.messages:,}", f"{total.tokens:,}", "", ""
