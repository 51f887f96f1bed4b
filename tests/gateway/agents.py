"""Real agents behind a gateway: how each is pointed at one, and a run of one without any other network.

``unshare -rn sh -c 'ip link set lo up && python -m tests.gateway.agents codex'`` runs the task of `agent_task` and prints what
came of it as JSON. ``COMPACTION_AGENTS`` names the folder with the agents: ``node_modules/.bin`` and ``aider/bin``.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs
import httpx
from starlette.requests import Request

from benchmarks.hosts.script import Asked, thought_of
from benchmarks.hosts.server import StrictServer, json_response
from benchmarks.hosts.wires import Body, Wire, wire_of
from benchmarks.priced_provider import Charge, PricedProvider
from compaction.gateway import create_app
from compaction.models import prices_of
from compaction.tokens import counter
from tests.support.gateways import serving_app, settings_of

from .agent_task import PROMPT, SIGNED, AgentTask, StepTask

FOLDER: Final = Path(os.environ.get("COMPACTION_AGENTS", Path(__file__).resolve().parents[2] / ".venv-gateway" / "agents"))
PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "gateway-agents.md"
AIDER: Final = Path(__file__).with_name("aider_turns.py")
WINDOW: Final = 32_000
STEPS: Final = 64
CHARACTERS: Final = 10_500
SECONDS: Final = 420.0
_Charges: TypeAlias = tuple[list[Charge], list[Charge]]
_MOST_BREAKPOINTS: Final = 4
PRICED: Final[Mapping[str, tuple[str, str]]] = {
    "openai-chat": ("messages", "gpt-5.4"),
    "openai-responses": ("input", "gpt-5.4"),
    "anthropic": ("messages", "claude-sonnet-4-6"),
    "gemini": ("contents", "gemini-2.5-pro"),
}
"""The field of the messages, and the model whose prices and cache rules count."""


@attrs.frozen
class Agent:
    """An agent.

    Args:
        program: Its program, within `FOLDER`.
        arguments: Its arguments.
        configure: Writes its settings into its home, given the gateway's address, and returns environment variables.
        has_tools: Whether its model has a shell tool.
    """

    program: str
    arguments: tuple[str, ...]
    configure: Callable[[Path, str], dict[str, str]]
    has_tools: bool = True


def recipe(heading: str, url: str, place: int = 0) -> str:
    """Return a block of code under a heading of the page of recipes, with the gateway's address and a key."""
    _, _, section = PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")
    blocks = re.findall(r"```\w+\n(.*?)```", section.partition("\n## ")[0], re.DOTALL)
    return blocks[place].replace("http://127.0.0.1:8484", url).replace("YOUR-KEY", "none")


def _opencode(heading: str) -> Callable[[Path, str], dict[str, str]]:
    def configure(home: Path, url: str) -> dict[str, str]:
        settings = json.loads(recipe(heading, url))
        alone = {"permission": {"*": "allow"}, "autoupdate": False, "share": "disabled", "small_model": settings["model"]}
        (home / "opencode.json").write_text(json.dumps({**settings, **alone}))
        return {"OPENCODE_CONFIG": str(home / "opencode.json"), "OPENCODE_DISABLE_MODELS_FETCH": "1"}

    return configure


def _codex(home: Path, url: str) -> dict[str, str]:
    (home / ".codex").mkdir(exist_ok=True)
    alone = 'approval_policy = "never"\nsandbox_mode = "danger-full-access"\n'
    (home / ".codex" / "config.toml").write_text(alone + recipe("Codex CLI", url))
    return {"CODEX_HOME": str(home / ".codex"), "OPENAI_API_KEY": "none"}


def _gemini(home: Path, url: str) -> dict[str, str]:
    (home / ".gemini").mkdir(exist_ok=True)
    settings = json.loads(recipe("Gemini CLI", url, 1))
    settings["model"] |= {"maxSessionTurns": -1, "disableLoopDetection": True}
    alone = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"disableAutoUpdate": True},
    }
    (home / ".gemini" / "settings.json").write_text(json.dumps({**settings, **alone}))
    name, _, value = recipe("Gemini CLI", url).strip().partition("=")
    return {"GEMINI_API_KEY": "none", "GEMINI_CLI_TRUST_WORKSPACE": "true", name: value}


def _aider(home: Path, url: str) -> dict[str, str]:
    """Return aider's options, which its Python is given in the environment."""
    return {"AIDER_OPTIONS": recipe("aider", url).strip().removeprefix("aider "), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}


