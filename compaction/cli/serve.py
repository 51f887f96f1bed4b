"""``compaction serve``: the gateway between agents and their providers."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import attrs
import typer

from .. import config
from ..errors import ConfigurationError
from ..gateway import LOOPBACK_NAMES, GatewaySettings, Workers
from ..installation import install_line
from ..presets import PRESETS
from ..strategies import Strategy
from .options import CounterName, completed, find_preset, not_both, parse_seconds, signing_keys, window_tokens
from .server import listening_socket, make_server, reserved_socket, run_processes

_PRESETS: Final = [name for name, preset in PRESETS.items() if preset.size == "window"]
_NEEDED: Final = ("starlette", "uvicorn", "aiohttp", "msgspec")
DEFAULT_PRESET: Final = "adaptive"

ServedPreset: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        autocompletion=completed(_PRESETS),
        help=f"The strategy: {', '.join(_PRESETS)}.",
        show_default=DEFAULT_PRESET,
    ),
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


def _url(provider: str, requests: str) -> Any:
    """Return the option of an upstream's address; the settings have the usual one."""
    usual = attrs.fields_dict(GatewaySettings)[f"{provider}_url"].default
    return typer.Option(
        f"--{provider}-url", metavar="URL", help=f"The base URL for {requests}; by default {usual}.", show_default=False
    )


OpenaiUrl: TypeAlias = Annotated[str | None, _url("openai", "chat completions and Responses")]
AnthropicUrl: TypeAlias = Annotated[str | None, _url("anthropic", "Anthropic's messages")]
GoogleUrl: TypeAlias = Annotated[str | None, _url("google", "Gemini's and Vertex' requests")]
BedrockUrl: TypeAlias = Annotated[str | None, _url("bedrock", "Amazon Bedrock's requests")]
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


def serve_command(
    *,
    preset: ServedPreset = None,
    pipeline: ServedPipeline = None,
    window: ServedWindow = "auto",
    openai_url: OpenaiUrl = None,
    anthropic_url: AnthropicUrl = None,
    google_url: GoogleUrl = None,
    bedrock_url: BedrockUrl = None,
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
        names=frozenset((*(name or ()), *([host] if host else ()))),
        origins=frozenset(origin or ()),
        shadow=shadow,
        recall=recall,
        record=record,
        max_body=max_body,
        most_conversations=conversations,
        conversation_bytes=max_memory,
    )
    saved = "decisions are not saved" if store is None else f"saved in {store}"
    description = (
        f"{pipeline or preset or DEFAULT_PRESET}, window {window}, {saved}{', requests are sent unchanged' if shadow else ''}"
    )
    if workers == 1:
        _serve_alone(settings, host, port, description)
    else:
        _serve_together(settings, host, port, description, workers)
    return 0


def settings_of(
    preset: str | None, pipeline: Path | None, *, window: str, store: Path | None, **options: Any
) -> GatewaySettings:
    """Return the settings of a gateway.

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
        **{name: value for name, value in options.items() if value is not None},
    )


def _strategy(preset: str | None, pipeline: Path | None) -> Callable[[int], Strategy]:
    not_both("--preset", preset, "--config", pipeline)
    if pipeline is not None:
        strategy = config.load(pipeline)
        return lambda window: strategy
    return find_preset(preset or DEFAULT_PRESET, _PRESETS).make


def _serve_alone(settings: GatewaySettings, host: str, port: int, description: str) -> None:
    server = make_server(settings, sys.stderr)  # settings that cannot be used are an error before it listens
    listening = listening_socket(host, port)
    _announce(host, listening.getsockname()[1], description)
    server.run([listening])


def _serve_together(settings: GatewaySettings, host: str, port: int, description: str, workers: int) -> None:
    """Serve in several processes until a signal ends this one."""
    reserved = reserved_socket(host, port)  # it stays open, so that no other program takes the port
    port = reserved.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="compaction-") as folder:

        def serve(number: int) -> None:
            own = listening_socket(host, port, shared=True)
            with contextlib.suppress(FileExistsError):  # only the first worker says it, when a client can connect
                Path(folder, "announced").touch(exist_ok=False)
                _announce(host, port, description)
            make_server(settings, sys.stderr, Workers(Path(folder), workers, number)).run([own])

        run_processes(workers, serve)


def _announce(host: str, port: int, description: str) -> None:
    name = f"[{host}]" if ":" in host else host
    typer.echo(f"compaction gateway on http://{name}:{port}, its page is at / ({description})", err=True)
