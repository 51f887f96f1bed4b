"""Deletion on request: one message, one conversation, everything of a user; in memory, in the files, and in what was made."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compaction import last
from compaction.errors import ConfigurationError
from compaction.formats import openai_chat
from compaction.integrations import IntegrationOptions
from compaction.integrations.conversation import FrameworkConversations
from compaction.run import unawaited
from compaction.session import SessionPool
from compaction.stores import SessionStore, SQLiteStore
from compaction.strategies import Lossless, Summarization
from compaction.triggers import tokens_exceed
from tests.support.wires import Shelf

SECRET = "my number is 555-0199"
STRATEGY = Summarization(trigger=tokens_exceed(400), keep=last(groups=2))


def talk(name: str) -> list[dict[str, Any]]:
    """A conversation that is long enough to be summarized, with a secret in its second message."""
    said = [f"{name}: note {place}, " + "the shop is open. " * 6 for place in range(20)]
    said[1] = f"{name}: {SECRET}"
    return [{"role": "user", "content": text} for text in said]


def files(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()))


@pytest.fixture
def make(tmp_path: Path) -> Callable[[], FrameworkConversations]:
    """Returns conversations with both kinds of files, as a new process would have them."""

    def made() -> FrameworkConversations:
        strategy = Lossless(STRATEGY, SQLiteStore(tmp_path / "originals.db"))
        options = IntegrationOptions(strategy=strategy, counter="chars/4", on_failure="raise")
        return FrameworkConversations(options, openai_chat, store=SessionStore(tmp_path / "sessions.db"))

    return made


@pytest.mark.parametrize("restarted", [False, True])
async def test_one_message(make: Callable[[], FrameworkConversations], restarted: bool, tmp_path: Path) -> None:
    """A message leaves the view, the summaries, the saved state and the stored originals; the host's state is replaced."""
    conversations, messages = make(), talk("Kim")
    turn = await conversations.turn(messages, id="kim/1")
    saved = turn.state()
    assert SECRET in json.dumps(turn.view)
    assert SECRET.encode() in files(tmp_path)
    conversations = make() if restarted else conversations
    assert await conversations.forget([messages[1]]) == 1
    assert conversations.last is None
    assert SECRET.encode() not in files(tmp_path)
    left = [*messages[:1], *messages[2:]]
    turn = await conversations.turn(left, id="kim/1", saved=None if restarted else saved)
    assert SECRET not in json.dumps([turn.view, turn.state(saved)])
    assert len(turn.view) < len(left)


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("whole", [False, True])
async def test_a_conversation_or_all_of_a_user(
    make: Callable[[], FrameworkConversations], restarted: bool, whole: bool, tmp_path: Path
) -> None:
    """Nothing of it is left in any file, others are as they were, and its list counts as new; a late report saves nothing."""
    conversations = make()
    turns = [await conversations.turn(talk(name), id=name, scope=name[:3]) for name in ("Kim/1", "Kim/2", "Lee/1")]
    used, conversations = conversations, make() if restarted else conversations
    assert await conversations.delete(None if whole else "Kim/1", "Kim") == 1 + whole
    assert await conversations.delete("Kim/1", "Lee") == 0
    if not restarted:
        assert used.last is None
        turns[0].record_usage({"prompt_tokens": 300, "completion_tokens": 5})
    left = files(tmp_path)
    assert [f"{name}: {SECRET}".encode() in left for name in ("Kim/1", "Kim/2", "Lee/1")] == [False, not whole, True]
    assert turns[0].session is not None
    assert turns[0].session.id.encode() not in left
    again = await conversations.turn(talk("Kim/1"), id="Kim/1", scope="Kim")
    assert again.session is not turns[0].session
    assert again.result.edits
    assert not (await conversations.turn(talk("Lee/1"), id="Lee/1", scope="Lee")).result.edits


def test_without_await(make: Callable[[], FrameworkConversations], tmp_path: Path) -> None:
    conversations = make()
    unawaited(conversations.turn(talk("Kim"), id="kim", sync=True))
    assert (conversations.forget_sync([talk("Kim")[1]]), conversations.last) == (1, None)
    unawaited(conversations.turn(talk("Kim"), id="kim", sync=True))
    assert (conversations.delete_sync("kim"), conversations.last) == (1, None)
    assert b"Kim: note" not in files(tmp_path)


async def test_a_store_that_cannot_delete() -> None:
    """Nothing is deleted if a store of the strategy has no method for it."""
    pool = SessionPool(Lossless(STRATEGY, Shelf()), counter="chars/4")
    await pool.view(talk("Kim"), id="kim")
    with pytest.raises(ConfigurationError, match="has no method forget"):
        await pool.delete("kim")
    assert len(pool) == 1
