"""tau-bench's result files: a JSON list of runs, each with its messages in OpenAI form as ``traj``."""

from __future__ import annotations

from typing import Any

from ..recording import Recording
from .chat import fields_of, items_of

__all__ = ["is_tau_bench", "read_tau_bench"]


def is_tau_bench(document: Any) -> bool:
    """Whether a JSON document, or its first item, is a run of tau-bench's."""
    first = document if not items_of(document) else items_of(document)[0]
    return isinstance(fields_of(first).get("traj"), list)


def read_tau_bench(document: Any, where: str) -> list[Recording]:
    """The runs in a document, each under its task and trial."""
    runs = [fields_of(run) for run in items_of(document)] or [fields_of(document)]
    found: list[Recording] = []
    for number, run in enumerate(runs, 1):
        task, trial = run.get("task_id", number), run.get("trial", 0)
        found.append(Recording(id=f"task {task}, trial {trial}", messages=items_of(run.get("traj")), where=where))
    return found
