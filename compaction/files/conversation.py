"""A conversation of a file, which remembers how it was written down.

Whoever compacts a recorded conversation wants to see what changed, and nothing else: other fields, the spelling of numbers,
escapes, white space and line ends stay as they were, and so does every message that is still there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from .spans import MessageList

__all__ = ["Conversation"]

_FIRST_FIELD: Final = re.compile(r'\{(\s*)"(?:[^"\\]|\\.)*"\s*:(\s*)')


@attrs.frozen(kw_only=True, eq=False)
class Conversation:
    """One conversation of a file.

    Args:
        where: Its file, and its line where the file holds several.
        id: The ``id`` that stands next to its messages; its number in the file, from 1, where there is none.
        fields: What stands next to its messages; nothing for a bare list.
        text: The text it was read from, line end included.
        found: Its messages, with their places in the text.
    """

    where: str
    id: str
    fields: Mapping[str, Any]
    text: str = attrs.field(repr=False)
    found: MessageList = attrs.field(repr=False)

    @property
    def messages(self) -> list[Any]:
        """Its messages, oldest first, as JSON values."""
        return self.found.values

    def with_messages(self, messages: Sequence[Any]) -> str:
        r"""The conversation's text with other messages; O(text).

        Args:
            messages: What its list shall hold. A message that is the very object that was read is written as it stood; any
                other is written as JSON, indented, spaced and escaped as the first message of the text is.

        Raises:
            TypeError: If a message is no JSON value.

        >>> from compaction.files.spans import scan
        >>> text = r'[{"role":"user","content":"caf\u00e9","cost":1.50}, {"role":"user","content":"tea"}]'
        >>> read = Conversation(where="a.json", id="1", fields={}, text=text, found=scan(text).lists[0])
        >>> print(read.with_messages([read.messages[0], {"role": "user", "content": "thé"}]))
        [{"role":"user","content":"caf\u00e9","cost":1.50}, {"role":"user","content":"th\u00e9"}]
        """
        if len(messages) == len(self.messages) and all(new is old for new, old in zip(messages, self.messages, strict=True)):
            return self.text
        text, spans, (start, end) = self.text, self.found.spans, self.found.span
        if not messages or not spans:
            return f"{text[:start]}{json.dumps(list(messages))}{text[end:]}"
        (first, first_end), last_end = spans[0], spans[-1][1]
        stood = {id(message): span for message, span in zip(self.messages, spans, strict=True)}
        write = self._writer()
        pieces = [text[slice(*stood[id(message)])] if id(message) in stood else write(message) for message in messages]
        comma = text[first_end : spans[1][0]] if len(spans) > 1 else f",{text[start + 1 : first]}"
        return f"{text[:first]}{comma.join(pieces)}{text[last_end:]}"

    def _writer(self) -> Callable[[Any], str]:
        """What writes a message in the manner of the first one."""
        first, end = self.found.spans[0]
        fields = _FIRST_FIELD.match(self.text, first, end)
        inner, gap = fields.groups() if fields else ("", " ")
        margin = self.text[self.found.span[0] + 1 : first].rpartition("\n")[2]
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
    """Whether the text can be written as UTF-8: half a surrogate pair can only be escaped."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
