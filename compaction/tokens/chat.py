"""`ChatCosts`: the tokens that a provider adds around the texts of a message, and those of images, sounds, videos and files.

Providers publish little about these; every figure here is measured or quoted, and every one can be replaced. For 32 of 33
recorded gpt-4o requests without tools, three tokens a message, one for its role and three for the reply add up to exactly the
reported prompt. gpt-5 and o3-mini always reported one token less: their reply costs two. Tools cost more than their texts
(gpt-5-mini reports 80 tokens that are in no message), so anchor the total to reported usage with `UsageAnchor`.
"""

from __future__ import annotations

import re
from typing import Final

import attrs

from ..checks import count
from ..messages import MediaPart


def _tokens(default: int) -> int:
    field: int = attrs.field(default=default, validator=count())
    return field


@attrs.frozen(kw_only=True)
class ChatCosts:
    """The tokens of a message besides its texts; the defaults are gpt-4o's.

    Args:
        per_message: Around each message; measured as above.
        per_role: For the role, whichever it is; measured as above.
        per_name: Around a participant's name, besides the name's own tokens; OpenAI's published counting recipe.
        per_call: Around a tool call, besides its name and arguments. The id is not counted: nothing shows that it reaches
            the model, and random letters would cost twenty tokens.
        per_result: Around a tool result. ``per_call`` and ``per_result`` together are the 7 tokens by which the recipe fell
            short in each of four recorded gpt-4o exchanges with a tool call; their division is our choice.
        reply: For the start of the reply, once a request; part of no message.
        image: An image of unknown size: 1024 x 1024 on gpt-4o is four tiles of 170 and a base of 85 (secondary sources).
        image_low: An image sent with ``detail: "low"``: the base alone.
        audio: A sound of unknown length: one minute at a token every 100 ms (OpenAI, "Managing costs" of the Realtime API).
        video: A video of unknown length: one minute at 263 tokens a second, Gemini's rate; OpenAI and Anthropic accept none.
        file: A document of unknown length: one page at about 7,000 tokens for three (Anthropic, "PDF support").

    >>> ChatCosts().media(MediaPart("image", detail="low")), ChatCosts().media(MediaPart("image"))
    (85, 765)
    """

    per_message: int = _tokens(3)
    per_role: int = _tokens(1)
    per_name: int = _tokens(1)
    per_call: int = _tokens(4)
    per_result: int = _tokens(3)
    reply: int = _tokens(3)
    image: int = _tokens(765)
    image_low: int = _tokens(85)
    audio: int = _tokens(600)
    video: int = _tokens(15_780)
    file: int = _tokens(2_333)

    def media(self, part: MediaPart) -> int:
        """Return the tokens of an image, a sound, a video or a file, by its kind and detail; its data is not tokenized."""
        if part.kind == "image":
            return self.image_low if part.detail == "low" else self.image
        return {"audio": self.audio, "video": self.video}.get(part.kind, self.file)

    @classmethod
    def for_model(cls, model: str) -> ChatCosts:
        """Return the costs of a model's family; those of gpt-4o for an unknown model.

        Args:
            model: The name sent to the provider, with or without a provider's prefix.

        Sources: gpt-5 and the o-series are measured as above. Claude scales images down to about 1,600 tokens (Anthropic,
        "Vision"; newer models accept more). Gemini 3 takes 1,120 tokens for an image and 560 for a page at its default
        resolution; earlier Gemini models 258 for a tile or page; all 32 for a second of sound (Google, "Media resolution",
        "Understand and count tokens"). The figures per message are unknown for Claude and Gemini; gpt-4o's are used.

        >>> ChatCosts.for_model("openai/gpt-5-mini").reply
        2
        """
        name = model.rpartition("/")[2].lower()
        return next((costs for family, costs in _FAMILIES if family.match(name)), cls())


_FAMILIES: Final = (
    (re.compile(r"gpt-5|o\d"), ChatCosts(reply=2)),
    (re.compile(r"(?:[a-z]{2,12}\.){0,3}claude"), ChatCosts(image=1_600, image_low=1_600)),
    (re.compile(r"gemini-3"), ChatCosts(image=1_120, image_low=280, audio=1_920, file=560)),
    (re.compile(r"gemini"), ChatCosts(image=258, image_low=258, audio=1_920, file=258)),
)
