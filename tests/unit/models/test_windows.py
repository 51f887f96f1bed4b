"""The number of input tokens of a model, by the model's name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from compaction import presets
from compaction.errors import ConfigurationError
from compaction.integrations.options import IntegrationOptions
from compaction.models import RESERVED_TOKENS, UnknownModel, input_limit, prices_of

MINE = """
[here]
source = "https://example.org"
date = "2026-11-22"
minimum_tokens = 0
[here.models]
"ours-1" = { context_window = 100_000 }
"gpt-5" = { input_limit = 9_000 }
"ours-2" = { input = 1, cached = 0.5, write = 1, output = 2, input_limit = 5_000 }
"""


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("gpt-5", 272_000),
        ("openai/gpt-5-2025-08-07", 272_000),
        ("openai:GPT-5-mini", 272_000),
        ("azure/gpt-5.1", 272_000),
        ("gpt-5.1-codex", 272_000),
        ("gpt-6-sol", 922_000),
        ("gpt-4o-mini", 128_000 - RESERVED_TOKENS),
        ("claude-sonnet-4-5-20250929", 184_000),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", 184_000),
        ("openrouter/anthropic/claude-sonnet-4.5", 984_000),
        ("google-gla:gemini-2.5-pro", 1_048_576),
        ("gpt-4", 8_192 - 8_192 // 8),
    ],
)
def test_a_name_gives_the_smaller_of_the_two_limits(name: str, tokens: int) -> None:
    """The published input limit, or the context window less the reserve; the names are those of providers and frameworks."""
    assert input_limit(name) == tokens


def test_the_reserve_is_taken_from_the_context_window() -> None:
    """The reserve is subtracted from the context window only; a reserve that is not part of the window raises an error."""
    assert input_limit("gpt-5", reserve_output=0) == 272_000
    assert input_limit("gpt-5", reserve_output=300_000) == 100_000
    assert input_limit("gpt-4o", reserve_output=0) == 128_000
    for reserve in (-1, 128_000, 0.5, True):
        with pytest.raises(ConfigurationError, match="to 127,999, because the context window of gpt-4o has 128,000 tokens"):
            input_limit("gpt-4o", reserve_output=reserve)  # type: ignore[arg-type]


def test_an_unknown_name_is_an_error_with_similar_names() -> None:
    with pytest.raises(UnknownModel, match=r"'gpt-5-huge' is unknown: pass a number of tokens; similar names are .*gpt-5"):
        input_limit("gpt-5-huge")
    with pytest.raises(UnknownModel, match="no known name is similar"):
        presets.adaptive("???")


def test_a_table_of_ones_own_comes_first(tmp_path: Path) -> None:
    assert input_limit("Ours", table={"ours": 64_000}, reserve_output=4_000) == 60_000
    path = tmp_path / "mine.toml"
    path.write_text(MINE)
    limits = {"ours-1": 87_500, "gpt-5": 9_000, "ours-2": 5_000, "gpt-5-mini": 272_000}
    assert {name: input_limit(name, table=path) for name in limits} == limits
    assert (prices_of("ours-2", path).output, prices_of("gpt-5", path)) == (2, prices_of("gpt-5"))
    with pytest.raises(UnknownModel, match="no table has prices for model 'ours-1'"):
        prices_of("ours-1", path)


@pytest.mark.parametrize("tokens", [0, -5, "9k", True])
def test_a_bad_table_is_an_error(tokens: object) -> None:
    with pytest.raises(ConfigurationError, match="'context_window'"):
        input_limit("ours", table={"ours": tokens})  # type: ignore[dict-item]
    with pytest.raises(ConfigurationError, match=r"table='mine\.toml': must be a mapping"):
        input_limit("ours", table="mine.toml")  # type: ignore[arg-type]


def test_presets_take_a_name_for_a_window() -> None:
    assert presets.adaptive("gpt-5") == presets.adaptive(272_000)
    assert presets.context_window("gpt-4o", reserve_output=28_000) == presets.context_window(100_000)
    assert presets.hermes("openai/gpt-5") == presets.hermes(272_000)


def test_an_integration_resolves_auto_by_the_frameworks_model() -> None:
    options = IntegrationOptions(strategy=presets.token_budget(9_000), window="auto")
    assert (options.window_of("gpt-5"), options.window_of(None)) == (272_000, None)
    assert IntegrationOptions(strategy=presets.token_budget(9_000), window=7).window_of("gpt-5") == 7
    with pytest.raises(UnknownModel):
        options.window_of("no-such-model")
    with pytest.raises(ConfigurationError, match="'window'"):
        IntegrationOptions(strategy=presets.token_budget(9_000), window="gpt-5")  # type: ignore[arg-type]


def test_without_the_package_the_own_table_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert input_limit("gpt-5") == 272_000
    with pytest.raises(UnknownModel, match=r"pip install '\.\[models\]'"):
        input_limit("gpt-4o")


def test_a_number_loads_no_table_of_models() -> None:
    """``genai-prices`` is imported only for a name that the built-in table lacks."""
    program = (
        "import sys; from compaction import presets; presets.adaptive(32_000); presets.adaptive('gpt-5');"
        "assert 'genai_prices' not in sys.modules; presets.adaptive('gpt-4o'); assert 'genai_prices' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
