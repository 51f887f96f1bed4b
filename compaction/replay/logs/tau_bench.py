"""tau-bench's result files: a JSON list of runs, each with its messages in OpenAI form in ``traj``."""

from __future__ import annotations

from typing import Any

from ..recordings import Recording
from .chat_builder import list_items, object_fields

__all__ = ["is_tau_bench", "read_tau_bench"]


def is_tau_bench(document: Any) -> bool:
    """Return whether a JSON document, or its first item, is a tau-bench run."""
    first = document if not list_items(document) else list_items(document)[0]
    return isinstance(object_fields(first).get("traj"), list)


def read_tau_bench(document: Any, where: str) -> list[Recording]:
    """Return the runs in a document, each named by its task and trial."""
    runs = [object_fields(run) for run in list_items(document)] or [object_fields(document)]
    found: list[Recording] = []
    for number, run in enumerate(runs, 1):
        task, trial = run.get("task_id", number), run.get("trial", 0)
        found.append(Recording(id=f"task {task}, trial {trial}", messages=list_items(run.get("traj")), where=where))
    return found
