"""Pipeline files: reading a strategy from TOML, YAML or plain data, and writing one.

A file can name an environment variable and the server to which its value is sent. Read only files whose authors may see the
allowed variables: by default, all whose names end in ``_API_KEY``.
"""

from __future__ import annotations

import importlib
import os
import re
import reprlib
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from ..errors import ConfigurationError
from ..files import write_text
from ..installation import install_line
from ..strategies import Strategy, StrategyLike, as_strategy
from .allowed_servers import server_problems
from .components import USE, read_strategy, write_component
from .expressions import MAX_NUMBER
from .registry import ComponentKind

FileFormat: TypeAlias = Literal["toml", "yaml"]  # the syntax of a pipeline file

FILE_SUFFIXES: Final[dict[str, FileFormat]] = {".toml": "toml", ".yaml": "yaml", ".yml": "yaml"}
"""The syntax of a pipeline file by the ending of its name."""


MAX_CHARS: Final = 262_144  # the longest text of a pipeline file, in characters; one with a hundred steps has about 20,000

MAX_DEPTH: Final = 32  # how deep tables and lists may be nested; a composite within a composite takes two or three levels

_DOTTED: Final = re.compile(r"""(?:\.[ \t]*(?:[\w-]{1,64}|"[^"\n]{0,64}"|'[^'\n]{0,64}')[ \t]*){256}""")
"""A dotted key that takes the TOML parser a time that grows with the square of its parts."""


def _check_plain(data: object, where: str, levels: int = MAX_DEPTH) -> None:
    """Check that data is not too deep, does not contain itself, and has no huge number, before anything is built from it."""
    if isinstance(data, int) and abs(data) > MAX_NUMBER:
        raise ConfigurationError(f"{where}: it has a whole number beyond {MAX_NUMBER:,}; write a smaller one")
    if levels < 0:
        raise ConfigurationError(
            f"{where}: it is nested more than {MAX_DEPTH} levels deep, or contains itself; write it with fewer levels"
        )
    values: object = cast("Mapping[object, object]", data).values() if isinstance(data, Mapping) else data
    if isinstance(values, Iterable) and not isinstance(values, str | bytes):
        for value in cast("Iterable[object]", values):
            _check_plain(value, where, levels - 1)


def from_data(
    data: Mapping[str, Any],
    *,
    where: str = "pipeline",
    allow_env: Collection[str] | None = None,
    allow_hosts: Collection[str] | None = None,
) -> Strategy:
    """Return the strategy that plain data describes.

    Args:
        data: A table with ``use`` and the strategy's options; without ``use``, a `Pipeline` with its ``steps``.
        where: The name of the data in error messages.
        allow_env: The environment variables whose values may be sent to a server; by default those whose names end in
            ``_API_KEY``. A summarizer that names no variable sends ``OPENAI_API_KEY``.
        allow_hosts: The hosts that ``base_url`` may name, such as ``{"api.openai.com"}``; by default any. Over plain http only
            this machine may be named, and a host that is listed with its scheme, such as ``"http://gpu.local"``.

    Raises:
        ConfigurationError: If it does not describe a strategy; the message lists every mistake, up to 50, with its place.

    >>> from_data({"steps": ["ClearReasoning", {"use": "Truncation", "trigger": "tokens_exceed(9_000)"}]}).steps[1].trigger
    tokens_exceed(9000)
    """
    if not isinstance(data, Mapping):
        raise ConfigurationError(
            f"{where}: it must be a table of options (got {reprlib.repr(data)}); write the list as 'steps'"
        )
    _check_plain(data, where)
    if problems := list(server_problems(data, allow_env=allow_env, allow_hosts=allow_hosts)):
        raise ConfigurationError(f"{where}: {'; '.join(problems)}")
    try:
        strategy = read_strategy(data)
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from error
    if not isinstance(strategy, Strategy):
        raise ConfigurationError(f"{where}: it makes {strategy!r}, which is not a strategy")
    return strategy


def to_data(strategy: StrategyLike) -> dict[str, Any]:
    """Return plain data that `from_data` reads as an equal strategy; options with their default values are omitted.

    Raises:
        ConfigurationError: If a file cannot contain it, such as a plain function, a key or a client.

    >>> from compaction.strategies import Clear, ToolResult
    >>> to_data(ToolResult(Clear(min_chars=500)))
    {'use': 'ToolResult', 'style': {'use': 'Clear', 'min_chars': 500}}
    """
    data = write_component(as_strategy(strategy), ComponentKind.STRATEGY)
    table: dict[str, Any] = {USE: data} if isinstance(data, str) else data
    if table[USE] == "Pipeline":
        del table[USE]
    return table


