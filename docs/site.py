"""Builds the documentation's site from the pages of this repository: ``make docs`` writes it to ``build/site``.

Pages link to each other as files of the repository, so that they can be read without the site. The builder copies them to
``build/pages``, where the README is the first page, and a linked source file becomes a page that shows it. It adds one page for
each public module, whose names mkdocstrings documents. Zensical then builds the site and stops at the first dead link between
pages. Last, every link, anchor and picture of the built site is checked. The pages are also copied into it as Markdown, and
listed in ``llms.txt``, for programs that read documentation.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any
from urllib.parse import unquote, urlsplit

from docstrings import plain_default, to_markdown

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
PICTURES = {".svg", ".png"}
LANGUAGES = {".py": "python", ".toml": "toml", ".json": "json"}
CONSOLE = re.compile(r"^```console\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
TYPE = re.compile(r"""(: |-> )(["'])((?:(?!\2).)*)\2""")
UNTYPED = re.compile(r"""<tr class="doc-section-item">\s*<td>\s*<code>(\w+)</code>\s*</td>\s*<td>\s*</td>""")
LINK_OR_CODE = re.compile(r"^```.*?^```|(?<=\]\()(?![a-z]+:|#)([^)\s#]+)(#[^)\s]+)?(?=\))", re.MULTILINE | re.DOTALL)


def place_of(source: Path) -> Path:
    """Return the path of a file's page, relative to the folder of the pages."""
    inside = source.relative_to(ROOT)
    if inside.as_posix() == "README.md":
        return Path("index.md")
    if inside.parts[0] == "docs" and inside.suffix in {".md", *PICTURES}:
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

    return CONSOLE.sub(copyable, LINK_OR_CODE.sub(relinked, text)), linked


def copyable(block: re.Match[str]) -> str:
    """Return a console block as blocks of commands, without their prompts, and of output, so that commands can be copied."""
    parts: list[tuple[str, list[str]]] = []
    continued = False
    for line in block[1].splitlines():
        kind = "sh" if continued or line.startswith("$ ") else "text"
        continued = kind == "sh" and line.endswith("\\")
        if not parts or parts[-1][0] != kind:
            parts.append((kind, []))
        parts[-1][1].append(line.removeprefix("$ "))
    return "\n".join(f"```{kind}\n" + "\n".join(lines) + "\n```\n" for kind, lines in parts)


def copy_pages(sources: set[Path]) -> None:
    """Write the pages of these files, and of all files that they link to; copy pictures."""
    waiting, seen = set(sources), set(sources)
    while waiting:
        source = waiting.pop()
        target = PAGES / place_of(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix in PICTURES:
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


def described(module: ModuleType, title: str) -> str:
    """Return the reference of a public module as Markdown: each name with its signature, its docstring and its methods."""
    parts = [f"# {title}", f"`{module.__name__}`", (module.__doc__ or "").partition("\n\n")[0]]
    for name in sorted(module.__all__, key=str.lower):
        value = getattr(module, name)
        if isinstance(value, ModuleType):
            continue
        parts += [f"## {name}", *entry(name, value)]
        for inner, method in vars(value).items() if inspect.isclass(value) else ():
            if not inner.startswith("_") and isinstance(
                method, FunctionType | classmethod | staticmethod | property | cached_property
            ):
                parts += [f"### {name}.{inner}", *entry(inner, method)]
    return "\n\n".join(parts) + "\n"


def entry(name: str, value: object) -> Iterator[str]:
    """Yield the signature and the docstring of a function, a class or a property; of anything else, its value."""
    value = getattr(value, "__func__", value)  # of a class method
    if inspect.isclass(value) or inspect.isroutine(value):
        with contextlib.suppress(TypeError, ValueError):  # some classes have no signature
            yield f"```python\n{name}{plainly(str(inspect.signature(value)))}\n```"
    elif not isinstance(value, property | cached_property):
        yield f"```python\n{name} = {plainly(repr(value))}\n```"
        return
    yield to_markdown(inspect.getdoc(value) or "")


def plainly(signature: str) -> str:
    """Return a signature with types as they are written and functions by their names."""
    return plain_default(TYPE.sub(r"\1\3", signature))


def listed(nav: list[Any], section: str = "Start") -> Iterator[tuple[str, str]]:
    """Yield the section and the path of each page that the navigation names, in order."""
    for each in nav:
        for name, inner in each.items() if isinstance(each, dict) else [("", each)]:
            if isinstance(inner, str):
                yield section, inner
            else:
                yield from listed(inner, name)


def write_for_programs(site: Path, project: dict[str, Any]) -> None:
    """Copy the pages to the site as Markdown, and list them in its ``llms.txt``, each with its title and first sentence.

    The reference is written from signatures and docstrings.
    """
    for page in PAGES.rglob("*.md"):
        target = site / page.relative_to(PAGES)
        target.parent.mkdir(parents=True, exist_ok=True)
        if page.stem in MODULES:
            target.write_text(described(importlib.import_module(page.stem), MODULES[page.stem]), encoding="utf-8")
        else:
            shutil.copyfile(page, target)
    sections: dict[str, list[str]] = {}
    for section, path in listed(project["nav"]):
        text = (PAGES / path).read_text(encoding="utf-8")
        title, *paragraphs = text.split("\n\n")
        prose = (" ".join(each.split()) for each in paragraphs if re.match(r"(?!Generated|Made by)`*[A-Z](?!.*\n```)", each))
        about = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", next(prose, "")).partition(". ")[0].rstrip(".:")
        sections.setdefault(section, []).append(
            f"- [{title.removeprefix('# ').strip()}]({path})" + (f": {about}" if about else "")
        )
    parts = [f"# {project['site_name']}", f"> {project['site_description']}"]
    parts += [f"## {section}\n\n" + "\n".join(pages) for section, pages in sections.items()]
    (site / "llms.txt").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


class BuiltPage(HTMLParser):
    """A page of the built site: the places that links can lead to, its links, and its pictures without a text.

    Args:
        file: The page.
    """

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: list[str] = []
        self.silent: list[str] = []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what a tag names or links to."""
        values = dict(attrs)
        self.places |= {value for name in ("id", "name") if (value := values.get(name))}
        self.links += [value for name in ("href", "src") if (value := values.get(name))]
        if tag == "img" and not values.get("alt"):
            self.silent.append(values.get("src") or "")


def faults(site: Path) -> Iterator[str]:
    """Yield each link of the built site that leads nowhere, and each picture without a text, each parameter without a type."""
    listed_pages = re.findall(r"\]\(([^)]+)\)", (site / "llms.txt").read_text(encoding="utf-8"))
    yield from (f"llms.txt: {page} is not in the site" for page in listed_pages if not (site / page).is_file())
    pages = {file: BuiltPage(file) for file in site.resolve().rglob("*.html") if file.name != "404.html"}
    for file, page in pages.items():
        name = file.relative_to(site.resolve())
        yield from (f"{name}: the picture {source} has no text" for source in page.silent)
        yield from (
            f"{name}: the parameter {parameter} has no type" for parameter in UNTYPED.findall(file.read_text(encoding="utf-8"))
        )
        for link in sorted(set(page.links)):
            parts = urlsplit(link)
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if parts.scheme or parts.netloc:
                continue
            if not (target.is_file() or (target / "index.html").is_file()):
                yield f"{name}: {link} is not in the site"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                yield f"{name}: {link} is not a place of that page"


def main() -> int:
    """Write the pages, run Zensical on them, and check the site; return the exit code."""
    shutil.rmtree(PAGES, ignore_errors=True)
    pages = set((ROOT / "docs").rglob("*.md"))
    project = tomllib.loads((ROOT / "docs/site.toml").read_text(encoding="utf-8"))["project"]
    paths = {path for _, path in listed(project["nav"])}
    if missing := [place for page in sorted(pages) if (place := place_of(page)).as_posix() not in paths]:
        raise SystemExit(f"docs/site.toml does not list {', '.join(map(str, missing))}: add each page to its nav")
    copy_pages({*ROOT.glob("*.md"), *pages})
    for name, title in MODULES.items():
        write_reference(importlib.import_module(name), title)
    shutil.copyfile(ROOT / "docs/site.toml", BUILD / "zensical.toml")
    for name in ("docstrings.py", "doctests.py"):
        shutil.copyfile(ROOT / "docs" / name, BUILD / name)
    for name in ("site.css", "site.js"):
        shutil.copyfile(ROOT / "docs" / name, PAGES / name)
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    if code := subprocess.run(command, cwd=BUILD, check=False).returncode:
        return code
    write_for_programs(BUILD / "site", project)
    found = list(faults(BUILD / "site"))
    sys.stdout.write(("\n".join(found) or "every link of the site leads somewhere") + "\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
