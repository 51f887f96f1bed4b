"""Run by aider's own Python: a user who shows aider each file that its model asks for, until the model is done."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

from aider.main import main  # type: ignore[import-not-found,unused-ignore]  # pyright: ignore[reportMissingImports, reportUnknownVariableType]

ASKED = re.compile(r"Please run `(.+?)`")
MOST_TURNS = 400


def converse(options: list[str], prompt: str) -> None:
    """Start aider with the options of its recipe, and do what its model asks for."""
    quiet = ["--no-git", "--no-check-update", "--no-show-model-warnings", "--analytics-disable"]
    quiet += ["--no-pretty", "--no-fancy-input"]
    model = ["--model", "openai/gpt-5", "--openai-api-key", "none", "--yes-always", "--map-tokens", "0"]
    coder: Any = main([*options, *model, *quiet], return_coder=True)
    said = coder.run(prompt)
    for _ in range(MOST_TURNS):
        asked = ASKED.search(said or "")
        if asked is None:
            break
        coder.run(f"/run {asked[1]}")
        said = coder.run("Go on.")
    sys.stdout.write(str(said))


if __name__ == "__main__":
    converse(os.environ["AIDER_OPTIONS"].split(), sys.argv[1])
