"""The repository's shape: which module may import which, what is public, what is shipped, what is loaded."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from functools import cached_property
from inspect import getdoc, isclass, isfunction
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "compaction"
LINKS = ("strategies", "triggers")
MODULES = sorted(PACKAGE.rglob("*.py"))

# The floors, lowest first. A module imports from lower floors, from what stands before it on its own floor, and from its own
# folder. A new module or folder gets its place here.
FLOORS = (
    ("errors", "checks", "making", "messages"),
    ("collapsed", "marks", "formats", "tokens"),
    ("context", "groups", "edits", "metrics"),
    ("projection", "laws", "journal", "refusals", "sync", "fingerprints", "state", "validity"),
    ("view", "editing", "index", "holding"),
    ("selectors", "triggers"),
    ("database", "summarizers", "stores", "recall", "strategies"),
    ("outcome", "run", "presets", "caching"),
    ("lock", "session_store", "session", "files", "config"),
    ("engine", "integrations", "batch", "replay", "testing"),
    ("cli",),
)
PLACES = {unit: place for place, unit in enumerate(unit for floor in FLOORS for unit in floor)}
FRONT_DOOR = {"__init__", "__main__"}  # import whatever they show

# Libraries that take long to load, or that only some users have: imported where they are used.
HEAVY = {
    "agent_framework",
    "agents",
    "cattrs",
    "daft",
    "datasets",
    "langchain",
    "langchain_core",
    "langgraph",
    "numpy",
    "openai",
    "pyarrow",
    "pydantic",
    "pydantic_ai",
    "ray",
    "rich",
    "tiktoken",
    "tomli_w",
    "toktok",
    "typer",
    "yaml",
}

PUBLIC = [path for path in MODULES if path.name == "__init__.py" or not path.name.startswith("_")]

module = pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
public_module = pytest.mark.parametrize("path", PUBLIC, ids=lambda path: path.relative_to(PACKAGE).as_posix())


def dotted(path: Path) -> list[str]:
    """``compaction/tokens/cache.py`` as ``["tokens", "cache"]``; a package by its folder's name."""
    parts = list(path.relative_to(PACKAGE).with_suffix("").parts)
    return parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts


def relative_imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line of each relative import, and what it reaches: ``errors`` in ``from ..errors import X``."""
    folder = path.relative_to(PACKAGE).parent.parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            below = [*folder[: len(folder) - node.level + 1], *(node.module.split(".") if node.module else [])]
            yield from ((node.lineno, unit) for unit in (below[:1] or [alias.name for alias in node.names]))


def absolute_imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and top-level name of each absolute import."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.lineno, node.module.split(".")[0]


def defined(tree: ast.Module) -> set[str]:
    """The public names a module defines itself; what it imports is not among them."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return {name for name in names if not name.startswith("_")}


def load(path: Path) -> ModuleType:
    """The module of the package that stands in this file."""
    return importlib.import_module(".".join(["compaction", *(part for part in dotted(path) if part != "__init__")]))


def methods(kind: type) -> list[str]:
    """The public methods and properties a class defines itself."""
    described = (FunctionType, property, cached_property, classmethod, staticmethod)
    return [name for name, value in vars(kind).items() if name[0] != "_" and isinstance(value, described)]


@module
def test_every_module_stands_on_a_floor(path: Path) -> None:
    """A module or folder of the package that the floors do not name has no place yet."""
    unit = dotted(path)[0]
    assert unit in PLACES or unit in FRONT_DOOR, f"{unit} has no floor: give it its place in FLOORS in tests/test_layout.py"


@module
def test_imports_go_down_the_floors(path: Path) -> None:
    """A module imports only from what stands below it and from its own folder, wherever in its text the import stands."""
    unit = dotted(path)[0]
    if unit not in PLACES:
        return
    allowed = {unit, *(name for name, place in PLACES.items() if place < PLACES[unit])}
    assert [f"line {line}: {target}" for line, target in relative_imports(path) if target not in allowed] == []


@module
def test_imports_within_the_package_are_relative(path: Path) -> None:
    """Inside the package an import of the package starts with a dot, so that a copy or a link cannot mix two packages."""
    assert [line for line, name in absolute_imports(path) if name == "compaction"] == []


@module
def test_awaiting_is_anyios_alone(path: Path) -> None:
    """No module imports asyncio or trio: whatever awaits must run on both."""
    assert [f"line {line}: {name}" for line, name in absolute_imports(path) if name in {"asyncio", "trio"}] == []


