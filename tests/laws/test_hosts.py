"""Hosts that pass earlier views and change their lists: edits last, and no edit hides other messages.

Most messages have unique texts, so that a test can find them in a view.
"""

from __future__ import annotations

import copy
import random
from typing import Any, Final

import pytest

from compaction import MessageIndex, run_sync, validate
from compaction.formats import FORMATS, MessageFormat, openai_chat
from compaction.index import Marks, RunContext
from compaction.index.edits import Restore
from compaction.strategies import Strategy
from tests.support.chats import assistant, call, result, user
from tests.support.conversion import convert
from tests.support.hosts import host_strategies
from tests.support.limits import seeds

TURNS: Final = 16


def turn(number: int, draw: random.Random, format: MessageFormat) -> list[Any]:
    """A question, calls with their results, and an answer, in any format; some texts occur in every turn."""
    chat = [user(draw.choice(["ok", f"Question {number}: " + "why? " * 20]))]
    for step in range(draw.randint(0, 3)):
        ids = [f"call_{number}_{step}_{each}" for each in range(draw.randint(1, 3))]
        chat.append(call(*ids, arguments='{"path": "a.py"}'))
        chat += [result(id, draw.choice(["ok", f"Found {id}. " + "word " * draw.randint(1, 120)])) for id in ids]
    chat.append(assistant(draw.choice(["Done.", f"Answer {number}. " * 10])))
    return convert(chat, to=format, format=openai_chat)


STRATEGIES: Final = host_strategies(900, lambda request: f"Summary of {len(request.groups)} groups, {request.previous}"[:300])
HOSTS: Final = ("source", "last view", "earlier view")
every_format = pytest.mark.parametrize("format", FORMATS, ids=[format.name for format in FORMATS])


class Loop:
    """An agent's loop over an index. Holds state: the index."""

    def __init__(self, strategy: Strategy, format: MessageFormat) -> None:
        marks = Marks.of(strategy.mark_ceilings, RunContext())
        self.index = MessageIndex(counter="chars/4", format=format, marks=marks)
        self.strategy = strategy

    def view(self, given: list[Any]) -> list[Any]:
        """Sync the index with a list, run the strategy and return the view."""
        self.index.sync(given)
        run_sync(self.index, self.strategy)
        return self.index.messages()


@every_format
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", seeds(4, 20))
def test_every_host_gets_the_same_views(strategy: str, host: str, format: MessageFormat, seed: int) -> None:
    """Hosts that pass the source, the last view or an earlier view all get the same views.

    Each adds the messages that came since, and passes the same objects or copies.
    """
    draw = random.Random(seed)
    plain, loop = (Loop(STRATEGIES[strategy](), format) for _ in range(2))
    source: list[Any] = []
    kept: list[Any] = []
    for number in range(TURNS):
        new = turn(number, draw, format)
        sizes = sorted(draw.randint(1, len(new)) for _ in range(2))
        for part in (new[: sizes[0]], new[sizes[0] : sizes[1]], new[sizes[1] :]):
            source += part
            kept += part
            given = source if host == "source" else kept
            expected = plain.view(source)
            assert loop.view(copy.deepcopy(given) if draw.random() < 0.5 else given) == expected
            if host == "last view" or (host == "earlier view" and draw.random() < 0.2):
                kept = list(loop.index.messages())
    assert plain.index.edit_count > 1


def meddled(messages: list[Any], draw: random.Random, format: MessageFormat) -> tuple[list[Any], list[str]]:
    """Return the list after one or two random changes, and the texts that the changes added."""
    messages, words = list(messages), list[str]()
    for _ in range(draw.randint(1, 2)):
        at = draw.randrange(len(messages) + 1)
        what = draw.choice(["alter", "remove", "insert", "swap", "cut", "behead", "repeat"])
        word = f"New words {draw.random()}."
        if what == "insert" or not messages[at:]:
            messages.insert(at, format.new(draw.choice(["user", "assistant"]), word).raw)
            words.append(word)
        elif what == "alter":
            read = format.read(messages[at])
            if read.role in ("user", "assistant") and read.text and not any(read.tool_results()) and not any(read.tool_calls()):
                messages[at] = read.evolve(text=word).raw
        elif what == "remove":
            del messages[at]
        elif what == "swap":
            messages[at], messages[-1] = messages[-1], messages[at]
        elif what == "cut":
            del messages[at:]
        elif what == "behead":
            del messages[:at]
        else:
            messages.insert(at, copy.deepcopy(messages[at]))
    return messages, words


@every_format
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", seeds(12, 75))
def test_hosts_that_meddle(strategy: str, format: MessageFormat, seed: int) -> None:
    """After a host changed its list, the view shows new and kept messages and no removed ones.

    The host may alter, remove, insert, move or repeat messages. No exception is raised. Where a summary was shown, the messages
    it replaced may be shown again.
    """
    draw = random.Random(seed)
    loop = Loop(STRATEGIES[strategy](), format)
    kept: list[Any] = []
    views: list[list[Any]] = [[]]
    for number in range(TURNS):
        kept += turn(number, draw, format)
        before = loop.index.messages()
        words: list[str] = []
        if draw.random() < 0.5:
            kept, words = meddled(draw.choice([kept, kept, *views[-3:]]), draw, format)
        given = copy.deepcopy(kept) if draw.random() < 0.5 else kept
        source = [*loop.index.source, *_inserted(loop.index)]
        stood_for = _stood_for(loop.index)
        loop.index.sync(given)
        shown = loop.index.messages()
        texts = [format.read(raw).text for raw in shown]
        assert [word for word in words if word in str(given) and not any(word in text for text in texts)] == []
        once = [raw for raw in before if source.count(raw) < 2 and given.count(raw) == 1]
        assert [raw for raw in once if raw not in shown and not _is_back(raw, stood_for, loop.index)] == []
        back_again = [each for made, messages in stood_for if made not in shown for each in messages]
        known = [*given, *_inserted(loop.index), *back_again]
        back = loop.index.undone or any(isinstance(edit, Restore) for edit in loop.index.edits)  # after later edits
        assert back or [raw for raw in shown if raw not in known and raw not in before] == []
        problems = len(validate(given, format=format))
        run_sync(loop.index, loop.strategy)
        assert back or len(validate(loop.index.messages(), format=format)) <= problems
        views.append(loop.index.messages())
        if draw.random() < 0.3:
            kept = list(views[-1])


def _inserted(index: MessageIndex) -> list[Any]:
    """The messages that edits inserted, whether the view shows them or not."""
    return [message.raw for group in index.columns.inserted.values() for message in group.messages]


def _stood_for(index: MessageIndex) -> list[tuple[Any, list[Any]]]:
    """Each inserted message with the messages it replaces."""
    columns = index.columns
    stood = {id: [columns.source[at] for run in columns.stands_for([id]) for at in run] for id in columns.inserted}
    return [(message.raw, stood[id]) for id, group in columns.inserted.items() for message in group.messages]


def _is_back(raw: Any, stood_for: list[tuple[Any, list[Any]]], index: MessageIndex) -> bool:
    """Whether an inserted message is not needed: each message it replaced is shown, or the host changed or removed it."""
    shown, source = index.messages(), index.source
    found = [messages for made, messages in stood_for if made == raw]
    return bool(found) and all(each in shown or each not in source for each in found[0])
