"""Short functions that build chat conversations, and index them with the counter ``chars/4``."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, Final, TypeAlias

from compaction import Drop, Edit, Message, MessageIndex, Replace, Rewrite, Together
from compaction.formats import MessageFormat, anthropic, openai_chat
from compaction.index import marked, relay
from compaction.strategies import Strategy

Chat: TypeAlias = list[dict[str, Any]]

ROLES: Final = {"s": "system", "u": "user", "a": "assistant"}


def said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def system(text: str = "be brief") -> dict[str, Any]:
    return said("system", text)


def developer(text: str = "be brief") -> dict[str, Any]:
    return said("developer", text)


def user(text: str = "a question") -> dict[str, Any]:
    return said("user", text)


def assistant(text: str = "an answer") -> dict[str, Any]:
    return said("assistant", text)


def thought(text: str = "let me think") -> dict[str, Any]:
    """An assistant message that has only reasoning."""
    return {"role": "assistant", "content": None, "reasoning": text}


def call(*ids: str, name: str = "look", arguments: str = "{}", text: str | None = None) -> dict[str, Any]:
    """An assistant message that calls a tool once for each id."""
    calls = [{"id": id, "type": "function", "function": {"name": name, "arguments": arguments}} for id in ids]
    return {"role": "assistant", "content": text, "tool_calls": calls}


def result(id: str, text: str = "found") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": text}


def summary(text: str = "so far") -> Message:
    """A message that may replace others."""
    return openai_chat.new("user", marked(text, by="Tests"))


def turns(count: int, words: int = 0) -> Chat:
    """Return questions and answers, numbered from 1, each padded with words."""
    chat: Chat = []
    for turn in range(1, count + 1):
        chat += [user(f"q{turn}" + " word" * words), assistant(f"a{turn}" + " word" * words)]
    return chat


def tool_turns(count: int, words: int = 100) -> Chat:
    """Return turns of a question, a call, a result of this many words and an answer."""
    chat: Chat = []
    for turn in range(1, count + 1):
        chat += [user(f"q{turn}"), call(f"c{turn}"), result(f"c{turn}", f"r{turn}" + " word" * words), assistant(f"a{turn}")]
    return chat


def indexed(messages: Chat, **options: Any) -> MessageIndex:
    """Return the conversation as an index that counts one token for every four characters."""
    return MessageIndex(messages, counter="chars/4", **options)


def index_of_roles(roles: str, format: MessageFormat = anthropic) -> MessageIndex:
    """Return a conversation with a message for each letter: ``s`` for instructions, ``u`` for the user, ``a`` for an answer."""
    return indexed([said(ROLES[role], f"{role}{place} " * 20 + ".") for place, role in enumerate(roles)], format=format)


def shown(messages: list[Any]) -> list[str]:
    """Return a short description of each message: its text, or the ids of its calls."""
    said = [message.get("content") or message.get("reasoning") for message in messages]
    called = ["+".join(call["id"] for call in message.get("tool_calls") or ()) for message in messages]
    return [ids or str(words) for ids, words in zip(called, said, strict=True)]


def edits_of(strategy: Strategy, index: MessageIndex) -> Iterator[Edit]:
    """Yield the edits of a strategy, each applied before the next; skip its reports."""

    def answered(item: object) -> Generator[Edit, None, bool | None]:
        if not isinstance(item, Drop | Replace | Rewrite | Together):
            return None
        answer = index.apply(item, by=strategy.name)
        yield item
        return answer

    yield from relay(strategy(index), answered)