AGENTS: Final[Mapping[str, Agent]] = {
    "opencode-chat": Agent("node_modules/.bin/opencode", ("run", PROMPT), _opencode("OpenCode")),
    "opencode-anthropic": Agent("node_modules/.bin/opencode", ("run", PROMPT), _opencode("OpenCode with Anthropic")),
    "codex": Agent("node_modules/.bin/codex", ("exec", "--skip-git-repo-check", PROMPT), _codex),
    "aider": Agent("aider/bin/python", (str(AIDER), PROMPT), _aider, has_tools=False),
    "gemini": Agent("node_modules/.bin/gemini", ("--yolo", "--model", "gemini-2.5-pro", "--prompt", PROMPT), _gemini),
}


class _Prices:
    """Prices requests by the cache rules of their wire. Holds state: the charges.

    Args:
        is_step: Whether a request is a step of the task.

    Attributes:
        charges: The charge of each request of the task.
        beside: The charges of the other requests, such as those for a title, which agents send at any time.
    """

    def __init__(self, is_step: Callable[[Asked], bool]) -> None:
        self.charges: list[Charge] = []
        self.beside: list[Charge] = []
        self._is_step = is_step
        self._providers: dict[str, PricedProvider] = {}
        self._lock = threading.Lock()

    def price(self, wire: Wire, path: str, body: Body) -> None:
        """Add the charge of a request."""
        charges = self.charges if self._is_step(wire.read(path, body)) else self.beside
        key, model = PRICED[wire.name]
        with self._lock:  # a title is often requested together with the first step, which must not lose its cache
            if wire.name not in self._providers:
                self._providers[wire.name] = PricedProvider(prices_of(model), key, counter("chars/4"))
            charges.append(self._providers[wire.name].send(json.dumps(body).encode()))


class PricedApp(_Prices):
    """An ASGI application in front of a gateway, which prices requests as if they went to the provider. Holds state.

    Args:
        app: The gateway.
        is_step: Whether a request is a step of the task.
        change: Returns the messages to pass on, given those of the agent and the name of the wire.

    Attributes:
        texts: The bodies that the agent sent.
    """

    def __init__(
        self, app: Any, is_step: Callable[[Asked], bool], change: Callable[[list[Any], str], list[Any]] | None = None
    ) -> None:
        super().__init__(is_step)
        self._app = app
        self._change = change
        self.texts: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        wire = wire_of(scope.get("path", "")) if scope["type"] == "http" else None
        if wire is None:
            await self._app(scope, receive, send)
            return
        body: Body = await Request(scope, receive).json()
        self.texts.append(json.dumps(body))
        if self._change is not None:
            key, _ = PRICED[wire.name]
            body[key] = self._change(body[key], wire.name)
        self.price(wire, scope["path"], body)
        given = [{"type": "http.request", "body": json.dumps(body).encode()}]

        async def read() -> Any:
            return given.pop() if given else await receive()

        headers = [(name, value) for name, value in scope["headers"] if name not in (b"content-length", b"content-encoding")]
        await self._app({**scope, "headers": headers}, read, send)


class PricedServer(StrictServer):
    """A strict model that prices what it takes, and refuses more than four breakpoints. Holds state: the charges.

    Args:
        window: Tokens that it takes.
        task: The model's part.

    Attributes:
        charges: The charge of each request of the task that it took.
        beside: The charges of the others.
        signatures: The most signatures that a request had.
    """

    def __init__(self, window: int, task: StepTask) -> None:
        super().__init__(window=window, play=task)
        self._prices = _Prices(task.is_step)
        self.charges, self.beside = self._prices.charges, self._prices.beside
        self.signatures = 0

    def answer(self, wire: Wire, path: str, body: Body) -> tuple[int, str, bytes]:
        """Return the response to a request."""
        text = json.dumps(body)
        if wire.name == "anthropic" and text.count('"cache_control": {') > _MOST_BREAKPOINTS:
            self.ledger.refuse("", "more than four breakpoints", over=False)
            return json_response(400, wire.invalid("A maximum of 4 blocks with cache_control may be provided."))
        if (signature := _separated(body)) is not None:
            self.ledger.refuse("", f"{signature} is not beside its call", over=False)
            return json_response(400, wire.invalid(f"{signature} is not beside its call"))
        found = super().answer(wire, path, body)
        if found[0] == 200:
            self.signatures = max(self.signatures, text.count(SIGNED))
            self._prices.price(wire, path, body)
        return found


