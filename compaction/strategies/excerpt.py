"""The `Excerpt` strategy, which replaces old user messages and summaries with an excerpt of what the user said."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from ..checks import count
from ..index import MarkCeiling, MessageGroup, MessageIndex, Replace
from ..selectors import Selector, as_selector, last, spoken
from .base import Steps, gain
from .questions import questions_of
from .summaries import SummaryStrategy, is_content

_FRAME = 100  # tokens of the text around it, with a margin for differences between counters
_REASON = "old messages make room; the user's own words stay"


@attrs.frozen
class Excerpt(SummaryStrategy):
    """Replaces old user messages with an excerpt of them, word for word, written without a model.

    The excerpt begins with the task; the newest messages follow while they fit, each whole or without the lines that look
    pasted. If that is not enough, the summaries in the view are replaced too, and at last everything that ``keep`` does not
    name.

    Cost: O(groups), and O(characters of the user's messages).

    Args:
        tokens: Most tokens of the excerpt, > 0.
        trigger: When to run.
        target: When to stop.
        keep: The groups that stay; by default the newest.
        at_least: Tokens, >= 0. An excerpt that would free fewer is not written.
        text: The text around the excerpt.

    >>> from compaction import compact_sync
    >>> said = [{"role": "user", "content": f"Box {n} stands on shelf {n}. " + "ok " * 40} for n in range(9)]
    >>> result = compact_sync(said, Excerpt(tokens=80), counter="chars/4")
    >>> len(result.messages), "Box 0 stands" in result.messages[0]["content"]
    (2, True)
    """

    tokens: int = attrs.field(kw_only=True, validator=count(1))
    keep: Selector = attrs.field(default=last(groups=1), converter=as_selector, kw_only=True)
    at_least: int = attrs.field(default=0, validator=count(), kw_only=True)

    @property
    def mark_ceilings(self) -> Mapping[str, MarkCeiling]:
        return {self.name: MarkCeiling(2 * self.tokens + _FRAME + self.text.extra_tokens, frames=(self.text.frame,))}

    def edits(self, index: MessageIndex) -> Steps:
        of_user = spoken()(index)  # an image without words, too: if it stayed, it would stand before older words
        questions = questions_of(index, of_user).items()
        whole_questions = {id for id, text in questions if text == index.group(id).messages[-1].text}
        choices: tuple[Callable[[MessageGroup], bool], ...] = (
            lambda group: group.id in of_user or group.id in whole_questions or group.made_by == self.name,  # old messages
            lambda group: group.id in of_user or not is_content(group),  # with all summaries
            lambda group: True,  # with everything
        )
        tried: list[set[int]] = []
        for may_go in choices:
            if self.target(index):
                return
            replaced = index.replaceable([group for group in self.candidates(index) if may_go(group)])
            ids = {group.id for group in replaced}
            own = {group.id for group in index.included_groups if group.made_by == self.name}
            # one excerpt at most, that adds to those before: a second would be read as an ordinary message in a later list
            if ids in tried or not own < ids:
                continue
            tried.append(ids)
            said = self.excerpt(index, replaced, min(self.tokens, self.room(index, replaced)))
            summary = self.fitting(index, said, replaced) if said else None
            if summary is not None and gain(index, replaced, summary) >= self.at_least:
                yield Replace(replaced, summary, self.why(index, replaced, said, _REASON))
