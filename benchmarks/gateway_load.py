"""Time to first byte behind the gateway and behind a plain proxy, under the same load in one run.

``python -m benchmarks.gateway_load --seconds 60``: 50 conversations of 100,000 tokens, each request one round longer than the
one before, Poisson arrivals, 20 a second. The two servers get the load in turn, some seconds each. Each server runs in a
separate process; the model is a third one and answers at once.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import os
import random
import resource
import statistics
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
import httpx
import uvicorn

from compaction import presets
from compaction.cli.serve import listening_socket
from compaction.gateway import GatewaySettings, create_app
from tests.support.gateways import ScriptedUpstream, chat_reply, in_process

WORDS: Final = ("def", "return", "import", "class", "self", "value", "index", "group", "message", "token", "session", "view")
CALLS: Final = 100  # tool calls at the start of a conversation
RESULT_WORDS: Final = 950
BLOCK_SECONDS: Final = 5.0  # each server gets the load for so long, then the other one
ANSWER: Final = b'data: {"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":1}}\n\ndata: [DONE]\n\n'


_SHOWN: Final = tuple(f"compaction_gateway_{name}" for name in ("cuts", "failures", "seconds", "conversation"))


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
    client = httpx.AsyncClient(timeout=60)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        pieces, more = [], True
        while more:
            message = await receive()
            pieces.append(message.get("body", b""))
            more = message.get("more_body", False)
        async with client.stream("POST", f"{url}{scope['path']}", content=b"".join(pieces)) as response:
            await send({"type": "http.response.start", "status": response.status_code, "headers": response.headers.raw})
            async for chunk in response.aiter_raw():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

    return app


def serve(kind: str, url: str, window: int, ports: Any) -> None:
    """Serve one of the three, in a separate process."""
    settings = GatewaySettings(strategy=presets.adaptive, window=window, openai_url=url or "http://none")
    app = {"model": lambda: model, "passing": lambda: passing(url), "gateway": lambda: create_app(settings)}[kind]()
    if kind == "gateway":
        sys.setswitchinterval(0.0005)  # these two as compaction serve does
        gc.set_threshold(20_000, 20, 100)
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


async def load(urls: dict[str, str], seconds: float, rate: float, conversations: int, seed: int) -> dict[str, list[float]]:
    """Send the same requests at the same random times to the servers in turn, a block of seconds each."""
    times: dict[str, list[float]] = {name: [] for name in urls}
    rounds = CALLS + int(2 * seconds * rate / conversations) + 20
    written = [[json.dumps(each) for each in conversation(f"c{number}", rounds)] for number in range(conversations)]
    calls = {(name, number): CALLS for name in urls for number in range(conversations)}
    chances = {name: random.Random(seed) for name in urls}
    waiting: set[tuple[str, int]] = set()  # an agent sends no request before the answer to its last one

    async with httpx.AsyncClient(timeout=60) as client:

        async def ask(name: str, number: int, *, counts: bool) -> None:
            messages = written[number][: 2 * calls[name, number] + 1]
            calls[name, number] += 1
            body = f'{{"model": "m", "stream": true, "messages": [{", ".join(messages)}]}}'.encode()
            waiting.add((name, number))
            taken = await first_byte(client, urls[name], body)
            waiting.remove((name, number))
            if counts:
                times[name].append(taken)

        for number in range(conversations):  # the gateway knows each conversation before the measurement starts
            for name in urls:
                await ask(name, number, counts=False)
        blocks = max(1, round(seconds / BLOCK_SECONDS / len(urls)))
        for name in list(urls) * blocks:
            chance, ends = chances[name], anyio.current_time() + seconds / blocks / len(urls)
            async with anyio.create_task_group() as group:
                while anyio.current_time() < ends:
                    await anyio.sleep(chance.expovariate(rate))
                    free = [number for number in range(conversations) if (name, number) not in waiting]
                    if free:
                        group.start_soon(partial(ask, name, chance.choice(free), counts=True))
    return times


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


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="Of both servers together.")
    parser.add_argument("--rate", type=float, default=20.0)
    parser.add_argument("--conversations", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--window", type=int, default=200_000, help="With 128000, conversations are cut too.")
    parser.add_argument("--memory", action="store_true", help="Measure memory only; try --conversations 1000.")
    parser.add_argument("--max-memory", type=int, default=268_435_456, help="As of compaction serve.")
    arguments = parser.parse_args()
    if arguments.memory:
        anyio.run(memory, arguments.conversations, arguments.max_memory)
        return
    context = multiprocessing.get_context("spawn")
    ports: Any = context.Queue()
    processes: list[Any] = []

    def start(kind: str, url: str = "") -> str:
        process = context.Process(target=serve, args=(kind, url, arguments.window, ports), daemon=True)
        process.start()
        processes.append(process)
        return f"http://127.0.0.1:{ports.get()}"

    try:
        url = start("model")
        urls = {"passing": start("passing", url), "gateway": start("gateway", url)}
        times = anyio.run(load, urls, arguments.seconds, arguments.rate, arguments.conversations, arguments.seed)
        metrics = httpx.get(f"{urls['gateway']}/metrics").text
        seconds = {name: cpu_seconds(process.pid) for name, process in zip(("model", *urls), processes, strict=True)}
    finally:
        for process in processes:
            process.terminate()
    _show(times, seconds, arguments.conversations)
    print("\n".join(line for line in metrics.splitlines() if line.startswith(_SHOWN)))


def _show(times: dict[str, list[float]], seconds: dict[str, float], conversations: int) -> None:
    """Print the figures of each server, and what the gateway adds."""
    cuts = {name: statistics.quantiles(found, n=100) for name, found in times.items()}
    for name, found in times.items():
        times_shown = f"median {1000 * cuts[name][49]:6.1f} ms, p99 {1000 * cuts[name][98]:7.1f} ms"
        each = 1000 * seconds[name] / (len(found) + conversations)
        print(f"{name:8} {len(found):6} requests, {times_shown}, {each:5.1f} ms of CPU each, its start included")
    medians, lasts = [cuts["gateway"][place] - cuts["passing"][place] for place in (49, 98)]
    print(f"added: {1000 * medians:.1f} ms at the median, {1000 * lasts:.1f} ms at p99")


if __name__ == "__main__":
    main()
