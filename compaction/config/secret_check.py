"""A check that keeps API keys and passwords out of pipeline files; a file names an environment variable instead."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from ..errors import ConfigurationError
from ..summarizers import redact

__all__ = ["NO_KEY", "check_no_secrets"]

NO_KEY: Final = ("none", "unused")
"""The values that ``api_key`` may have, for a server that asks for none."""


def check_no_secrets(options: Mapping[str, Any]) -> None:
    """Check that the options of a summarizer or store hold no key or password.

    Args:
        options: The options as they are in a file.

    Raises:
        ConfigurationError: If they hold one; the message does not repeat it.

    >>> check_no_secrets({"api_key_env": "OPENAI_API_KEY", "base_url": "http://127.0.0.1:8080/v1"})
    """
    if options.get("api_key", NO_KEY[0]) not in NO_KEY:
        raise ConfigurationError(
            "'api_key' does not belong in a file; name the environment variable that holds it: api_key_env = \"OPENAI_API_KEY\""
        )
    for name, value in options.items():
        if name.endswith("_env") or (isinstance(value, Mapping) and "use" in value):  # an inner component is checked by itself
            continue
        text = json.dumps({name: value}, default=str)
        if redact(text) != text:
            raise ConfigurationError(f"{name!r} holds what looks like a key or password; it does not belong in a file")
