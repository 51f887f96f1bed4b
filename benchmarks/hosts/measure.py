"""A case and its measurement: all turns in the host, then the same turns in a plain loop."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

import attrs

from .plain import PlainChat, PlainResponses
from .plain_others import PlainAnthropic, PlainBedrock, PlainGemini
from .script import BRIEF, LONG, user_text
from .server import Conduct, StrictServer
from .trial import CountingSummarizer, Host, Restarts, StrategyName, Summaries, Trial

MAX_CANCELS: Final = 5

PLAIN: Final[Mapping[str, Any]] = {
    "openai-chat": PlainChat,
    "openai-responses": PlainResponses,
    "anthropic": PlainAnthropic,
    "gemini": PlainGemini,
    "bedrock": PlainBedrock,
}


@attrs.frozen(kw_only=True)
class Case:
    """A task for a framework.

    Args:
        host: The framework.
        name: What the case is about.
        make: Makes the host.
        wire: The wire format its model client speaks.
        characters_per_token: How the server counts.
        sessions: Conversations at once.
        tools: The agent's tools.
        summaries: What the summarizer does.
        cancel_every: Of so many summaries one is cancelled under way; 0 for none.
        strategy: The strategy.
        long: Whether a turn has 25 calls instead of five.
        brief: Whether a turn has one request and no call.
        restarts: What each turn begins with.
        conduct: What the provider does besides answering.
        travels: Whether each fifth turn is taken back and another one asked, or two branches go on after half the turns.
    """

    host: str
    name: str
    make: Callable[[Trial], Host]
    wire: str = "openai-chat"
    characters_per_token: float = 4.0
    sessions: int = 1
    tools: tuple[str, ...] = ("look_up_price",)
    summaries: Summaries = "work"
    cancel_every: int = 0
    strategy: StrategyName = "summaries"
    long: bool = False
    brief: bool = False
    restarts: Restarts = ""
    conduct: Conduct = attrs.field(factory=Conduct)
    travels: Literal["", "back", "both ways"] = ""

    @property
    def situation(self) -> str:
        """Return the row of the table that the case belongs to."""
        return self.name.partition(",")[0]

    def turns(self, turns: int) -> int:
        """Return the turns of each conversation: fewer if they are long or there are many, but enough to be compacted."""
        if self.long:
            return max(3, turns // 4)
        if self.brief:
            return 4 * turns
        return turns if self.sessions == 1 else max(6, turns // 8)


@attrs.frozen(kw_only=True)
class Figures:
    """The counts of one run.

    Args:
        turns: Turns that were answered, of all conversations.
        requests: Requests that were accepted.
        invalid: Requests that broke a rule.
        over: Requests that were too long.
        over_twice: Those that were too long again, or ended the turn.
        breaks: Requests that do not begin as the one before.
        crossed: Requests that hold another conversation's words.
        lost: Requests without the summary that the one before had.
        dropped: Requests without what is pinned, or without the newest compaction of the provider.
        summaries: Requests to the summarizer.
        cancelled: Those that were cancelled under way, and the requests that were refused with 429.
        cached_share: Share of the tokens that the request before began with.
        stopped: The error that ended the run early, if any.
    """

    turns: int
    requests: int
    invalid: int
    over: int
    over_twice: int
    breaks: int
    crossed: int
    lost: int
    dropped: int
    summaries: int
    cancelled: int
    cached_share: float
    stopped: str | None


@attrs.frozen
class Row:
    """A case, the host's figures and the plain loop's."""

    case: Case
    host: Figures
    plain: Figures

    def belongs_to(self, host: str, situation: str) -> bool:
        """Whether this is a row of a framework's cell."""
        return (self.case.host, self.case.situation) == (host, situation)

    @property
    def problems(self) -> list[str]:
        """Return each figure that is above the plain loop's, as text; empty if there is none.

        A turn that is cancelled, or fails with 429, and is asked again may cost one summary and one prefix break more: a
        framework either takes back what the turn had said so far, and the next request cannot begin as the last one, or it
        keeps it, and there is more to summarize.
        """
        host, plain = self.host, self.plain
        found = [f"stopped: {host.stopped}"] if host.stopped else []
        found += [f"the plain loop stopped: {plain.stopped}"] if plain.stopped else []
        counts = {"invalid": host.invalid, "over twice": host.over_twice, "crossed": host.crossed, "dropped": host.dropped}
        found += [f"{count} {name}" for name, count in counts.items() if count]
        if host.lost > plain.lost:
            found.append(f"{host.lost} lost, not {plain.lost}")
        if host.over > plain.over:
            found.append(f"{host.over} requests over the window, not {plain.over}")
        if host.summaries > plain.summaries + host.cancelled:
            found.append(f"{host.summaries} summaries, not {plain.summaries}")
        if host.breaks > plain.breaks + host.cancelled:
            found.append(f"{host.breaks} prefix breaks, not {plain.breaks}")
        return found


