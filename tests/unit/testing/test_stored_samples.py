"""The samples that the package stores in the formats besides chat completions."""

from __future__ import annotations

import pytest

from compaction.formats import MessageFormat
from tests.support.stored_samples import STORED, sample_file, sample_text


@pytest.mark.parametrize("format", STORED, ids=lambda format: format.name)
def test_stored_samples_are_up_to_date(format: MessageFormat) -> None:
    """They are the chat samples, converted; ``python -m tests.support.stored_samples`` writes them anew."""
    assert sample_file(format).read_text(encoding="utf-8") == sample_text(format)
