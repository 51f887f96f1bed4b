"""``compaction run -- AGENT``: an agent behind a gateway of its own, which starts before it and stops with it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ..errors import ConfigurationError
from . import serve
from .options import CounterName
from .server import listening_socket, make_server

if TYPE_CHECKING:
    from ..gateway import GatewaySettings

_NOT_FOUND: Final = 127
_STOP_SECONDS: Final = 10.0
_OPENAI_BASES: Final = ("OPENAI_BASE_URL", "OPENAI_API_BASE", "AIDER_OPENAI_API_BASE")
_LARGE: Final = 10_000_000  # tokens past which an agent may summarize by itself


def run_command(
    agent: Annotated[list[str], typer.Argument(metavar="AGENT...", help="The agent and its arguments, after --.")],
    *,
    preset: serve.ServedPreset = None,
    pipeline: serve.ServedPipeline = None,
    window: serve.ServedWindow = "auto",
    openai_url: serve.OpenaiUrl = None,
    anthropic_url: serve.AnthropicUrl = None,
    google_url: serve.GoogleUrl = None,
    bedrock_url: serve.BedrockUrl = None,
    store: serve.StoreFile = None,
    shadow: serve.Shadow = False,
    recall: serve.RecallFile = None,
    record: serve.RecordFolder = None,
    log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Append the gateway's log to this file.", show_default=False)
    ] = None,
    counter: CounterName = "auto",
) -> int:
    """Run an agent behind a gateway at a free port of this machine. The gateway stops with the agent.

    The agent gets the address in the environment variables that OpenAI's, Anthropic's and Google's clients, OpenCode, aider and
    LiteLLM read; Codex gets options. An address that one of these variables has already becomes the upstream, unless an option
    names another. The exit code is the agent's.
    """
    settings = serve.settings_of(
        preset,
        pipeline,
        window=window,
        counter=counter,
        openai_url=_upstream(_OPENAI_BASES, openai_url),
        anthropic_url=_upstream(("ANTHROPIC_BASE_URL",), anthropic_url),
        google_url=_upstream(("GOOGLE_GEMINI_BASE_URL",), google_url),
        bedrock_url=bedrock_url,
        store=store,
        shadow=shadow,
        recall=recall,
        record=record,
    )
    with _serving(settings, log) as url:
        typer.echo(f"compaction gateway on {url}, its page is at /", err=True)
        return _code_of([*agent[:1], *agent_options(agent[0], url), *agent[1:]], agent_environment(url, os.environ))


def _upstream(names: Sequence[str], given: str | None) -> str | None:
    """Return the address of an upstream: the given one, or the one in the first of these variables that is set.

    It warns if the variables name different servers: the agent may use only one, and this need not be the first.
    """
    found = {name: os.environ[name] for name in names if os.environ.get(name)}
    if given is not None or not found:
        return given
    first, address = next(iter(found.items()))
    if len({url.rstrip("/") for url in found.values()}) > 1:
        typer.echo(f"compaction: {' and '.join(found)} name different servers; requests are sent to that of {first}", err=True)
    return address


def agent_environment(url: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of an agent that shall use the gateway.

    >>> agent_environment("http://127.0.0.1:8484", {"HOME": "/root"})["OPENAI_BASE_URL"]
    'http://127.0.0.1:8484/v1'
    """
    versioned = f"{url}/v1"
    bases = {
        **dict.fromkeys(_OPENAI_BASES, versioned),
        **dict.fromkeys(("ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"), url),
    }
    direct = ",".join(filter(None, [environment.get("NO_PROXY") or environment.get("no_proxy"), "127.0.0.1"]))
    alone = {"OPENCODE_DISABLE_AUTOCOMPACT": "1", "AIDER_MAX_CHAT_HISTORY_TOKENS": str(_LARGE)}
    opencode = {"OPENCODE_CONFIG_CONTENT": _opencode(url, environment.get("OPENCODE_CONFIG_CONTENT"))}
    return {**environment, **bases, **alone, **opencode, "NO_PROXY": direct, "no_proxy": direct}


def _opencode(url: str, given: str | None) -> str:
    """Return a configuration for OpenCode that adds the gateway's address to the given one."""
    try:
        content: dict[str, Any] = json.loads(given or "{}")
        providers: dict[str, Any] = content.setdefault("provider", {})
        for name, version in (("openai", "v1"), ("anthropic", "v1"), ("google", "v1beta")):
            providers.setdefault(name, {}).setdefault("options", {})["baseURL"] = f"{url}/{version}"
    except (ValueError, AttributeError, TypeError) as error:
        raise ConfigurationError("OPENCODE_CONFIG_CONTENT is not a JSON object that can be completed; unset it") from error
    return json.dumps(content)


def agent_options(agent: str, url: str) -> Sequence[str]:
    """Return the options of an agent that reads no environment variable for its address; only Codex needs some.

    >>> agent_options("/usr/bin/codex", "http://127.0.0.1:8484")[:2]
    ['-c', 'model_provider="gateway"']
    """
    if Path(agent).stem != "codex":
        return []
    provider = {"name": "gateway", "base_url": f"{url}/v1", "env_key": "OPENAI_API_KEY", "wire_api": "responses"}
    settings = {
        "model_provider": json.dumps("gateway"),
        **{f"model_providers.gateway.{key}": json.dumps(value) for key, value in provider.items()},
        "model_context_window": str(_LARGE),
        "model_auto_compact_token_limit": str(_LARGE),
    }
    return [each for key, value in settings.items() for each in ("-c", f"{key}={value}")]


@contextlib.contextmanager
def _serving(settings: GatewaySettings, log: Path | None) -> Generator[str]:
    """Serve in a thread; return the address.

    Raises:
        ConfigurationError: If the server did not start.
    """
    with contextlib.ExitStack() as files:
        written = None if log is None else files.enter_context(log.open("a", encoding="utf-8"))
        server = make_server(settings, written)
        listening = files.enter_context(listening_socket("127.0.0.1", 0))
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(0.005)
        if not server.started:
            reason = "pass --log FILE to see the reason" if log is None else f"{log} has the reason"
            raise ConfigurationError(f"the gateway did not start; {reason}")
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(_STOP_SECONDS)


def _code_of(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run the agent and return its exit code: 128 and the signal if one ended it, as in a shell; 127 if it does not exist."""
    try:
        process = subprocess.Popen(command, env=dict(environment))
    except OSError as error:
        typer.echo(f"compaction: {command[0]}: {error.strerror}", err=True)
        return _NOT_FOUND
    passed_on = [signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name)]
    before = {each: signal.signal(each, lambda number, _: _pass_on(process, number)) for each in passed_on}
    try:
        code = process.wait()
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    return code if code >= 0 else 128 - code


def _pass_on(process: subprocess.Popen[bytes], number: int) -> None:
    """Pass a signal on to the agent; a terminal has sent Ctrl-C to both."""
    if number == signal.SIGINT and _has_terminal():
        return
    process.send_signal(number)


def _has_terminal() -> bool:
    """Whether this process is in the foreground of a terminal, which sends its signals to all processes there."""
    if not hasattr(os, "tcgetpgrp"):
        return True
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return False
