"""Pipelines in files: every component is written and read back, and every mistake is reported with its place."""

from __future__ import annotations

import pickle
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from compaction import GroupKind, compact_sync, everything, first, kinds, last, nothing, pinned, presets, system, tools
from compaction.config import ComponentKind, component_names, dump, dumps, from_data, load, loads, registry, to_data
from compaction.errors import ConfigurationError
from compaction.selectors import Selector, fitting
from compaction.stores import SQLiteStore
from compaction.strategies import (
    Clear,
    ClearMedia,
    ClearReasoning,
    Clip,
    Collapse,
    Dedupe,
    GrowingSummary,
    HeadTail,
    Lossless,
    Offload,
    Pipeline,
    ProviderCompaction,
    SelectiveToolCall,
    SlidingWindow,
    Strategy,
    Summarization,
    SummaryText,
    TokenBudgetComposed,
    ToolResult,
    Truncation,
)
from compaction.summarizers import (
    CachedSummarizer,
    DigestSummarizer,
    FactSummarizer,
    FirstOf,
    OpenAISummarizer,
    SummaryBudget,
    SummaryTemplate,
    redact,
)
from compaction.triggers import (
    Trigger,
    always,
    every,
    has_tool_calls,
    idle_for,
    never,
    tokens_below,
    tokens_exceed,
    turns_exceed,
    worth_it,
)
from tests.support.options import TRIGGER_ATOMS

TRIGGERS: list[Trigger] = [
    *TRIGGER_ATOMS,
    tokens_exceed(1) & has_tool_calls & ~every(3),
    (tokens_exceed(1) | every(2)) & ~(has_tool_calls | idle_for(60)),
    ~(tokens_exceed(1) & turns_exceed(2)) | never,
    tokens_exceed(1) & worth_it(Truncation(target=tokens_below(9), keep=last(groups=1) | pinned), calls=4),
    worth_it(ToolResult(HeadTail(chars=9)) >> Truncation()),
]
SELECTORS: list[Selector] = [
    everything,
    nothing,
    pinned,
    system,
    kinds(GroupKind.USER, GroupKind.SUMMARY),
    tools("read_file", "browser_*", 'it\'s "quoted"'),
    first(messages=2) | last(tokens=20_000),
    last(groups=1, of=kinds(GroupKind.TOOL_CALL) & ~tools("x")),
    ~(first(turns=1) | pinned) & last(turns=3),
    fitting(9_000, last(messages=9), fitting(5_000, last(turns=2), nothing)),
]
SIZES = {"initial_tokens": 200, "added_tokens": 100, "max_tokens": 400}
STYLES = [Clear(placeholder="-", min_chars=5), Collapse(outcome_chars=9), Dedupe(min_chars=7, reads=["a"]), HeadTail(chars=9)]
PROMPT = "Up to {max_summary_tokens} tokens.\n{existing_summary_section}{messages_text}"
STORE = {"use": "SQLiteStore", "path": "store.db"}
SUMMARIZERS = [
    DigestSummarizer(growth=0.5, redact=redact),
    OpenAISummarizer(
        "qwen3-8b",
        base_url="http://127.0.0.1:8080/v1",
        api_key_env="SUMMARY_API_KEY",
        timeout=5,
        window=32_000,
        max_tokens_field="max_completion_tokens",
        options={"temperature": 0, "extra_body": {"think": [1, "ü"]}},
    ),
    OpenAISummarizer("local", api_key="none"),
]


