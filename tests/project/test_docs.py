"""The pages of documentation: their Python runs, their commands run, their links lead somewhere."""

from __future__ import annotations

import ast
import inspect
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
COMMAND = "import sys; from compaction.cli import main; sys.argv[0] = 'compaction'; sys.exit(main())"


def tokens(page: Path) -> list[Token]:
    """The page's parts; what stands inside a line comes as children."""
    return MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8"))


def fences(page: Path) -> Iterator[tuple[str, int, str]]:
    """What follows the opening backticks, the line they stand on, and the text of each fenced block."""
    for token in tokens(page):
        if token.type == "fence" and token.map:
            yield token.info.strip(), token.map[0] + 1, token.content


def commands(page: Path) -> Iterator[tuple[int, list[str]]]:
    """Line and arguments of each ``$ compaction ...`` in a console block; a backslash at its end continues a line."""
    for info, line, content in fences(page):
        if info == "console":
            for match in re.finditer(r"^\$ compaction\b((?:\\\n|.)*)", content, re.MULTILINE):
                yield line + 1 + content.count("\n", 0, match.start()), shlex.split(match[1].replace("\\\n", " "))


def targets(page: Path) -> Iterator[str]:
    """Every link and picture that names no other site and no place on the same page."""
    for token in tokens(page):
        for child in token.children or []:
            target = str(child.attrGet("href") or child.attrGet("src") or "")
            if target and not re.match(r"[a-z]+:|#", target):
                yield target.partition("#")[0]


def run_block(code: str, page: Path, line: int, names: dict[str, Any]) -> None:
    """Run one block as if it stood in the page's file, so that a failure names the page's line; it may await."""
    program = compile("\n" * line + code, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    if not program.co_flags & inspect.CO_COROUTINE:
        exec(program, names)
        return

    async def awaiting() -> None:
        await eval(program, names)

    anyio.run(awaiting)


def pages_with(kind: str) -> pytest.MarkDecorator:
    """One test for each page that has blocks of this kind."""
    found = [page for page in PAGES if any(info == kind for info, _, _ in fences(page))]
    return pytest.mark.parametrize("page", found, ids=lambda page: page.relative_to(ROOT).as_posix())


every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh working directory that holds a copy of the examples, where a page may write what it likes."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pages_with("python")
def test_python_blocks_run(page: Path) -> None:
    """The Python blocks of a page run in their order as one program; a block may use names from those above it."""
    names: dict[str, Any] = {"__name__": page.stem}
    for info, line, content in fences(page):
        if info == "python":
            run_block(content, page, line, names)


@every_page
def test_no_python_escapes(page: Path) -> None:
    """Every block of Python is marked ``python`` and nothing else, so that none is shown without being run."""
    assert [
        f"line {line}: {info}" for info, line, _ in fences(page) if info.lower().startswith("py") and info != "python"
    ] == []


@pages_with("console")
def test_commands_run(page: Path, folder: Path) -> None:
    """The ``$ compaction`` commands of a page succeed in their order, in a folder that holds the examples."""
    for line, arguments in commands(page):
        done = subprocess.run(
            [sys.executable, "-c", COMMAND, *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{page.name}, line {line}: compaction {shlex.join(arguments)}\n{done.stdout}{done.stderr}"


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    """A link to a file of the repository names one that is there."""
    assert [target for target in targets(page) if not (page.parent / target).exists()] == []
