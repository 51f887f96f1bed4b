"""The keys of messages: equal in every process for messages that the format regards as the same."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import attrs

from compaction import Drop, MessageIndex
from compaction.formats import openai_chat
from compaction.formats.openai_chat.reading import OpenAIChat
from compaction.index.keys import message_key
from tests.support.chats import call, user


class Wrapped(OpenAIChat):
    """A format whose key contains an object, as those of some frameworks do."""

    def key(self, raw: Any) -> Any:
        return raw["role"], Content(raw["content"])


@attrs.frozen(repr=False)
class Content:
    """Equal by value, without a text of its own."""

    text: str


def test_the_key_of_a_message_depends_on_its_data_alone() -> None:
    """Not on the order of its fields or on the types of its containers; saved sessions contain it, so it stays the same."""
    fields = call("a", text="é")
    forms: list[Any] = [fields, dict(reversed(fields.items())), {**fields, "tool_calls": tuple(fields["tool_calls"])}]
    forms += [MappingProxyType(fields), {**fields, "tool_calls": list(map(MappingProxyType, fields["tool_calls"]))}]
    assert len({message_key(each, openai_chat) for each in forms}) == 1
    assert message_key({"role": "user", "content": "é"}, openai_chat) == "d73bbeb94014dfbc733731e1"


def test_the_key_of_a_message_is_the_same_in_every_process() -> None:
    messages = [user("hi"), user("hi"), user("ho")]
    keys = [message_key(raw, Wrapped()) for raw in messages]
    assert keys[0] == keys[1] != keys[2]
    index = MessageIndex([*messages, user("so")], counter="chars/4", format=Wrapped())
    assert index.apply(Drop(2))
    again = MessageIndex.from_dict(index.to_dict(messages=False), counter="chars/4", format=Wrapped())
    again.sync([dict(raw) for raw in index.source])
    assert (again.edits, again.messages()) == (index.edits, index.messages())
