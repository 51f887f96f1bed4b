"""A task for a real agent: sixty files are read one after the other, and some file names need a code from an earlier file."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from benchmarks.hosts.script import Asked, Call, Reply, words

PROMPT: Final = (
    "[[agent:0]] Read all parts in this folder, one after the other, and tell me the codes that the last one asks for."
)
DONE: Final = "All parts are read, the codes are"
SIGNED: Final = "c2lnbmVk"
"""The beginning of each signature; the id of its call follows."""
_LOOKS_BACK: Final = 4  # every fourth file name needs an earlier code

SHELLS: Final[Mapping[str, Callable[[str], dict[str, Any]]]] = {
    "bash": lambda command: {"command": command, "description": "Read a part"},
    "exec_command": lambda command: {"cmd": command, "max_output_tokens": 20_000},
    "shell_command": lambda command: {"command": command},
    "shell": lambda command: {"command": ["sh", "-c", command]},
    "run_shell_command": lambda command: {"command": command, "description": "Read a part"},
}
"""The shell tools of agents, and the arguments of each for a command."""


class StepTask(Protocol):
    """A model's part of a task."""

    def write(self, folder: Path) -> None:
        """Write the files."""
        ...

    def is_step(self, asked: Asked) -> bool:
        """Whether a request is a step of the task."""
        ...

    def __call__(self, asked: Asked, id: str) -> Reply:
        """Return the model's reply."""
        ...


class AgentTask:
    """The model's part. Holds state: the next file, and how often a file was read again because its code was gone.

    Args:
        steps: The number of files.
        characters: Characters of each file.
        seed: Decides the codes.
        has_tools: Whether the agent has a shell tool; if not, the model asks its user to run each command.
    """

    def __init__(self, steps: int = 60, characters: int = 12_000, seed: int = 0, *, has_tools: bool = True) -> None:
        chance = random.Random(seed)
        self.codes = [f"{chance.choice(('red', 'blue', 'green'))}-{chance.randrange(16**6):06x}" for _ in range(steps)]
        self.needs = {step: chance.randrange(step) for step in range(_LOOKS_BACK, steps, _LOOKS_BACK)}
        self.last = sorted(chance.sample(range(steps), 3))
        self.calls = 0
        self.read_again = 0
        self._characters = characters
        self._has_tools = has_tools
        self._next = 0
        self._lock = threading.Lock()

    @property
    def answer(self) -> str:
        """The last word."""
        return f"{DONE} {' '.join(self.codes[step] for step in self.last)}."

    def write(self, folder: Path) -> None:
        """Write the files."""
        for step, code in enumerate(self.codes):
            lines = words(f"part {step}", self._characters).replace(" ", "\n", 30)
            (folder / self._name(step)).write_text(f"Part {step}. The code of part {step} is {code}.\n{lines}\n")

    def _name(self, step: int) -> str:
        """Return the name of a file: that of some parts holds the code of an earlier one."""
        needed = self.needs.get(step)
        return f"part_{step}.txt" if needed is None else f"part_{step}_{self.codes[needed]}.txt"

    def is_step(self, asked: Asked) -> bool:
        """Whether a request is a step of the task; those without a shell are for titles and checks."""
        return asked.schema is None and (not self._has_tools or not SHELLS.keys().isdisjoint(asked.tools))

    def __call__(self, asked: Asked, id: str) -> Reply:
        """Return the model's reply: the next call, or the last word."""
        tool = next((name for name in SHELLS if name in asked.tools), None)
        if not self.is_step(asked):
            return Reply(id=id, text="Reading the parts" if asked.schema is None else json.dumps(_filled(asked.schema)))
        with self._lock:
            said = json.dumps(asked.messages)
            step = self._next
            needed = self.last if step == len(self.codes) else [self.needs[step]] if step in self.needs else []
            gone = next((each for each in needed if self.codes[each] not in said), None)
            if gone is None and step == len(self.codes):
                return Reply(id=id, text=self.answer)
            if gone is None:
                self._next += 1
            else:
                self.read_again += 1
            self.calls += 1
            command = f"cat {self._name(step if gone is None else gone)}"
            if tool is None:
                return Reply(id=id, text=f"Please run `{command}` and show me what it prints.")
            call = Call(f"call_{id}", tool, SHELLS[tool](command))
            return Reply(id=id, calls=(call,), signature=f"{SIGNED}{call.id}")


def _filled(schema: Any) -> Any:
    """Return a value that a JSON schema takes."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = str(schema.get("type", "object")).lower()
    if kind == "object":
        return {name: _filled(each) for name, each in (schema.get("properties") or {}).items()}
    return {"string": "no", "number": 0, "integer": 0, "boolean": False, "array": []}.get(kind)
