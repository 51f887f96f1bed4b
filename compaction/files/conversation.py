"""A conversation read from a file, with its original text, so that unchanged parts are written as they were.

When a recorded conversation is compacted, only the messages that changed should differ: other fields, the spelling of numbers,
escapes, white space, line ends and every kept message stay byte for byte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from .json_spans import MessageList

__all__ = ["FileConversation"]

_FIRST_FIELD: Final = re.compile(r'\{(\s*)"(?:[^"\\]|\\.)*"\s*:(\s*)')


@attrs.frozen(kw_only=True, eq=False)
class FileConversation:
    """One conversation of a file.

    Args:
        where: Its file, and its line if the file holds several conversations.
        id: The ``id`` beside its messages; without one, its number in the file, from 1.
        fields: The other fields beside its messages; empty for a bare list.
        text: The text it was read from, with its line end.
        message_list: Its messages, with their positions in the text.
    """

    where: str
    id: str
    fields: Mapping[str, Any]
    text: str = attrs.field(repr=False)
    message_list: MessageList = attrs.field(repr=False)

    @property
    def messages(self) -> list[Any]:
        """Its messages, oldest first, as JSON values."""
        return self.message_list.values

    def with_messages(self, messages: Sequence[Any]) -> str:
        r"""Return the conversation's text with other messages; O(text).

        Args:
            messages: The new list. A message that is the same object that was read is written as it was; any other is written
                as JSON, with the indentation, spacing and escapes of the text's first message.

        Raises:
            TypeError: If a message is not a JSON value.

        >>> from compaction.files.json_spans import scan
        >>> text = r'[{"role":"user","content":"caf\u00e9","cost":1.50}, {"role":"user","content":"tea"}]'
        >>> read = FileConversation(where="a.json", id="1", fields={}, text=text, message_list=scan(text).lists[0])
        >>> print(read.with_messages([read.messages[0], {"role": "user", "content": "thé"}]))
        [{"role":"user","content":"caf\u00e9","cost":1.50}, {"role":"user","content":"th\u00e9"}]
        """
        if len(messages) == len(self.messages) and all(new is old for new, old in zip(messages, self.messages, strict=True)):
            return self.text
        text, spans, (start, end) = self.text, self.message_list.spans, self.message_list.span
        if not messages or not spans:
            return f"{text[:start]}{json.dumps(list(messages))}{text[end:]}"
        (first, first_end), last_end = spans[0], spans[-1][1]
        known = {id(message): span for message, span in zip(self.messages, spans, strict=True)}
        write = self._writer()
        pieces = [text[slice(*known[id(message)])] if id(message) in known else write(message) for message in messages]
        comma = text[first_end : spans[1][0]] if len(spans) > 1 else f",{text[start + 1 : first]}"
        return f"{text[:first]}{comma.join(pieces)}{text[last_end:]}"

    def _writer(self) -> Callable[[Any], str]:
        """Return a function that writes a message in the style of the first one."""
        first, end = self.message_list.spans[0]
        fields = _FIRST_FIELD.match(self.text, first, end)
        inner, gap = fields.groups() if fields else ("", " ")
        margin = self.text[self.message_list.span[0] + 1 : first].rpartition("\n")[2]
        indent = inner.rpartition("\n")[2].removeprefix(margin) if "\n" in inner else None
        separators = (", " if gap and indent is None else ",", ": " if gap else ":")
        escaped = self.text.isascii()

        def write(message: Any) -> str:
            text = json.dumps(message, ensure_ascii=escaped, indent=indent, separators=separators)
            if not _is_unicode(text):
                text = json.dumps(message, indent=indent, separators=separators)
            return text if indent is None else text.replace("\n", f"\n{margin}")

        return write


def _is_unicode(text: str) -> bool:
    """Whether the text can be encoded as UTF-8; half a surrogate pair can only be escaped."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
