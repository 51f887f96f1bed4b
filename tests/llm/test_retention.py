"""Planted items that the small model's summaries keep, beside the extractive writer, by the metrics of docs/retention.md."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import openai
import pytest

from benchmarks.retention.generator import generate
from benchmarks.retention.report import Outcome, measured
from benchmarks.retention.subjects import SUBJECTS, summarized
from compaction import counter
from compaction.summarizers import OpenAISummarizer
from tests.llm.test_small_model import SHAPED, WINDOW

pytestmark = pytest.mark.timeout(1_800)


def share(outcomes: list[Outcome], subject: str) -> float:
    """Return the share of the planted items that survive with what they need to be understood."""
    items = [verdict for each in outcomes if each.subject == subject for verdict in each.verdicts if verdict.planted.is_item]
    return sum(each.means for each in items) / len(items)


def test_the_model_beside_the_digest(base_url: str, record_property: Callable[[str, object], None]) -> None:
    """At a budget of 20 %, requests with the model's summary fit, and the digest keeps at least as much as the model."""
    client = openai.OpenAI(base_url=base_url, api_key="none")
    model = OpenAISummarizer("small", client=client, options={"temperature": 0, "extra_body": SHAPED}, window=WINDOW)
    subjects = {name: SUBJECTS[name] for name in ("digest, full", "truncation")} | {"model": partial(summarized, model)}
    outcomes = measured(list(generate("dev", "en", 2, 0)), subjects, [0.2], counter("o200k_base"))
    record_property("survives with its meaning", {name: round(share(outcomes, name), 2) for name in subjects})
    assert [each for each in outcomes if each.room > 1] == []
    assert share(outcomes, "digest, full") >= share(outcomes, "model")
