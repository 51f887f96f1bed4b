"""Which refusals are length errors."""

from __future__ import annotations

import json

import pytest

from compaction.gateway.failures import length_error
from compaction.gateway.upstream import WholeAnswer
from compaction.tokens import LengthError


@pytest.mark.parametrize(
    ("status", "says", "is_length"),
    [
        (400, "prompt is too long: 9 tokens > 5 maximum", True),
        (413, "Request too large", True),
        (400, "The input token count (9) exceeds the maximum number of tokens allowed (5).", True),
        (400, "messages: roles must alternate", False),
        (429, "Request too large for gpt: requested 9 tokens", False),
        (500, "the input length exceeds the context length", True),
        (500, "internal error", False),
        (503, "prompt is too long: 9 tokens > 5 maximum", False),
        (200, "prompt is too long: 9 tokens > 5 maximum", False),
    ],
)
def test_length_errors(status: int, says: str, is_length: bool) -> None:
    """Only refusals of a single request for its length are length errors."""
    answer = WholeAnswer(status, [], json.dumps({"error": {"message": says}}).encode())
    found = length_error(answer)
    assert (found is not None) == is_length
    assert found is None or LengthError.read(found) is not None
