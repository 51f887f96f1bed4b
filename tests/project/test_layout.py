"""The package's layout: which module may import which, and which names are public."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache, cached_property
from inspect import getdoc, isclass, isfunction
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "compaction"
MODULES = sorted(PACKAGE.rglob("*.py"))

# The floors (layers) of the package, lowest first. A module imports from lower floors, from earlier units of its own floor,
# and from its own folder. A new module or folder must be added here. Five units serve the others: `lazy` imports a package's
# exports at their first use; `checks` contains the validators of options, which every floor from `tokens` up uses; `json_data`
# writes and reads stored JSON; `files` reads recorded conversations and imports nothing above `formats`; `result` is the part
# of `run` that reports import without it.
FLOORS = (
    ("lazy", "installation", "errors", "messages", "algebra", "checks", "json_data", "models"),
    ("tokens", "formats", "files"),
    ("index",),
    ("stores", "summarizers"),
    ("selectors", "triggers"),
    ("strategies",),
    ("presets", "result", "run", "session"),
    ("config", "integrations", "gateway", "batch", "replay", "testing"),
    ("cli",),
)
PLACES = {unit: place for place, unit in enumerate(unit for floor in FLOORS for unit in floor)}
FRONT_DOOR = {"__init__", "__main__"}  # may import every module that they export

# The modules whose ``__all__`` is public; that of each framework's module or folder in `compaction.integrations` is public too.
PUBLIC_MODULES = (
    *("", "strategies", "triggers", "presets", "models", "summarizers", "stores", "session", "formats", "testing"),
    *("batch", "replay", "integrations"),
)
SHARED_BY_FRAMEWORKS = {"__init__", "conversation", "message_adapter", "options", "requirements", "summarizers"}
FRAMEWORKS = [
    *(path for path in sorted(PACKAGE.glob("integrations/*.py")) if path.stem not in SHARED_BY_FRAMEWORKS),
    *sorted(PACKAGE.glob("integrations/*/__init__.py")),
]
PUBLIC_NAMES = 237
"""The number of public names. Changing it is a decision: each public name must be kept from then on."""

LAZY = [path for path in MODULES if path.name == "__init__.py" and "export_lazily(" in path.read_text(encoding="utf-8")]
EXPORTING = [
    path
    for path in MODULES
    if path.name == "__init__.py" or path in FRAMEWORKS or (path.parent == PACKAGE and path.name != "__main__.py")
]

module = pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
lazy_package = pytest.mark.parametrize("path", LAZY, ids=lambda path: path.relative_to(PACKAGE).as_posix())
exporting_module = pytest.mark.parametrize("path", EXPORTING, ids=lambda path: path.relative_to(PACKAGE).as_posix())


def dotted(path: Path) -> list[str]:
    """Return ``["tokens", "cache"]`` for ``compaction/tokens/cache.py``; a package has its folder's name."""
    parts = list(path.relative_to(PACKAGE).with_suffix("").parts)
    return parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path: Path) -> tuple[tuple[int, Path], ...]:
    """Return the line and the imported file of each relative import, also in functions; for a folder, its ``__init__``."""
    found: list[tuple[int, Path]] = []
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            shown = names_shown(folder)
            for alias in node.names:
                submodule = None if alias.name in shown else file_of(folder / alias.name)
                found.append((node.lineno, submodule or file_of(folder) or folder))
    return tuple(found)


@cache
def names_shown(folder: Path) -> frozenset[str]:
    """Return the names that a folder's ``__init__`` imports from its modules, which hide modules of the same name."""
    path = folder / "__init__.py"
    nodes = ast.walk(parsed(path)) if path.is_file() else ()
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    return frozenset(alias.asname or alias.name for node in froms for alias in node.names)


def file_of(place: Path) -> Path | None:
    """Return the file of a module or package, or ``None`` if there is none."""
    candidates = (place.with_name(f"{place.name}.py"), place / "__init__.py")
    return next((path for path in candidates if path.is_file()), None)


