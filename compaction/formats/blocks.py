"""The rules that Anthropic's and Bedrock's messages share: lists of blocks, with results in the user message after the call."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from .base import JoinProblem
from .pairing import Fields, Finding, Pairing, Path, Slot

MOST_BREAKPOINTS: Final = 4
"""The maximum number of places in a request up to which the provider caches it."""


@attrs.frozen(kw_only=True)
class Blocks:
    """The blocks of a format: how they are told apart, and how calls and results are paired."""

    blocks_of: Callable[[Fields], Sequence[Any]]  # of a message
    kind_of: Callable[[Any], str]
    call_id_of: Callable[[Any], str | None]  # empty if a call has none; ``None`` if the block is another
    result_id_of: Callable[[Any], str | None]  # that a result answers, as the id of a call
    call_id_path: Path  # the place of the id in a call
    result_id_path: Path
    id_pattern: re.Pattern[str]
    after_calls: Mapping[str, tuple[str, str]]  # the rule and its text for each kind of block that may not follow a call
    silent: frozenset[str] = frozenset()  # kinds of blocks without content

    def answer_problems(self, blocks: Sequence[Any]) -> Iterator[Finding]:
        """Yield the ids that the API refuses, and the blocks that may not follow a call."""
        called = False
        for position, block in enumerate(blocks):
            if (identifier := self.call_id_of(block)) is not None:
                called = True
                if identifier and self.id_pattern.fullmatch(identifier) is None:
                    text = f"the API does not accept the id {identifier[:80]!r}"
                    yield ("content", position, *self.call_id_path), "malformed-id", text
            elif called and (found := self.after_calls.get(self.kind_of(block))) is not None:
                yield ("content", position), *found

    def result_problems(self, blocks: Sequence[Any]) -> Iterator[Finding]:
        """Yield the results of a user message that come after anything else."""
        said = False
        for position, block in enumerate(blocks):
            if self.result_id_of(block) is None:
                said = said or self.kind_of(block) not in self.silent
            elif said:
                yield ("content", position), "result-after-text", "results come before anything else in their message"

    def pairing(
        self,
        stub: Callable[[Any, str], Any],
        *,
        new_id: str,
        again: str = "duplicate-result",
        movable: Callable[[Any], bool] = lambda block: True,
    ) -> Pairing:
        """Return the pairing of calls in answers and results in the user message after them; see `Pairing`."""
        return Pairing(
            calls=lambda fields: self._slots(fields, "assistant", self.call_id_of, self.call_id_path),
            results=lambda fields: self._slots(fields, "user", self.result_id_of, self.result_id_path),
            continues=lambda before, after: before.get("role") == "assistant" and after.get("role") == "user",
            only_results=lambda fields: all(
                self.result_id_of(block) is not None or self.kind_of(block) in self.silent for block in self.blocks_of(fields)
            ),
            stub=stub,
            content="content",
            new_id=new_id,
            again=again,
            movable=movable,
        )

    def _slots(self, fields: Fields, role: str, id_of: Callable[[Any], str | None], id_path: Path) -> Iterator[Slot]:
        content = fields.get("content") if fields.get("role") == role else None
        for position, block in enumerate(self.blocks_of(fields) if content and not isinstance(content, str) else ()):
            if (key := id_of(block)) is not None:
                yield Slot(("content", position), key, ("content", position, *id_path))


def misplaced_system(before: str | None, after: str | None, *, judged: tuple[bool, bool] = (True, True)) -> JoinProblem | None:
    """Return the problem of two neighbours if one is a system message that is not between a user message and an answer.

    The roles are ``None`` at the start and the end of the list; ``judged`` says which of the two is judged as a system message.
    """
    breaks_before = judged[0] and before == "system" and after != "assistant"
    breaks_after = judged[1] and after == "system" and before != "user"
    if not breaks_before and not breaks_after:
        return None
    return "misplaced-system", "both" if breaks_before and breaks_after else "before" if breaks_before else "after"


def too_many(places: Sequence[tuple[int, Path]], rule: str) -> Iterator[tuple[int, Finding]]:
    """Yield the places above the maximum up to which a request is cached."""
    for index, path in places[MOST_BREAKPOINTS:]:
        yield index, (path, rule, "four are before it")
