"""The samples that the package stores in formats other than chat completions."""

from __future__ import annotations

import pytest

from compaction.formats import MessageFormat
from tests.support.stored_samples import STORED, sample_file, sample_text


@pytest.mark.parametrize("format", STORED, ids=lambda format: format.name)
def test_stored_samples_are_up_to_date(format: MessageFormat) -> None:
    """The stored samples equal the converted chat samples; ``python -m tests.support.stored_samples`` rewrites them."""
    assert sample_file(format).read_text(encoding="utf-8") == sample_text(format)
