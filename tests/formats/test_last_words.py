"""The user's last words in every format: text of the user, alone or beside results; media beside results are not words."""

from __future__ import annotations

from typing import Any, Final

import pytest

from compaction import GroupKind, MessageIndex, compact_sync, presets
from compaction.formats import FORMATS, MessageFormat, anthropic, bedrock, gemini
from compaction.messages import ToolCallPart, ToolResultPart
from compaction.selectors import last
from compaction.strategies import SlidingWindow, Strategy, Truncation
from compaction.triggers import tokens_below
from tests.formats.anthropic import examples as claude
from tests.formats.bedrock import examples as converse
from tests.formats.gemini import examples as google
from tests.support.chats import indexed
from tests.support.rulebook import examples_of

Raw = dict[str, Any]

SEEN: Final = "seen " * 400
ORDER: Final = "Book the blue boat. " * 10


IMAGES: Final[dict[str, Raw]] = {
    "anthropic": claude.IMAGE,
    "gemini": google.PICTURE,
    "bedrock": converse.PNG,
}
EMPTY: Final[dict[str, Raw]] = {"anthropic": {"type": "text", "text": " "}, "gemini": {"text": " "}, "bedrock": {"text": " "}}

in_user_messages = pytest.mark.parametrize("format", [anthropic, gemini, bedrock], ids=lambda format: format.name)
every_format = pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
with_images = pytest.mark.parametrize("format", [each for each in FORMATS if examples_of(each).SHOWN is not None], ids=repr)


def step(format: MessageFormat, n: int, *beside: Raw) -> list[Raw]:
    """Return a call, and its result with parts beside it."""
    calls = format.compose("assistant", [ToolCallPart(f"t{n}", "now", "{}")])
    [id] = [call.id for message in calls for call in message.tool_calls()]
    [result] = [message.raw for message in format.compose("user", [ToolResultPart(id, SEEN)])]
    field = "parts" if format is gemini else "content"
    return [*(message.raw for message in calls), {**result, field: [*result[field], *beside]} if beside else result]


def users_that_may_go(index: MessageIndex) -> list[bool]:
    """Return whether each user message may be removed."""
    return [index.is_removable(group) for group in index.included_groups if group.kind is GroupKind.USER]


def asked(format: MessageFormat) -> list[Any]:
    """Return an earlier exchange, and the order of the user."""
    roles = ("user", "assistant", "user")
    return [format.new(role, text).raw for role, text in zip(roles, ("Hi. " * 40, "Hello. " * 40, ORDER), strict=True)]


@in_user_messages
@pytest.mark.parametrize("beside", ["image", "empty text"])
@pytest.mark.parametrize(
    "strategy",
    [
        Truncation(target=tokens_below(1), keep=last(groups=1)),
        SlidingWindow(target=tokens_below(1), keep=last(groups=1)),
        presets.context_window(4_000),
    ],
    ids=["Truncation", "SlidingWindow", "context_window"],
)
def test_what_comes_beside_results_does_not_take_their_place(format: MessageFormat, beside: str, strategy: Strategy) -> None:
    part = IMAGES[format.name] if beside == "image" else EMPTY[format.name]
    messages = [*asked(format), *(raw for n in range(12) for raw in step(format, n, part))]
    done = compact_sync(messages, strategy, counter="chars/4", format=format)
    assert done.edits
    assert any(raw is messages[2] for raw in done.messages)


@in_user_messages
def test_an_image_beside_a_result_is_a_part_of_the_result(format: MessageFormat) -> None:
    """It starts no turn, as a message of results alone; text beside a result starts one."""
    said = format.new("user", "And now?").raw
    words = said["parts"][0] if format is gemini else said["content"][0]
    words = {"type": "text", "text": "And now?"} if isinstance(words, str) else words
    for beside, turns in (((), 2), ((IMAGES[format.name],), 2), ((IMAGES[format.name], words), 3)):
        index = indexed([*asked(format), *step(format, 1, *beside), *step(format, 2)], format=format)
        assert index.included.turns == turns
        assert index.is_removable(3) is (turns == 2)
        assert index.is_removable(2) is False


@with_images
def test_an_image_alone_is_the_user_speaking(format: MessageFormat) -> None:
    """It is the last user message, and stays; so do the last words, which came before it."""
    messages = [
        *asked(format),
        format.new("assistant", "Which?").raw,
        examples_of(format).SHOWN,
        format.new("assistant", "So.").raw,
    ]
    index = indexed([*messages, format.new("assistant", "Done.").raw], format=format)
    assert users_that_may_go(index) == [True, False, False]
    index.append([format.new("user", "Thanks.").raw, format.new("assistant", "Bye.").raw])
    assert users_that_may_go(index) == [True, True, True, False]


REMINDER: Final = "<system-reminder>\nThe file was changed.\n</system-reminder>"


@every_format
@pytest.mark.parametrize("role", ["user", "system"])
def test_a_reminder_of_the_host_is_not_the_user_speaking(format: MessageFormat, role: str) -> None:
    """The order before it stays, whether the host writes in its own role or in that of the user."""
    messages = [*asked(format), format.new("assistant", "Yes.").raw, format.new(role, REMINDER).raw]
    index = indexed([*messages, format.new("assistant", "So.").raw], format=format)
    assert index.is_removable(2) is False
    assert format.new("user", REMINDER).said == ""
    assert format.new("user", f"{REMINDER} Stop.").said == f"{REMINDER} Stop."


@in_user_messages
def test_a_reminder_beside_a_result_is_a_part_of_the_result(format: MessageFormat) -> None:
    """It starts no turn and does not take the place of the order, however many there are."""
    text = {"type": "text", "text": REMINDER} if format is anthropic else {"text": REMINDER}
    index = indexed([*asked(format), *(raw for n in range(4) for raw in step(format, n, text))], format=format)
    assert (index.included.turns, index.is_removable(2)) == (2, False)


@every_format
def test_results_are_not_the_user_speaking(format: MessageFormat) -> None:
    """The order stays before calls and results that were written by the format itself."""
    index = indexed([*asked(format), *step(format, 1), format.new("assistant", "So.").raw], format=format)
    assert (index.included.turns, index.is_removable(2)) == (2, False)


@every_format
def test_an_empty_message_says_nothing(format: MessageFormat) -> None:
    """After it, the message before it is still the last user message; one that is alone is kept."""
    messages = [format.new(role, text).raw for role, text in (("user", " "), ("assistant", "a"), ("assistant", "b"))]
    index = indexed(messages, format=format)
    assert index.is_removable(0) is False
    index = indexed([*asked(format), *messages], format=format)
    assert users_that_may_go(index) == [True, False, True]
