"""Examples run as programs, with a model on loopback, and killed if a test requires it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.frameworks.model_server import ModelServer

ROOT = Path(__file__).resolve().parents[2]


class Example:
    """An example as a program that reads a question a line and answers each. Holds state: the questions before it was killed.

    Args:
        name: Its file in ``examples``, without the ending.
        server: The model it talks to.
        arguments: Its command line.
    """

    def __init__(self, name: str, server: ModelServer, arguments: Sequence[str]) -> None:
        self.command = [sys.executable, str(ROOT / "examples" / f"{name}.py"), *arguments]
        self.server = server

    def ask(self, questions: Sequence[str], *, kill_at: int | None = None, seconds: float = 110) -> list[str]:
        """Return the lines of its answers.

        Args:
            questions: One for each line of its input.
            kill_at: The number of the model's request during which it is killed, from 1.
            seconds: How long it may take.
        """
        names = ("ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME")
        address = {"OPENAI_BASE_URL": self.server.url, **dict.fromkeys(names, self.server.address)}
        names = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
        keys = {**dict.fromkeys(names, "none"), "PYTHONPATH": str(ROOT), "LANGSMITH_TRACING": "false"}
        pipes: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        program = subprocess.Popen(self.command, text=True, env={**os.environ, **address, **keys}, **pipes)
        if kill_at is not None:
            self.server.before_answer = lambda number: number == kill_at and program.send_signal(signal.SIGKILL)
        output, complaints = program.communicate("".join(f"{question}\n" for question in questions), timeout=seconds)
        assert program.returncode == (0 if kill_at is None else -signal.SIGKILL), complaints
        self.server.before_answer = int
        self.complaints = complaints
        return output.splitlines()