def named(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def absolute_imports(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.lineno, node.module.split(".")[0]


def defined(tree: ast.Module) -> set[str]:
    """Return the public names that a module defines itself, without imported names."""
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
    return importlib.import_module(".".join(["compaction", *(part for part in dotted(path) if part != "__init__")]))


def methods(kind: type) -> list[str]:
    described = (FunctionType, property, cached_property, classmethod, staticmethod)
    return [name for name, value in vars(kind).items() if name[0] != "_" and isinstance(value, described)]


def test_contributing_names_the_files_that_exist() -> None:
    """Each file or folder in its tables exists (``NAME`` stands for any)."""
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("<!-- ")[0]
    rows = [line for line in guide.splitlines() if line.startswith("| ")]
    paths = {path for row in rows for path in re.findall(r"`([\w./]+)`", row) if "/" in path or path.endswith(".py")}
    roots = (ROOT, PACKAGE, PACKAGE / "index", ROOT / "docs")
    assert not {path for path in paths if not any([*root.glob(path.replace("NAME", "*"))] for root in roots)}


@module
def test_every_module_stands_on_a_floor(path: Path) -> None:
    unit = dotted(path)[0]
    assert unit in PLACES or unit in FRONT_DOOR, f"{unit} has no floor: give it a place in FLOORS in this file"


@module
def test_imports_go_down_the_floors(path: Path) -> None:
    """A module imports only from lower floors and from its own folder, including imports inside functions."""
    unit = dotted(path)[0]
    if unit not in PLACES:
        return
    allowed = {unit, *(name for name, place in PLACES.items() if place < PLACES[unit])}
    above = [f"line {line}: {named(target)}" for line, target in imports(path) if dotted(target)[0] not in allowed]
    assert above == [], f"{named(path)} imports from a floor above its own: move what it needs down, or the import up"


def test_no_files_form_a_circle() -> None:
    """No file imports itself through others, including imports inside functions and for type checkers."""
    graph = {path: {target for _, target in imports(path) if target != path} for path in MODULES}
    circles = [sorted(map(named, circle)) for circle in circles_of(graph)]
    assert circles == [], "these files import each other: move what both need into one of them, or into a file below both"


def circles_of(graph: dict[Path, set[Path]]) -> list[set[Path]]:
    """Return the sets of files that import one another; a file that imports only itself is not a circle."""

    def reached(start: Path) -> set[Path]:
        found: set[Path] = set()
        left = [start]
        while left:
            new = graph.get(left.pop(), set()) - found
            found |= new
            left += new
        return found

    reach = {path: reached(path) for path in graph}
    on_a_circle = [path for path in graph if path in reach[path]]
    return [set(each) for each in {frozenset(other for other in reach[path] if path in reach[other]) for path in on_a_circle}]


@module
def test_folders_are_imported_through_their_init(path: Path) -> None:
    """No file imports a private file of another folder, except of the folders that contain it."""
    others = [(line, target) for line, target in imports(path) if target.parent not in path.parents]
    private = [f"line {line}: {named(target)}" for line, target in others if target not in EXPORTING]
    assert private == [], f"{named(path)} imports another folder's private file: import the name from the folder instead"


@lazy_package
def test_lazy_exports_are_those_that_type_checkers_see(path: Path) -> None:
    [checked] = [node for node in parsed(path).body if isinstance(node, ast.If)]
    [call] = [node.value for node in parsed(path).body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
    seen: dict[str, set[str]] = {}
    for node in ast.walk(checked):
        if isinstance(node, ast.ImportFrom) and node.module:
            seen.setdefault(node.module, set()).update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            seen |= {alias.name: set() for alias in node.names if alias.name not in seen}
    lazy: dict[str, str] = ast.literal_eval(call.args[1])
    assert {module: set(names.split()) for module, names in lazy.items()} == seen


def test_every_format_is_exported() -> None:
    """`compaction.formats` exports the shared instance of every registered format under its name.

    Without the export, the name is the format's module.
    """
    front = importlib.import_module("compaction.formats")
    names = {format.name.replace("-", "_"): format for format in front.FORMATS}
    assert {name: getattr(front, name, None) for name in names} == names
    assert set(names) <= set(front.__all__)


def test_the_front_stays_small() -> None:
    """At most 16 modules are directly in the package; the others are in folders."""
    front = sorted(path.name for path in PACKAGE.glob("*.py"))
    assert len(front) <= 16, f"{len(front)} modules at the package's front: move one into the folder it serves: {front}"


def public_names() -> dict[str, list[tuple[str, object]]]:
    """Return each public name with the modules that export it and the exported objects."""
    found: dict[str, list[tuple[str, object]]] = {}
    for name in (*PUBLIC_MODULES, *(".".join(dotted(path)) for path in FRAMEWORKS)):
        loaded = importlib.import_module(f"compaction.{name}".rstrip("."))
        for each in loaded.__all__:
            found.setdefault(each, []).append((loaded.__name__, getattr(loaded, each)))
    return found


def test_public_names_are_counted() -> None:
    """The number of public names equals ``PUBLIC_NAMES``; a name that two modules export counts once."""
    count = len(public_names())
    assert count == PUBLIC_NAMES, f"{count} public names, not {PUBLIC_NAMES}: if that is meant, change PUBLIC_NAMES"


def test_a_public_name_means_one_thing() -> None:
    """A name that two public modules export is the same object in both."""
    names = public_names().items()
    alike = {name: places for name, places in names if any(thing is not places[0][1] for _, thing in places)}
    assert alike == {}, "these public names mean different things in different modules: rename all but one"


def test_a_name_is_defined_once() -> None:
    """No two modules define a class, a function or a type of the same name, so that a search finds one thing.

    Constants (names in capitals) may recur if no other folder imports them.
    """
    places: dict[str, list[Path]] = {}
    for path in MODULES:
        for name in defined(parsed(path)) - {"__all__"}:
            places.setdefault(name, []).append(path)
    several = {name: paths for name, paths in places.items() if len(paths) > 1}
    twice = {name: sorted(map(named, paths)) for name, paths in several.items() if not is_private_constant(name, paths)}
    assert twice == {}, "these names are defined more than once: rename all but one, or make them private"


def is_private_constant(name: str, paths: list[Path]) -> bool:
    """Return whether the name is a constant that only modules in the folders of its definitions import."""
    folders = {path.parent for path in paths}
    outside = [node for path in MODULES if path.parent not in folders for node in ast.walk(parsed(path))]
    imported = {alias.name for node in outside if isinstance(node, ast.ImportFrom) for alias in node.names}
    return name.isupper() and len(folders) == len(paths) and name not in imported


@module
def test_imports_within_the_package_are_relative(path: Path) -> None:
    """The package's modules import one another relatively, so that a copy or a link cannot mix two packages."""
    assert [line for line, name in absolute_imports(path) if name == "compaction"] == []


@module
def test_awaiting_is_anyios_alone(path: Path) -> None:
    """No module imports asyncio or trio: async code must run on both, through anyio.

    The gateway's workers are the exception: its HTTP client runs on asyncio alone, and a stream of anyio logs an error if a
    request is cancelled as its answer arrives.
    """
    others = {"trio"} if path == PACKAGE / "gateway" / "workers.py" else {"asyncio", "trio"}
    assert [f"line {line}: {name}" for line, name in absolute_imports(path) if name in others] == []


@exporting_module
def test_all_names_what_a_module_exports(path: Path) -> None:
    """``__all__`` contains each public name that a folder or front module defines, and every name in it exists."""
    loaded = load(path)
    exported: list[str] = loaded.__all__
    assert defined(parsed(path)) - set(exported) == set()
    assert [name for name in exported if not hasattr(loaded, name)] == []
    assert len(exported) == len(set(exported))


def test_only_folders_and_the_front_have_all() -> None:
    """Only folders, front modules and frameworks have ``__all__``; another module inside a folder does not need it."""
    exporting = [path for path in MODULES if hasattr(load(path), "__all__")]
    assert exporting == EXPORTING


def test_no_docstring_begins_with_what() -> None:
    """A docstring says what a function does or what a thing is; it does not open with a clause ("What a message holds.")."""
    folders = ("benchmarks", "compaction", "docs", "examples", "tests")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py") if path != Path(__file__)]
    assert [path.relative_to(ROOT).as_posix() for path in paths if '"""What ' in path.read_text(encoding="utf-8")] == []


@module
def test_what_is_public_is_documented(path: Path) -> None:
    loaded = load(path)
    public = {name: getattr(loaded, name) for name in getattr(loaded, "__all__", defined(parsed(path)))}
    bare = [name for name, thing in public.items() if (isclass(thing) or isfunction(thing)) and not thing.__doc__]
    for name, thing in public.items():
        if isclass(thing):
            bare += [f"{name}.{member}" for member in methods(thing) if not getdoc(getattr(thing, member))]
    assert bare == []


@pytest.mark.parametrize("folder", ["index", "session"])
def test_no_class_is_spread_over_files(folder: str) -> None:
    """A class has its parts instead of inheriting them: no class has a base from another file of its folder."""
    paths = [path for path in MODULES if path.parent == PACKAGE / folder]
    made = {node.name: path for path in paths for node in parsed(path).body if isinstance(node, ast.ClassDef)}
    classes = [(path, node) for path in paths for node in parsed(path).body if isinstance(node, ast.ClassDef)]
    bases = [(path, base.id) for path, node in classes for base in node.bases if isinstance(base, ast.Name)]
    assert [f"{named(path)}: {base}" for path, base in bases if made.get(base, path) != path] == []
