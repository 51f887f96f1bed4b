"""The model that writes an engine's summaries, by the host's settings."""

from __future__ import annotations

import os
from typing import Final

import attrs

from ...summarizers import OpenAISummarizer, Summarizer
from .settings import EngineSettings

__all__ = ["MainModel", "summary_model"]

_OPENROUTER: Final = "https://openrouter.ai/api/v1"


@attrs.frozen
class MainModel:
    """The host's main model."""

    model: str = ""
    base_url: str = ""
    api_key: str = attrs.field(default="", repr=False)


def summary_model(settings: EngineSettings, main: MainModel) -> Summarizer | None:
    """Return the summarizer that the settings name, on its own server or the main model's; ``None`` if they name none."""
    model = settings.summary_model or (main.model if settings.summary_provider == "main" else "")
    if not model:
        return None
    url, key_env, key = settings.summary_base_url, settings.summary_key_env, None
    if url is None and settings.summary_provider == "openrouter":
        url, key_env = _OPENROUTER, key_env or "OPENROUTER_API_KEY"
    elif url is None:
        url, key = main.base_url or None, (main.api_key or None) if key_env is None else None
    if key is None and key_env is None and "OPENAI_API_KEY" not in os.environ:
        key = "none"  # a local server needs no key; any other refuses it, and a digest takes over
    return OpenAISummarizer(model, base_url=url, api_key=key, api_key_env=key_env)