def strategies(folder: Path) -> list[Strategy]:
    """Strategies of every kind, with options that differ from the defaults."""
    store = SQLiteStore(folder / "store.db", timeout_seconds=1.5)
    return [
        *(ToolResult(style, trigger=tokens_exceed(9), at_least=3) for style in STYLES),
        ClearReasoning(target=tokens_below(3)),
        ClearMedia(placeholder="[no {kind}]"),
        SelectiveToolCall(keep=last(groups=2, of=kinds(GroupKind.TOOL_CALL))),
        SlidingWindow(keep=last(groups=20)),
        SlidingWindow(drop_system=True),
        Truncation(drop_system=True),
        *(Summarization(each, on_failure="digest", least_share=0.2) for each in SUMMARIZERS),
        Summarization(
            CachedSummarizer(SUMMARIZERS[1], folder / "answers.db"), focus="a\nb", language="Korean", system_note="n"
        ),
        Summarization(FirstOf(SUMMARIZERS[1], CachedSummarizer(FactSummarizer(), folder / "facts.db"), DigestSummarizer())),
        Summarization(
            template=SummaryTemplate(PROMPT, sections="# One"), budget=SummaryBudget(ceiling=9), text=SummaryText(preface="p")
        ),
        Summarization(template="Summarize the key decisions and user preferences only."),
        Offload(store, session="kim", min_chars=9, on_failure="raise"),
        Lossless(Truncation() >> ClearReasoning(), store, session="kim"),
        TokenBudgetComposed([SlidingWindow(), ToolResult(Clear())], budget=9, early_stop=False, keep=pinned),
        Clip(tokens=900),
        GrowingSummary(FactSummarizer(redact=redact), tokens=900, keep_tokens=5, trigger=tokens_exceed(2_000), **SIZES),
        ProviderCompaction("gpt-5.5", fallback=Summarization(), trigger=tokens_exceed(9_000)),
        Pipeline(),
        Pipeline(ClearReasoning(), Pipeline(Truncation(), trigger=every(2)), trigger=tokens_exceed(5), target=tokens_below(4)),
        presets.hermes(SUMMARIZERS[1] and 64_000),
        presets.adaptive(9_000),
        presets.context_window(9_000),
        presets.token_budget(9_000),
        presets.langgraph_summary(),
    ]


formats = pytest.mark.parametrize("format", ["toml", "yaml"])


@formats
def test_every_strategy_there_and_back(format: Any, tmp_path: Path) -> None:
    for strategy in strategies(tmp_path):
        text = dumps(strategy, format=format)
        back = loads(text, format=format)
        assert (back, repr(back), dumps(back, format=format)) == (strategy, repr(strategy), text)


