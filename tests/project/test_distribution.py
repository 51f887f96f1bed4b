"""The repository as it is shipped and loaded: wheel, source distribution, links, heavy imports, texts."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from compaction.installation import INSTALL_FROM

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "compaction"
LINKS = ("strategies", "triggers")

# Libraries that are slow to load or optional: they are imported only where they are used.
HEAVY = {
    *("agent_framework", "agents", "aiohttp", "anthropic", "daft", "datasets", "genai_prices", "google.adk", "google.genai"),
    *("httpx", "langchain", "langchain_core", "langgraph", "litellm", "numpy", "openai", "pyarrow", "pydantic", "pydantic_ai"),
    *("ray", "rich", "starlette", "strands", "tiktoken", "tomli_w", "toktok", "typer", "uvicorn", "yaml", "yarl"),
}

# Modules of the standard library that compacting a conversation in memory does not need.
RARE = {"csv", "difflib", "email", "importlib.metadata", "socket", "sqlite3", "ssl", "subprocess", "tempfile", "tomllib"}

# Modules of the package that a pipeline without a summary, a store or a session does not need.
UNUSED = {
    *(f"compaction.{name}" for name in ("batch", "cli", "config", "files", "integrations", "models", "replay", "testing")),
    "compaction.formats.conversion",
    "compaction.session.pool",
    "compaction.stores.base",
    "compaction.strategies.offload",
    "compaction.strategies.summarization",
    "compaction.summarizers.chunked",
    "compaction.summarizers.extractive",
}


def modules_after(program: str) -> set[str]:
    """Return the modules that a fresh interpreter has loaded after running a program."""
    return set(json.loads(run_python("-c", f"{program}; import json, sys; print(json.dumps(list(sys.modules)))")))


def test_import_loads_no_part_of_the_package() -> None:
    """Importing the package loads only its ``__init__`` modules and ``lazy``, not even attrs."""
    packages = {"compaction", "compaction.strategies", "compaction.session", "compaction.stores"}
    loaded = modules_after(f"import {', '.join(sorted(packages))}")
    assert {name for name in loaded if name.startswith("compaction")} == packages | {"compaction.lazy"}
    assert loaded & {*HEAVY, *RARE, "anyio", "attr", "attrs", "inspect"} == set()


PIPELINE = (
    "from compaction import Pipeline, compact_sync, presets; "
    "compact_sync([{'role': 'user', 'content': 'Hello'}], Pipeline(presets.context_window(32_000)), counter='chars/4')"
)
SESSION = (
    "from compaction import CompactionSession, presets; CompactionSession(presets.context_window(8_000), counter='chars/4')"
)
EXPORTS = "from compaction import *; from compaction.strategies import *"


@pytest.mark.parametrize(
    ("program", "unused"),
    [
        pytest.param(PIPELINE, RARE | UNUSED, id="a pipeline"),
        pytest.param(SESSION, {"sqlite3", "compaction.stores.sqlite", "compaction.summarizers.extractive"}, id="a session"),
        pytest.param(EXPORTS, set(), id="every public name and strategy"),
    ],
)
def test_nothing_is_loaded_that_is_not_used(program: str, unused: set[str]) -> None:
    """No slow or optional library, and no part of the package and of the standard library that the program does not use."""
    assert modules_after(program) & (HEAVY | unused) == set()


def test_the_version_loads_neither_typer_nor_the_package() -> None:
    """``compaction --version`` prints the version before the command line is loaded."""
    program = (
        "import atexit, json, sys; sys.argv = ['compaction', '--version']; "
        "atexit.register(lambda: print(json.dumps(list(sys.modules)))); from compaction.cli import main; main()"
    )
    printed, loaded = run_python("-c", program).splitlines()
    assert printed == version()
    assert {name for name in json.loads(loaded) if name.startswith("compaction")} == {
        *("compaction", "compaction.cli", "compaction.installation", "compaction.lazy")
    }
    assert set(json.loads(loaded)) & {"attrs", "rich", "typer"} == set()


def run_python(*arguments: str) -> str:
    """Return what a fresh interpreter at the repository's root prints; the test fails if it exits with an error."""
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def version() -> str:
    """Return the version in ``pyproject.toml``, which would be released."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel and the source distribution from this tree, and return their folder."""
    folder = tmp_path_factory.mktemp("dist")
    run_python("-m", "hatchling", "build", "-d", str(folder))
    return folder


