"""Checks of the servers that a pipeline file names, and of the environment variables whose values are sent there."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from ipaddress import ip_address
from typing import Any, Final, cast
from urllib.parse import urlsplit

from ..errors import ConfigurationError
from ..strategies import ProviderCompaction
from ..summarizers import OpenAISummarizer, redact

NO_KEY: Final = ("none", "unused")  # the values that ``api_key`` may have, for a server that requires no key


def check_no_secrets(options: Mapping[str, Any]) -> None:
    """Check that the options of a summarizer or store contain no key or password.

    >>> check_no_secrets({"api_key_env": "OPENAI_API_KEY", "base_url": "http://127.0.0.1:8080/v1"})
    """
    if options.get("api_key", NO_KEY[0]) not in NO_KEY:
        raise ConfigurationError(
            "'api_key' does not belong in a file; name the environment variable with the key: api_key_env = \"OPENAI_API_KEY\""
        )
    for name, value in options.items():
        if name.endswith("_env") or (isinstance(value, Mapping) and "use" in value):  # an inner component is checked separately
            continue
        text = json.dumps({name: value}, default=str)
        if redact(text) != text:
            raise ConfigurationError(f"{name!r} contains what looks like a key or password; it does not belong in a file")


_ENDING: Final = "_API_KEY"
_DEFAULT_KEY: Final = "OPENAI_API_KEY"
_SENDING: Final = (OpenAISummarizer.__name__, ProviderCompaction.__name__)
"""The components that send this key if they name no other variable."""
_PLAIN_URL: Final = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+(?:/[A-Za-z0-9._~/%-]*)?")


def server_problems(data: object, *, allow_env: Collection[str] | None, allow_hosts: Collection[str] | None) -> Iterator[str]:
    """Yield a message for each environment variable and server that plain data must not name, with its place; see `from_data`.

    >>> list(server_problems({"api_key_env": "HOME"}, allow_env=None, allow_hosts=None))
    ["api_key_env: 'HOME' does not end in '_API_KEY'; rename the variable, or pass allow_env={'HOME'}"]
    """
    for place, table in _tables(data):
        if (rule := _variable_problem(table, allow_env)) is not None:
            yield f"{place}api_key_env: {rule}"
        if (rule := _host_problem(table.get("base_url"), allow_hosts)) is not None:
            yield f"{place}base_url: {rule}"


def _tables(data: object, place: str = "") -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield each table in plain data, in order, with its place and a dot."""
    if isinstance(data, Mapping):
        table = cast("Mapping[str, object]", data)
        before = f"{place}." if place else ""
        yield before, table
        for name, value in table.items():
            yield from _tables(value, f"{before}{name}")
    elif isinstance(data, list | tuple):
        for number, value in enumerate(cast("list[object]", data)):
            yield from _tables(value, f"{place}[{number}]")


def _variable_problem(table: Mapping[str, object], allowed: Collection[str] | None) -> str | None:
    variable = table.get("api_key_env")
    if variable is None and table.get("use") in _SENDING and table.get("api_key") not in NO_KEY:
        variable = _DEFAULT_KEY
    if not isinstance(variable, str):
        return None
    if allowed is None:
        if variable.endswith(_ENDING):
            return None
        return f"{variable!r} does not end in {_ENDING!r}; rename the variable, or pass allow_env={{{variable!r}}}"
    if variable in allowed:
        return None
    return f"{variable!r} is not in allow_env; name one of {_listed(allowed)}, or allow it in code"


def _host_problem(url: object, allowed: Collection[str] | None) -> str | None:
    if not isinstance(url, str) or allowed is None:
        return None
    host = urlsplit(url).hostname if _PLAIN_URL.fullmatch(url) else None
    if host is None:
        return f"{url!r} is not a plain http or https URL, so its host cannot be compared with allow_hosts; write scheme://host/path"
    names = {each.lower() for each in allowed}
    if host in names and url.startswith("http://") and not is_loopback(host):
        return f"a key sent to {host!r} over http can be read on the way; write https, or pass allow_hosts={{'http://{host}'}}"
    if host in names or (url.startswith("http://") and f"http://{host}" in names):
        return None
    return f"{host!r} is not in allow_hosts; name one of {_listed(allowed)}, or allow it in code"


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine.

    >>> is_loopback("localhost"), is_loopback("127.0.0.2"), is_loopback("::1"), is_loopback("127.evil.example")
    (True, True, True, False)
    """
    with contextlib.suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


def _listed(names: Collection[str]) -> str:
    return ", ".join(sorted(names)) or "none"
