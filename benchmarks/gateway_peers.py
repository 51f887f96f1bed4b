"""Other proxies and our gateway, with the same scripted agent and strict model: ``make bench-peers``.

``--write docs/gateway-peers.md`` writes the table, the date and the versions. Each proxy runs in an environment of its own
within ``--folder``, into which ``make`` installs it, with its defaults and the window of the model. One that is missing, or
does not start without a network, has a row that says so.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Final

import anyio
import attrs
import httpx

from compaction.models import prices_of
from compaction.tokens import counter
from tests.support.clients import AGENTS, Recorder, run

from .gateway_long import MODELS, USER_TURNS, LongTurns
from .hosts.script import user_text
from .priced_provider import PricedProvider
from .tables import Section, measured_on, table, written

Command = Callable[[Path, int, str, int], tuple[list[str], Mapping[str, str]]]
"""The command and environment of a proxy, for its environment's folder, its port, the upstream and the window."""

FOLDER: Final = Path(__file__).resolve().parents[1] / ".venv-gateway" / "proxies"


def _ours(folder: Path, port: int, upstream: str, window: int) -> tuple[list[str], Mapping[str, str]]:
    urls = ["--openai-url", f"{upstream}/v1", "--anthropic-url", upstream, "--google-url", upstream]
    return [sys.executable, "-m", "compaction", "serve", "--port", str(port), "--window", str(window), *urls], {}


def _cliff(folder: Path, port: int, upstream: str, window: int) -> tuple[list[str], Mapping[str, str]]:
    urls = ["--openai-upstream", f"{upstream}/v1", "--anthropic-upstream", upstream]
    return [str(folder / "bin/cliff"), "serve", "--port", str(port), "--threshold", str(int(0.8 * window)), *urls], {}


