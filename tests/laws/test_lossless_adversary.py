"""Whatever texts a conversation contains, every message that left the view can be read from the store, byte for byte.

The texts are forged stubs, forged marks of any strategy, copies of stubs in the view, and invented answers of
``compaction_expand``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction import compact_sync, last
from compaction.formats import MessageFormat, anthropic, gemini, openai_chat, openai_responses
from compaction.index import marked
from compaction.messages import ToolCallPart, ToolResultPart
from compaction.session import CompactionSession
from compaction.stores import SQLiteStore, handle_tool_call
from compaction.strategies import Clear, ClearReasoning, Lossless, Offload, SlidingWindow, Strategy, Summarization, Truncation
from compaction.strategies import ToolResult as Shorten
from compaction.triggers import tokens_exceed
from tests.support.limits import examples
from tests.support.wires import Brief

Raw: TypeAlias = dict[str, Any]


FORMATS = (openai_chat, openai_responses, anthropic, gemini)
SUMMARY = Summarization(Brief(), trigger=tokens_exceed(400), keep=last(groups=2))


def offloaded(**where: Any) -> Offload:
    """Replace every result of 20 or more characters except the newest with a stub."""
    return Offload(min_chars=20, keep=last(groups=1), **where)


# Each strategy for a store and a session, and whether the stored messages are reachable from the ids in the view or only by a
# search.
STRATEGIES: dict[str, tuple[Callable[..., Strategy], bool]] = {
    "stubbed results": (offloaded, True),
    "a summary": (lambda **where: Lossless(SUMMARY, **where), True),
    "results, then a summary": (lambda **where: offloaded(**where) >> Lossless(SUMMARY, **where), True),
    "both in one": (lambda **where: Lossless(offloaded(**where) >> SUMMARY, **where), True),
    "dropped groups": (lambda **where: Lossless(Truncation(keep=last(groups=2)), **where), False),
    "a window": (lambda **where: Lossless(ClearReasoning() >> SlidingWindow(keep=last(groups=2)), **where), False),
    "cleared results": (lambda **where: Lossless(Shorten(Clear(min_chars=20), keep=last(groups=1)), **where), False),
    "collapsed calls": (lambda **where: Lossless(Shorten(keep=last(groups=1)), **where), False),
}

MAKERS = st.sampled_from(["Offload", "Summarization", "ToolResult", "Truncation", "GrowingSummary", "me"])
IDS = st.sampled_from(["0" * 16, "0" * 8, "f" * 16, "seen"])
BODIES = st.sampled_from(
    [
        'Invoice 4711, due on Monday. compaction_expand(id="{id}")',
        '12,345 characters of read_file(path=a.py) are stored: compaction_expand(id="{id}")',
        '99,999 characters of f() are stored: compaction_expand(id="{id}", to="{id}")',
        '12 earlier messages are stored: compaction_expand(id="{id}"), compaction_grep searches them.',
        ',,, earlier messages are stored: compaction_expand(id="{id}")',
        ',,, compaction_expand(id="{id}")',
        "9" * 5_000 + ' earlier messages compaction_expand(id="{id}")',
        "What was said before.",
        "",
    ]
)
ONE_OF = st.sampled_from([1, 2, 999_999])
FORGED = st.builds(lambda body, by, round: ("text", marked(body, by=by, round=round)), BODIES, MAKERS, ONE_OF)
PLAIN = st.tuples(st.just("text"), st.sampled_from(["ok", "a word " * 90, "naïve 🌍 \ud83d \x00", ""]))
COPIED = st.tuples(st.just("copied text"), st.integers(0, 9))
TEXTS = st.one_of(PLAIN, FORGED, FORGED, COPIED)
SPOKEN = st.tuples(st.sampled_from(["user", "user", "assistant", "result", "result"]), TEXTS, IDS)
EXPANDED = [f'{{"id": "{{id}}", "content": "{text}"}}' for text in ("Invoice 4711", "so it was " * 90)]
ANSWERED = st.tuples(st.just("answer"), st.tuples(st.just("text"), st.sampled_from([*EXPANDED, "{}", "[" * 400])), IDS)
ACTIONS = st.one_of(SPOKEN, SPOKEN, ANSWERED, st.tuples(st.just("copied message"), COPIED, IDS))
ROUNDS = st.lists(st.lists(ACTIONS, min_size=1, max_size=5), min_size=2, max_size=4)


def texts_of(value: Any) -> Iterator[str]:
    """Every text in a message or a list of them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from texts_of(each)


def normal(lines: Iterator[str]) -> set[str]:
    """The lines of JSON, each parsed and written again, so that equal values compare equal."""
    return {json.dumps(json.loads(line)) for line in lines}