def components(kind: ComponentKind, data: Callable[[str], dict[str, Any]]) -> list[Any]:
    """The name of each component of a kind, with the data of a strategy that uses it with its default options."""
    return [pytest.param(name, data(name), id=name) for name in component_names(kind)]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        *components(ComponentKind.STRATEGY, lambda name: {"use": name}),
        *components(ComponentKind.TOOL_STYLE, lambda name: {"use": "ToolResult", "style": {"use": name}}),
        *components(ComponentKind.SUMMARIZER, lambda name: {"use": "Summarization", "summarizer": {"use": name}}),
        *components(ComponentKind.STORE, lambda name: {"use": "Offload", "store": {"use": name}}),
    ],
)
def test_every_component_of_a_strategy(
    name: str, data: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every strategy, style, summarizer and store is in the list above, or is written and read with its default options.

    One that has required options must be added to the list.
    """
    monkeypatch.chdir(tmp_path)
    if name not in used_by(strategies(tmp_path)):
        assert from_data(to_data(from_data(data))) == from_data(data)


def used_by(strategies: list[Strategy]) -> set[str]:
    used: set[str] = set()

    def walk(data: Any) -> None:
        if isinstance(data, dict):
            used.update(str(each) for key, each in data.items() if key in ("use", "style", "summarizer", "store"))
            for each in data.values():
                walk(each)
        elif isinstance(data, list):
            used.update(each for each in data if isinstance(each, str))
            for each in data:
                walk(each)

    for strategy in strategies:
        walk({"use": "Pipeline", **to_data(strategy)})
    return used


@pytest.mark.parametrize("value", [*TRIGGERS, *SELECTORS], ids=repr)
def test_every_expression_there_and_back(value: Trigger | Selector) -> None:
    strategy = ClearReasoning(trigger=value) if isinstance(value, Trigger) else ClearReasoning(keep=value)
    assert from_data(to_data(strategy)) == strategy


@pytest.mark.parametrize(
    ("option", "name"),
    [
        *(("trigger", name) for name in component_names(ComponentKind.TRIGGER)),
        *(("keep", name) for name in component_names(ComponentKind.SELECTOR)),
    ],
)
def test_every_trigger_and_selector(option: str, name: str) -> None:
    """Every trigger and selector is in the lists above, or is written and read as one of a few simple expressions.

    One that requires other arguments must be added to the lists.
    """
    if name in re.findall(r"[\w.]+", f"{TRIGGERS} {SELECTORS}"):
        return
    found = [strategy for form in ("{}", "{}()", "{}(3)", "kinds({})") if (strategy := read_or_none(option, form.format(name)))]
    assert [from_data(to_data(strategy)) for strategy in found[:1]] == found[:1] != []


def read_or_none(option: str, expression: str) -> Strategy | None:
    try:
        return from_data({"use": "ClearReasoning", option: expression})
    except ConfigurationError:
        return None


def test_a_preset_by_name() -> None:
    text = 'use = "hermes"\ncontext_length = 64_000\ntrigger = "always"\nsummarizer = { use = "DigestSummarizer", growth = 1 }'
    assert loads(text) == presets.hermes(64_000, DigestSummarizer(growth=1.0), trigger=always)


def test_files(tmp_path: Path) -> None:
    """The ending of a file decides its format; an unknown ending raises an error."""
    pipeline = presets.context_window(9_000)
    for name in ("a.toml", "b.yaml", "c.YML"):
        dump(pipeline, tmp_path / name)
        assert load(tmp_path / name) == pipeline
    with pytest.raises(ConfigurationError, match=r"d\.txt: a pipeline file ends in \.toml, \.yaml, \.yml"):
        dump(pipeline, tmp_path / "d.txt")


def test_a_template_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "prompt.txt").write_text(PROMPT)
    expected = Summarization(template=SummaryTemplate(PROMPT))
    assert from_data({"use": "Summarization", "template": PROMPT}) == expected
    assert from_data({"use": "Summarization", "template": {"first": PROMPT}}) == expected
    assert from_data({"use": "Summarization", "template": {"path": str(tmp_path / "prompt.txt")}}) == expected


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('use = "Truncatio"', ["'Truncatio' is not a strategy; did you mean 'Truncation'?"]),
        ("stps = []", ["'steps' is missing", "unknown key 'stps'; did you mean 'steps'?"]),
        ('[[steps]]\nuse = "ToolResult"\nat_lest = 3', ["steps[0]: unknown key 'at_lest'; did you mean 'at_least'?"]),
        ('use = "hermes"\ncontext_len = 9', ["unknown key 'context_len'; did you mean 'context_length'?"]),
        ('use = "ClearMedia"\ntrigger = "tokens_exeed(9)"', ["trigger: 'tokens_exeed' is not one of the triggers; did you"]),
        ('use = "ClearMedia"\nkeep = "last(turn=9)"', ["keep: 'last(turn=9)' has no argument 'turn'; did you mean 'turns'?"]),
        ('use = "ClearMedia"\nkeep = "kinds(GroupKind.USR)"', ["did you mean 'GroupKind.USER'?"]),
        ('use = "ToolResult"\nstyle = "clear"', ["style: 'clear' is not one of the tool_styles; did you mean 'Clear'?"]),
        (
            '[[steps]]\nuse = "ToolResult"\nat_least = "9"\nstyle = { use = "Clear", min_char = 1 }\n[[steps]]\nuse = "None"',
            [
                "steps[0].at_least: '9' is a text; a whole number belongs here",
                "steps[0].style: unknown key 'min_char'; did you mean 'min_chars'?",
                "steps[1]: 'None' is not a strategy",
            ],
        ),
        (
            (
                '[[steps]]\nuse = "Truncatio"\nkeep = "lst(turns=1) | last(turn=1)"\n'
                '[[steps]]\nstile = 1\nkeep = "x"\nuse = "ToolResult"'
            ),
            [
                "steps[0]: 'Truncatio' is not a strategy; did you mean 'Truncation'?",
                "steps[0].keep: 'lst' is not one of the selectors; did you mean",
                "'last(turn=1)' has no argument 'turn'; did you mean 'turns'?",
                "steps[1]: unknown key 'stile'; did you mean 'style'?",
                "steps[1].keep: 'x' is not one of the selectors",
            ],
        ),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else "",
)
def test_unknown_names_and_keys(text: str, told: list[str]) -> None:
    """Each unknown name or key is reported with its place and the nearest known name, all in one error, in the file's order."""
    with pytest.raises(ConfigurationError) as caught:
        loads(text)
    places = [str(caught.value).find(each) for each in told]
    assert places == sorted(places)
    assert -1 not in places


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"use": "Truncation", "drop_system": 1}, "drop_system: 1 is a whole number; true or false belongs here"),
        ({"use": "Truncation", "trigger": 9}, "trigger: a trigger is written as text"),
        ({"use": "Truncation", "trigger": "last(turns=2)"}, "'last(turns=2)' is not a trigger"),
        ({"use": "Truncation", "trigger": "tokens_exceed"}, "is not a trigger"),
        ({"use": "Truncation", "trigger": "tokens_exceed(-1)"}, "must be a whole number >= 0"),
        ({"use": "Truncation", "trigger": "tokens_exceed()"}, "missing 1 required"),
        ({"use": "Truncation", "trigger": "always()"}, "takes no arguments"),
        ({"use": "Truncation", "trigger": "always & 3"}, "'3' is not a trigger"),
        ({"use": "Truncation", "trigger": "always and never"}, "is not allowed here"),
        ({"use": "Truncation", "trigger": "always & last(turns=2)"}, "joins a trigger and a selector"),
        ({"use": "Truncation", "trigger": "__import__('os').system('true')"}, "is not a name"),
        ({"use": "Truncation", "trigger": "[].append(1)"}, "is not a name"),
        ({"use": "Truncation", "trigger": "(lambda index: True)"}, "is not allowed here"),
        ({"use": "Truncation", "trigger": "tokens_exceed(*[1])"}, "without *"),
        ({"use": "Truncation", "trigger": ""}, "is not an expression"),
        ({"use": "Truncation", "trigger": "a\0b"}, "is not an expression"),
        ({"use": "Truncation", "keep": "kinds('user')"}, "a kind is a member of GroupKind"),
        ({"use": "ToolResult", "style": 3}, "style: 3 is a whole number; a table belongs here"),
        ({"use": "Summarization", "text": "short"}, "text: 'short' is a text; a table belongs here"),
        ({"use": "ToolResult", "style": {"min_chars": 3}}, "'use' must name one of the tool_styles (got None)"),
        ({"use": "Summarization", "least_share": None}, "least_share: None is nothing; a number belongs here"),
        ({"use": "Summarization", "on_failure": "digst"}, "did you mean 'digest'?"),
        ({"use": "Summarization", "template": {"path": "no/such"}}, "cannot be read"),
        ({"use": "Summarization", "template": {"path": "x", "updte_path": "y"}}, "did you mean 'update_path'?"),
        ({"use": "Summarization", "template": "only {messages_text}"}, "lacks"),
        ({"use": "Summarization", "budget": {"ratio": 2.0}}, "budget: SummaryBudget: 'ratio' must be a share"),
        ({"use": "Summarization", "summarizer": {"use": "DigestSummarizer", "redact": "rot13"}}, "is not a function"),
        ({"use": "Offload", "store": {"use": "SQLiteStore", "path": "no/such/store.db"}}, "store: no/such/store.db: No such"),
        ({"use": "Offload"}, "'store' is missing"),
        ({"use": "TokenBudgetComposed", "budget": 9, "strategies": "Truncation"}, "a list belongs here"),
        ({"use": "hermes", "context_length": 0}, "hermes: 'context_length' must be a whole number >= 1"),
        ({"steps": [["ClearMedia"]]}, "steps[0]: ['ClearMedia'] is a list; a table belongs here"),
        ({"use": 3}, "'use' must name one of the strategies (got 3)"),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value[:24].replace("\0", ""),
)
def test_right_keys_with_wrong_values(options: dict[str, Any], rule: str) -> None:
    """A wrong value raises a `ConfigurationError` with the rule, and expressions are never evaluated as code."""
    with pytest.raises(ConfigurationError) as caught:
        from_data(options)
    assert rule in str(caught.value)