@public_module
def test_all_names_what_a_module_defines(path: Path) -> None:
    """``__all__`` holds each public name a module defines; a folder's or the package's may show others, which must exist."""
    loaded = load(path)
    exported: list[str] = loaded.__all__
    public = defined(ast.parse(path.read_text(encoding="utf-8")))
    if path.name == "__init__.py":
        assert public - set(exported) == set()
        assert [name for name in exported if not hasattr(loaded, name)] == []
    else:
        assert set(exported) == public
    assert len(exported) == len(set(exported))


@public_module
def test_what_is_public_is_documented(path: Path) -> None:
    """Every public class and function has a docstring, and every public method or property has one or inherits it."""
    loaded = load(path)
    public = {name: getattr(loaded, name) for name in loaded.__all__}
    bare = [name for name, thing in public.items() if (isclass(thing) or isfunction(thing)) and not thing.__doc__]
    for name, thing in public.items():
        if isclass(thing):
            bare += [f"{name}.{member}" for member in methods(thing) if not getdoc(getattr(thing, member))]
    assert bare == []


@module
def test_files_stay_short(path: Path) -> None:
    """No file of the package is longer than 400 lines: past that it holds more than one concept."""
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


def test_import_loads_nothing_heavy() -> None:
    """Importing the package and its strategies, triggers and presets loads no library that takes long or may be missing."""
    program = (
        "import json, sys; import compaction, compaction.strategies, compaction.triggers, compaction.presets; "
        "print(json.dumps([name for name in sys.modules]))"
    )
    loaded = json.loads(run_python("-c", program))
    assert HEAVY & set(loaded) == set()


def run_python(*arguments: str) -> str:
    """What a fresh interpreter at the repository's root prints; its complaints are the test's."""
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def version() -> str:
    """The version that would be released."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the wheel and the source distribution, built from this tree."""
    folder = tmp_path_factory.mktemp("dist")
    run_python("-m", "hatchling", "build", "-d", str(folder))
    return folder


def test_wheel_holds_the_package_alone(shipped: Path) -> None:
    """The wheel holds every file of ``compaction``, its typing marker, its metadata, and nothing else."""
    [wheel] = shipped.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    package = {name for name in names if name.startswith("compaction/")}
    source = {path.relative_to(ROOT).as_posix() for path in texts() if PACKAGE in path.parents}
    assert {name.split("/")[0] for name in names} == {"compaction", f"compaction_toolkit-{version()}.dist-info"}
    assert package == source
    assert "compaction/py.typed" in package


def test_source_distribution_holds_no_link(shipped: Path) -> None:
    """Unpacked and installed, a link named ``triggers`` would overwrite another distribution's package."""
    [archive] = shipped.glob("*.tar.gz")
    with tarfile.open(archive) as source:
        members = source.getmembers()
    top = {member.name.split("/")[1] for member in members}
    assert [member.name for member in members if not member.isfile()] == []
    assert top & set(LINKS) == set()
    assert {"LICENSE", "README.md", "compaction", "pyproject.toml", "tests"} <= top


@pytest.mark.parametrize("name", LINKS)
def test_links_show_the_real_folders(name: str) -> None:
    """The links at the front door are relative, so they hold in every checkout."""
    assert (ROOT / name).readlink() == Path("compaction") / name
    assert (ROOT / name).resolve() == PACKAGE / name


def test_changelog_starts_with_this_version() -> None:
    """The newest heading of the changelog is the version that would be released."""
    headings = [line for line in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines() if line.startswith("## ")]
    assert headings[0].split()[1] == version()


def test_no_file_names_the_machine_it_was_written_on() -> None:
    """No text of the repository holds the path of this checkout, of what stands beside it, or of a home directory."""
    places = [ROOT, ROOT.parent / "shared", Path.home()]
    found = [
        f"{path.relative_to(ROOT)}: {place}"
        for path in texts()
        for place in places
        if f"{place}/" in path.read_text("utf-8", "ignore")
    ]
    assert found == []


def texts() -> Iterator[Path]:
    """Every text file that belongs to the repository, found without following the links."""
    folders = {".ci", "benchmarks", "compaction", "docs", "examples", "tests", "tests_frameworks"}
    for entry in sorted(ROOT.iterdir()):
        if entry.is_file() and (entry.name == ".gitignore" or not entry.name.startswith(".")):
            yield entry
        elif entry.name in folders:
            yield from (path for path in entry.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
