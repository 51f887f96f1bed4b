"""The `ClearMedia` strategy, which replaces old images, sounds, videos and files with a short note."""

from __future__ import annotations

import attrs

from ..index import MessageGroup, MessageIndex, Rewrite, rewritten_parts
from ..messages import MediaPart, Part, TextPart, ToolResultPart
from ..selectors import Selector, as_selector, last
from .base import CompactionStrategy, Steps, gain


@attrs.frozen
class ClearMedia(CompactionStrategy):
    """Replaces images, sounds, videos and files with a short note, oldest first, until ``target`` holds.

    Cost: O(messages outside ``keep``).

    Args:
        trigger: When to run.
        target: When to stop; evaluated before each group.
        keep: The groups that do not change; by default the last turn.
        placeholder: The note; ``{kind}`` is replaced by image, audio, video or file.

    >>> from compaction import compact_sync
    >>> picture = {"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}}
    >>> messages = [{"role": "user", "content": [picture]}, {"role": "user", "content": "And now?"}]
    >>> compact_sync(messages, ClearMedia(), counter="chars/4").messages[0]
    {'role': 'user', 'content': [{'type': 'text', 'text': '[image removed]'}]}
    """

    keep: Selector = attrs.field(default=last(turns=1), converter=as_selector, kw_only=True)
    placeholder: str = attrs.field(default="[{kind} removed]", kw_only=True)

    def edits(self, index: MessageIndex) -> Steps:
        def change(group: MessageGroup) -> Rewrite | None:
            edit = rewritten_parts(group, self._without_media, "old media")
            return None if edit is None or gain(index, [group], edit.messages) < 0 else edit

        yield from self.rewritten(index, change)

    def _without_media(self, part: Part) -> Part:
        if isinstance(part, MediaPart):
            return TextPart(self.placeholder.replace("{kind}", part.kind))
        if isinstance(part, ToolResultPart) and part.media:
            notes = [self.placeholder.replace("{kind}", media.kind) for media in part.media]
            return attrs.evolve(part, text="\n".join(filter(None, [part.text, *notes])), media=())
        return part
