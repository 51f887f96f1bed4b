"""Builds the documentation's site from the pages of this repository: ``make docs`` writes it to ``build/site``.

Pages link to each other as files of the repository, so that they can be read without the site. The builder copies them to
``build/pages``, where the README is the first page, and a linked source file becomes a page that shows it. It adds one page for
each public module, whose names mkdocstrings documents. Zensical then builds the site and stops at the first dead link.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
PAGES = BUILD / "pages"
MODULES = {
    "compaction": "Compact a conversation",
    "compaction.messages": "Messages and their parts",
    "compaction.strategies": "Strategies",
    "compaction.triggers": "Triggers",
    "compaction.presets": "Presets",
    "compaction.session": "Sessions",
    "compaction.summarizers": "Summarizers",
    "compaction.stores": "Stores",
    "compaction.formats": "Wire formats",
    "compaction.models": "Models and their windows",
    "compaction.batch": "Batches",
    "compaction.replay": "Replay",
    "compaction.testing": "Tests for your own strategy",
    "compaction.integrations.agent_framework": "Agent Framework",
    "compaction.integrations.anthropic": "Anthropic SDK",
    "compaction.integrations.google_adk": "Google ADK",
    "compaction.integrations.langchain": "LangChain",
    "compaction.integrations.langgraph": "LangGraph",
    "compaction.integrations.litellm": "LiteLLM proxy",
    "compaction.integrations.openai_agents": "OpenAI Agents SDK",
    "compaction.integrations.opentelemetry": "OpenTelemetry",
    "compaction.integrations.pydantic_ai": "pydantic-ai",
    "compaction.integrations.strands": "Strands",
}
LANGUAGES = {".py": "python", ".toml": "toml", ".json": "json"}
LINK_OR_CODE = re.compile(r"^```.*?^```|(?<=\]\()(?![a-z]+:|#)([^)\s#]+)(#[^)\s]+)?(?=\))", re.MULTILINE | re.DOTALL)


def place_of(source: Path) -> Path:
    """Return the path of a file's page, relative to the folder of the pages."""
    inside = source.relative_to(ROOT)
    if inside.as_posix() == "README.md":
        return Path("index.md")
    if inside.parts[0] == "docs" and inside.suffix in {".md", ".svg"}:
        return Path(*inside.parts[1:])
    return inside if inside.suffix == ".md" else Path("source", f"{inside}.md")


def page_of(source: Path) -> tuple[str, set[Path]]:
    """Return a file's page, with its links changed to pages of the site, and the files that it links to."""
    text = source.read_text(encoding="utf-8")
    if source.suffix != ".md":
        return f"# {source.relative_to(ROOT)}\n\n````{LANGUAGES.get(source.suffix, '')}\n{text}````\n", set()
    linked: set[Path] = set()

    def relinked(found: re.Match[str]) -> str:
        if not found[1]:  # a block of code
            return found[0]
        file = (source.parent / found[1]).resolve()
        if not (file.is_file() and file.is_relative_to(ROOT)):
            raise SystemExit(f"{source}: {found[1]} is not a file of this repository")
        linked.add(file)
        return Path(os.path.relpath(place_of(file), place_of(source).parent)).as_posix() + (found[2] or "")

    return LINK_OR_CODE.sub(relinked, text), linked


def copy_pages(sources: set[Path]) -> None:
    """Write the pages of these files, and of all files that they link to; copy pictures."""
    waiting, seen = set(sources), set(sources)
    while waiting:
        source = waiting.pop()
        target = PAGES / place_of(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".svg":
            shutil.copyfile(source, target)
            continue
        page, linked = page_of(source)
        target.write_text(page, encoding="utf-8")
        waiting |= linked - seen
        seen |= linked


def write_reference(module: ModuleType, title: str) -> None:
    """Write the page of a public module: its docstring, and each name in its ``__all__``."""
    name = module.__name__
    lines = [f"# {title}", "", f"`{name}`", "", (module.__doc__ or "").partition("\n\n")[0], ""]
    for each in sorted(module.__all__, key=str.lower):
        value = getattr(module, each)
        if not isinstance(value, ModuleType):
            lines += [f"::: {name}.{each}", ""]
    target = PAGES / "reference" / f"{name}.md"
    target.parent.mkdir(exist_ok=True)
    target.write_text("\n".join(lines), encoding="utf-8")


def main() -> int:
    """Write the pages, then run Zensical on them; return its exit code."""
    shutil.rmtree(PAGES, ignore_errors=True)
    pages = set((ROOT / "docs").rglob("*.md"))
    listed = (ROOT / "docs/site.toml").read_text(encoding="utf-8")
    if missing := [place for page in sorted(pages) if f'"{(place := place_of(page))}"' not in listed]:
        raise SystemExit(f"docs/site.toml does not list {', '.join(map(str, missing))}: add each page to its nav")
    copy_pages({ROOT / "README.md", *pages})
    for name, title in MODULES.items():
        write_reference(importlib.import_module(name), title)
    shutil.copyfile(ROOT / "docs/site.toml", BUILD / "zensical.toml")
    shutil.copyfile(ROOT / "docs/doctests.py", BUILD / "doctests.py")
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    return subprocess.run(command, cwd=BUILD, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
