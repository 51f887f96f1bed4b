"""Prices, and the tokens that a prompt cache reads and writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from compaction.errors import ConfigurationError
from compaction.models import ModelPrices, UnknownModel, prices_of, unpriced
from compaction.models.tables import packaged_models, read_models


def rules(**figures: float) -> ModelPrices:
    return ModelPrices(**{"model": "m", "input": 1.0, "cached": 0.1, "write": 1.25, "output": 8.0, **figures})


def test_every_shipped_price_has_a_source_and_a_date() -> None:
    table = [entry.prices for entry in packaged_models().values() if entry.prices is not None]
    assert len(table) == 19
    assert [each for each in table if not each.source.startswith("https://") or len(each.date) != 10] == []
    assert [each for each in table if not 0 < each.cached < each.input <= each.write < each.output] == []


@pytest.mark.parametrize("name", ["gpt-5", "openai/gpt-5", "GPT-5", "gpt-5-2025-08-07", "gpt-5-0807", "gpt-5-20250807-v1:0"])
def test_a_model_is_found_by_any_of_its_names(name: str) -> None:
    assert prices_of(name).model == "gpt-5"


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("gemini-2.5-flash-001", "gemini-2.5-flash"),
        ("gemini-2.5-flash-002", "gemini-2.5-flash"),
        ("ours-preview-09-2025", "ours-preview"),
        ("ours-2411", "ours"),
        ("ours-001-v1:0", "ours"),
    ],
)
def test_a_numbered_or_monthly_snapshot_is_the_model(name: str, known: str, tmp_path: Path) -> None:
    """Google numbers snapshots with three digits or names the month and the year; Mistral names the year and the month."""
    path, prices = tmp_path / "mine.toml", "{input = 9, cached = 1, write = 9, output = 9}"
    path.write_text(f'[me.models]\n"ours" = {prices}\n"ours-preview" = {prices}\n')
    assert prices_of(name, path).model == known


VERSIONS = ("1", "01", "5-1", "128", "2413", "13-2025", "09-1925", "32k", "20250807-1", "2025-08", "2025-13-07", "99999999")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_number_is_not_a_date(version: str, tmp_path: Path) -> None:
    """A name that ends in a version or a size is another model."""
    path = tmp_path / "mine.toml"
    path.write_text('[me.models]\n"ours" = {input = 9, cached = 1, write = 9, output = 9}\n')
    with pytest.raises(UnknownModel):
        prices_of(f"ours-{version}", path)


def test_your_own_table_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[me]\nblock_tokens = 7\n[me.models]\n"gpt-5" = {input = 9, cached = 1, write = 9, output = 9}\n')
    assert (prices_of("gpt-5", path).input, prices_of("gpt-5", path).block_tokens) == (9, 7)
    assert prices_of("gpt-4o", path) == prices_of("gpt-4o")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("models = ", "not valid TOML"),
        ("[me]\nx = 1", "table of 'models'"),
        ("[me.models]\nm = {input = 1}", "missing"),
        ("[me.models]\nm = {input = -1, cached = 0, write = 0, output = 0}", "'input'"),
        ('[me.models]\nm = {input = "1", cached = 0, write = 0, output = 0}', "'input'"),
        ("[me.models]\nm = {input = 1, cached = 0, write = 0, output = 0, wrong = 1}", "wrong"),
    ],
)
def test_a_bad_table_says_why(text: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        read_models(text, "mine.toml")


def test_dollars_are_per_million() -> None:
    assert rules().dollars(read=1_000_000, written=1_000_000, fresh=1_000_000, output=1_000_000) == 0.1 + 1.25 + 1.0 + 8.0
    assert unpriced("new").dollars(read=1_000_000, fresh=1_000_000, output=1_000_000) == 1.1