def test_every_dependency_is_explained() -> None:
    sys.path.insert(0, str(ROOT / "docs"))
    dependencies = importlib.import_module("dependencies")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lists = [project["project"]["dependencies"], *project["project"]["optional-dependencies"].values()]
    required = [each for each in chain(*lists, *project["dependency-groups"].values()) if isinstance(each, str)]
    names = {re.split(r"[\[<>=; ]", each)[0] for each in required} - {"compaction-toolkit"}
    assert len(names) > 40
    assert set(dependencies.packages((ROOT / "pyproject.toml").read_text(encoding="utf-8"))) == names
    assert dependencies.page() == (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), "run python docs/dependencies.py"


def test_wheel_holds_the_package_alone(shipped: Path) -> None:
    """The wheel contains every file of ``compaction``, including ``py.typed``, its metadata, and nothing else."""
    [wheel] = shipped.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    package = {name for name in names if name.startswith("compaction/")}
    source = {path.relative_to(ROOT).as_posix() for path in texts() if PACKAGE in path.parents}
    assert {name.split("/")[0] for name in names} == {"compaction", f"compaction_toolkit-{version()}.dist-info"}
    assert package == source
    assert "compaction/py.typed" in package


def test_source_distribution_holds_no_link(shipped: Path) -> None:
    """The source distribution has no links: a link named ``triggers`` could overwrite another distribution's package."""
    [archive] = shipped.glob("*.tar.gz")
    with tarfile.open(archive) as source:
        members = source.getmembers()
    top = {member.name.split("/")[1] for member in members}
    assert [member.name for member in members if not member.isfile()] == []
    assert top & set(LINKS) == set()
    assert {"LICENSE", "README.md", "compaction", "pyproject.toml", "tests"} <= top


@pytest.mark.parametrize("name", LINKS)
def test_links_show_the_real_folders(name: str) -> None:
    """The links in the repository's root are relative, so they work in every checkout."""
    assert (ROOT / name).readlink() == Path("compaction") / name
    assert (ROOT / name).resolve() == PACKAGE / name


def test_changelog_starts_with_this_version() -> None:
    headings = [line for line in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines() if line.startswith("## ")]
    assert headings[0].split()[1] == version()


def test_every_install_line_is_one_that_works() -> None:
    """Pages, examples and errors install extras that exist, from a checkout or, once it is published, by name."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    written = {path: path.read_text("utf-8", "ignore") for path in texts() if ROOT / "tests" not in path.parents}
    lines = [found for text in written.values() for found in re.findall(r"pip install '([^'\[{]+)\[([\w,-]+)\]'", text)]
    assert len(lines) > 20
    assert {where for where, _ in lines} == {INSTALL_FROM}
    assert {extra for _, named in lines for extra in named.split(",")} <= set(extras)
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`([\w-]+)`", " ".join(re.findall(r"^\| (`.+?) \|", page, re.MULTILINE)))) == set(extras)
    by_hand = [path.name for path, text in written.items() if path.suffix == ".py" and "compaction-toolkit[" in text]
    assert by_hand == [], "compaction.installation.install_line names the command"


def test_no_file_names_the_machine_it_was_written_on() -> None:
    """No text file of the repository contains the path of this checkout, of the shared folder or of the home directory."""
    places = [ROOT, ROOT.parent / "shared", Path.home()]
    written = {path.relative_to(ROOT): path.read_text("utf-8", "ignore") for path in texts()}
    assert [f"{path}: {place}" for path, text in written.items() for place in places if f"{place}/" in text] == []


def texts() -> Iterator[Path]:
    """Yield every text file that belongs to the repository, without following links."""
    folders = {".ci", "benchmarks", "compaction", "docs", "examples", "tests"}
    for entry in sorted(ROOT.iterdir()):
        if entry.is_file() and (entry.name == ".gitignore" or not entry.name.startswith(".")):
            yield entry
        elif entry.name in folders:
            yield from (path for path in entry.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def test_all_tests_are_in_one_tree() -> None:
    """No test file or ``conftest.py`` is outside ``tests``."""
    outside = [path.relative_to(ROOT) for path in texts() if ROOT / "tests" not in path.parents]
    tests = [path.as_posix() for path in outside if path.name.startswith("test_") or path.name == "conftest.py"]
    trees = [path.name for path in ROOT.glob("test*") if path.is_dir() and path.name != "tests"]
    assert tests + trees == [], "tests outside tests/: move them to the folder of tests/ that mirrors the package"
