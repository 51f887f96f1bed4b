"""Time to first byte at a model, behind a plain proxy and behind the gateway, under the same loads in one run.

``python -m benchmarks.gateway_load --write docs/gateway.md`` runs each of `LOADS` and writes the table. Each request of a
conversation is one round longer than the one before, with Poisson arrivals. The three addresses get the load in turn, some
seconds each. Each server runs in a separate process; the model answers at once.
"""

from __future__ import annotations

import argparse
import io
import json
import multiprocessing
import os
import random
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import aiohttp
import anyio
import attrs
import httpx
import uvicorn

from compaction import presets
from compaction.cli.server import listening_socket, tune_process
from compaction.gateway import GatewaySettings, create_app
from tests.support.gateways import ScriptedUpstream, chat_reply, in_process

from .tables import Section, measured_on, table, written

WORDS: Final = ("def", "return", "import", "class", "self", "value", "index", "group", "message", "token", "session", "view")
CALLS: Final = 100  # tool calls at the start of a conversation
RESULT_WORDS: Final = 950
BLOCK_SECONDS: Final = 2.0  # each address gets the load for so long, then the next one
ANSWER: Final = b'data: {"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":1}}\n\ndata: [DONE]\n\n'


def conversation(name: str, calls: int) -> list[dict[str, Any]]:
    """Return a conversation with this many tool calls."""
    chance = random.Random(name)
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"Look at {name}."}]
    for number in range(calls):
        call = {"id": f"{name}{number}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append(
            {"role": "tool", "tool_call_id": call["id"], "content": " ".join(chance.choices(WORDS, k=RESULT_WORDS))}
        )
    return messages


async def model(scope: Any, receive: Any, send: Any) -> None:
    """Answer at once, and report a token for every 5.7 bytes."""
    size, more = 0, True
    while more:
        message = await receive()
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
    await send({"type": "http.response.body", "body": ANSWER % int(size / 5.7)})


def passing(url: str) -> Any:
    """Return a plain proxy, built with the gateway's libraries."""
    sessions: list[aiohttp.ClientSession] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        pieces, more = [], True
        while more:
            message = await receive()
            pieces.append(message.get("body", b""))
            more = message.get("more_body", False)
        if not sessions:
            sessions.append(aiohttp.ClientSession(auto_decompress=False))
        data = io.BytesIO(b"".join(pieces))
        async with sessions[0].post(f"{url}{scope['path']}", data=data) as response:
            headers = [(name.lower(), value) for name, value in response.raw_headers if name.lower() != b"transfer-encoding"]
            await send({"type": "http.response.start", "status": response.status, "headers": headers})
            async for chunk in response.content.iter_any():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

    return app


def serve(kind: str, url: str, window: int, ports: Any) -> None:
    """Serve one of the three, in a separate process."""
    settings = GatewaySettings(strategy=presets.adaptive, window=window, openai_url=url or "http://none")
    app = {"model": lambda: model, "passing": lambda: passing(url), "gateway": lambda: create_app(settings)}[kind]()
    if kind == "gateway":
        tune_process()
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", access_log=False, ws="none"))
    listening = listening_socket("127.0.0.1", 0)
    ports.put(listening.getsockname()[1])
    server.run([listening])


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds that a process has used; 0 where the system is not Linux."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def first_byte(client: httpx.AsyncClient, url: str, body: bytes) -> float:
    """Return the seconds until the first byte of an answer, which is read to its end."""
    began = time.perf_counter()
    async with client.stream("POST", f"{url}/v1/chat/completions", content=body) as reply:
        if reply.status_code != 200:
            raise RuntimeError(f"status {reply.status_code}")
        chunks = reply.aiter_raw()
        await anext(chunks)
        taken = time.perf_counter() - began
        async for _ in chunks:
            pass
    return taken


@attrs.frozen(kw_only=True)
class Load:
    """A load.

    Args:
        conversations: The number of conversations; 0 if each request begins a new one.
        calls: The tool calls at the start of a conversation, of a thousand tokens each.
        rate: Requests a second.
        seconds: The time for each address.
    """

    conversations: int
    calls: int
    rate: float
    seconds: float


LOADS: Final = {
    "2,000 tokens": Load(conversations=50, calls=2, rate=30.0, seconds=8.0),
    "100,000 tokens": Load(conversations=25, calls=CALLS, rate=10.0, seconds=6.0),
    "200,000 new tokens": Load(conversations=0, calls=2 * CALLS, rate=3.0, seconds=8.0),
    "200 conversations, a call every 2 s": Load(conversations=200, calls=20, rate=100.0, seconds=6.0),
}
"""The loads of the table. The third one has a new conversation in each request."""


