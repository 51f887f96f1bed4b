"""The engine's settings in a host's ``config.yaml``, with their newer and older keys."""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, get_args

import attrs

from ... import presets
from ...checks import one_of
from ...errors import ConfigurationError, SummaryFailed
from ...formats import CacheTTL, fields_of
from ...strategies import Pipeline
from ...summarizers import OpenAISummarizer, Summarizer, SummarizerLike, as_summarizer

_OURS: Final = ("auto", "main", "openrouter")  # the providers whose server is known here; Hermes knows all others
_DEFAULTS: Final = {name: each.default for name, each in inspect.signature(presets.hermes).parameters.items()}

_SWITCH: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
# Each setting, its key in ``config.yaml``, and its type; the first key that is set counts.
_KEYS: Final[tuple[tuple[str, str, type], ...]] = (
    ("enabled", "compression.enabled", bool),
    ("threshold", "compression.threshold", float),
    ("target_ratio", "compression.target_ratio", float),
    ("protect_first_n", "compression.protect_first_n", int),
    ("protect_last_n", "compression.protect_last_n", int),
    ("summary_model", "auxiliary.compression.model", str),
    ("summary_model", "compression.summary_model", str),  # an older key
    ("summary_provider", "auxiliary.compression.provider", str),
    ("summary_base_url", "auxiliary.compression.base_url", str),
    ("summary_key_env", "auxiliary.compression.key_env", str),
    ("cache_ttl", "prompt_caching.cache_ttl", str),
    ("cache_ttl", "model.cache_ttl", str),  # an older key
    ("pipeline", "context.pipeline", str),
    ("store", "context.store", str),
)
_WORDS: Final[dict[type, str]] = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


@attrs.frozen
class HermesProviderModel:
    """A model of a provider that Hermes knows, such as ``nous`` or ``anthropic``, called with Hermes' own client and keys."""

    provider: str  # as Hermes' ``config.yaml`` names it
    model: str | None = None  # ``None`` for the provider's default

    def generate(self, prompt: str) -> str:
        """Return the model's answer; raise `SummaryFailed` if this process is not Hermes Agent's, or the answer has no text.

        Raises:
            SummaryFailed: If this process is not Hermes Agent's, or the answer has no text.
            Exception: Any error of Hermes' client.
        """
        try:
            call: Any = importlib.import_module("agent.auxiliary_client").call_llm
        except (ImportError, AttributeError) as error:
            raise SummaryFailed(f"provider {self.provider!r}: Hermes Agent is not in this process; set base_url") from error
        answer = call(provider=self.provider, model=self.model, messages=[{"role": "user", "content": prompt}])
        message: Any = answer.choices[0].message
        text: object = (fields_of(message) or {}).get("content") or getattr(message, "content", None)
        if not isinstance(text, str):
            raise SummaryFailed(f"the provider {self.provider!r} answered without a text")
        return text


@attrs.frozen
class MainModel:
    """The host's main model, which `CompactionEngine.update_model` names."""

    model: str = ""
    base_url: str = ""
    api_key: str = attrs.field(default="", repr=False)
    provider: str = ""


