"""Conversations whose state the framework keeps: found again while the process lives, taken from the saved state otherwise.

A graph may be resumed elsewhere, rewound or forked. So what lives here is used only if it is what the graph's state says; else
the saved state is taken, and the same messages give the same view.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from ...formats import MessageFormat
from ..following import Conversation, Following

__all__ = ["SavedConversations"]

_REMEMBERED: Final = 64


class SavedConversations:
    """Holds state: the conversations met lately, by their first message's id, each with the digest of what was saved of it.

    Args:
        following: How conversations are compacted.
        format: The framework's messages.
    """

    def __init__(self, following: Following, format: MessageFormat) -> None:
        self.following = following
        self._format = format
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str], Conversation] = OrderedDict()

    def get(self, messages: Sequence[Any], saved: object) -> Conversation:
        """The conversation that these messages are of.

        Args:
            messages: The list as the framework has it.
            saved: What `state` returned for it last, if the framework still has it.
        """
        key = _key(messages, saved)
        with self._lock:
            known = None if key is None else self._known.pop(key, None)
        return known if known is not None else Conversation(self.following, self._format, saved)

    def state(self, messages: Sequence[Any], conversation: Conversation, saved: object) -> dict[str, Any] | None:
        """What the framework is to save; ``None`` if nothing changed. The conversation stays at hand."""
        changed = conversation.unsaved
        data: object = saved
        if changed:
            made = conversation.to_dict()
            data = {**made, "digest": _digest(made)}
        key = _key(messages, data)
        if key is not None:
            with self._lock:
                self._known[key] = conversation
                while len(self._known) > _REMEMBERED:
                    self._known.popitem(last=False)
        return cast("dict[str, Any]", data) if changed else None


def _key(messages: Sequence[Any], saved: object) -> tuple[str, str] | None:
    """What a conversation is found by; ``None`` if it has to be made from what was saved."""
    first = getattr(messages[0], "id", None) if messages else None
    if not isinstance(first, str):
        return None
    if saved is None:
        return first, ""
    digest = cast("Mapping[str, Any]", saved).get("digest") if isinstance(saved, Mapping) else None
    return (first, digest) if isinstance(digest, str) and digest else None


def _digest(data: Mapping[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(data, sort_keys=True, default=str).encode(), digest_size=8).hexdigest()
