"""``compaction serve``: the gateway between agents and their providers."""

from __future__ import annotations

import contextlib
import gc
import logging
import socket
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TextIO, TypeAlias

import typer

from .. import config
from ..errors import ConfigurationError
from ..gateway import LOOPBACK_NAMES, GatewaySettings, Workers, create_app, is_worth_a_log
from ..installation import install_line
from ..integrations.opentelemetry import OpenTelemetryEvents
from ..presets import PRESETS
from ..session import OnEvent
from ..strategies import Strategy
from .options import CounterName, completed, find_preset, parse_seconds, signing_keys, window_tokens
from .processes import run_processes

if TYPE_CHECKING:
    import uvicorn

_PRESETS: Final = [name for name, preset in PRESETS.items() if preset.size == "window"]
_SWITCH_SECONDS: Final = 0.0005  # so that a compaction in a thread does not delay streams by five milliseconds at a time
_COLLECT: Final = (5_000, 20, 100)  # so that the garbage collector rarely walks all conversations, and stops for a millisecond
_KEEP_ALIVE_SECONDS: Final = 120  # longer than the pauses of most agents, which then stay with one worker
_MOST_CONNECTIONS: Final = 2_000  # of a process; further ones get 503
_NEEDED: Final = ("starlette", "uvicorn", "aiohttp", "msgspec")


ServedPreset: TypeAlias = Annotated[
    str, typer.Option(metavar="NAME", autocompletion=completed(_PRESETS), help=f"The strategy: {', '.join(_PRESETS)}.")
]
ServedPipeline: TypeAlias = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Instead of --preset: a pipeline in TOML or YAML.", show_default=False),
]
ServedWindow: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="SIZE",
        help="The context window in tokens, such as 200k, or a model's name; auto: the input limit of the model that "
        "each request names.",
    ),
]
OpenaiUrl: TypeAlias = Annotated[
    str, typer.Option("--openai-url", metavar="URL", help="The base URL for chat completions and Responses.")
]
AnthropicUrl: TypeAlias = Annotated[
    str, typer.Option("--anthropic-url", metavar="URL", help="The base URL for Anthropic's messages.")
]
GoogleUrl: TypeAlias = Annotated[
    str, typer.Option("--google-url", metavar="URL", help="The base URL for Gemini's and Vertex' requests.")
]
BedrockUrl: TypeAlias = Annotated[
    str, typer.Option("--bedrock-url", metavar="URL", help="The base URL for Amazon Bedrock's requests.")
]
StoreFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Save decisions in this file, so that a restart sends the same requests.", show_default=False
    ),
]
Shadow: TypeAlias = Annotated[
    bool, typer.Option("--shadow", help="Forward every request unchanged, and show what compaction would have done.")
]
RecallFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Store what leaves requests in this file, and offer the model a tool that reads it.",
        show_default=False,
    ),
]
RecordFolder: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Record sessions in this folder; compaction replay reads them.", show_default=False),
]
OPENAI_URL: Final = "https://api.openai.com/v1"
ANTHROPIC_URL: Final = "https://api.anthropic.com/v1"
GOOGLE_URL: Final = "https://generativelanguage.googleapis.com"
BEDROCK_URL: Final = "https://bedrock-runtime.us-east-1.amazonaws.com"


