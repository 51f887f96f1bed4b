"""Presets: functions that return a known system, or a good default, built from the general parts.

`PRESETS` is their registry: code, pipeline files, the command line and replays know the same names. What only presets with a
summary use is named through its package (``strategies.Summarization``), so that the others need not load it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal

import attrs

from . import strategies, summarizers
from .checks import checked_count, is_count, is_number, size_remedy
from .errors import ConfigurationError
from .index import GroupKind
from .selectors import demonstrations, first, fitting, kinds, last, spoken
from .strategies import (
    Clear,
    ClearReasoning,
    Clip,
    Dedupe,
    HeadTail,
    Pipeline,
    Strategy,
    TokenBudgetComposed,
    ToolResult,
    Truncation,
)
from .triggers import TriggerLike, messages_exceed, never, tokens_below, tokens_exceed, worth_it

__all__ = ["PRESETS", "Preset", "adaptive", "context_window", "hermes", "langgraph_summary", "token_budget"]

_LEAST_WINDOW: Final = 200  # of `adaptive`
_FULL: Final = 0.97  # of the input budget, for the last resort of `adaptive`
_EXTRA_WORDS: Final = 0.20  # of the input budget: what the user's words may have in `adaptive` in addition to the target
_LEAST_CHARS: Final = 120  # of a result that `adaptive` shortens
_LEAST_FREED: Final = 0.2  # of the threshold of `hermes`, by one cut
_SUMMARIZED_TO: Final = 0.55  # what may stay beside a summary, whose quotes then fill the room up to the threshold
_CLEARED_TO: Final = 0.35  # what may stay after clearing; ``tests/hermes/test_windows.py`` tried 0.30, 0.40 and 0.50, too
_OPENING: Final = 4  # messages up to the task: the system message, examples, and the task


def context_window(
    window: int | str,
    *,
    reserve_output: int | None = None,
    tool_threshold: float = 0.5,
    threshold: float = 0.8,
    target: float = 0.5,
    tool_batch: float = 0.2,
    keep_tool_groups: int = 4,
    keep_groups: int = 2,
) -> Pipeline:
    """Return a pipeline that keeps a conversation inside a model's window.

    If a request exceeds half of the input budget, old tool results are collapsed. Above four fifths, the oldest groups in
    which the user says nothing are dropped; questions with short answers, and why the user denied a call, go last. If that
    frees too little, and an excerpt would free enough, old user messages become an excerpt of them, word for word. These
    thresholds are those of Agent Framework's context-window strategy. Each step continues to a lower target, so that it does
    not run again on the next turn. As a last resort, above the input budget, `LastResort` runs.

    Args:
        window: Tokens of the model's input and output together, > 0; or the model's name, see `compaction.models.input_limit`.
        reserve_output: Tokens of the window kept for the answer, >= 0 and below ``window``; the rest is the input budget.
            ``None`` for none, and for a model by name 16,000 or an eighth of its window, whichever is less.
        tool_threshold: Share of the input budget past which old tool results collapse.
        threshold: Share past which the oldest groups make room; at least ``tool_threshold``, at most 1.
        target: Share at which that stops, above 0 and below ``threshold``. Collapsing stops at four fifths of
            ``tool_threshold``, or at ``target`` if that is lower.
        tool_batch: Least share of the input budget that collapsing must free, from 0 to below 1. If it would free less, it
            waits, because every change breaks the provider's prompt cache. In a replay of 628 recorded calls with a window of
            16,000 tokens, the cache was broken in 54 of 100 calls with a share of 0, and in 10 of 100 with 0.2.
        keep_tool_groups: The number of newest tool-call groups that are never collapsed.
        keep_groups: The number of newest groups that are not dropped before the last resort.

    Raises:
        ConfigurationError: If a figure is out of range.

    >>> context_window(32_000, reserve_output=4_000).steps[1].trigger
    tokens_exceed(22400)
    """
    budget = _input_tokens("context_window", window, reserve_output)
    are_numbers = all(map(is_number, (tool_threshold, threshold, target, tool_batch)))
    if not (are_numbers and 0 < tool_threshold <= threshold <= 1 and 0 < target < threshold and 0 <= tool_batch < 1):
        raise ConfigurationError(
            f"context_window(tool_threshold={tool_threshold!r}, threshold={threshold!r}, target={target!r}, "
            f"tool_batch={tool_batch!r}): 0 < tool_threshold <= threshold <= 1, 0 < target < threshold, and 0 <= tool_batch < 1"
        )
    enough = tokens_below(int(budget * target) + 1)
    still_too_much = (2 * target + threshold) / 3  # above it, dropping alone came less than two thirds of the way to the target
    worth_a_rewrite = (threshold - target) / 2  # an excerpt changes the oldest messages, and so breaks the whole cached prefix
    return Pipeline(
        ToolResult(
            trigger=tokens_exceed(int(budget * tool_threshold)),
            target=tokens_below(int(budget * min(target, 0.8 * tool_threshold)) + 1),
            keep=last(groups=keep_tool_groups, of=kinds(GroupKind.TOOL_CALL)),
            at_least=int(budget * tool_batch),
        ),
        Pipeline(
            Truncation(target=enough, keep=last(groups=keep_groups) | spoken() | kinds(GroupKind.SUMMARY), keep_questions=True),
            strategies.Excerpt(
                tokens=max(1, int(budget * target * 0.8)),  # the newest groups have the rest
                trigger=tokens_exceed(int(budget * still_too_much)),
                target=enough,
                keep=last(groups=keep_groups),
                at_least=int(budget * worth_a_rewrite),
            ),
            trigger=tokens_exceed(int(budget * threshold)),
        ),
        strategies.LastResort(tokens=budget),
        trigger=tokens_exceed(int(budget * tool_threshold)),
        target=~tokens_exceed(int(budget * threshold)),
    )


def _input_tokens(preset: str, window: int | str, reserve_output: int | None = None, *, name: str = "window") -> int:
    """Return the tokens that a request may have."""
    if isinstance(window, str):
        if remedy := size_remedy(window):
            raise ConfigurationError(f"{preset}({window!r}): pass a number of tokens, or the name of a model{remedy}")
        from .models import input_limit

        return input_limit(window, reserve_output=reserve_output)
    reserve = 0 if reserve_output is None else reserve_output
    if checked_count(f"{preset}: {name!r}", window, 1) <= checked_count(f"{preset}: 'reserve_output'", reserve):
        raise ConfigurationError(f"{preset}({window}, reserve_output={reserve}): the window must be above the reserve")
    return window - reserve


def adaptive(
    window: int | str,
    summarizer: summarizers.SummarizerLike | None = None,
    *,
    reserve_output: int | None = None,
    threshold: float = 0.95,
    target: float = 0.35,
    largest: float = 0.20,
    cached: float = 0.1,
    cache_seconds: float = 300.0,
) -> Pipeline:
    """Return a pipeline that keeps a conversation inside a window at low cost, and keeps what the agent will need.

    The middle of a long answer or result (see ``largest``) is cut out when it arrives, before it is part of a cached
    prefix; that of a result only if the request has half of the input budget. If the request exceeds ``threshold``, the
    oldest groups are removed down to ``target``, and a summary replaces them, to which later parts are added. Each part has
    exact facts and past calls, chosen from the whole conversation, and ends with what the user said in these groups, word
    for word. All parts together may quote the user in 0.32 of the input budget; what exceeds 0.12 does not count against
    ``target``. Unless a ``summarizer`` is given, the oldest tool results are shortened first, so that more calls stay
    verbatim. Between these cuts, requests only grow at their end. From nine tenths of the threshold on, it cuts early if
    that saves more than the broken prompt cache costs. As a last resort, above 0.97 of the input budget, `LastResort` runs.
    ``docs/explanation/adaptive.md`` has the measurements.

    On coding sessions in windows of 8,000 tokens, it costs more than dropping the oldest groups: 0.30 of the cost of sending
    everything, instead of 0.25.

    Args:
        window: Tokens of the model's input and output together; or the model's name, see `compaction.models.input_limit`. The
            input budget must be at least 200.
        summarizer: Writes the parts of the summary; by default a list of exact facts made without a model.
        reserve_output: Tokens of the window kept for the answer, >= 0 and below ``window``; the rest is the input budget, which
            the shares below refer to. ``None`` for none, and for a model by name 16,000 or an eighth of its window, whichever
            is less.
        threshold: Share above which the oldest groups are removed, at most 0.97. Choose a lower one if tokens are estimated.
        target: Share down to which they are removed, at least 0.2 and below ``threshold``.
        largest: Share that one answer may have, above 0 and below ``target``; longer ones are cut at once. Other messages:

            - A tool call with its results may have 0.5 times this share; the newest one is cut at once, too, if the request
              has half of the input budget. Lines that name an error stay.
            - An example of work before the task (see `demonstrations`) may have 0.5 times this share; it is cut in the first
              call or with the next large cut, and stays in the view until the last resort.
            - Other user messages except the last one may have 1.5 times this share; they are cut with the next large cut.
        cached: Price of a cached input token as a share of the price of one written to the cache, above 0 and at most 1.
        cache_seconds: Seconds for which the provider keeps a cached prefix.

    Raises:
        ConfigurationError: If a figure is out of range.

    >>> adaptive(32_000).steps[-1].tokens, adaptive("gpt-5").steps[-1].tokens  # the last resort, above 0.97 of the input budget
    (31040, 263840)
    """
    budget = _input_tokens("adaptive", window, reserve_output)
    are_numbers = all(map(is_number, (largest, target, threshold)))
    if not (are_numbers and 0 < largest < target < threshold <= _FULL and target >= 0.2):
        raise ConfigurationError(
            f"adaptive(threshold={threshold!r}, target={target!r}, largest={largest!r}): 0 < largest < target < threshold <= "
            f"{_FULL}, and target >= 0.2"
        )
    if not (is_number(cached) and 0 < cached <= 1 and is_number(cache_seconds) and cache_seconds > 0):
        raise ConfigurationError(
            f"adaptive(cached={cached!r}, cache_seconds={cache_seconds!r}): 0 < cached <= 1, and cache_seconds > 0"
        )
    if budget < _LEAST_WINDOW:
        raise ConfigurationError(f"adaptive({window}): at least {_LEAST_WINDOW} input tokens are needed (got {budget})")

    def part(of: float) -> int:
        return max(1, int(budget * of))

    early_from = 0.9 * threshold  # not before it is nearly full: each cut loses something, also one that saves money
    extra = max(0.0, min(_EXTRA_WORDS, early_from - target))  # a cut must end below what starts it
    call_tokens, answer_tokens, user_tokens = part(0.5 * largest), part(largest), part(1.5 * largest)
    before_task = demonstrations() & first(messages=_OPENING)
    examples = Clip(tokens=call_tokens, keep=~before_task)
    all_but_newest = ~last(groups=1, of=kinds(GroupKind.TOOL_CALL))
    calls = Clip(tokens=call_tokens, trigger=tokens_exceed(part(0.5)), target=never, keep=all_but_newest | spoken())
    answers = Clip(tokens=answer_tokens, keep=kinds(GroupKind.USER, GroupKind.TOOL_CALL) | spoken())
    earlier_words = Clip(tokens=user_tokens, keep=last(groups=1, of=kinds(GroupKind.USER)))

    cut = strategies.GrowingSummary(
        summarizers.FactSummarizer() if summarizer is None else summarizer,
        tokens=part(target),
        # the other shares were chosen together, by replaying recorded sessions: docs/explanation/adaptive.md
        initial_tokens=part(0.16),  # of the first part of the summary
        added_tokens=part(0.065),  # of each later part
        max_tokens=part(0.36),  # of all parts; above it, they are written again as one
        user_tokens=part(0.24),  # of the user's own words
        extra_tokens=int(budget * extra),  # of them, in addition to the target
        keep_tokens=part(0.13),  # of the newest messages, which stay
        target=~tokens_exceed(part(target)),
        keep=before_task,
    )
    chars = max(_LEAST_CHARS, part(0.005))
    results = ToolResult(HeadTail(chars=chars, values=chars // 4), keep=last(groups=1), target=~tokens_exceed(part(target)))
    shorten = [results] if summarizer is None else []  # a model is to read whole results
    rehearsal = Truncation(target=~tokens_exceed(part(target)), keep=last(groups=1))
    early = tokens_exceed(part(early_from)) & worth_it(rehearsal, cached=cached, ttl_seconds=cache_seconds)
    return Pipeline(
        # before any call, examples are cut at once; later they are part of the cached prefix, so only with a cut
        attrs.evolve(examples, trigger=~messages_exceed(_OPENING)),
        calls,
        answers,
        Pipeline(examples, earlier_words, *shorten, cut, trigger=tokens_exceed(part(threshold)) | early),
        strategies.LastResort(tokens=part(_FULL)),
    )


def token_budget(budget: int) -> TokenBudgetComposed:
    """Return a strategy that brings a conversation down to a budget once and loses as little as it can.

    It removes repeated results, old reasoning, the middle of long results except for its exact values, and what is too much in
    other messages that exceed .85 of the budget, except the last user message. If that is not enough, a summary written without
    a model replaces the oldest groups: what the user said, word for word, in at most a fifth of the budget, and a digest. Both
    together may have .85 of the budget; the rest is for the newest messages. As a last resort, `LastResort` runs. It stops as
    soon as the conversation fits the budget.

    Use it for a single list. In a session it would cut again on every turn: use `adaptive` there.

    Args:
        budget: Tokens a request may send, > 0.

    Raises:
        ConfigurationError: If the budget is not above 0.

    >>> token_budget(8_000).budget
    8000
    """
    empty = TokenBudgetComposed([], budget=budget)  # refuses a bad budget
    room = max(1, int(budget * 0.85))
    digest = strategies.GrowingSummary(
        summarizers.DigestSummarizer(growth=1.0),
        tokens=budget,
        initial_tokens=room,
        added_tokens=room,
        max_tokens=room,
        user_tokens=int(budget * 0.20),
        slack=0.03,
        target=~tokens_exceed(budget),
    )
    huge = Clip(tokens=room, keep=last(groups=1, of=kinds(GroupKind.USER)) | kinds(GroupKind.SUMMARY))
    gentle = [ToolResult(Dedupe()), ClearReasoning(), ToolResult(HeadTail(values=2_000)), huge]
    return attrs.evolve(empty, strategies=[*gentle, digest, strategies.LastResort(tokens=budget)])


def hermes(
    context_length: int | str = 200_000,
    summarizer: summarizers.SummarizerLike | None = None,
    *,
    threshold: float = 0.50,
    target_ratio: float = 0.20,
    protect_first_n: int = 3,
    protect_last_n: int = 20,
    on_failure: strategies.OnFailure = "keep",
    trigger: TriggerLike | None = None,
) -> Pipeline:
    """Return Hermes Agent's documented context compressor: clear old tool results, then summarize the middle.

    Once a request reaches ``threshold`` of the window, results of more than 200 characters outside the tail are replaced by a
    placeholder, and the messages between the first ones and the tail by one summary, which later rounds update. The tail has
    ``context_length x threshold x target_ratio`` tokens, and at least ``protect_last_n`` messages, in whole groups. For a
    window of 200,000 tokens, it triggers at 100,000, with a tail of 20,000 and at most 10,000 for the summary.

    Every cut is to free a fifth of the threshold, so that not every turn breaks the prompt cache. If clearing results frees so
    much, nothing is summarized; if it does not, no result is cleared. A run with ``trigger`` or a forced one does both.

    Where the kept messages would leave too little, less is kept. Results outside the tail are cleared, also in the last
    ``protect_last_n`` messages, if more than 0.35 of the threshold would stay. If more than 0.55 would stay beside a summary,
    it keeps first only as many of these messages as fit into half of the threshold; then, only the tail; finally, the first
    messages are summarized, too. As a last resort, if a request still exceeds the window, `LastResort` runs.

    Unlike Hermes Agent's, each summary ends with what the user said in the messages that it replaces, word for word. This
    excerpt may have 0.25 of the window, at most 12,000 tokens, and little more than fits below the threshold beside the kept
    messages. ``docs/migrating/hermes.md`` lists where documents, releases and this preset differ.

    Args:
        context_length: The model's window in tokens, > 0; or the model's name, see `compaction.models.input_limit`.
        summarizer: Writes the summary; by default a digest made without a model.
        threshold: Share of the window that triggers, above 0 and at most 1.
        target_ratio: Share of the threshold that the tail may take, 0.10 to 0.80.
        protect_first_n: Messages at the start that stay, the system message counted, >= 0.
        protect_last_n: Minimum of messages at the end that stay while they fit, >= 1.
        on_failure: What to do if the summarizer failed. The documents describe ``"drop"``: the middle is lost.
        trigger: When to run instead; ``always`` to force it.

    Raises:
        ConfigurationError: If a figure is out of range.

    >>> hermes().trigger
    tokens_exceed(99999)
    """
    context_length = _input_tokens("hermes", context_length, name="context_length")
    checked_count("hermes: 'protect_first_n'", protect_first_n)
    checked_count("hermes: 'protect_last_n'", protect_last_n, 1)
    if not (is_number(threshold) and 0 < threshold <= 1 and is_number(target_ratio) and 0.10 <= target_ratio <= 0.80):
        raise ConfigurationError(
            f"hermes(threshold={threshold!r}, target_ratio={target_ratio!r}): 0 < threshold <= 1, 0.10 <= target_ratio <= 0.80"
        )
    threshold_tokens = int(context_length * threshold)
    if trigger is None and threshold_tokens < 1:
        raise ConfigurationError(f"hermes({context_length}, threshold={threshold}): the threshold must be at least one token")
    head, tail = first(messages=protect_first_n), last(tokens=int(threshold_tokens * target_ratio))
    newest, clear = last(messages=protect_last_n), Clear(min_chars=200)
    # what stays beside the summary, from the documented case to the last one
    documented, without_newest, only_tail = head | tail | newest, head | tail, tail
    with_fewer_newest = head | tail | (newest & last(tokens=threshold_tokens // 2))
    less = (with_fewer_newest, without_newest, only_tail)

    def part(of: float) -> int:
        return int(threshold_tokens * of)

    if trigger is None:
        cleared = ToolResult(clear, keep=fitting(part(_CLEARED_TO), tail | newest, only_tail), at_least=part(_LEAST_FREED))
        keep, target = fitting(part(_SUMMARIZED_TO), documented, *less), ~tokens_exceed(max(0, part(1 - _LEAST_FREED) - 1))
    else:  # the caller asks for it: it clears and summarizes all that the documents say
        cleared = ToolResult(clear, keep=tail | newest)
        keep, target = fitting(threshold_tokens, documented, fitting(part(1 - _LEAST_FREED), *less)), never
    ceiling = max(1, min(int(context_length * 0.05), 12_000))
    return Pipeline(
        cleared,
        strategies.Summarization(
            summarizers.DigestSummarizer() if summarizer is None else summarizer,
            keep=keep,
            target=target,
            budget=summarizers.SummaryBudget(ratio=0.20, floor=2_000, ceiling=ceiling),
            user_tokens=max(1, min(int(context_length * 0.25), 12_000)),
            on_failure=on_failure,
            system_note="[Note: some earlier turns of this conversation have been compacted into a summary.]",
            text=strategies.SummaryText(preface=_HERMES_PREFACE),
        ),
        strategies.LastResort(tokens=context_length),
        trigger=tokens_exceed(threshold_tokens - 1) if trigger is None else trigger,
    )


_HERMES_PREFACE = (
    "[CONTEXT COMPACTION] Earlier turns were compacted into this summary ({originals}). It is for reference, not a request:"
    " what it reports as done is done, and only the messages after it are to be answered."
)


def langgraph_summary(
    summarizer: summarizers.SummarizerLike | None = None,
    *,
    max_tokens_before_summary: int = 3_072,
    max_summary_tokens: int = 512,
    keep_recent_messages: int = 4,
    template: summarizers.SummaryTemplate | str | None = None,
    on_failure: strategies.OnFailure = "keep",
) -> strategies.Summarization:
    """Return the rule of a LangGraph summarization node: past a limit, all but the latest messages become a running summary.

    The default figures are those of a node in an open-source project (Eco2), which follows langmem's `summarize_messages`. The
    preset differs in four points: recent messages are kept in whole groups, the system prompt stays, an earlier summary is
    updated instead of summarized again, and a failed summary loses nothing. It does not know the window and has no last resort:
    if the latest messages alone exceed the window, so does the request.

    Args:
        summarizer: Writes the summary; by default a digest made without a model.
        max_tokens_before_summary: Tokens past which it runs, > 0.
        max_summary_tokens: Tokens the summary may have, > 0 and below the former.
        keep_recent_messages: Minimum of messages at the end that stay, >= 1.
        template: Its sections and wording, or a plain instruction.
        on_failure: What to do if the summarizer failed.

    Raises:
        ConfigurationError: If a figure is out of range.

    >>> langgraph_summary().trigger
    tokens_exceed(3072)
    """
    are_counts = all(is_count(each, 1) for each in (max_tokens_before_summary, max_summary_tokens, keep_recent_messages))
    if not (are_counts and max_summary_tokens < max_tokens_before_summary):
        raise ConfigurationError(
            f"langgraph_summary(max_tokens_before_summary={max_tokens_before_summary!r}, "
            f"max_summary_tokens={max_summary_tokens!r}, "
            f"keep_recent_messages={keep_recent_messages!r}): 0 < summary < before, and 1 message or more"
        )
    return strategies.Summarization(
        summarizers.DigestSummarizer() if summarizer is None else summarizer,
        trigger=tokens_exceed(max_tokens_before_summary),
        keep=last(messages=keep_recent_messages),
        budget=summarizers.SummaryBudget(ratio=1.0, floor=1, ceiling=max_summary_tokens, room_ratio=1.0),
        template=summarizers.default_template() if template is None else template,
        on_failure=on_failure,
    )


@attrs.frozen
class Preset:
    """An entry of the registry.

    Args:
        make: The function that returns the strategy.
        size: The size that its first argument is: tokens of the model's ``"window"`` or of a ``"budget"``; ``None`` if its
            figures do not depend on the model.
    """

    make: Callable[..., Strategy]
    size: Literal["window", "budget"] | None = "window"


PRESETS: Final[Mapping[str, Preset]] = {
    "adaptive": Preset(adaptive),
    "context_window": Preset(context_window),
    "hermes": Preset(hermes),
    "langgraph_summary": Preset(langgraph_summary, None),
    "token_budget": Preset(token_budget, "budget"),
}
"""Every preset by its name."""
