"""The options of every integration as type checkers see them."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import attrs
import pytest

from compaction.integrations import IntegrationOptions
from compaction.integrations.options import CommonOptions

PROGRAM = """
from compaction import presets
from compaction.integrations.agent_framework import CompactionProvider, as_framework_strategy
from compaction.integrations.anthropic import RequestCompaction
from compaction.integrations.google_adk import CompactionPlugin
from compaction.integrations.langchain import CompactionMiddleware, RewritingMiddleware
from compaction.integrations.langgraph import SummarizationNode
from compaction.integrations.litellm import ProxyCompaction
from compaction.integrations.openai_agents import CompactingSession, CompactionFilter
from compaction.integrations.pydantic_ai import CompactionProcessor
from compaction.integrations.strands import CompactionConversationManager

strategy, session = presets.token_budget(8_000), object()
"""
MAKERS = (
    "CompactionProvider(before_strategy=strategy, ",
    "as_framework_strategy(strategy, ",
    "RequestCompaction(strategy, ",
    "CompactionPlugin(strategy, ",
    "CompactionMiddleware(strategy, ",
    "RewritingMiddleware(strategy, ",
    "SummarizationNode(strategy, ",
    "ProxyCompaction(strategy, ",
    "CompactingSession(session, strategy, ",
    "CompactionFilter(strategy, ",
    "CompactionProcessor(strategy, ",
    "CompactionConversationManager(strategy, ",
)


def test_the_options_have_the_same_names_everywhere() -> None:
    """The typed options are the fields of `IntegrationOptions`, except the strategy; the page has each with its default."""
    assert set(CommonOptions.__annotations__) == {field.name for field in attrs.fields(IntegrationOptions)} - {"strategy"}
    page = (Path(__file__).resolve().parents[3] / "docs" / "integration-options.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| `(.+?)` \|", page, re.MULTILINE))
    fields = [field for field in attrs.fields(IntegrationOptions) if field.name != "strategy"]
    shown = {None: "None", time.time: "time.time", "auto": '"auto"', "uncompacted": '"uncompacted"'}
    assert rows == {field.name: shown.get(field.default, str(field.default)) for field in fields}


@pytest.mark.skipif(find_spec("pyright") is None, reason="pyright is not installed")
def test_pyright_knows_every_option(tmp_path: Path) -> None:
    """Each integration takes the typed options; pyright reports a misspelt option and a value of the wrong type."""
    lines = PROGRAM.splitlines()
    right, wrong = list[int](), list[int]()
    for maker in MAKERS:
        for options, places in (('window="auto", clock=None)', right), ("windw=1)", wrong), ('overhead_tokens="9")', wrong)):
            lines.append(maker + options)
            places.append(len(lines))
    file = tmp_path / "program.py"
    file.write_text("\n".join(lines))
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, str(file)]
    root = Path(__file__).resolve().parents[3]
    said = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False).stdout
    found = {int(line.split(":")[1]) for line in said.splitlines() if f"{file.name}:" in line and " error: " in line}
    assert found == set(wrong), said
