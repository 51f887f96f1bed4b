"""The framework releases that the integrations need, and the check that one is installed."""

from __future__ import annotations

import re
from importlib import import_module, metadata
from typing import Any, Final

import attrs

from ..errors import ConfigurationError
from ..installation import install_line


@attrs.frozen
class Requirement:
    """A framework's distribution, the extra of this package that installs it, and the oldest release that works."""

    distribution: str
    extra: str
    minimum: str

    def check(self) -> None:
        """Raise a `ConfigurationError` that names the extra to install, if the framework is missing or too old.

        Raises:
            ConfigurationError: If it is missing or too old; names the extra to install.

        >>> Requirement("no-such-framework", extra="langchain", minimum="1.4").check()
        Traceback (most recent call last):
        ...
        compaction.errors.ConfigurationError: no-such-framework is not installed; pip install '.[langchain]' ...
        """
        remedy = f"{install_line(self.extra)} installs {self.distribution} {self.minimum} or newer"
        try:
            found = metadata.version(self.distribution)
        except metadata.PackageNotFoundError as error:
            raise ConfigurationError(f"{self.distribution} is not installed; {remedy}") from error
        if _release(found) < _release(self.minimum):
            raise ConfigurationError(f"{self.distribution} {found} is too old; {remedy}")


AGENT_FRAMEWORK: Final = Requirement("agent-framework-core", extra="agent-framework", minimum="1.23")
ANTHROPIC: Final = Requirement("anthropic", extra="anthropic", minimum="2.0")
GOOGLE_ADK: Final = Requirement("google-adk", extra="google-adk", minimum="2.9")
LANGCHAIN: Final = Requirement("langchain", extra="langchain", minimum="1.4")
LANGCHAIN_CORE: Final = Requirement("langchain-core", extra="langgraph", minimum="1.7")
LANGGRAPH: Final = Requirement("langgraph", extra="langgraph", minimum="1.2")
LITELLM: Final = Requirement("litellm", extra="litellm", minimum="1.106")
OPENAI_AGENTS: Final = Requirement("openai-agents", extra="openai-agents", minimum="0.24")
OPENTELEMETRY: Final = Requirement("opentelemetry-api", extra="otel", minimum="1.30")
PYDANTIC_AI: Final = Requirement("pydantic-ai-slim", extra="pydantic-ai", minimum="2.64")
STRANDS: Final = Requirement("strands-agents", extra="strands", minimum="1.62")


def import_framework(module: str) -> Any:
    """Import a framework's module where it is used; untyped, because the framework may not be installed."""
    return import_module(module)


def framework_class(module: str, name: str) -> type:
    """Return a framework's class to inherit from.

    Without the framework it is ``object``, so that our module can be imported; creating an instance then raises.
    """
    try:
        found: type = getattr(import_module(module), name)
    except (ImportError, AttributeError):
        return object
    return found


def _release(version: str) -> tuple[int, ...]:
    """Return the numbers a version starts with; suffixes such as ``rc1`` and ``.dev0`` are not compared."""
    numbers = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(number) for number in numbers.group().split(".")) if numbers else ()
