"""Every excerpt on the pages about frameworks is part of the example that the page names and other tests run."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from tests.frameworks.programs import ROOT

PAGES = sorted((ROOT / "docs" / "frameworks").glob("*.md"))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"\]\(\.\./\.\./(examples/\w+\.py)\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_excerpts_are_from_the_example(page: Path) -> None:
    """Each excerpt is a run of lines of one of the page's examples."""
    text = page.read_text("utf-8")
    examples = [(ROOT / name).read_text("utf-8") for name in EXAMPLE.findall(text)]
    excerpts = [content for kind, content in FENCE.findall(text) if not kind]
    assert excerpts
    for excerpt in excerpts:
        found = [any(textwrap.indent(excerpt, " " * width) in example for example in examples) for width in (0, 4, 8, 12)]
        assert any(found), excerpt