def serve_command(
    *,
    preset: ServedPreset = "adaptive",
    pipeline: ServedPipeline = None,
    window: ServedWindow = "auto",
    openai_url: OpenaiUrl = OPENAI_URL,
    anthropic_url: AnthropicUrl = ANTHROPIC_URL,
    google_url: GoogleUrl = GOOGLE_URL,
    bedrock_url: BedrockUrl = BEDROCK_URL,
    store: StoreFile = None,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port; 0 for any that is free.")] = 8484,
    host: Annotated[str, typer.Option(help="The address; one that other machines can reach needs --token.")] = "127.0.0.1",
    name: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A host name that clients use for the gateway, repeatable; loopback always works."),
    ] = None,
    origin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN",
            help="The origin of a web page or app that may use the gateway from a browser, repeatable.",
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="COMPACTION_TOKEN",
            metavar="TEXT",
            help="The token that every client must send in the header x-compaction-token.",
            show_default=False,
            show_envvar=True,
        ),
    ] = None,
    shadow: Shadow = False,
    recall: RecallFile = None,
    record: RecordFolder = None,
    forget_after: Annotated[
        float | None,
        typer.Option(
            parser=parse_seconds,
            metavar="TIME",
            help="Forget conversations that were not used for this long, such as 30d.",
            show_default=False,
        ),
    ] = None,
    max_body: Annotated[int, typer.Option(min=1, metavar="BYTES", help="The largest request that is accepted.")] = 67_108_864,
    conversations: Annotated[
        int, typer.Option(min=1, help="Most conversations in memory, for each format and window.")
    ] = 1_000,
    max_memory: Annotated[
        int, typer.Option(min=1, metavar="BYTES", help="Most bytes of their messages in memory, likewise.")
    ] = 268_435_456,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes that share the work; a conversation stays with one of them.")
    ] = 1,
    counter: CounterName = "auto",
) -> int:
    """Serve the gateway: agents use its address in place of their provider's, and stay inside their context window.

    The page at / shows its conversations. The log on standard error has one line of JSON for each request.
    """
    if host not in LOOPBACK_NAMES and not (token or "").strip():
        raise ConfigurationError(f"--host {host}: other machines could use this gateway; pass --token, or do not set --host")
    settings = settings_of(
        preset,
        pipeline,
        window=window,
        counter=counter,
        openai_url=openai_url,
        anthropic_url=anthropic_url,
        google_url=google_url,
        bedrock_url=bedrock_url,
        store=store,
        forget_after=forget_after,
        token=token,
        names=frozenset((*(name or ()), host)),
        origins=frozenset(origin or ()),
        shadow=shadow,
        recall=recall,
        record=record,
        max_body=max_body,
        conversations=conversations,
        conversation_bytes=max_memory,
    )
    said = f"{pipeline or preset}, window {window}, {'decisions are not saved' if store is None else f'saved in {store}'}"
    _run(settings, host, port, f"{said}, requests are sent unchanged" if shadow else said, workers)
    return 0


def settings_of(preset: str, pipeline: Path | None, *, window: str, store: Path | None, **options: Any) -> GatewaySettings:
    """Return the settings of a gateway.

    Args:
        preset: The name of the strategy.
        pipeline: A file with a pipeline, instead of the preset.
        window: The context window: ``auto``, a size, or a model's name.
        store: The file in which decisions are saved.
        options: The other settings.

    Raises:
        ConfigurationError: If an option cannot be used, or a package is missing.
    """
    if missing := [each for each in _NEEDED if find_spec(each) is None]:
        raise ConfigurationError(f"the gateway needs {', '.join(missing)}: {install_line('gateway')}")
    return GatewaySettings(
        strategy=_strategy(preset, pipeline),
        awaits=pipeline is not None,
        window="auto" if window == "auto" else window_tokens(window, None),
        store=store,
        cases=(Path.home() / ".compaction" if store is None else store.parent) / "gateway-cases",
        keys=signing_keys(),
        **options,
    )


def _strategy(preset: str, pipeline: Path | None) -> Callable[[int], Strategy]:
    if pipeline is not None:
        strategy = config.load(pipeline)
        return lambda window: strategy
    return find_preset(preset, _PRESETS).make


