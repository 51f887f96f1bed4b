"""The bill of recorded sessions behind the gateway, compared with that of direct traffic.

``python -m benchmarks.gateway_bill --write docs/gateway.md``: each recorded conversation is sent call by call, as its agent
would send it, through a real gateway to a provider on loopback. The provider prices each request by its cache rules, reports
its own count as usage, and refuses what is longer than its window. The same requests are priced without the gateway.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import math
import os
import socket
import subprocess
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import anyio
import attrs
import httpx

from compaction.formats import MessageFormat, anthropic, gemini, openai_chat, openai_responses
from compaction.models import ModelPrices, prices_of
from compaction.replay import Recording
from compaction.replay.facts import flat_text
from compaction.replay.transcript import NeededFact, Transcript
from compaction.tokens import MessageMeter, counter
from tests.support.conversion import convert
from tests.support.gateways import Answer, Got, Handler, ScriptedUpstream, answer, in_process

from .priced_provider import PricedProvider
from .tables import Section, table, written

CORPUS: Final = Path(__file__).resolve().parents[2] / "shared" / "corpus" / "dev"
FILES: Final = ("coding_long", "openhands", "sweagent_demos", "tau_long", "tau_airline", "whowhen_multiagent")
REPEATED_OUTPUT: Final = 60
"""Tokens of the call by which an agent reads something again."""


@attrs.frozen
class Route:
    """The requests of one provider's agents.

    Args:
        path: The path.
        format: The wire format.
        key: The field of the messages.
        model: The model, which has prices and cache rules.
        usage: Returns the answer that reports so many tokens.
    """

    path: str
    format: MessageFormat
    key: str
    model: str
    usage: Callable[[int, int], dict[str, Any]]

    def body(self, messages: Sequence[Any]) -> bytes:
        """Return a request; with breakpoints where Anthropic's agents put them."""
        fields: dict[str, Any] = {"model": self.model, "stream": False, self.key: list(messages)}
        if self.format is anthropic:
            systems = [each for each in messages if each["role"] == "system"]
            fields["messages"] = _marked([each for each in messages if each["role"] != "system"])
            fields["system"] = _marked_parts([part for each in systems for part in _blocks(each["content"])])
            fields["max_tokens"] = 4_096
        return json.dumps(fields).encode()


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _marked_parts(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if not parts:
        return parts
    return [*parts[:-1], {**parts[-1], "cache_control": {"type": "ephemeral"}}]


def _marked(messages: list[Any]) -> list[Any]:
    """Return messages with a breakpoint in each of the last two, as coding agents send them."""
    last = [{**each, "content": _marked_parts(_blocks(each["content"]))} for each in messages[-2:]]
    return [*messages[:-2], *last]


def _chat_usage(prompt: int, cached: int) -> dict[str, Any]:
    usage = {"prompt_tokens": prompt, "completion_tokens": 0, "prompt_tokens_details": {"cached_tokens": cached}}
    return {"choices": [], "usage": usage}


def _responses_usage(prompt: int, cached: int) -> dict[str, Any]:
    usage = {"input_tokens": prompt, "output_tokens": 0, "input_tokens_details": {"cached_tokens": cached}}
    return {"output": [], "usage": usage}


def _anthropic_usage(prompt: int, cached: int) -> dict[str, Any]:
    return {"content": [], "usage": {"input_tokens": prompt - cached, "output_tokens": 0, "cache_read_input_tokens": cached}}


def _gemini_usage(prompt: int, cached: int) -> dict[str, Any]:
    return {"candidates": [], "usageMetadata": {"promptTokenCount": prompt, "cachedContentTokenCount": cached}}


ROUTES: Final = {
    "chat": Route("/v1/chat/completions", openai_chat, "messages", "gpt-5.4", _chat_usage),
    "responses": Route("/v1/responses", openai_responses, "input", "gpt-5.4", _responses_usage),
    "messages": Route("/v1/messages", anthropic, "messages", "claude-sonnet-4-6", _anthropic_usage),
    "generate": Route("/v1beta/models/gemini-2.5-pro:generateContent", gemini, "contents", "gemini-2.5-pro", _gemini_usage),
}


@attrs.define
class Bill:
    """The bill of one conversation, directly and through the gateway.

    Args:
        file: Where it was recorded.
        id: Its name.
        changed: Requests that left the gateway with other bytes than they came with.
        refused: Requests that direct traffic would have been refused for their length.
        second: Second requests of the gateway.
        unanswered: Requests that failed through the gateway.
        over: Requests of the gateway that were longer than the window.
        invalid: Requests of the gateway that break a rule of their format which the original does not break.
        direct: Dollars of direct traffic up to the call that is refused.
        through: Dollars of the same calls through the gateway.
        direct_after: Dollars of the later calls, if a provider took requests of any length.
        through_after: Dollars of the same calls through the gateway.
        repeated: Answers that used a fact which the request no longer held.
        repeated_dollars: Dollars for reading these facts again.
        calls: All calls.
    """

    file: str
    id: str
    calls: int = 0
    changed: int = 0
    refused: int = 0
    second: int = 0
    unanswered: int = 0
    over: int = 0
    invalid: int = 0
    direct: float = 0.0
    through: float = 0.0
    direct_after: float = 0.0
    through_after: float = 0.0
    repeated: int = 0
    repeated_dollars: float = 0.0

    @property
    def ratio(self) -> float:
        """The price through the gateway for a dollar of direct traffic, up to the call that is refused."""
        return self.through / self.direct if self.direct else 1.0


@attrs.define
class _Conversation:
    """The provider's side of the conversation that is sent. Holds state: what came with the last call."""

    route: Route
    window: int
    provider: PricedProvider
    bodies: list[bytes] = attrs.field(factory=list[bytes])
    dollars: float = 0.0
    over: int = 0

    def answer(self, handler: Handler, got: Got) -> None:
        self.bodies.append(got.body)
        tokens = self.provider.tokens(got.body)
        if tokens > self.window:
            self.over += 1
            answer(400, {"error": {"message": f"prompt is too long: {tokens} tokens > {self.window} maximum"}})(handler, got)
            return
        charge = self.provider.send(got.body)
        self.dollars += charge.dollars
        answer(200, self.route.usage(charge.tokens, charge.read))(handler, got)


class Replay:
    """Sends conversations one after the other. Holds state: the conversation that is sent."""

    def __init__(self, route: Route, window: int) -> None:
        self.route = route
        self.window = window
        self.counter = counter("auto")
        self.prices: ModelPrices = prices_of(route.model)
        self.now = self._provider()

    def _provider(self) -> _Conversation:
        return _Conversation(self.route, self.window, PricedProvider(self.prices, self.route.key, self.counter))

    def answer(self, handler: Handler, got: Got) -> None:
        self.now.answer(handler, got)

    async def send(self, client: httpx.AsyncClient, file: str, recording: dict[str, Any]) -> Bill:
        """Send a conversation and return its bill."""
        bill, route = Bill(file, recording["id"]), self.route
        transcript = self._transcript(recording)
        direct, self.now = PricedProvider(self.prices, route.key, self.counter), self._provider()
        for place, needs in zip(transcript.answers, transcript.needs, strict=True):
            body = route.body(recording["messages"][: place.start])
            output = self.prices.dollars(output=sum(transcript.tokens[each] for each in place))
            charge = direct.send(body)
            bill.calls += 1
            bill.refused += charge.tokens > self.window
            through = await self._forward(client, body, bill)
            if any(sent != body for sent in self.now.bodies):
                bill.changed += 1
                bill.invalid += self._is_invalid(body)
                self._count_missing(bill, transcript, needs.facts)
            if bill.refused:
                bill.direct_after += charge.dollars + output
                bill.through_after += through + output
            else:
                bill.direct += charge.dollars + output
                bill.through += through + output
        bill.over = self.now.over
        return bill

    async def _forward(self, client: httpx.AsyncClient, body: bytes, bill: Bill) -> float:
        """Send a request through the gateway and return its price."""
        self.now.bodies.clear()
        self.now.dollars = 0.0
        reply = await client.post(self.route.path, content=body)
        bill.unanswered += reply.status_code != 200
        bill.second += max(0, len(self.now.bodies) - 1)
        return self.now.dollars

    def _count_missing(self, bill: Bill, transcript: Transcript, facts: Iterable[NeededFact]) -> None:
        """Count an answer that used a fact which the request lacks, and the price of reading the fact again."""
        missing = self._missing(facts)
        if missing:
            tokens = sum(transcript.tokens[each] for each in {fact.last for fact in missing})
            again = self.now.provider.send(self.now.bodies[-1]).dollars
            bill.repeated += 1
            bill.repeated_dollars += again + self.prices.dollars(written=tokens, output=REPEATED_OUTPUT)

    def _transcript(self, recording: dict[str, Any]) -> Transcript:
        given = Recording(id=recording["id"], messages=recording["messages"])
        return Transcript(given, format=self.route.format, meter=MessageMeter(self.counter), window=self.window)

    def _is_invalid(self, body: bytes) -> bool:
        format, key = self.route.format, self.route.key
        before = {problem.rule for problem in format.validate(json.loads(body)[key])}
        return any({each.rule for each in format.validate(json.loads(sent)[key])} - before for sent in self.now.bodies)

    def _missing(self, facts: Iterable[NeededFact]) -> list[NeededFact]:
        facts = list(facts)
        if not facts:
            return []
        raws = json.loads(self.now.bodies[-1])[self.route.key]
        text = " ".join(flat_text(self.route.format.read(raw)) for raw in raws)
        return [fact for fact in facts if fact.text not in text]


def recordings(files: Sequence[str], format: MessageFormat, most: int) -> Corpus:
    """Yield the recorded conversations in a wire format, with the file that each is from."""
    for name in files:
        with gzip.open(CORPUS / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            for line in lines:
                recording = json.loads(line)
                if len(recording["messages"]) <= most:
                    yield (
                        name,
                        {**recording, "messages": convert(recording["messages"], to=format, format="openai-chat")},
                    )


Corpus: TypeAlias = Iterable[tuple[str, dict[str, Any]]]
Opener: TypeAlias = Callable[[ScriptedUpstream, int], contextlib.AbstractAsyncContextManager[httpx.AsyncClient]]


def our_gateway(upstream: ScriptedUpstream, window: int) -> contextlib.AbstractAsyncContextManager[httpx.AsyncClient]:
    """Return a client of our gateway."""
    return in_process(upstream, window=window, counter="auto")


def headroom(program: Path) -> Opener:
    """Return what opens a client of headroom-ai's proxy with its defaults, but for its limit of 60 requests a minute."""

    @contextlib.asynccontextmanager
    async def opened(upstream: ScriptedUpstream, window: int) -> AsyncGenerator[httpx.AsyncClient]:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        urls = {f"{name}_TARGET_API_URL": upstream.url for name in ("OPENAI", "ANTHROPIC", "GEMINI")}
        command = [str(program), "proxy", "--port", str(port), "--no-rate-limit"]
        with tempfile.TemporaryDirectory() as home:
            environment = {**os.environ, **urls, "HOME": home}
            silent = subprocess.DEVNULL
            process = await anyio.open_process(command, env=environment, stdout=silent, stderr=silent)
            headers = {"authorization": "Bearer none", "x-api-key": "none", "anthropic-version": "2023-06-01"}
            try:
                async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=120, headers=headers) as client:
                    await _until_ready(client)
                    yield client
            finally:
                process.terminate()
                await process.wait()

    return opened


async def _until_ready(client: httpx.AsyncClient) -> None:
    for _ in range(240):
        with contextlib.suppress(httpx.HTTPError):
            if (await client.get("/livez")).status_code == 200:
                return
        await anyio.sleep(0.5)
    raise SystemExit("the proxy does not start")


async def bills(replay: Replay, corpus: Corpus, opened: Opener, on_bill: Callable[[Bill], object]) -> list[Bill]:
    """Send all conversations through one gateway."""
    found: list[Bill] = []
    script: Answer = replay.answer
    with ScriptedUpstream(script) as upstream:
        async with opened(upstream, replay.window) as client:
            for file, recording in corpus:
                found.append(await replay.send(client, file, recording))
                upstream.got.clear()
                on_bill(found[-1])
    return found


# ------------------------------------------------------------------------ the table


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of the values does not exceed.

    >>> percentile([3, 1, 2], 0.5), percentile([1, 2], 0.99)
    (2, 2)
    """
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def row(name: str, window: int, found: Sequence[Bill]) -> list[str]:
    """Return a row of the table; without the later calls if some of them were not answered."""
    untouched = [bill for bill in found if not bill.changed]
    changed = [bill for bill in found if bill.changed]
    later = [] if any(bill.unanswered for bill in found) else changed
    after = sum(bill.direct_after for bill in later)
    return [
        f"{name}, {window // 1_000}k",
        f"{len(untouched):,}",
        _ratio(sum(bill.through for bill in untouched), sum(bill.direct for bill in untouched)),
        f"{len(changed):,}",
        _ratio(sum(bill.through for bill in changed), sum(bill.direct for bill in changed)),
        f"{percentile([bill.ratio for bill in changed], 0.99):.2f}" if changed else "-",
        _ratio(sum(bill.through_after for bill in later), after),
        f"{sum(bill.repeated for bill in found):,} of {sum(bill.calls for bill in found):,}",
        _ratio(sum(bill.through_after + bill.repeated_dollars for bill in later), after),
        *(str(sum(getattr(bill, each) for bill in found)) for each in ("invalid", "second", "unanswered")),
    ]


def _ratio(one: float, other: float) -> str:
    return f"{one / other:.2f}" if other else "-"


HEADS: Final = (
    *("requests, window", "not compacted", "bill", "compacted", "bill before", "99th percentile", "bill after"),
    *("answers that need a removed fact", "bill after, facts read again", "invalid", "second requests", "unanswered"),
)


def main() -> None:
    """Send the conversations, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--routes", nargs="+", default=list(ROUTES), choices=list(ROUTES))
    parser.add_argument("--windows", nargs="+", type=int, default=[8_000, 16_000, 32_000])
    parser.add_argument("--files", nargs="+", default=list(FILES))
    parser.add_argument("--most-messages", type=int, default=1_000)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="Write the table into this page.")
    parser.add_argument("--headroom", type=Path, metavar="PROGRAM", help="Send them through headroom-ai's proxy instead.")
    parser.add_argument("--each", action="store_true", help="Print every bill whose conversation was compacted.")
    arguments = parser.parse_args()

    def show(bill: Bill) -> None:
        if arguments.each and bill.changed:
            print(json.dumps({**attrs.asdict(bill), "ratio": round(bill.ratio, 4)}), flush=True)

    opened = our_gateway if arguments.headroom is None else headroom(arguments.headroom)
    rows: list[list[str]] = []
    for name in arguments.routes:
        for window in arguments.windows:
            corpus = recordings(arguments.files, ROUTES[name].format, arguments.most_messages)
            found = anyio.run(bills, Replay(ROUTES[name], window), corpus, opened, show)
            rows.append(row(name, window, found))
            print(" | ".join(rows[-1]), flush=True)
    section = Section("bill", table(HEADS, rows))
    if arguments.write is not None:
        page = arguments.write.read_text(encoding="utf-8")
        arguments.write.write_text(written(page, [section]), encoding="utf-8")
    else:
        print("\n".join(section.lines))


if __name__ == "__main__":
    main()
