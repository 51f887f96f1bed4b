"""The pages about frameworks: their programs run as they stand, and their excerpts are from examples that other tests run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.frameworks.programs import ROOT
from tests.support.packages import missing_packages

PAGES = sorted((ROOT / "docs" / "frameworks").glob("*.md"))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"\]\(\.\./\.\./(examples/\w+\.py)\)")

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "recipes"], ids=lambda page: page.stem)
def test_the_program_runs_as_it_stands(page: Path, tmp_path: Path) -> None:
    """A page begins with a whole program of 15 to 40 lines against a fake model, and what it prints."""
    (first, _), (second, program), (third, printed) = FENCE.findall(page.read_text("utf-8"))[:3]
    assert (first, second, third) == ("console", "python", "text")
    assert 15 <= len(program.splitlines()) <= 40
    if missing := missing_packages(program):
        pytest.skip(f"needs {missing[0]}: make test-frameworks")
    (tmp_path / "program.py").write_text(program)
    command, environment = [sys.executable, "program.py"], {**os.environ, "PYTHONPATH": str(ROOT), "LANGSMITH_TRACING": "false"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(printed)


@each_page
def test_excerpts_are_from_the_example(page: Path) -> None:
    text = page.read_text("utf-8")
    examples = [(ROOT / name).read_text("utf-8") for name in EXAMPLE.findall(text)]
    excerpts = [content for kind, content in FENCE.findall(text) if not kind]
    assert excerpts
    for excerpt in excerpts:
        found = [any(textwrap.indent(excerpt, " " * width) in example for example in examples) for width in (0, 4, 8, 12)]
        assert any(found), excerpt