def load(
    path: str | os.PathLike[str], *, allow_env: Collection[str] | None = None, allow_hosts: Collection[str] | None = None
) -> Strategy:
    """Return the strategy in a file that ends in ``.toml``, ``.yaml`` or ``.yml``.

    Files and stores that it names are opened; their paths are relative to the working directory. The file decides which
    environment variable is sent to which host, as far as ``allow_env`` and ``allow_hosts`` permit, see `from_data`.

    Raises:
        ConfigurationError: If the file cannot be read, or does not describe a strategy.
    """
    file = Path(path)
    format = _file_format(file)
    try:
        with file.open(encoding="utf-8") as stream:
            text = stream.read(MAX_CHARS + 1)
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{file}: it cannot be read as UTF-8 text ({error}); name a pipeline file") from error
    except OSError as error:
        raise ConfigurationError(f"{file}: {error.strerror}; name a pipeline file that exists and can be read") from error
    return loads(text, format=format, where=str(file), allow_env=allow_env, allow_hosts=allow_hosts)


def loads(
    text: str,
    *,
    format: FileFormat = "toml",
    where: str = "pipeline",
    allow_env: Collection[str] | None = None,
    allow_hosts: Collection[str] | None = None,
) -> Strategy:
    r"""Return the strategy in the text of a pipeline file; the last three arguments are those of `from_data`.

    Raises:
        ConfigurationError: If the text does not have that syntax, or does not describe a strategy.

    >>> loads('use = "hermes"\ncontext_length = 128_000').trigger
    tokens_exceed(63999)
    """
    _check_format(format)
    if len(text) > MAX_CHARS:
        raise ConfigurationError(f"{where}: it has more than {MAX_CHARS:,} characters; is it a pipeline file?")
    if format == "toml" and _DOTTED.search(text):
        raise ConfigurationError(f"{where}: it has a key of more than 256 parts, which is nested too deep; write it shorter")
    parse = tomllib.loads if format == "toml" else partial(_yaml_data, _library("yaml", "pyyaml"))
    try:
        data: object = parse(text)
    except RecursionError as error:
        raise ConfigurationError(f"{where}: it is nested more than {MAX_DEPTH} levels deep; write it shorter") from error
    except ValueError as error:
        raise ConfigurationError(f"{where}: it is not {format.upper()} ({error})") from error
    if not isinstance(data, Mapping):
        raise ConfigurationError(f"{where}: a pipeline file contains a table with {USE!r} or 'steps' (got {data!r:.80})")
    return from_data(cast("Mapping[str, Any]", data), where=where, allow_env=allow_env, allow_hosts=allow_hosts)


def dumps(strategy: StrategyLike, *, format: FileFormat = "toml") -> str:
    """Return a text that `loads` reads as an equal strategy.

    Raises:
        ConfigurationError: If a file cannot contain it.

    >>> from compaction.strategies import SlidingWindow
    >>> print(dumps(SlidingWindow()), end="")
    use = "SlidingWindow"
    """
    _check_format(format)
    data = to_data(strategy)
    if format == "yaml":
        return str(_library("yaml", "pyyaml").safe_dump(data, sort_keys=False, allow_unicode=True, width=120))
    try:
        return str(_library("tomli_w", "tomli-w").dumps(data))
    except TypeError as error:
        raise ConfigurationError(f"TOML cannot represent it ({error}); write YAML") from error


def dump(strategy: StrategyLike, path: str | os.PathLike[str]) -> None:
    """Write a strategy to a file, atomically; the file's ending decides the syntax, as in `load`.

    Raises:
        ConfigurationError: If a file cannot contain it.
        UnwritableFile: If the file cannot be written.
    """
    file = Path(path)
    text = dumps(strategy, format=_file_format(file))
    with write_text(file) as write:
        write(text)


def _check_format(format: str) -> None:
    if format not in FILE_SUFFIXES.values():
        raise ConfigurationError(f"format={format!r}: toml or yaml", argument="format")


def _file_format(file: Path) -> FileFormat:
    format = FILE_SUFFIXES.get(file.suffix.lower())
    if format is None:
        raise ConfigurationError(f"{file}: a pipeline file ends in {', '.join(FILE_SUFFIXES)}")
    return format


def _yaml_data(yaml: Any, text: str) -> object:
    """Return the plain data in a YAML text; repeated keys and aliases, which PyYAML accepts, are errors.

    A few lines of aliases can stand for millions of values.
    """

    def construct_mapping(loader: Any, node: Any, deep: bool = False) -> Any:
        keys = Counter(str(key.value) for key, _ in node.value)
        if repeated := next((key for key, times in keys.items() if times > 1), None):
            raise yaml.YAMLError(f"the key {repeated!r} is repeated, line {node.start_mark.line + 1}")
        return yaml.SafeLoader.construct_mapping(loader, node, deep)

    def compose_node(loader: Any, parent: Any, index: Any) -> Any:
        if loader.check_event(yaml.AliasEvent):
            alias = loader.peek_event()
            raise yaml.YAMLError(f"write the value of *{alias.anchor} again, line {alias.start_mark.line + 1}")
        return yaml.SafeLoader.compose_node(loader, parent, index)

    changes = {"construct_mapping": construct_mapping, "compose_node": compose_node}
    try:
        return yaml.load(text, type("StrictLoader", (yaml.SafeLoader,), changes))
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error


def _library(module: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ConfigurationError(f"pipeline files need {package} ({error}): {install_line('config')}") from error
