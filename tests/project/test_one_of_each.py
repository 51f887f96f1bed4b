"""There is one mechanism for each question: these tests notice a second."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeAlias

from tests.project.test_layout import MODULES, named, parsed

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def places(wanted: str) -> set[str]:
    return {named(path) for path in MODULES if wanted in calls(path)}


@cache
def calls(path: Path) -> frozenset[str]:
    """Return the name of everything that a module calls; of a method, the name alone, and with that of its object."""
    called = [node.func for node in ast.walk(parsed(path)) if isinstance(node, ast.Call)]
    methods = [each for each in called if isinstance(each, ast.Attribute)]
    functions = [each.id for each in called if isinstance(each, ast.Name)]
    return frozenset([*functions, *(each.attr for each in methods), *map(ast.unparse, methods)])


def test_one_module_tells_which_message_of_the_host_this_is() -> None:
    """Sessions, pools, the gateway and integrations ask `compaction.index` for the place of a message, or for its key."""
    assert places("align") == {"index/identity.py"}
    assert places("format.key") == definitions("message_key") == {"index/keys.py"}
    assert places("same_beginning") == {"index/identity.py", "session/pool.py"}


def test_one_planner_of_cuts_and_one_judge_of_joins() -> None:
    """Only the planners ask a format for the neighbours that it prefers, and only the editor applies edits by a judge."""
    assert places("format.prefers") == {"index/cuts.py"}
    assert places("cuts.plan_cuts") == {"index/message_index.py"}
    assert places("cuts.plan_units") == {"index/editing.py"}
    assert places("joins.bad_joins") == places("joins.new_joins") == places("perform") == {"index/editing.py"}


def test_one_lineage_decides_what_is_forgotten() -> None:
    """One function tells the edits that go with a message, and no strategy or session judges by words."""
    assert definitions("judged") == {"index/forgetting.py"}
    assert places("forgotten") == places("saved_without") == {"index/message_index.py"}


def test_frozen_values_of_an_index_and_a_session_are_not_changed() -> None:
    """Neither folder goes around the protection of a frozen class."""
    assert not {place for place in places("object.__setattr__") if place.startswith(("index/", "session/"))}


def test_one_driver_and_one_dry_run_run_strategies() -> None:
    """Only the drivers and the dry run begin and end steps, and only the dry run begins a trial.

    The others that `relay` a strategy pass most of what it yields on to one of these.
    """
    assert places("begin_step") - {"index/message_index.py"} == {"index/dry_runs.py", "result.py"}
    assert places("index.trial") == places("unchanged_groups") == {"index/dry_runs.py"}


def test_one_history_of_runs() -> None:
    """One module counts runs that failed or did not help, and says how long a strategy pauses."""
    assert definitions("is_paused") == {"index/pauses.py", "strategies/base.py"}
    assert places("record_success") - {"batch/rate_limits.py"} == {"index/pauses.py", "strategies/base.py"}
    assert places("UselessRuns") == {"index/pauses.py", "session/session.py", "integrations/hermes/engine.py"}


def test_one_module_of_cache_breakpoints_and_one_reader_of_members() -> None:
    assert texts("cache_control") == {"formats/breakpoints.py", "formats/anthropic.py"}
    assert definitions("member") == {"json_data.py"}


TWINS_WITH_LOGIC = {
    ("integrations/hermes/engine.py", "compress_async"),  # `compress` drives it, and has no logic of its own
    ("integrations/anthropic.py", "_observed_async"),  # a stream can be read by no driver
}


def test_sync_and_async_are_written_once() -> None:
    """Of a function and its twin for the other kind of program, neither has a condition, a loop or an exception handler.

    Only a coroutine that its twin drives may have them: one coroutine has the logic, with the flag ``sync``, which says whether
    it may await, and its twin does nothing but call it with ``sync=True``.
    """
    logic = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try)
    found = {
        (named(path), node.name)
        for path in MODULES
        for scope in ast.walk(parsed(path))
        if isinstance(scope, ast.Module | ast.ClassDef)
        for node, twin in twins(scope)
        if any(isinstance(part, logic) for part in ast.walk(node))
        or (not drives(node, twin) and any(isinstance(part, logic) for part in ast.walk(twin)))
    }
    assert found == TWINS_WITH_LOGIC


def drives(node: Function, twin: Function) -> bool:
    """Whether a function does nothing but return the answer of its twin, called once with ``sync=True``."""
    _docstring, *body = node.body
    calls = [part for part in ast.walk(node) if isinstance(part, ast.Call) and ast.unparse(part.func) == f"self.{twin.name}"]
    flags = [ast.unparse(keyword) for call in calls for keyword in call.keywords]
    return len(body) == len(calls) == 1 and isinstance(body[0], ast.Return) and "sync=True" in flags


def twins(scope: ast.Module | ast.ClassDef) -> Iterator[tuple[Function, Function]]:
    """Yield each function of a module or class with that of the same name without ``_sync`` or ``_async``."""
    functions = {node.name: node for node in scope.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    for name, node in functions.items():
        twin = functions.get(name.removesuffix("_sync").removesuffix("_async"))
        if twin is not None and twin is not node:
            yield node, twin


def definitions(wanted: str) -> set[str]:
    """Return the files that define a function or method of this name, or of one with underscores or ``_of`` around it."""
    nodes = [(path, node) for path in MODULES for node in ast.walk(parsed(path)) if isinstance(node, Function)]
    return {named(path) for path, node in nodes if node.name.strip("_").removesuffix("_of") == wanted}


def texts(wanted: str) -> set[str]:
    constants = {path: [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Constant)] for path in MODULES}
    return {named(path) for path, nodes in constants.items() if any(node.value == wanted for node in nodes)}


def test_words_that_only_this_project_used_stay_away() -> None:
    """Functions and classes have names that a reader knows from elsewhere."""
    gone = {"Fresh", "standing_for", "reach", "FailurePauses", "LoopGuard", "grants", "HeldDrops", "TurnLock"}
    gone |= {"pauses_as", "Bounds", "cannot_fire", "cannot_run"}
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    defined = {node.name for path in MODULES for node in ast.walk(parsed(path)) if isinstance(node, kinds)}
    assert defined & gone == set()