def rows_to_json(rows: Sequence[Row]) -> str:
    """Return the figures of rows as JSON, for `rows_of_json` in another environment."""
    return json.dumps(
        [[row.case.host, row.case.name, attrs.asdict(row.host), attrs.asdict(row.plain)] for row in rows], indent=1
    )


def rows_of_json(text: str) -> list[Row]:
    """Return rows that `rows_to_json` wrote; their cases cannot be run."""
    return [
        Row(Case(host=host, name=name, make=_cannot_be_made), Figures(**own), Figures(**plain))
        for host, name, own, plain in json.loads(text)
    ]


def _cannot_be_made(trial: Trial) -> Host:
    raise NotImplementedError("a row that was read from a file")


def measure(case: Case, *, turns: int = 100, seed: int = 0, window: int = 6_000) -> Row:
    """Return a case's row: the host's run, then the plain loop's."""
    host = _run(case, turns=turns, seed=seed, window=window)
    plain = attrs.evolve(case, host="plain loop", name="", make=PLAIN[case.wire], restarts="")
    return Row(case, host, _run_once(plain, turns=turns, seed=seed, window=window))


@cache
def _run_once(case: Case, *, turns: int, seed: int, window: int) -> Figures:
    """Return the figures of a plain loop, which serves several frameworks."""
    return _run(
        attrs.evolve(case, make=lambda trial: PLAIN[case.wire](trial, case.tools)), turns=turns, seed=seed, window=window
    )


def _run(case: Case, *, turns: int, seed: int, window: int) -> Figures:
    summarizer = CountingSummarizer(case.summaries, case.cancel_every)
    server = StrictServer(window=window, characters_per_token=case.characters_per_token, conduct=case.conduct)
    with server, tempfile.TemporaryDirectory() as folder:
        trial = Trial(
            server=server,
            summarizer=summarizer,
            turns=case.turns(turns),
            seed=seed,
            folder=Path(folder),
            strategy_name=case.strategy,
            restarts=case.restarts,
            is_pinned=case.conduct.pinned,
        )
        done, stopped = asyncio.run(_drive(case, trial))
    ledger = server.ledger
    counts = ("requests", "invalid", "over", "over_twice", "breaks", "crossed", "lost", "dropped")
    return Figures(
        turns=done,
        **{name: ledger.total(name) for name in counts},
        summaries=summarizer.asked + server.summaries,
        cancelled=summarizer.cancelled + server.throttled,
        cached_share=ledger.total("cached") / max(1, ledger.total("tokens")),
        stopped=stopped,
    )


async def _drive(case: Case, trial: Trial) -> tuple[int, str | None]:
    """Run all turns of all conversations; return the number of answers, and the error that ended the run early."""
    host = case.make(trial)
    done = 0

    async def conversation(name: str) -> None:
        nonlocal done
        other = f"{name}+"
        for turn in range(trial.turns):
            text, another = (user_text(name, turn, seed) for seed in (trial.seed, trial.seed + 1))
            if case.travels == "both ways" and turn == trial.turns // 2:
                await host.restore(other, await host.snapshot(name))
            goes_back = case.travels == "back" and turn % 5 == 4
            before = await host.snapshot(name) if goes_back else None
            await _turn(trial, host, name, text)
            if goes_back:
                await host.restore(name, before)
                await _turn(trial, host, name, another)
            if case.travels == "both ways" and turn >= trial.turns // 2:
                await _turn(trial, host, other, another)
            done += 1

    try:
        kind = LONG if case.long else BRIEF if case.brief else "c"
        await asyncio.gather(*(conversation(f"{kind}{number}") for number in range(case.sessions)))
    except Exception as error:
        return done, f"turn {done}: {type(error).__name__}: {' '.join(str(error).split())[:160]}"
    finally:
        await host.close()
    return done, None


async def _turn(trial: Trial, host: Host, name: str, text: str) -> None:
    """Run a turn, and repeat it if it was cancelled during a summary or the provider refused it with 429."""
    if trial.restarts:
        await host.restart()
    for _ in range(MAX_CANCELS):
        cancelled, throttled = trial.summarizer.cancelled, trial.server.throttled
        task = asyncio.ensure_future(host.turn(name, text))
        trial.summarizer.turn = task
        try:
            await task
        except asyncio.CancelledError:
            if trial.summarizer.cancelled == cancelled:
                raise
        except Exception:
            if trial.server.throttled == throttled:
                raise
        else:
            return
    raise RuntimeError("every attempt was cancelled")