@attrs.frozen(kw_only=True)
class EngineSettings:
    """The settings of a `CompactionEngine`.

    Args:
        enabled: Whether it compacts automatically; a file may contain Hermes' words too, such as ``yes`` or 0.
        threshold: Share of the window at which it compacts, above 0 and at most 1.
        target_ratio: Share of the threshold that the latest messages may take, 0.10 to 0.80.
        protect_first_n: Messages at the start that stay, the system message included.
        protect_last_n: Messages at the end that stay at least.
        summary_model: The model that writes summaries; ``None`` for a digest without a model.
        summary_provider: The model's provider if there is no base URL: ``"auto"`` for the main model's server,
            ``"openrouter"``, or any provider that Hermes knows, which is called with Hermes' client. With ``"main"`` and no
            summary model, the main model writes summaries.
        summary_base_url: The model's server, with OpenAI's chat completions.
        summary_key_env: The environment variable with the server's key; by default the main model's key on its server, or
            else the default of the ``openai`` package.
        cache_ttl: How long a provider should keep a prompt, for `CompactionEngine.with_breakpoints`.
        pipeline: A pipeline file to run instead; see `compaction.config`.
        store: A file for the messages that leave the conversation, so that nothing is lost; ``None`` for no lossless mode. A
            pipeline with its own store uses that one.

    Raises:
        ConfigurationError: If a figure is out of range.

    >>> EngineSettings.from_config({"compression": {"threshold": 0.6, "summary_model": "small"}}).summary_model
    'small'
    """

    enabled: bool = True
    threshold: float = _DEFAULTS["threshold"]
    target_ratio: float = _DEFAULTS["target_ratio"]
    protect_first_n: int = _DEFAULTS["protect_first_n"]
    protect_last_n: int = _DEFAULTS["protect_last_n"]
    summary_model: str | None = None
    summary_provider: str = "auto"
    summary_base_url: str | None = None
    summary_key_env: str | None = None
    cache_ttl: CacheTTL = attrs.field(default="5m", validator=one_of(*get_args(CacheTTL)))
    pipeline: Path | None = attrs.field(default=None, converter=attrs.converters.optional(Path))
    store: Path | None = attrs.field(default=None, converter=attrs.converters.optional(Path))

    def __attrs_post_init__(self) -> None:
        if not self.summary_provider:
            raise ConfigurationError("EngineSettings: 'summary_provider' is empty; leave it out for 'auto'")
        self.preset()

    def preset(
        self,
        context_length: int = _DEFAULTS["context_length"],
        summarizer: SummarizerLike | None = None,
        threshold: float | None = None,
    ) -> Pipeline:
        """Return the documented compressor with these settings; by default its summary is a digest made without a model.

        The threshold is the share of the window that triggers, in place of the settings'.
        """
        return presets.hermes(
            context_length,
            summarizer,
            threshold=self.threshold if threshold is None else threshold,
            target_ratio=self.target_ratio,
            protect_first_n=self.protect_first_n,
            protect_last_n=self.protect_last_n,
            on_failure="keep" if summarizer is None else "digest",
        )

    def summarizer(self, main: MainModel) -> Summarizer | None:
        """Return the summarizer that the settings name; ``None`` if they name none.

        ======== ============== ================= ====================================
        base URL provider       model             summaries come from
        ======== ============== ================= ====================================
        given    any            named             that server
        none     ``openrouter`` named             OpenRouter
        none     ``auto``       named             the main model's server
        none     ``main``       named, or main's  the main model's server
        none     any other      named or not      Hermes' own client for that provider
        ======== ============== ================= ====================================

        If the main model has no base URL, its server is taken to be OpenAI's, and its key is not sent there: the key is in
        ``summary_key_env``, or else in ``OPENAI_API_KEY``.
        """
        if self.summary_base_url is None and self.summary_provider not in _OURS:
            return as_summarizer(HermesProviderModel(self.summary_provider, self.summary_model))
        model = self.summary_model or (main.model if self.summary_provider == "main" else "")
        if not model:
            return None
        url, key_env, key = self.summary_base_url, self.summary_key_env, None
        if url is None and self.summary_provider == "openrouter":
            url, key_env = "https://openrouter.ai/api/v1", key_env or "OPENROUTER_API_KEY"
        elif url is None and main.base_url:  # without it, the server is another one than the main model's key is for
            url, key = main.base_url, (main.api_key or None) if key_env is None else None
        if key is None and key_env is None and "OPENAI_API_KEY" not in os.environ:
            key = "none"  # a local server needs no key; any other refuses it, and a digest takes over
        return OpenAISummarizer(model, base_url=url, api_key=key, api_key_env=key_env)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> EngineSettings:
        """Read the settings from a host's parsed file: the keys in ``docs/hermes-plugin.md``; all others are the host's.

        Raises:
            ConfigurationError: If a value is of the wrong type or out of range; names its key.
        """
        given: dict[str, Any] = {}
        for field, path, kind in _KEYS:
            if field not in given and (value := _value(config, path, kind)) is not None:
                given[field] = Path(os.path.expanduser(value)) if path.startswith("context.") else value  # noqa: PTH111 (never raises)
        if "summary_base_url" in given:
            given.pop("summary_provider", None)
        try:
            return cls(**given)
        except ConfigurationError as error:
            raise ConfigurationError(f"config.yaml: {error}") from error


def _value(config: Mapping[str, Any], path: str, kind: type) -> Any:
    """Return the value at a path; ``None`` if it is missing, or an empty text."""
    *blocks, name = path.split(".")
    block = config
    for depth, each in enumerate(blocks, 1):
        inner: Any = block.get(each)
        fields = fields_of(inner)
        if inner is None or (each == "model" and fields is None):  # in Hermes, a model may also be a name
            return None
        if fields is None:
            raise ConfigurationError(f"config.yaml: {'.'.join(blocks[:depth])} must be a block of keys (got {inner!r})")
        block = fields
    value: Any = block.get(name)
    if kind is bool:
        value = _SWITCH.get(str(value).lower(), value)
    if value is None or (value == "" and kind is str):
        return None
    allowed = (int, float) if kind is float else (kind,)
    if not isinstance(value, allowed) or (isinstance(value, bool) and kind is not bool):
        raise ConfigurationError(f"config.yaml: {path} must be {_WORDS[kind]} (got {value!r})")
    return value