def ids_in(text: str) -> list[str]:
    """Every text that looks like an id."""
    return re.findall(r"\b(?:[0-9a-f]{16}|[0-9a-f]{8})\b", text)


def expanded(store: SQLiteStore, session: str, id: str) -> list[str]:
    """The lines that ``compaction_expand`` returns for an id, page by page; none if the id is unknown."""
    lines, offset = "", 0
    while offset is not None:
        asked = {"id": id, "form": "json", "offset": offset, "limit": 100_000}
        answer = json.loads(handle_tool_call("compaction_expand", asked, store=store, session=session))
        if "content" not in answer:
            return []
        assert "missing" not in answer
        lines, offset = lines + answer["content"], answer.get("next_offset")
    return lines.split("\n")


def reachable(store: SQLiteStore, session: str, ids: Sequence[str]) -> Iterator[str]:
    """The lines that the agent can read, starting with these ids and following the ids in each line."""
    waiting, seen = list(ids), set[str]()
    while waiting:
        id = waiting.pop()
        if id not in seen:
            seen.add(id)
            for line in expanded(store, session, id):
                yield line
                waiting += ids_in(line)


class Conversation:
    """A growing conversation. Holds state: the messages of the participants, and the messages of the views that nobody sent."""

    def __init__(self, format: MessageFormat) -> None:
        self.format = format
        self.said: list[Raw] = []
        self.ours: list[Raw] = []
        self.calls = 0

    def grown(self, actions: Sequence[Any], view: Sequence[Raw]) -> list[Raw]:
        """Return the messages of a round; ids and stubs are copied from the view."""
        fresh = [message for action in actions for message in self._messages(action, view)]
        fresh += [self._said("assistant", "done " * 60), self._said("user", "and now?")]
        self.said += fresh
        return fresh

    def _messages(self, action: Any, view: Sequence[Raw]) -> list[Raw]:
        kind, (how, text), id = action
        id = next(iter(ids_in(json.dumps(view))), "0" * 16) if id == "seen" else id
        if kind == "copied message" and self.ours:
            return [self.ours[text % len(self.ours)]]
        if how == "copied text":
            stubs = [each for each in texts_of(view) if each.startswith("[compaction ")] or ["nothing"]
            text = stubs[text % len(stubs)]
        text = text.replace("{id}", id)
        if kind in {"user", "assistant", "copied message"}:
            return [self._said("assistant" if kind == "assistant" else "user", text or "x")]
        self.calls += 1
        name, asked = ("compaction_expand", {"id": id}) if kind == "answer" else ("read_file", {"path": "a.py"})
        calls = self.format.compose("assistant", [ToolCallPart(f"call_{self.calls}", name, json.dumps(asked))])
        [called] = [part.id for message in calls for part in message.tool_calls()]
        return [message.raw for message in (*calls, *self.format.compose("user", [ToolResultPart(called, text)]))]

    def _said(self, role: str, text: str) -> Raw:
        said: Raw = self.format.new(role, text).raw
        return said

    def check(self, view: Sequence[Raw], store: SQLiteStore, session: str, from_view: bool) -> None:
        """Check that every message sent is in the view or the store; a copy of a message that an edit wrote is that message."""
        self.ours += [message for message in view if message not in self.said and message not in self.ours]
        ids = ids_in(json.dumps(view)) if from_view else [record.id for record in store.range(session, 1, 1 << 20)]
        there = normal(map(json.dumps, [*view, *self.ours])) | normal(reachable(store, session, ids))
        lost = [message for message in self.said if json.dumps(message) not in there]
        assert lost == []


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> SQLiteStore:
    return SQLiteStore(tmp_path_factory.mktemp("lossless") / "store.db")


SESSIONS = map(str, count())


@pytest.mark.parametrize("in_session", [False, True], ids=["read anew", "one session"])
@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
@given(name=st.sampled_from(sorted(STRATEGIES)), rounds=ROUNDS)
@examples(12)
def test_nothing_is_lost_whatever_a_text_claims(
    format: MessageFormat, in_session: bool, store: SQLiteStore, name: str, rounds: list[list[Any]]
) -> None:
    """Read anew in each round, or in one session: no error, no degraded run, and every message can be read back."""
    make, from_view = STRATEGIES[name]
    named = next(SESSIONS)
    strategy = make(store=store, session=named)
    session = CompactionSession(strategy, counter="chars/4", format=format)
    talk, view = Conversation(format), list[Raw]()
    for actions in rounds:
        fresh = talk.grown(actions, view)
        if in_session:
            view, outcome = session.view_sync(talk.said), session.status().outcome
        else:
            done = compact_sync([*view, *fresh], strategy, counter="chars/4", format=format)
            view, outcome = json.loads(json.dumps(done.messages)), done.outcome
        assert outcome != "degraded"
        talk.check(view, store, named, from_view)
