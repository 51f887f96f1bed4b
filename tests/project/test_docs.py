"""The pages of documentation: their Python runs, their commands run, their links lead to existing files."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from typer.testing import CliRunner

from compaction.cli.app import app
from tests.support.packages import missing_packages

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
SEPARATE = {"README.md", "own-strategies.md"}


def tokens(page: Path) -> list[Token]:
    """Return the page's Markdown tokens; inline elements are their children."""
    return MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8"))


def fences(page: Path) -> Iterator[tuple[str, int, str]]:
    """Yield the language, the line and the text of each fenced block."""
    for token in tokens(page):
        if token.type == "fence" and token.map:
            yield token.info.strip(), token.map[0] + 1, token.content


def commands(page: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the line and the arguments of each ``$ compaction ...`` in a console block, with continued lines joined."""
    for info, line, content in fences(page):
        if info == "console":
            for match in re.finditer(r"^\$ compaction\b((?:\\\n|.)*)", content, re.MULTILINE):
                yield line + 1 + content.count("\n", 0, match.start()), shlex.split(match[1].replace("\\\n", " "))


def targets(page: Path) -> Iterator[str]:
    """Yield the target of every link and picture that is neither external nor on the same page."""
    for token in tokens(page):
        for child in token.children or []:
            target = str(child.attrGet("href") or child.attrGet("src") or "")
            if target and not re.match(r"[a-z]+:|#", target):
                yield target.partition("#")[0]


def run_block(code: str, page: Path, line: int, names: dict[str, Any]) -> None:
    """Run one block at its line of the page, so that a failure names the page's line. It must be a script: no bare await."""
    exec(compile("\n" * line + code, str(page), "exec", dont_inherit=True), names)


def pages_with(kind: str) -> pytest.MarkDecorator:
    """Parametrize a test with each page that has blocks of this kind."""
    found = [page for page in PAGES if any(info == kind for info, _, _ in fences(page))]
    return pytest.mark.parametrize("page", found, ids=lambda page: page.relative_to(ROOT).as_posix())


every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a fresh working directory with a copy of the examples, where a page may write files."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pages_with("python")
def test_python_blocks_run(page: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The Python blocks of a page run in order as one program; on the pages in ``SEPARATE``, each block is a program.

    A block marked ``output`` shows what the blocks before it, up to the last such block, print.
    Programs that need a framework run where it is installed: tests/frameworks/test_how_tos.py.
    """
    program = ModuleType(page.stem)
    for info, line, content in fences(page):
        if info == "python" and not missing_packages(content):
            program = ModuleType(page.stem) if page.name in SEPARATE else program
            monkeypatch.setitem(sys.modules, page.stem, program)  # so that classes of the page can be pickled
            run_block(content, page, line, vars(program))
        elif info == "output":
            assert " ".join(capsys.readouterr().out.split()) == " ".join(content.split()), f"{page.name}, line {line}"


@every_page
def test_no_python_escapes(page: Path) -> None:
    """Every block of Python is marked ``python`` exactly, so that no block is shown without being run."""
    python = {line: info for info, line, _ in fences(page) if info.lower().startswith("py")}
    assert {line: info for line, info in python.items() if info != "python"} == {}


@pages_with("console")
def test_commands_run(page: Path) -> None:
    """The ``$ compaction`` commands of a page succeed, in their order, in a folder with the examples.

    They run in this process, which is faster. ``.ci/stranger`` runs each in a new one, in an environment that has what the page
    installs, and notices a missing package, or a command that relies on what an earlier one left in memory.
    """
    for line, arguments in commands(page):
        done = CliRunner().invoke(app, arguments, prog_name="compaction")
        where = f"{page.name}, line {line}: compaction {shlex.join(arguments)}"
        assert done.exit_code == 0, f"{where}\n{done.output}{done.exception!r}"


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    assert [target for target in targets(page) if not (page.parent / target).exists()] == []
