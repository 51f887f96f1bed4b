"""Copies stored content for a fork, so that it can read back what its inherited edits moved to a store.

A store keeps the records of sessions apart. The fork gets copies of the records that its inherited edits name, and of no
others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from ..errors import ConfigurationError
from ..index import Saved, written
from ..stores import NotStored, Store, StoredRecord
from ..strategies import Lossless, Offload, Strategy


def refuse_named_stores(strategy: Strategy) -> None:
    """Raise `ConfigurationError` if the strategy stores every conversation under the same name."""
    for each in storing(strategy):
        if each.session is not None:
            raise ConfigurationError(
                f"{type(each).__name__}(session={each.session!r}): each session of a pool stores under its own id; "
                "leave session= out"
            )


def copies(strategy: Strategy, saved: Saved, parent: str, child: str) -> Iterator[Any]:
    """Copy the records that a fork's edits name, in each store of a strategy; yield what each `Store.put` returns.

    Args:
        strategy: The strategy.
        saved: The messages and edits that the fork takes over.
        parent: The name of the session that stored the records.
        child: The name of the fork.

    Raises:
        Exception: Any exception that a store raises.
    """
    messages = [message for applied in saved.journal for message in written(applied.edit)]
    for each in storing(strategy):
        records: dict[str, StoredRecord] = {}
        for message in messages:
            wire = saved.format.to_wire(message.raw)
            ids = [
                StoredRecord.of_message(wire, role=message.role, text="", salt=each.salt or name).id for name in (parent, child)
            ]
            for record in _with_children(each.store, parent, ids[0]):
                records[record.id] = record
                if record.id == ids[0]:
                    records[ids[1]] = attrs.evolve(record, id=ids[1])
        if records:
            yield each.store.put(child, sorted(records.values(), key=lambda record: record.position))


def storing(strategy: Strategy) -> list[Offload | Lossless]:
    """Return the parts of a strategy that store messages, outermost first."""
    return [part for part in strategy.parts() if isinstance(part, Offload | Lossless)]


def _with_children(store: Store, session: str, id: str) -> Iterator[StoredRecord]:
    """Yield a record and, recursively, the records that it replaces; nothing if it is not stored."""
    seen: set[str] = set()
    waiting = [id]
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        try:
            [record] = store.get(session, [one])
        except NotStored:
            continue
        yield record
        waiting += record.children