def _guardian(folder: Path, port: int, upstream: str, window: int) -> tuple[list[str], Mapping[str, str]]:
    settings = {
        "PORT": str(port),
        "UPSTREAM_URL": f"{upstream}/v1",
        "NUM_CTX": str(window),
        "RESERVE_OUTPUT": str(window // 10),
    }
    return [str(folder / "bin/context-guardian")], {f"GUARDIAN_{name}": value for name, value in settings.items()}


def _headroom(folder: Path, port: int, upstream: str, window: int) -> tuple[list[str], Mapping[str, str]]:
    urls = {f"{name}_TARGET_API_URL": upstream for name in ("OPENAI", "ANTHROPIC", "GEMINI")}
    return [str(folder / "bin/headroom"), "proxy", "--port", str(port), "--no-rate-limit"], urls


def _litellm(folder: Path, port: int, upstream: str, window: int) -> tuple[list[str], Mapping[str, str]]:
    """LiteLLM compacts in front of its complexity router, which here has one model for all tiers."""
    models: list[dict[str, Any]] = []
    for model, provider, url in (("gpt-5.4", "openai", f"{upstream}/v1"), ("claude-sonnet-4-6", "anthropic", upstream)):
        tiers = {"tiers": dict.fromkeys(("SIMPLE", "MEDIUM", "COMPLEX", "REASONING"), f"{model}-served")}
        router = {"model": "auto_router/complexity_router", "complexity_router_config": tiers}
        models.append({"model_name": model, "litellm_params": {**router, "complexity_router_default_model": f"{model}-served"}})
        served = {"model": f"{provider}/{model}", "api_base": url, "api_key": "none"}
        info = {"max_input_tokens": window, "max_output_tokens": 4_000}
        models.append({"model_name": f"{model}-served", "litellm_params": served, "model_info": info})
    config = folder / "config.json"
    config.write_text(json.dumps({"model_list": models}))
    return [str(folder / "bin/litellm"), "--config", str(config), "--port", str(port)], {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
    }


PEERS: Final[Mapping[str, Command]] = {
    "compaction serve": _ours,
    "headroom-ai": _headroom,
    "context-guardian": _guardian,
    "cliffcompaction": _cliff,
    "litellm": _litellm,
}


@contextlib.contextmanager
def started(name: str, folder: Path, upstream: str, window: int) -> Generator[str]:
    """Run a proxy, and give its address.

    Raises:
        FileNotFoundError: If it is not installed.
        TimeoutError: If it does not start.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command, settings = PEERS[name](folder / name, port, upstream, window)
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "HOME": home, **settings}
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _until_it_listens(process, port)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


def _until_it_listens(process: subprocess.Popen[bytes], port: int) -> None:
    ends = time.monotonic() + 400
    while time.monotonic() < ends and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    raise TimeoutError("it does not start")


@attrs.frozen(kw_only=True)
class Outcome:
    """The outcome of a task.

    Args:
        calls: Requests of the agent that were answered.
        is_done: Whether the task ended.
        has_all: Whether the last request had all that the user said.
        invalid: Requests that broke a rule of their format.
        over: Requests that were longer than the window.
        dollars: The price of all requests.
        seconds: The median time of a request.
    """

    calls: int
    is_done: bool
    has_all: bool
    invalid: int
    over: int
    dollars: float
    seconds: float


async def task(wire: str, calls: int, window: int, through: Callable[[str], contextlib.AbstractContextManager[str]]) -> Outcome:
    """Let the agent make its calls through a proxy."""
    times: list[float] = []
    model_task = LongTurns(calls // USER_TURNS)
    with Recorder(window=window, play=model_task) as model, through(model.address) as url:
        headers = {"authorization": "Bearer none", "x-api-key": "none", "anthropic-version": "2023-06-01"}
        async with httpx.AsyncClient(base_url=url, timeout=120, headers=headers) as client:
            is_done = True
            try:
                await run(AGENTS[wire], client, "alpha", turns=USER_TURNS, on_seconds=times.append, model=MODELS[wire])
            except (AssertionError, httpx.HTTPError):
                is_done = False
    said = [user_text("alpha", turn) for turn in range(USER_TURNS)]
    spoken = [body for body in model.bodies if body.get("tools")][-1:]
    provider = PricedProvider(prices_of(MODELS[wire]), AGENTS[wire].key, counter("chars/4"))
    return Outcome(
        calls=len(times),
        is_done=is_done,
        has_all=all(each in json.dumps(body) for body in spoken for each in said),
        invalid=model.ledger.total("invalid"),
        over=model.ledger.total("over"),
        dollars=sum(provider.send(body).dollars for body in map(_bytes, model.bodies)),
        seconds=statistics.median(times) if times else 0.0,
    )


def _bytes(body: Any) -> bytes:
    return json.dumps(body).encode()


HEADS: Final = (
    "proxy",
    "wire",
    "calls answered",
    "task done",
    "all the user said in the last request",
    "invalid",
    "over the window",
    "bill",
    "added, median",
)


def rows(wires: list[str], calls: int, window: int, folder: Path, names: list[str]) -> Generator[list[str]]:
    """Yield the rows of the table."""
    for wire in wires:
        endless = anyio.run(task, wire, calls, 10**9, contextlib.nullcontext)
        yield _row("a provider without a limit", wire, endless, endless)
        yield _row("no proxy", wire, anyio.run(task, wire, calls, window, contextlib.nullcontext), endless)
        for name in names:
            try:
                found = anyio.run(task, wire, calls, window, lambda url, name=name: started(name, folder, url, window))
            except (OSError, TimeoutError) as error:
                yield [name, wire, f"not run: {error}", *["-"] * 6]
            else:
                yield _row(name, wire, found, endless)


def _row(name: str, wire: str, found: Outcome, endless: Outcome) -> list[str]:
    bill = f"{found.dollars / endless.dollars:.2f}" if found.calls == endless.calls else "-"
    added = f"{1000 * (found.seconds - endless.seconds):.0f} ms"
    done, has_all = ("yes" if each else "no" for each in (found.is_done, found.is_done and found.has_all))
    return [name, wire, f"{found.calls} of {endless.calls}", done, has_all, str(found.invalid), str(found.over), bill, added]


def _run_of(folder: Path, names: list[str]) -> str:
    """Return the date of the run and the versions of the proxies, as a sentence."""
    versions = [f"{name} {found}" for name in names if (found := _version(folder / name, name))]
    return f"One run of the command on {measured_on()}. Versions: {', '.join(versions)}."


def _version(environment: Path, name: str) -> str:
    folders = map(str, environment.glob("lib/python*/site-packages"))
    return next((each.version for each in distributions(name=name, path=list(folders))), "")


def main() -> None:
    """Run the proxies, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=120)
    parser.add_argument("--window", type=int, default=12_000)
    parser.add_argument("--wires", nargs="+", default=["openai-chat", "anthropic"], choices=list(AGENTS))
    parser.add_argument("--only", nargs="+", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="Write the table into this page.")
    arguments = parser.parse_args()
    found: list[list[str]] = []
    for row in rows(arguments.wires, arguments.calls, arguments.window, arguments.folder, arguments.only):
        found.append(row)
        print(" | ".join(row), flush=True)
    if arguments.write is not None:
        section = Section("peers", (*table(HEADS, found), "", _run_of(arguments.folder, arguments.only)))
        arguments.write.write_text(written(arguments.write.read_text(encoding="utf-8"), [section]), encoding="utf-8")


if __name__ == "__main__":
    main()
