"""Whatever edits a strategy yields, in any order and with any content, the result has no problem that the input did not have.

These are 2,000 runs with fixed seeds, about 2,500 edits a format; ``make soak`` asks for two hundred times as many. A failure
shows the conversation and the state of the random numbers; it is not shrunk, which would take minutes.
"""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from compaction import Drop
from compaction.formats import FORMATS, MessageFormat, gemini
from tests.formats.gemini import examples as google
from tests.support.random_edits import RUNS_PER_CONVERSATION, check_run, random_edits
from tests.support.wires import any_conversation

RUNS = 2_000

each_format = pytest.mark.parametrize("format", FORMATS, ids=[format.name for format in FORMATS])


@pytest.mark.slow
@pytest.mark.timeout(600)
@each_format
@settings(max_examples=RUNS // len(FORMATS) // RUNS_PER_CONVERSATION, phases=[Phase.generate])
@given(data=st.data())
def test_random_edits_break_nothing(format: MessageFormat, data: st.DataObject) -> None:
    """Laws 1 to 4, metrics as of a fresh count, and a rollback to the original, on valid and on damaged conversations."""
    messages, edits = data.draw(any_conversation(format)), data.draw(random_edits())
    for _ in range(RUNS_PER_CONVERSATION):
        check_run(format, messages, edits)


def test_the_newest_words_may_belong_to_an_earlier_group() -> None:
    """A late result joins the group of its call, with the user's words beside it; these are the last words, and stay."""
    messages = [
        *(google.user({"text": "Start."}), google.model(google.call("look"))),
        *(google.user({"text": "Wait."}), google.model(google.call("now"))),
        google.user(google.response("now"), {"text": "Not that."}),
        google.user(google.response("look"), {"text": "This."}),
        google.model({"text": "Good."}),
    ]
    assert check_run(gemini, messages, lambda index: iter([Drop([3], "words that are not the last")])) == 1
    assert check_run(gemini, messages, lambda index: iter([Drop([1], "the last words")])) == 0