def _separated(body: Body) -> str | None:
    """Return a signature that is not beside the call and after the thought that it was sent with; ``None`` if all are."""
    pairs = [
        (item.get("encrypted_content"), following.get("call_id"))
        for item, following in itertools.pairwise([*(body.get("input") or []), {}])
        if item.get("type") == "reasoning"
    ]
    parts = [part for content in body.get("contents") or [] for part in content.get("parts") or []]
    pairs += [
        (signature, part.get("functionCall", {}).get("id"))
        for part in parts
        if str(signature := part.get("thoughtSignature", "")).startswith(SIGNED)
    ]
    for message in body.get("messages") or []:
        blocks = message["content"] if isinstance(message.get("content"), list) else []
        for block, following in itertools.pairwise([*blocks, {}]):
            if block.get("type") in {"thinking", "redacted_thinking"}:
                is_whole = block.get("thinking") == thought_of(block.get("signature", ""))
                pairs.append((block.get("signature"), following.get("id") if is_whole else "another thought"))
    return next((str(signature) for signature, call in pairs if signature != f"{SIGNED}{call}"), None)


def run(name: str) -> dict[str, Any]:
    """Run an agent's task through a gateway.

    Returns:
        What came of it; ``bill_before`` and ``bill_after`` are the price of requests through the gateway for a dollar of direct
        traffic, before and after the first request of the task that is longer than the window. Other requests count before it.
        The direct requests are those that the agent sends to the gateway.
    """
    found, (through, beside), (direct, also) = _through(name)
    ends = next((place for place, charge in enumerate(direct) if charge.tokens > WINDOW), len(direct))
    return {
        **found,
        "bill_before": dollars([*through[:ends], *beside]) / dollars([*direct[:ends], *also]),
        "bill_after": dollars(through[ends:]) / dollars(direct[ends:]),
    }


def dollars(charges: Sequence[Charge]) -> float:
    """Return the price of requests."""
    return sum(charge.dollars for charge in charges)


def folders(scratch: Path, task: StepTask) -> tuple[Path, Path]:
    """Make a home and a folder with the files of the task."""
    home, work = scratch / "home", scratch / "work"
    home.mkdir()
    work.mkdir()
    task.write(work)
    return home, work


def _through(name: str) -> tuple[dict[str, Any], _Charges, _Charges]:
    agent, task = AGENTS[name], AgentTask(STEPS, CHARACTERS, has_tools=AGENTS[name].has_tools)
    with tempfile.TemporaryDirectory() as scratch, PricedServer(WINDOW, task) as server:
        home, work = folders(Path(scratch), task)
        app = PricedApp(create_app(settings_of(server.address, window=WINDOW)), task.is_step)
        with serving_app(app) as url:
            began = time.monotonic()
            said = output(agent, home, work, url)
            seconds = time.monotonic() - began
            status = httpx.get(f"{url}/status.json").json()
        found = {
            "agent": name,
            "right": task.answer in said,
            "steps": STEPS,
            "calls": task.calls,
            "read_again": task.read_again,
            "signatures": server.signatures,
            "window": WINDOW,
            "tokens_saved": status["totals"]["tokens_saved"],
            "seconds": round(seconds, 1),
            **outcome(server, status),
            "said": said[-2_000:],
        }
        return found, (server.charges, server.beside), (app.charges, app.beside)


def outcome(server: PricedServer, status: Any) -> dict[str, Any]:
    """Return what the model and the page of the gateway say of the requests."""
    ledger = server.ledger
    return {
        **{each: ledger.total(each) for each in ("requests", "invalid", "over", "breaks")},
        "problems": [problem for page in ledger.pages.values() for problem in page.problems],
        "largest": max((page.largest for page in ledger.pages.values()), default=0),
        "cuts": status["totals"]["cuts"],
        **{each: status[each] for each in ("passed_through", "retries", "failures")},
    }


def output(agent: Agent, home: Path, work: Path, url: str, *, seconds: float = SECONDS) -> str:
    """Return what an agent prints when it is run at a gateway or a model."""
    environment = {"PATH": os.environ["PATH"], "TERM": "dumb", "NO_COLOR": "1", "HOME": str(home)}
    environment |= {f"XDG_{kind.upper()}_HOME": str(home / kind) for kind in ("config", "data", "cache")}
    environment |= agent.configure(home, url)
    command = [str(FOLDER / agent.program), *agent.arguments]
    streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    try:
        done = subprocess.run(command, cwd=work, env=environment, timeout=seconds, check=False, **streams)
    except subprocess.TimeoutExpired as error:
        return (error.stdout or b"").decode(errors="replace")
    return done.stdout.decode(errors="replace")


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(sys.argv[1]), indent=1))