def _run(settings: GatewaySettings, host: str, port: int, said: str, workers: int) -> None:
    """Serve until a signal ends the process. ``said`` describes the settings in the printed line."""
    server = None if workers > 1 else make_server(settings, sys.stderr)  # what cannot be used is an error before it listens
    listening = reserved_socket(host, port) if workers > 1 else listening_socket(host, port)
    port = listening.getsockname()[1]
    name = f"[{host}]" if ":" in host else host
    line = f"compaction gateway on http://{name}:{port}, its page is at / ({said})"
    if server is not None:
        typer.echo(line, err=True)
        server.run([listening])
        return
    with tempfile.TemporaryDirectory(prefix="compaction-") as folder:

        def serve(number: int) -> None:
            own = listening_socket(host, port, shared=True)
            with contextlib.suppress(FileExistsError):  # only the first worker says it, when a client can connect
                Path(folder, "announced").touch(exist_ok=False)
                typer.echo(line, err=True)
            make_server(settings, sys.stderr, Workers(Path(folder), workers, number)).run([own])

        run_processes(workers, serve)


def make_server(settings: GatewaySettings, log: TextIO | None, workers: Workers | None = None) -> uvicorn.Server:
    """Return a server of the gateway, which runs at a `listening_socket`.

    Args:
        settings: The gateway's settings.
        log: Where to write the log; ``None`` for nowhere.
        workers: The processes that serve the same address, if there are several.
    """
    import uvicorn

    tune_process()
    _log_lines("compaction.gateway", logging.INFO, "%(message)s", log)
    _log_lines("compaction", logging.WARNING, "%(levelname)s %(name)s: %(message)s", log)
    _log_lines("uvicorn", logging.WARNING, "%(levelname)s %(name)s: %(message)s", log)
    logging.getLogger("uvicorn.error").addFilter(is_worth_a_log)
    app: Any = create_app(settings, on_event=_telemetry(), workers=workers)
    options: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False, "date_header": False}
    limits: dict[str, Any] = {
        "proxy_headers": False,
        "http": "h11",
        "ws": "none",
        "lifespan": "on",
        "timeout_graceful_shutdown": 5,
    }
    limits |= {"timeout_keep_alive": _KEEP_ALIVE_SECONDS, "limit_concurrency": _MOST_CONNECTIONS}
    return uvicorn.Server(uvicorn.Config(app, **options, **limits))


def tune_process() -> None:
    """Set how often threads and the garbage collector take their turn in this process, which only serves."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.set_threshold(*_COLLECT)


def _telemetry() -> OnEvent | None:
    return OpenTelemetryEvents() if find_spec("opentelemetry") is not None else None


def listening_socket(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """Return a listening socket whose connections send every chunk at once; port 0 is any that is free.

    Accepted connections inherit TCP_NODELAY. asyncio does not set it for the sockets that uvicorn makes, and a chunk then waits
    up to 40 ms for the client to acknowledge the one before.

    Args:
        host: The address.
        port: The port.
        shared: Whether other processes of this user listen there too; the system then gives each connection to one of them.

    Raises:
        ConfigurationError: If the address cannot be used.
    """
    try:
        found = socket.create_server((host, port), family=_family(host), backlog=2_048, reuse_port=shared)
    except OSError as error:
        raise _unusable(host, port, error) from error
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found


def reserved_socket(host: str, port: int) -> socket.socket:
    """Return a socket that keeps an address for the workers, which listen there; it does not listen itself.

    Raises:
        ConfigurationError: If the address cannot be used.
    """
    if not hasattr(socket, "SO_REUSEPORT"):
        raise ConfigurationError("--workers needs a system on which processes can share a port; leave it out")
    found = socket.socket(_family(host))
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        found.bind((host, port))
    except OSError as error:
        raise _unusable(host, port, error) from error
    return found


def _unusable(host: str, port: int, error: OSError) -> ConfigurationError:
    reason = str(error.strerror or error).partition(" (")[0]
    return ConfigurationError(f"--port {port}: {host} cannot be used ({reason}); name another port, or 0 for any that is free")


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _log_lines(name: str, level: int, format: str, log: TextIO | None) -> None:
    handler = logging.NullHandler() if log is None else logging.StreamHandler(log)
    handler.setFormatter(logging.Formatter(format))
    logger = logging.getLogger(name)
    logger.setLevel(level)
    logger.addHandler(handler)
    logger.propagate = False