@pytest.mark.parametrize(
    ("text", "format", "rule"),
    [
        ("a = 1\na = 2", "toml", "it is not TOML"),
        ("a: [", "yaml", "it is not YAML"),
        ("!!python/object/apply:os.system ['true']", "yaml", "it is not YAML"),
        ("use: Pipeline\nsteps: []\nsteps: []", "yaml", "the key 'steps' is repeated"),
        ("- 1", "yaml", "contains a table"),
        ("", "yaml", "contains a table"),
    ],
    ids=range(6),
)
def test_what_is_no_file_of_a_pipeline(text: str, format: Any, rule: str) -> None:
    with pytest.raises(ConfigurationError, match=rule):
        loads(text, format=format)


def test_what_is_no_pipeline_file(tmp_path: Path) -> None:
    """JSON is neither read as YAML nor written as TOML; the error names a file, and whether it is missing or not UTF-8."""
    form: Any = "json"
    for use in (lambda: loads("{}", format=form), lambda: dumps(Pipeline(), format=form)):
        with pytest.raises(ConfigurationError, match="format='json': toml or yaml"):
            use()
    (tmp_path / "latin.toml").write_bytes(b'use = "\xe9"')
    for name, rule in (("none.toml", "No such file or directory; name a"), ("latin.toml", "it cannot be read as UTF-8 text")):
        with pytest.raises(ConfigurationError, match=rf"{name}: {rule}"):
            load(tmp_path / name)


