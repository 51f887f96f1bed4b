"""The cost of a model call in a long history, compared with the frameworks' own compaction: the table of docs/hooks.md.

    python -m benchmarks.in_frameworks                        # make bench-frameworks; prints the table
    python -m benchmarks.in_frameworks --date 2026-01-31 --write docs/hooks.md

CPU time of one run on a conversation of 10,000 messages, with a budget that it does not reach. Both sides count a token for
four characters. Two messages are added before each call. Only the strategies and hooks are timed, in a running event loop; the
framework's copying and annotating of messages is not included on either side. `first call` is the first call of a run, on the
copies that the framework makes.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import platform
import time
from collections.abc import Awaitable, Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

from compaction import presets

from .conversation import conversation, peer_messages
from .cpu import collector, seconds
from .report import written
from .tables import Section

MESSAGES = 10_000
WINDOW = 10_000_000
CALLS = 15
HISTORY = {"source_id": "in_memory", "source_type": "InMemoryHistoryProvider"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--date", default="", help="the date that the page shows")
    parser.add_argument("--write", type=Path, help="the page to write the table to")
    arguments = parser.parse_args()
    rows = [*agent_framework_rows(), *langchain_rows()]
    section = Section("overhead", (*table(rows), "", machine(arguments.date)))
    print("\n".join(section.lines))
    if arguments.write:
        arguments.write.write_text(written(arguments.write.read_text("utf-8"), [section]), "utf-8")


def table(rows: Sequence[tuple[str, str, float, float]]) -> list[str]:
    """Return the rows as Markdown: the task, the milliseconds of both sides, and their ratio."""
    lines = ["| framework | call | the framework's own, ms | this toolkit, ms | share |", "|---|---|---|---|---|"]
    for framework, call, theirs, ours in rows:
        lines.append(f"| {framework} | {call} | {theirs * 1000:.2f} | {ours * 1000:.3f} | 1/{theirs / ours:.1f} |")
    return lines


def machine(date: str) -> str:
    """Return the date, machine and versions of the measurement."""
    names = ("agent-framework-core", "langchain", "langchain-core")
    when = f"Measured on {date}" if date else "Measured"
    return f"{when} with Python {platform.python_version()}, {', '.join(f'{name} {version(name)}' for name in names)}."


# --- Agent Framework --------------------------------------------------------------------------------------------------


def agent_framework_rows() -> list[tuple[str, str, float, float]]:
    from agent_framework import ContextWindowCompactionStrategy

    from compaction.integrations.agent_framework import as_framework_strategy

    theirs = ContextWindowCompactionStrategy(max_context_window_tokens=WINDOW, max_output_tokens=1_000)
    ours = as_framework_strategy(presets.context_window(WINDOW), counter="chars/4")
    their_first, their_later = strategy_times(theirs)
    our_first, our_later = strategy_times(ours)
    provider_first, provider_later = provider_times()
    return [
        ("Agent Framework, `as_framework_strategy`", "in the tool loop", their_later, our_later),
        ("Agent Framework, `as_framework_strategy`", "first of a run", their_first, our_first),
        ("Agent Framework, `CompactionProvider`", "in the tool loop", their_later, provider_later),
        ("Agent Framework, `CompactionProvider`", "first of a run", their_first, provider_first),
    ]


def strategy_times(strategy: Callable[[list[Any]], Awaitable[bool]]) -> tuple[float, float]:
    """Return the seconds of the first call of a later run, and the median of the calls after it."""
    return asyncio.run(_strategy_times(strategy))


async def _strategy_times(strategy: Callable[[list[Any]], Awaitable[bool]]) -> tuple[float, float]:
    from agent_framework import annotate_message_groups

    history = peer_messages(conversation(MESSAGES))
    annotate_message_groups(history)
    await strategy(history)
    run = _copies(history)
    annotate_message_groups(run)
    first = await _timed(strategy, run)
    later: list[float] = []
    for place in range(CALLS):
        run += peer_messages(conversation(2, start=MESSAGES + 1 + 4 * place))
        annotate_message_groups(run)
        later.append(await _timed(strategy, run))
    return first, median(later)


def provider_times() -> tuple[float, float]:
    """Return the same for the provider: its work before a run, and before each model call of the run."""
    return asyncio.run(_provider_times())


async def _provider_times() -> tuple[float, float]:
    from compaction.integrations import IntegrationOptions
    from compaction.integrations.agent_framework import agent_framework
    from compaction.integrations.agent_framework.provider import RunView
    from compaction.integrations.conversation import FrameworkConversations

    history = peer_messages(conversation(MESSAGES))
    options = IntegrationOptions(strategy=presets.context_window(WINDOW), counter="chars/4")
    conversations = FrameworkConversations(options, agent_framework)
    await conversations.turn(history, id="one")
    run_view = RunView("in_memory", "Shop")
    run = _copies(history)

    async def call(messages: list[Any]) -> bool:
        run_view.follow(list(messages))
        overhead = conversations.count_messages([message for _, message in run_view.others])
        turn = await conversations.turn(run_view.messages, id="one", overhead_tokens=overhead)
        assert turn.index is not None
        run_view.use(turn.index.source)
        return bool(run_view.request(turn.view))

    first = await _timed(call, run)
    times: list[float] = []
    for place in range(CALLS):
        run = [*run, *peer_messages(conversation(2, start=MESSAGES + 1 + 4 * place))]
        times.append(await _timed(call, run))
    return first, median(times)


def _copies(messages: Sequence[Any]) -> list[Any]:
    """Return copies as the framework makes them for each run: with the annotations, and with shared contents."""
    made: list[Any] = []
    for message in messages:
        one = copy.copy(message)
        one.contents = list(message.contents)
        one.additional_properties = {**message.additional_properties, "_attribution": HISTORY}
        made.append(one)
    return made


async def _timed(call: Callable[[list[Any]], Awaitable[bool]], messages: list[Any]) -> float:
    """Return the CPU seconds of one call."""
    with collector(on=False):
        start = time.process_time()
        await call(messages)
        return time.process_time() - start


# --- LangChain --------------------------------------------------------------------------------------------------------


def langchain_rows() -> list[tuple[str, str, float, float]]:
    from langchain.agents.middleware import ModelRequest, ModelResponse, SummarizationMiddleware
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, convert_to_messages

    from compaction.integrations.langchain import CompactionMiddleware

    model = GenericFakeChatModel(messages=iter(()))
    theirs = SummarizationMiddleware(model, trigger=("tokens", WINDOW))
    ours = CompactionMiddleware(presets.context_window(WINDOW), counter="chars/4")
    messages = _with_ids(convert_to_messages(conversation(MESSAGES)), 0)
    response = ModelResponse(result=[AIMessage("done")])

    def their_call(given: list[Any]) -> Any:
        return theirs.before_model({"messages": given}, SimpleNamespace())  # type: ignore[arg-type]

    def our_call(given: list[Any]) -> Any:
        return ours.wrap_model_call(ModelRequest(model=model, messages=given), lambda request: response)

    rows: list[tuple[str, str, float, float]] = []
    their_times, our_times = [], []
    their_call(messages), our_call(messages)
    for place in range(CALLS):
        more = convert_to_messages(conversation(2, start=MESSAGES + 1 + 4 * place))
        messages = [*messages, *_with_ids(more, len(messages))]
        their_times.append(seconds(their_call, messages)[0])
        our_times.append(seconds(our_call, messages)[0])
    rows.append(("LangChain, `CompactionMiddleware`", "in the tool loop", median(their_times), median(our_times)))
    reread = [message.model_copy() for message in messages]
    rows.append(
        ("LangChain, `CompactionMiddleware`", "first of a run", seconds(their_call, reread)[0], seconds(our_call, reread)[0])
    )
    return rows


def _with_ids(messages: Sequence[Any], start: int) -> list[Any]:
    return [message.model_copy(update={"id": f"m{start + place}"}) for place, message in enumerate(messages)]


if __name__ == "__main__":
    main()
