"""``compaction serve``: the gateway between agents and their providers."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from .. import config, presets
from ..errors import ConfigurationError
from ..gateway import GatewaySettings, create_app, is_worth_a_log
from ..integrations.opentelemetry import OpenTelemetryEvents
from ..strategies import Strategy
from .options import CounterName, parse_seconds, signing_keys, window_tokens

_PRESETS: Final[dict[str, Callable[[int], Strategy]]] = {
    "adaptive": presets.adaptive,
    "context_window": presets.context_window,
    "hermes": presets.hermes,
}
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_SWITCH_SECONDS: Final = 0.0005  # a compaction in a thread does not keep the streams waiting for five milliseconds at a time
_NEEDED: Final = ("starlette", "uvicorn", "httpx")


def serve_command(
    *,
    preset: Annotated[str, typer.Option(metavar="NAME", help=f"The strategy: {', '.join(_PRESETS)}.")] = "adaptive",
    pipeline: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="Instead of --preset: a pipeline in TOML or YAML.", show_default=False),
    ] = None,
    window: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            help="Tokens that a request may have, such as 200k, or a model's name; auto: the input limit of the model that "
            "each request names.",
        ),
    ] = "auto",
    openai_url: Annotated[
        str, typer.Option("--openai-url", metavar="URL", help="Where chat completions and Responses are sent.")
    ] = "https://api.openai.com/v1",
    anthropic_url: Annotated[
        str, typer.Option("--anthropic-url", metavar="URL", help="Where Anthropic's messages are sent.")
    ] = "https://api.anthropic.com/v1",
    google_url: Annotated[
        str, typer.Option("--google-url", metavar="URL", help="Where Gemini's requests are sent.")
    ] = "https://generativelanguage.googleapis.com",
    store: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Save decisions here, so that a restart sends the same requests.", show_default=False
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port; 0 for any that is free.")] = 8484,
    host: Annotated[str, typer.Option(help="The address; another than this machine's own needs --token.")] = "127.0.0.1",
    name: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A host name under which clients reach it, repeatable; loopback always works."),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="COMPACTION_TOKEN",
            metavar="TEXT",
            help="Ask every client for this token, in the header x-compaction-token.",
            show_default=False,
            show_envvar=True,
        ),
    ] = None,
    shadow: Annotated[
        bool, typer.Option("--shadow", help="Send everything as it came, and show what would have been.")
    ] = False,
    record: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Record the sessions here; compaction replay reads them.", show_default=False),
    ] = None,
    forget_after: Annotated[
        float | None,
        typer.Option(
            parser=parse_seconds,
            metavar="TIME",
            help="Forget conversations unused for so long, such as 30d.",
            show_default=False,
        ),
    ] = None,
    max_body: Annotated[int, typer.Option(min=1, metavar="BYTES", help="The largest request that is read.")] = 67_108_864,
    conversations: Annotated[int, typer.Option(min=1, help="Conversations in memory, for each format and window.")] = 1_000,
    max_memory: Annotated[
        int, typer.Option(min=1, metavar="BYTES", help="Bytes of the messages of conversations in memory, likewise.")
    ] = 268_435_456,
    counter: CounterName = "auto",
) -> int:
    """Serve the gateway: agents use its address in place of their provider's, and stay inside their context window.

    Nothing else changes for them. The page at / shows what happens; the log on standard error has one line of JSON a request.
    """
    if missing := [each for each in _NEEDED if find_spec(each) is None]:
        raise ConfigurationError(f"serve needs {', '.join(missing)}; install compaction-toolkit[gateway]")
    if host not in _LOOPBACK and token is None:
        raise ConfigurationError(
            f"--host {host}: other machines could use this gateway; pass --token, or leave the host as it is"
        )
    settings = GatewaySettings(
        strategy=_strategy(preset, pipeline),
        awaits=pipeline is not None,
        window="auto" if window == "auto" else window_tokens(window, None),
        counter=counter,
        openai_url=openai_url,
        anthropic_url=anthropic_url,
        google_url=google_url,
        store=store,
        forget_after=forget_after,
        token=token,
        names=frozenset((*(name or ()), host)),
        shadow=shadow,
        record=record,
        cases=(Path.home() / ".compaction" if store is None else store.parent) / "gateway-cases",
        max_body=max_body,
        conversations=conversations,
        conversation_bytes=max_memory,
        keys=signing_keys(),
    )
    _run(settings, host, port)
    return 0


def _strategy(preset: str, pipeline: Path | None) -> Callable[[int], Strategy]:
    if pipeline is not None:
        strategy = config.load(pipeline)
        return lambda window: strategy
    if preset not in _PRESETS:
        raise ConfigurationError(f"--preset {preset}: there is no such preset; use one of {', '.join(_PRESETS)}")
    return _PRESETS[preset]


def _run(settings: GatewaySettings, host: str, port: int) -> None:
    """Serve until the process is told to end."""
    import uvicorn

    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # a client that went away is an error of its connection alone
    sys.setswitchinterval(_SWITCH_SECONDS)
    _log_lines("compaction.gateway", logging.INFO, "%(message)s")
    _log_lines("compaction", logging.WARNING, "%(levelname)s %(name)s: %(message)s")
    _log_lines("uvicorn", logging.WARNING, "%(levelname)s %(name)s: %(message)s")
    logging.getLogger("uvicorn.error").addFilter(is_worth_a_log)
    app: Any = create_app(settings, on_event=OpenTelemetryEvents() if find_spec("opentelemetry") is not None else None)
    options: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False, "date_header": False}
    limits: dict[str, Any] = {"proxy_headers": False, "ws": "none", "lifespan": "on", "timeout_graceful_shutdown": 5}
    server = uvicorn.Server(uvicorn.Config(app, host=host, port=port, **options, **limits))
    listening = server.config.bind_socket()
    listening.listen()  # whoever reads the address may use it at once
    port = listening.getsockname()[1]
    name = f"[{host}]" if ":" in host else host
    typer.echo(f"compaction gateway on http://{name}:{port}, its page is at /", err=True)
    server.run([listening])


def _log_lines(name: str, level: int, format: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(format))
    logger = logging.getLogger(name)
    logger.setLevel(level)
    logger.addHandler(handler)
    logger.propagate = False
