"""Throughput of ``compaction serve --workers 2`` compared with that of one worker, in processor time.

``python -m benchmarks.gateway_workers --requests 400``: conversations grow by one round in each request, each over a connection
of its own, as agents use one; with ``--shared``, over connections that any of them may use, so that half of the requests reach
a worker that hands them over. Both gateways get the same requests in turn. A gateway serves as many requests a second as its
busiest process, so its throughput is one divided by the processor seconds that this process needs for each request of the
gateway. Other programs on the machine do not change that figure much.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import anyio
import httpx

from .gateway_load import conversation, cpu_seconds, first_byte, serve

BLOCK: Final = 5


class Served:
    """A gateway in processes. Holds state: the processes."""

    def __init__(self, upstream: str, workers: int, folder: Path) -> None:
        log = folder / f"{workers}.log"
        options = ["--port", "0", "--window", "200k", "--openai-url", f"{upstream}/v1", "--workers", str(workers)]
        with log.open("wb") as errors:
            command = [sys.executable, "-m", "compaction", "serve", *options]
            self.process = subprocess.Popen(command, stderr=errors, stdout=subprocess.DEVNULL)
        while "http://" not in log.read_text():
            if self.process.poll() is not None:
                raise SystemExit(log.read_text())
        self.url = re.findall(r"gateway on (http\S+),", log.read_text())[0]

    def seconds(self) -> list[float]:
        """Return the processor seconds of each process that serves."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [cpu_seconds(int(pid)) for pid in children or [str(self.process.pid)]]


class Agents:
    """Clients that send their requests one after the other. Holds state: their connections.

    Args:
        count: The number of clients.
    """

    def __init__(self, count: int) -> None:
        self._clients = [httpx.AsyncClient(timeout=120) for _ in range(count)]

    async def send(self, url: str, bodies: list[list[bytes]]) -> None:
        """Send the requests of each conversation, all conversations at once; the clients take them in turn."""

        async def work(client: httpx.AsyncClient, own: list[bytes]) -> None:
            for body in own:
                await first_byte(client, url, body)

        async with anyio.create_task_group() as group:
            for place, own in enumerate(bodies):
                group.start_soon(work, self._clients[place % len(self._clients)], own)


def bodies(conversations: int, rounds: range) -> list[list[bytes]]:
    """Return the requests of each conversation."""
    whole = [conversation(f"c{number}", rounds.stop) for number in range(conversations)]
    return [
        [json.dumps({"model": "m", "stream": True, "messages": messages[: 2 * place + 1]}).encode() for place in rounds]
        for messages in whole
    ]


def main() -> None:
    """Measure and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=400, help="For each gateway.")
    parser.add_argument("--conversations", type=int, default=16)
    parser.add_argument(
        "--calls", type=int, default=100, help="Tool calls at the start of a conversation; 100 are 100,000 tokens."
    )
    parser.add_argument("--shared", action="store_true", help="All conversations share one client.")
    arguments = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    ports: Any = context.Queue()
    model = context.Process(target=serve, args=("model", "", 1, ports), daemon=True)
    model.start()
    with tempfile.TemporaryDirectory() as folder:
        upstream = f"http://127.0.0.1:{ports.get(timeout=60)}"
        gateways = {workers: Served(upstream, workers, Path(folder)) for workers in (1, 2)}
        try:
            rounds, clients = arguments.requests // arguments.conversations, 1 if arguments.shared else arguments.conversations
            used = anyio.run(measured, gateways, arguments.conversations, arguments.calls, rounds, clients)
        finally:
            for gateway in gateways.values():
                gateway.process.terminate()
                gateway.process.wait()
            model.terminate()
    for workers, seconds in used.items():
        shown = ", ".join(f"{1000 * second:.2f}" for second in seconds)
        print(f"{workers} workers: {shown} ms of processor time for each request of the gateway")
    print(f"two workers serve {used[1][0] / max(used[2]):.2f} times as many requests a second as one")


async def measured(
    gateways: dict[int, Served], conversations: int, calls: int, rounds: int, clients: int
) -> dict[int, list[float]]:
    """Return the processor seconds of each process for each request of its gateway; the gateways get the load in turn."""
    agents = {gateway.url: Agents(clients) for gateway in gateways.values()}
    first = calls + BLOCK
    for gateway in gateways.values():  # each knows all conversations, and their connections have found their workers
        await agents[gateway.url].send(gateway.url, bodies(conversations, range(calls, first)))
    used = {workers: [0.0] * workers for workers in gateways}
    for start in range(first, first + rounds, BLOCK):
        requests = bodies(conversations, range(start, start + BLOCK))
        for workers, gateway in gateways.items():
            before = gateway.seconds()
            await agents[gateway.url].send(gateway.url, requests)
            spent = [after - since for after, since in zip(gateway.seconds(), before, strict=True)]
            used[workers] = [sum(each) for each in zip(used[workers], spent, strict=True)]
    count = conversations * BLOCK * len(range(first, first + rounds, BLOCK))
    return {workers: [second / count for second in seconds] for workers, seconds in used.items()}


if __name__ == "__main__":
    main()
