"""OpenCode works on source files over three turns of its user, through ``compaction serve`` at a strict model.

``unshare -rn sh -c 'ip link set lo up && python -m tests.gateway.user_turns 20000'`` prints what came of it as JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import attrs
import httpx

from benchmarks.hosts.script import Asked, Call, Reply
from benchmarks.hosts.server import StrictServer
from tests.support.gateways import GatewayProcess

from .agents import AGENTS, output

SAID: Final = (
    "Fix the rounding of totals in checkout.py. Never touch the migrations folder.",
    "Good, go on with the retries of the mail client.",
    "fine, next",
)
"""The user's messages, one a turn. What the second and the third mean is said in the messages before."""

CALLS: Final[Mapping[int, int]] = {20_000: 4, 32_000: 6, 64_000: 8}
"""The calls of each turn for each window, so many that all turns are cut: a file is read, then written, then the next one."""
_SOURCES: Final = Path(__file__).resolve().parents[2] / "compaction"
_PREFIX: Final = "# Fixed.\n"


class SourceFiles:
    """The model's part. Holds state: the number of its replies, and what the requests lack.

    Args:
        folder: The folder of the files, which `write` makes from this project's longest modules.
        calls: The calls of each turn, an even number.

    Attributes:
        replies: The number of replies; requests for a title are not counted.
        lost: Each message of the user that a request lacks, with the number of the request.
    """

    def __init__(self, folder: Path, calls: int) -> None:
        self.replies = 0
        self.lost: list[tuple[int, str]] = []
        self._calls = calls
        longest = sorted(_SOURCES.rglob("*.py"), key=lambda path: (-path.stat().st_size, path))
        texts = [path.read_text(encoding="utf-8") for path in longest[: len(SAID) * calls // 2]]
        self._files = {folder / f"module_{number}.py": text for number, text in enumerate(texts)}

    def write(self) -> None:
        """Write the files."""
        for path, text in self._files.items():
            path.write_text(text, encoding="utf-8")

    def __call__(self, asked: Asked, id: str) -> Reply:
        """Return the model's reply: the next call, or the end of the turn."""
        if not {"read", "write"} <= set(asked.tools):
            return Reply(id=id, text="Fixing things")
        turn, place = divmod(self.replies, self._calls + 1)
        lost = [said for said in SAID[: turn + 1] if not any(said in step.text for step in asked.steps)]
        self.lost += [(self.replies, said) for said in lost]
        self.replies += 1
        if place == self._calls:
            return Reply(id=id, text="That is done.")
        path, text = list(self._files.items())[(turn * self._calls + place) // 2]
        written = {"filePath": str(path), "content": _PREFIX + text}
        call = Call(f"call_{id}", "write", written) if place % 2 else Call(f"call_{id}", "read", {"filePath": str(path)})
        return Reply(id=id, calls=(call,))


def run(window: int) -> dict[str, Any]:
    """Run the turns, and return what came of them."""
    with tempfile.TemporaryDirectory() as scratch:
        home, work = Path(scratch, "home"), Path(scratch, "work")
        home.mkdir()
        work.mkdir()
        model = SourceFiles(work, CALLS[window])
        model.write()
        with StrictServer(window=window, play=model) as server, GatewayProcess(server.address, home, window=window) as gateway:
            printed = [_turn(turn, home, work, gateway.url) for turn in range(len(SAID))]
            status = httpx.get(f"{gateway.url}/status.json").json()
        cuts = [cut["edits"] for conversation in status["conversations"] for cut in conversation["cuts"]]
        return {
            "requests": model.replies,
            "lost": model.lost,
            "invalid": server.ledger.total("invalid"),
            "over": server.ledger.total("over"),
            "problems": [problem for page in server.ledger.pages.values() for problem in page.problems],
            "edits": Counter(_kind(edit) for cut in cuts for edit in cut),
            "cuts": cuts,
            **{name: status[name] for name in ("passed_through", "retries", "failures")},
            "printed": printed,
        }


def _turn(turn: int, home: Path, work: Path, url: str) -> str:
    """Return what OpenCode prints for a message of its user; each but the first continues the session."""
    arguments = ("run", *(("--continue",) if turn else ()), SAID[turn])
    return output(attrs.evolve(AGENTS["opencode-chat"], arguments=arguments), home, work, url)[-2_000:]


def _kind(edit: str) -> str:
    """Return the kind and the reason of an edit; of one that keeps its message, the kind alone."""
    kind, _, _ = edit.partition(":")
    return kind if kind == "Rewrite" else edit


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(int(sys.argv[1])), indent=1))
