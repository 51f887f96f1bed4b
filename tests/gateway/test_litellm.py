"""The recipe for LiteLLM, which is installed together with aider."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from benchmarks.hosts.script import user_text
from benchmarks.hosts.server import StrictServer
from tests.support.gateways import serving_url

from .agents import AGENTS, FOLDER, recipe

PYTHON: Path = FOLDER / AGENTS["aider"].program
PROGRAM = """
import sys, litellm
model, url, text = sys.argv[1:]
reply = litellm.completion(model, [{"role": "user", "content": text}], api_base=url, api_key="none")
print(reply.choices[0].message.content)
"""


@pytest.mark.timeout(120)
def test_litellm_answers_through_the_gateway() -> None:
    if not PYTHON.exists():
        pytest.skip(f"{PYTHON} is missing; make test-gateway installs it")
    with StrictServer(window=100_000) as behind, StrictServer(window=100_000) as direct, serving_url(behind.address) as url:
        [model] = yaml.safe_load(recipe("LiteLLM", url))["model_list"]
        options = model["litellm_params"]
        environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        said = [
            subprocess.run(
                [str(PYTHON), "-c", PROGRAM, options["model"], address, user_text("alpha", 0)],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            for address in (options["api_base"], f"{direct.address}/v1")
        ]
        assert behind.ledger.total("requests") == 1
    assert said[0] == said[1] != ""
