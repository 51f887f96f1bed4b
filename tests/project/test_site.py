"""The parts of the documentation's site that `make docs` builds: commands to copy, links, the reference, pictures."""

from __future__ import annotations

import importlib
import re
from importlib.util import module_from_spec, spec_from_file_location
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest

from compaction import strategies
from compaction.session import session

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return ``docs/site.py`` as a module under another name, because the standard library has one of its name."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    spec = spec_from_file_location("docs_site", ROOT / "docs" / "site.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_copied_command_has_no_prompt(site: ModuleType) -> None:
    """Commands and output of a console block become blocks of their own; the prompt is not copied with a command."""
    page = "```console\n$ make demo \\\n    VENV=x\nA table\n$ make test\n```\n"
    blocks = ["sh\nmake demo \\\n    VENV=x", "text\nA table", "sh\nmake test"]
    assert site.CONSOLE.sub(site.copyable, page) == "\n".join(f"```{block}\n```\n" for block in blocks)


def test_a_dead_link_stops_the_build(site: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("[see](../missing.md)\n")
    with pytest.raises(SystemExit, match=r"page\.md: \.\./missing\.md is not a file"):
        site.page_of(tmp_path / "page.md")


def test_every_fault_of_a_built_page_is_found(site: ModuleType, tmp_path: Path) -> None:
    """Links to nothing, to a missing place of a page, pictures without a text and parameters without a type are listed."""
    (tmp_path / "llms.txt").write_text("[a](gone.md)")
    row = '<tr class="doc-section-item">\n<td>\n<code>trigger</code>\n</td>\n<td>\n{}</td>'
    bodies = {
        "a.html": f'<h1>A</h1><a href="c.html">x</a><a href="b.html#no">x</a><a href="b.html#yes">x</a>{row.format("")}',
        "b.html": f'<h1 id="yes">B</h1><img src="a.html"><img src="a.html" alt="B">{row.format("<code>Trigger</code>")}',
    }
    for name, body in bodies.items():
        (tmp_path / name).write_text(body)
    assert sorted(site.faults(tmp_path)) == [
        "a.html: b.html#no is not a place of that page",
        "a.html: c.html is not in the site",
        "a.html: the parameter trigger has no type",
        "b.html: the picture a.html has no text",
        "llms.txt: gone.md is not in the site",
    ]


def test_the_reference_for_programs_has_signatures_and_docstrings(site: ModuleType) -> None:
    """Each public name is there with its signature, types unquoted and functions by their names, and its methods."""
    page = site.described(strategies, "Strategies")
    assert all(f"\n## {name}\n" in page for name in strategies.__all__)
    assert "\nTruncation(*, trigger: Trigger = always, target: Trigger = " in page.replace("TriggerLike", "Trigger")
    assert " at 0x" not in page
    assert "\n### CompactionSession.forget\n" in site.described(importlib.import_module("compaction.session"), "Sessions")
    assert session.CompactionSession.forget.__doc__


@pytest.mark.parametrize("name", ["before_after", "groups", "pipeline", "session"])
def test_pictures_are_current(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The measured and drawn pictures are those that ``python docs/pictures.py`` draws from today's code."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    drawn = getattr(importlib.import_module("pictures"), name)()
    assert drawn == (ROOT / "docs" / "pictures" / f"{name}.svg").read_text(encoding="utf-8"), "run python docs/pictures.py"


@pytest.mark.parametrize("chart", sorted((ROOT / "docs").glob("benchmarks-*.svg")), ids=lambda path: path.stem)
def test_names_in_charts_do_not_overlap(chart: Path) -> None:
    """The names of strategies stand in a column, at least 12 units apart."""
    labels = re.findall(r'<text x="[\d.]+" y="([\d.]+)" fill="#\w+"(?: font-weight="600")?>', chart.read_text(encoding="utf-8"))
    places = sorted(map(float, labels))
    assert len(places) > 8
    assert min(below - above for above, below in pairwise(places)) >= 12
