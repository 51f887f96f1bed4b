"""A damaged stored state raises a `StateError` or gives a working session; no damage causes another error."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any, Final

import pytest

from compaction import Drop, MessageIndex, Replace, Rewrite, Together
from compaction.errors import StateError
from compaction.formats import resolve
from compaction.index.marks import marked
from compaction.json_data import json_of
from compaction.session import CompactionSession
from compaction.strategies import Summarization
from compaction.summarizers import DigestSummarizer, SummaryBudget
from compaction.triggers import tokens_below, tokens_exceed
from tests.support.chats import Chat, tool_turns, user
from tests.support.limits import count

CASES: Final = count(400, 4_000)
Path = tuple[str | int, ...]


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


def together(levels: int) -> Any:
    """An edit inside this many other edits."""
    edit: Any = {"type": "drop", "reason": "", "groups": [1]}
    for _ in range(levels):
        edit = {"type": "together", "reason": "", "edits": [edit]}
    return edit


GONE: Final = object()
ODD: Final[list[Any]] = [
    *(None, True, False, 0, -1, 1, 7, 10**400, -(2**63), 1.5, 1e308, float("nan"), float("inf"), "", "x", "\ud800", "\0", "1"),
    *([], {}, [None], [[]], [-1], [True], [10**400], ["x"], {"": None}, {"type": "drop"}, {"role": "user"}),
    {"role": "user", "content": 5},
    *(nested(150), nested(5_000), together(1), together(2_000), GONE),
]  # fmt: skip


def paths(data: Any, at: Path = ()) -> Iterator[Path]:
    """Every path in JSON data."""
    yield at
    keys: Any = range(len(data)) if data.__class__ is list else data if data.__class__ is dict else ()
    for key in keys:
        yield from paths(data[key], (*at, key))


def damaged(data: Any, path: Path, value: Any) -> Any:
    """A copy in which the value at one path is changed or removed."""
    if not path:
        return {} if value is GONE else value
    made = copy.deepcopy(data)
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    if value is GONE:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return made


def strategy() -> Summarization:
    """A digest strategy that must make its summary again after a few turns."""
    budget = SummaryBudget(floor=50, ceiling=60)
    return Summarization(DigestSummarizer(), trigger=tokens_exceed(700), target=tokens_below(400), budget=budget)


def session_state(source: Chat) -> dict[str, Any]:
    """The state of a session with summaries, an anchor and a failure."""
    session = CompactionSession(strategy(), counter="chars/4", clock=lambda: 1.0)
    for end in range(2, len(source), 2):
        session.view_sync(source[:end])
    session.record_usage({"prompt_tokens": 900, "completion_tokens": 1})
    session.index.context.pauses.record_failure("x", 1.0)
    return session.to_dict()


def index_state(source: Chat) -> dict[str, Any]:
    """The state of an index with edits of several kinds, and its messages."""
    index = MessageIndex(source, counter="chars/4")
    chat, first = resolve("openai-chat"), index.included_ids
    asked = index.group(first[1]).messages
    summary = [chat.new("user", marked("so far", by="Tests"))]
    for edit in (
        Rewrite(first[1], [asked[0], asked[1].evolve(text="cut")], "long"),
        Drop(first[2:3], "old"),
        Together(Drop(first[4:5]), Replace(first[6:7], summary), reason="both"),
    ):
        assert index.apply(edit, by="Tests"), index.refused
    index.pin(first[1:2])
    return index.to_dict()


def cases(data: dict[str, Any], count: int) -> list[tuple[Path, Any]]:
    """A sample of this size of all ways to damage a state, always the same one."""
    places = [path for path in paths(data) if not _is_repeated(path)]
    every = [(path, value) for path in places for value in ODD]
    return random.Random(len(every)).sample(every, min(count, len(every)))


def _is_repeated(path: Path) -> bool:
    """Whether the path is in one of many places of the same kind, such as a later fingerprint."""
    return any(key in ("fingerprints", "messages") and path[at + 1] not in (0, 1) for at, key in enumerate(path[:-1]))


SOURCE: Final[Chat] = [message for number in range(4) for message in [*tool_turns(3), user(f"and {number}? " + "word " * 60)]]


def load_session(data: dict[str, Any]) -> CompactionSession:
    return CompactionSession.from_dict(data, strategy(), counter="chars/4", clock=lambda: 2.0)


def use_session(session: CompactionSession) -> None:
    session.view_sync(SOURCE)
    session.view_sync([*SOURCE, user("more")])
    json_of(session.to_dict(), "the session")


def load_index(data: dict[str, Any]) -> MessageIndex:
    return MessageIndex.from_dict(data, counter="chars/4")


def use_index(index: MessageIndex) -> None:
    index.sync([*SOURCE, user("more")])
    index.messages()
    index.rollback()


@pytest.mark.parametrize(
    ("state", "load", "use"),
    [(session_state, load_session, use_session), (index_state, load_index, use_index)],
    ids=["session", "index"],
)
def test_a_damaged_state_is_refused_or_works(state: Any, load: Any, use: Any) -> None:
    """A state with one odd value raises `StateError`, or loads as a session or an index that can be used and saved."""
    whole, refused = state(SOURCE), 0
    for path, value in cases(whole, CASES):
        try:
            loaded = load(damaged(whole, path, value))
        except StateError:
            refused += 1
            continue
        use(loaded)
    assert CASES / 4 < refused < CASES


@pytest.mark.parametrize(
    "text", ["[]", "null", "NaN", '{"a": NaN}', "[" * 100_000, '{"a":' * 100_000, "7", '"x"', "", "{", "1e999"]
)
def test_a_state_must_be_a_dictionary(text: str) -> None:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return
    with pytest.raises(StateError):
        CompactionSession.from_dict(data, strategy(), counter="chars/4")
