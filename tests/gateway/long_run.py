"""A real agent works on source files over three turns of its user, behind the gateway, in front of a strict and priced model.

``unshare -rn sh -c 'ip link set lo up && python -m tests.gateway.long_run codex 800 40000'`` prints what came of it as JSON.
Between the agent and the gateway, an instruction is added after every tenth result, as some agents add reminders.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import attrs
import httpx

from benchmarks.hosts.script import Asked, Call, Reply
from compaction.gateway import create_app
from tests.support.gateways import serving_app, settings_of

from .agent_task import SHELLS
from .agents import AGENTS, PricedApp, PricedServer, dollars, folders, outcome, output

SAID: Final = (
    "Fix the rounding of totals in all modules. Never touch the migrations folder.",
    "Good, go on with the retries of the mail client.",
    "fine, next",
)
"""The user's messages, one a turn. What the second and the third mean is said in the messages before."""

_EVERY: Final = 10
_MARK: Final = re.compile(r"\[compaction ([0-9a-f]{8,16}) by")
_CHARACTERS: Final = 2_400
_ROOT: Final = Path(__file__).resolve().parents[2]


class SourceFiles:
    """The model's part: it reads a file, writes it, and goes on with the next one. Holds state: its replies.

    Args:
        calls: The calls of all turns.
        recalls: Whether it expands each summary once, if that is offered.

    Attributes:
        recalled: The number of summaries that it read.
        replies: The number of replies; requests for a title are not counted.
        lost: Each message of the user that a request lacks, with the number of the request.
    """

    def __init__(self, calls: int, *, recalls: bool = False) -> None:
        self.replies = 0
        self.recalled = 0
        self._recalls = recalls
        self._expanded = ""
        self.lost: list[tuple[int, str]] = []
        self._each = calls // len(SAID)
        text = "\n".join(path.read_text(encoding="utf-8") for path in sorted((_ROOT / "compaction").rglob("*.py")))
        parts = (text[start : start + _CHARACTERS] for start in range(0, len(text), _CHARACTERS))
        self._files = [f"# Module {number}.\n{part}\n" for number, part in zip(range(calls // 2 + 1), parts, strict=False)]

    def write(self, folder: Path) -> None:
        """Write the files."""
        for number, text in enumerate(self._files):
            (folder / f"module_{number}.py").write_text(text, encoding="utf-8")

    def is_step(self, asked: Asked) -> bool:
        """Whether a request is a step of the task, and not for a title."""
        return not SHELLS.keys().isdisjoint(asked.tools)

    def __call__(self, asked: Asked, id: str) -> Reply:
        """Return the model's reply: the next call, or the end of the turn."""
        if not self.is_step(asked):
            return Reply(id=id, text="Fixing things")
        if (recall := self._recall(asked)) is not None:
            return Reply(id=id, calls=(recall,))
        turn, place = divmod(self.replies, self._each + 1)
        lost = [said for said in SAID[: turn + 1] if not any(said in step.text for step in asked.steps)]
        self.lost += [(self.replies, said) for said in lost]
        self.replies += 1
        if place == self._each:
            return Reply(id=id, text="That is done.")
        number = (turn * self._each + place) // 2
        name, text = f"module_{number}.py", self._files[number % len(self._files)]
        command = f"cat > {name} <<'END'\n# Fixed.\n{text}END" if place % 2 else f"cat {name}"
        tool = next(name for name in SHELLS if name in asked.tools)
        return Reply(id=id, calls=(Call(f"call_{id}", tool, SHELLS[tool](command)),))

    def _recall(self, asked: Asked) -> Call | None:
        """Return the call that expands a summary, once for each; ``None`` if it is not due."""
        text = json.dumps(asked.messages)
        self.recalled += bool(self._expanded) and f"recall_{self._expanded}" in text
        mark = _MARK.search(text)
        if not self._recalls or "compaction_expand" not in asked.tools or mark is None or mark[1] == self._expanded:
            return None
        self._expanded = mark[1]
        return Call(f"recall_{mark[1]}", "compaction_expand", {"id": mark[1], "limit": 2_000})


def _reminded(messages: list[Any], wire: str) -> list[Any]:
    """Return the messages with a reminder after every tenth result."""
    found: list[Any] = []
    results = 0
    for message in messages:
        found.append(message)
        is_result = message.get("role") == "tool" or message.get("type") == "function_call_output"
        results += is_result
        if is_result and results % _EVERY == 0:
            text = f"Reminder {results // _EVERY}: keep the list of tasks current, and be brief."
            found.append(
                {"role": "system", "content": text}
                if wire == "openai-chat"
                else {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": text}]}
            )
    return found


_CONTINUED: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "opencode-chat": (("run",), ("run", "--continue")),
    "codex": (("exec", "--skip-git-repo-check"), ("exec", "--skip-git-repo-check", "resume", "--last")),
}
"""The arguments before the user's message, in the first turn and in later ones."""


def run(name: str, calls: int, window: int, *, recalls: bool = False) -> dict[str, Any]:
    model = SourceFiles(calls, recalls=recalls)
    with tempfile.TemporaryDirectory() as scratch, PricedServer(window, model) as server:
        home, work = folders(Path(scratch), model)
        recall = home / "recall.db" if recalls else None
        settings = settings_of(server.address, window=window, timeout=60.0, recall=recall)
        app = PricedApp(create_app(settings), model.is_step, _reminded)
        with serving_app(app) as url:
            printed = [_turn(name, turn, home, work, url) for turn in range(len(SAID))]
            status = httpx.get(f"{url}/status.json").json()
    cuts = [cut for conversation in status["conversations"] for cut in conversation["cuts"]]
    sizes = [charge.tokens for charge in server.charges]
    floors = [size for before, size in pairwise(sizes) if size < before]
    return {
        "agent": name,
        "replies": model.replies,
        "recalled": model.recalled,
        "saw_recall": any(sign in text for text in app.texts for sign in ("compaction_expand", "recall_")),
        "lost": model.lost,
        "floors": floors,
        "edits": Counter(_kind(edit) for cut in cuts for edit in cut["edits"]),
        "bill": dollars(server.charges) / max(1e-9, dollars(app.charges)),
        "seconds_added": status["totals"]["seconds_total"] / max(1, status["totals"]["requests"]),
        **outcome(server, status),
        "printed": [each[-600:] for each in printed],
    }


def _turn(name: str, turn: int, home: Path, work: Path, url: str) -> str:
    """Return what the agent prints for a message of its user; each but the first continues the session."""
    agent = attrs.evolve(AGENTS[name], arguments=(*_CONTINUED[name][turn > 0], SAID[turn]))
    return output(agent, home, work, url, seconds=3_600)


def _kind(edit: str) -> str:
    """Return the kind and the reason of an edit; of one that keeps its message, the kind alone."""
    kind, _, _ = edit.partition(":")
    return kind if kind == "Rewrite" else edit


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), recalls="--recall" in sys.argv), indent=1))