class Client:
    """Sends a load. Holds state: the conversations, and the times of its requests.

    Args:
        load: The load.
        urls: The addresses.
    """

    def __init__(self, load: Load, urls: dict[str, str]) -> None:
        self._load = load
        self._urls = urls
        self.times: dict[str, list[float]] = {name: [] for name in urls}
        self._chances = {name: random.Random(0) for name in urls}
        count = load.conversations or int(load.rate * load.seconds * 1.5)
        rounds = load.calls + (int(2 * load.seconds * load.rate / count) + 20) * (load.conversations > 0)
        self._written = [[json.dumps(each) for each in conversation(f"c{number}", rounds)] for number in range(count)]
        self._calls = {(name, number): load.calls for name in urls for number in range(count)}
        self._free = {name: list(range(count)) for name in urls}  # an agent sends no request before the answer to its last one

    async def run(self, on_warm: Callable[[], object]) -> None:
        """Send the load to the addresses in turn; ``on_warm`` is called before the first request that counts."""
        async with httpx.AsyncClient(timeout=60) as client:
            for number in range(self._load.conversations or 1):  # the gateway knows each before the measurement starts
                for name in self._urls:
                    self._free[name].remove(number)
                    await self._ask(client, name, number)
            self.times = {name: [] for name in self._urls}
            on_warm()
            blocks = max(1, round(self._load.seconds / BLOCK_SECONDS))
            for name in list(self._urls) * blocks:
                chance, ends = self._chances[name], anyio.current_time() + self._load.seconds / blocks
                async with anyio.create_task_group() as group:
                    while anyio.current_time() < ends:
                        await anyio.sleep(chance.expovariate(self._load.rate))
                        if free := self._free[name]:
                            group.start_soon(self._ask, client, name, free.pop(chance.randrange(len(free))))

    async def _ask(self, client: httpx.AsyncClient, name: str, number: int) -> None:
        messages = self._written[number][: 2 * self._calls[name, number] + 1]
        self._calls[name, number] += 1
        body = f'{{"model": "m", "stream": true, "messages": [{", ".join(messages)}]}}'.encode()
        self.times[name].append(await first_byte(client, self._urls[name], body))
        if self._load.conversations:
            self._free[name].append(number)


async def memory(conversations: int, most_bytes: int) -> None:
    """Send the first request of so many conversations of 100,000 tokens, and print the memory of this process."""
    messages = conversation("c", CALLS)
    with ScriptedUpstream(chat_reply()) as upstream:
        async with in_process(upstream, window=128_000, conversation_bytes=most_bytes) as client:
            for number in range(conversations):
                messages[0] = {"role": "user", "content": f"Look at conversation {number}."}
                body = json.dumps({"model": "m", "messages": messages}).encode()
                (await client.post("/v1/chat/completions", content=body)).raise_for_status()
                upstream.got.clear()
                if (number + 1) % max(1, conversations // 10) == 0:
                    health = (await client.get("/healthz")).json()
                    held, mebibytes = health["in_memory"], health["bytes_in_memory"] / 1_048_576
                    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024
                    print(
                        f"{number + 1:6,} sent, {held:5,} in memory, {mebibytes:5.0f} MiB of messages, peak {resident:5.0f} MiB"
                    )


HEADS: Final = ("load", "direct", "behind a proxy", "behind the gateway", "added, median", "added, p99", "processor time")


def row(name: str, load: Load, window: int) -> list[str]:
    """Run a load, and return its row of the table."""
    context = multiprocessing.get_context("spawn")
    ports: Any = context.Queue()
    processes: dict[str, Any] = {}

    def start(kind: str, url: str = "") -> str:
        processes[kind] = context.Process(target=serve, args=(kind, url, window, ports), daemon=True)
        processes[kind].start()
        return f"http://127.0.0.1:{ports.get()}"

    try:
        model = start("model")
        client = Client(load, {"direct": model, "proxy": start("passing", model), "gateway": start("gateway", model)})
        before: dict[str, float] = {}
        anyio.run(client.run, lambda: before.update({kind: cpu_seconds(each.pid) for kind, each in processes.items()}))
        spent = {kind: cpu_seconds(process.pid) - before[kind] for kind, process in processes.items()}
    finally:
        for process in processes.values():
            process.terminate()
    cuts = {kind: statistics.quantiles(times, n=100) for kind, times in client.times.items()}
    shown = [f"{1000 * found[49]:.1f}, {1000 * found[98]:.1f} ms" for found in cuts.values()]
    added = [f"{1000 * (cuts['gateway'][place] - cuts['direct'][place]):.1f} ms" for place in (49, 98)]
    count = len(client.times["gateway"])
    each = f"{1000 * spent['gateway'] / count:.1f} ms, proxy {1000 * spent['passing'] / count:.1f} ms"
    return [f"{name}, {len(client.times['gateway']):,} requests", *shown, *added, each]


def main() -> None:
    """Measure and print the figures, or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", default=list(LOADS), choices=list(LOADS))
    parser.add_argument("--window", type=int, default=400_000, help="With 128000, conversations are cut too.")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="Write the table into this page.")
    parser.add_argument("--memory", type=int, metavar="CONVERSATIONS", help="Measure memory only; try 1000.")
    parser.add_argument("--max-memory", type=int, default=268_435_456, help="As of compaction serve.")
    arguments = parser.parse_args()
    if arguments.memory:
        anyio.run(memory, arguments.memory, arguments.max_memory)
        return
    rows: list[list[str]] = []
    for name in arguments.only:
        rows.append(row(name, LOADS[name], arguments.window))
        print(" | ".join(rows[-1]), flush=True)
    if arguments.write is not None:
        section = Section("load", (*table(HEADS, rows), "", f"Measured on {measured_on()}."))
        arguments.write.write_text(written(arguments.write.read_text(encoding="utf-8"), [section]), encoding="utf-8")


if __name__ == "__main__":
    main()
