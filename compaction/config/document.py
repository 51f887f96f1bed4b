"""A file of one pipeline: TOML or YAML on the outside, one table on the inside."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from ..errors import ConfigurationError
from ..files import write_text
from ..strategies import Strategy, StrategyLike, as_strategy
from .converter import USE, missing, read_part, write_part
from .mistakes import told
from .parts import PartKind

__all__ = ["Format", "dump", "dumps", "from_data", "load", "loads", "to_data"]

Format: TypeAlias = Literal["toml", "yaml"]
"""How a file is written."""

_SUFFIXES: Final[dict[str, Format]] = {".toml": "toml", ".yaml": "yaml", ".yml": "yaml"}


def from_data(data: Mapping[str, Any], *, where: str = "pipeline") -> Strategy:
    """The strategy that plain data describes.

    Args:
        data: A table with ``use`` and the options of that strategy; without ``use`` it is a `Pipeline` with its ``steps``.
        where: What to call the data in an error.

    Raises:
        ConfigurationError: If it describes none; names every place and what belongs there.

    >>> from_data({"steps": ["ClearReasoning", {"use": "Truncation", "trigger": "tokens_exceed(9_000)"}]}).steps[1].trigger
    tokens_exceed(9000)
    """
    try:
        strategy = read_part(data, PartKind.STRATEGY, default="Pipeline")
    except Exception as error:
        raise ConfigurationError(f"{where}: {'; '.join(told(error))}") from error
    if not isinstance(strategy, Strategy):
        raise ConfigurationError(f"{where}: it makes {strategy!r}, which is no strategy")
    return strategy


def to_data(strategy: StrategyLike) -> dict[str, Any]:
    """Plain data that `from_data` makes an equal strategy of; options that have their defaults are left out.

    Raises:
        ConfigurationError: If no file can hold it: a plain function, a key, a client.

    >>> from compaction.strategies import Clear, ToolResult
    >>> to_data(ToolResult(Clear(min_chars=500)))
    {'use': 'ToolResult', 'style': {'use': 'Clear', 'min_chars': 500}}
    """
    try:
        data = write_part(as_strategy(strategy), PartKind.STRATEGY)
    except Exception as error:
        raise ConfigurationError("; ".join(told(error))) from error
    table: dict[str, Any] = {USE: data} if isinstance(data, str) else data
    if table[USE] == "Pipeline":
        del table[USE]
    return table


def load(path: str | os.PathLike[str]) -> Strategy:
    """The strategy in a file that ends in ``.toml``, ``.yaml`` or ``.yml``.

    Files and stores it names are opened, and relative to the working directory.

    Raises:
        ConfigurationError: If the file cannot be read, or describes no strategy; names every place and what belongs there.
    """
    file = Path(path)
    format = _format_of(file)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file}: it cannot be read as UTF-8 text ({error}); name a file that can") from error
    return loads(text, format=format, where=str(file))


def loads(text: str, *, format: Format = "toml", where: str = "pipeline") -> Strategy:
    r"""The strategy in a text.

    Args:
        text: What a file would hold.
        format: Its syntax.
        where: What to call it in an error.

    Raises:
        ConfigurationError: If the text is not of that format, or describes no strategy.

    >>> loads('use = "hermes"\ncontext_length = 128_000').trigger
    tokens_exceed(63999)
    """
    try:
        data: object = tomllib.loads(text) if format == "toml" else _yaml_data(text)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{where}: it is no {format.upper()} ({error})") from error
    except Exception as error:  # PyYAML's errors have a base of their own, known only where it is installed
        if isinstance(error, ConfigurationError) or not type(error).__module__.startswith("yaml"):
            raise
        raise ConfigurationError(f"{where}: it is no YAML ({' '.join(str(error).split())})") from error
    if not isinstance(data, Mapping):
        raise ConfigurationError(f"{where}: a file of a pipeline holds a table with {USE!r} or 'steps' (got {data!r:.80})")
    return from_data(cast("Mapping[str, Any]", data), where=where)


def dumps(strategy: StrategyLike, *, format: Format = "toml") -> str:
    """A text that `loads` makes an equal strategy of.

    Raises:
        ConfigurationError: If no file can hold it.

    >>> from compaction.strategies import SlidingWindow
    >>> print(dumps(SlidingWindow()), end="")
    use = "SlidingWindow"
    """
    data = to_data(strategy)
    if format == "yaml":
        return str(_yaml().safe_dump(data, sort_keys=False, allow_unicode=True, width=120))
    try:
        import tomli_w
    except ImportError as error:
        raise missing("tomli-w", error) from error
    try:
        return tomli_w.dumps(data)
    except TypeError as error:
        raise ConfigurationError(f"TOML cannot hold it ({error}); write YAML") from error


def dump(strategy: StrategyLike, path: str | os.PathLike[str]) -> None:
    """Write a strategy to a file, whole or not at all; the ending says how, as for `load`.

    Raises:
        ConfigurationError: If no file can hold it.
        UnwritableFile: If the file cannot be written.
    """
    file = Path(path)
    text = dumps(strategy, format=_format_of(file))
    with write_text(file) as write:
        write(text)


def _format_of(file: Path) -> Format:
    format = _SUFFIXES.get(file.suffix.lower())
    if format is None:
        raise ConfigurationError(f"{file}: a file of a pipeline ends in {', '.join(_SUFFIXES)}")
    return format


def _yaml_data(text: str) -> object:
    """What a YAML text holds: plain data, and no key twice, which YAML would let pass."""
    yaml = _yaml()

    def construct_mapping(loader: Any, node: Any, deep: bool = False) -> Any:
        keys = [str(key.value) for key, _ in node.value]
        if twice := [key for key in keys if keys.count(key) > 1]:
            raise yaml.YAMLError(f"the key {twice[0]!r} stands there twice, line {node.start_mark.line + 1}")
        return yaml.SafeLoader.construct_mapping(loader, node, deep)

    return yaml.load(text, type("StrictLoader", (yaml.SafeLoader,), {"construct_mapping": construct_mapping}))


def _yaml() -> Any:
    try:
        import yaml
    except ImportError as error:
        raise missing("pyyaml", error) from error
    return yaml