MODEL = {"use": "OpenAISummarizer", "model": "m"}
CACHED = {"use": "CachedSummarizer", "path": "a.db"}
KEY = "sk-abcdefgh12345678"


class TestKeys:
    """API keys come from the environment only."""

    @pytest.mark.parametrize(
        ("options", "says"),
        [
            ({"summarizer": {**MODEL, "api_key": KEY}}, "belong in a file"),
            ({"summarizer": {**MODEL, "options": {"extra_headers": {"Authorization": f"Bearer {KEY}"}}}}, "belong in a file"),
            ({"summarizer": {**CACHED, "inner": {**MODEL, "api_key": KEY}}}, "'api_key' does not belong in a file"),
            ({"use": "Offload", "store": {"use": "SQLiteStore", "path": f"postgres://kim:{KEY}@h/db"}}, "'path' contains what"),
        ],
        ids=["key", "header", "key of a nested summarizer", "password of a store"],
    )
    def test_no_key_is_read_from_a_file(self, options: dict[str, Any], says: str) -> None:
        with pytest.raises(ConfigurationError, match=says) as caught:
            from_data({"use": "Summarization", **options})
        assert KEY not in str(caught.value)

    @pytest.mark.parametrize(
        "summarizer",
        [
            OpenAISummarizer("m", api_key=KEY),
            OpenAISummarizer("m", base_url=f"http://kim:{KEY}@127.0.0.1/v1"),
            OpenAISummarizer("m", on_usage=print),
        ],
        ids=["key", "password", "function"],
    )
    def test_no_key_is_written_to_a_file(self, summarizer: OpenAISummarizer) -> None:
        with pytest.raises(ConfigurationError, match="file") as caught:
            dumps(Summarization(summarizer))
        assert KEY not in str(caught.value)

    def test_the_variable_is_named_and_not_read(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A strategy contains only the name of the variable, so that neither a file nor a pickle contains the key."""
        monkeypatch.setenv("SUMMARY_API_KEY", KEY)
        strategy = Summarization(OpenAISummarizer("m", api_key_env="SUMMARY_API_KEY"))
        assert 'api_key_env = "SUMMARY_API_KEY"' in dumps(strategy)
        assert KEY.encode() not in pickle.dumps(strategy)

    def test_a_variable_that_is_not_set(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("SUMMARY_API_KEY", raising=False)
        said = [{"role": "user", "content": f"{n} is what I said. " * 40} for n in range(9)]
        with pytest.raises(ConfigurationError, match="SUMMARY_API_KEY is not set"):
            compact_sync(said, Summarization(OpenAISummarizer("m", api_key_env="SUMMARY_API_KEY")), counter="chars/4")


ACME = """
import attrs
from compaction import Drop
from compaction.strategies import Clear, CompactionStrategy, ToolResult
from compaction.triggers import Trigger, tokens_exceed

def drop_small_talk(index):
    yield from (Drop(group, reason="small talk") for group in index.included_groups[:-1] if group.tokens < 9)

def saw_traceback(index):
    return any("Traceback" in message.text for group in index.included_groups for message in group.messages)

def tokens_reach(limit: int) -> Trigger:
    return tokens_exceed(limit - 1)

def user_groups(index):
    return [group for group in index.included_groups if group.kind.value == "user"]

@attrs.frozen
class DropAll(CompactionStrategy):
    depth: int = attrs.field(default=1, kw_only=True)
    def edits(self, index):
        yield from ()

@attrs.frozen
class Shout:
    loud: bool = False
    def __call__(self, index):
        return lambda group: None

def careful(limit: int, *, style: str = "x"):
    return ToolResult(Clear(placeholder=style), trigger=tokens_exceed(limit))
"""
POINTS = """
[compaction.strategies]
drop_small_talk = acme_compaction:drop_small_talk
acme.DropAll = acme_compaction:DropAll
broken = acme_compaction:nothing_there
[compaction.presets]
careful = acme_compaction:careful
[compaction.triggers]
saw_traceback = acme_compaction:saw_traceback
tokens_reach = acme_compaction:tokens_reach
[compaction.selectors]
user_groups = acme_compaction:user_groups
[compaction.tool_styles]
Shout = acme_compaction:Shout
"""


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """An installed package that registers components; call the fixture to register others."""
    folder = tmp_path / "site"
    (folder / "acme_compaction-1.0.dist-info").mkdir(parents=True)
    (folder / "acme_compaction.py").write_text(ACME)
    metadata = "Metadata-Version: 2.1\nName: acme-compaction\nVersion: 1.0\n"
    (folder / "acme_compaction-1.0.dist-info" / "METADATA").write_text(metadata)

    def register(points: str) -> None:
        registry._registered.cache_clear()
        (folder / "acme_compaction-1.0.dist-info" / "entry_points.txt").write_text(points)

    register(POINTS)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "acme_compaction", raising=False)
    yield register
    registry._registered.cache_clear()


@pytest.mark.usefixtures("acme")
class TestThirdParties:
    """Components of installed packages are named like the built-in ones."""

    @pytest.mark.parametrize(
        "data",
        [
            {"use": "drop_small_talk"},
            {"use": "acme.DropAll", "trigger": "saw_traceback & tokens_exceed(9)", "depth": 4},
            {"use": "ToolResult", "style": {"use": "Shout", "loud": True}, "keep": "user_groups | last(turns=1)"},
            {"steps": ["drop_small_talk", {"use": "ToolResult", "style": "Shout"}]},
        ],
        ids=["function", "class", "style", "pipeline"],
    )
    def test_there_and_back(self, data: dict[str, Any]) -> None:
        assert to_data(from_data(data)) == data

    def test_mistakes(self, acme: Callable[[str], None]) -> None:
        with pytest.raises(ConfigurationError, match="acme_compaction:nothing_there cannot be imported"):
            from_data({"use": "broken"})
        with pytest.raises(ConfigurationError, match="drop_small_talk takes no options"):
            from_data({"use": "drop_small_talk", "depth": 1})
        acme("[compaction.strategies]\nTruncation = acme_compaction:DropAll\n")
        with pytest.raises(ConfigurationError, match="two strategies are called 'Truncation'"):
            from_data({"use": "Truncation"})

    def test_nothing_is_imported_until_it_is_named(self) -> None:
        """Listing the names, or reading a file without names of the package, does not import the package."""
        assert "acme.DropAll" in component_names(ComponentKind.STRATEGY)
        from_data({"use": "Truncation"})
        assert "acme_compaction" not in sys.modules


@pytest.mark.parametrize(
    "strategy",
    [
        ToolResult(trigger=tokens_exceed(1) & (lambda index: True)),
        ToolResult(keep=last(turns=1) | (lambda index: [])),
        Pipeline(lambda index: []),
        Summarization(DigestSummarizer(redact=str.upper)),
    ],
    ids=["trigger", "selector", "strategy", "function"],
)
def test_what_no_file_can_hold(strategy: Strategy) -> None:
    with pytest.raises(ConfigurationError, match=r"function|entry point"):
        dumps(strategy)
