"""Adapters of other packages that fit a list of chat messages, as dictionaries, into a budget.

Every package is used as its documentation shows; if it takes a counter, it counts a token for four characters. They run in the
environment of `make bench-validity`; packages that are not installed are named and left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import attrs

Raw = dict[str, Any]


@attrs.frozen
class Rival:
    """Another package's way to make a chat fit.

    Args:
        package: Its distribution.
        name: The call.
        fit: Takes messages and a budget in tokens, and returns messages.
        wants: A requirement that an environment may lack, if any.
    """

    package: str
    name: str
    fit: Callable[[list[Raw], int], list[Raw]]
    wants: str = ""

    @property
    def version(self) -> str | None:
        """Return the installed release; ``None`` if there is none."""
        try:
            return version(self.package)
        except PackageNotFoundError:
            return None


def _tokens(text: str) -> int:
    return math.ceil(len(text) / 4)


# ------------------------------------------------------------------------ agent-framework-core


def _agent_framework(strategy: str) -> Callable[[list[Raw], int], list[Raw]]:
    def fit(messages: list[Raw], budget: int) -> list[Raw]:
        import agent_framework as af

        from .conversation import peer_messages
        from .peer import COUNTER, awaited

        made = {
            "budget": lambda: af.TokenBudgetComposedStrategy(token_budget=budget, tokenizer=COUNTER, strategies=[]),
            "truncation": lambda: af.TruncationStrategy(max_n=budget, compact_to=budget, tokenizer=COUNTER),
            "window": lambda: af.ContextWindowCompactionStrategy(
                max_context_window_tokens=budget, max_output_tokens=0, tokenizer=COUNTER
            ),
        }[strategy]()
        view = awaited(af.apply_compaction(peer_messages(messages), strategy=made, tokenizer=COUNTER))
        return [of_agent_framework(message) for message in view]

    return fit


def of_agent_framework(message: Any) -> Raw:
    """Return a message of Agent Framework as a chat message."""
    role = str(message.role)
    calls = [content for content in message.contents if content.type == "function_call"]
    results = [content for content in message.contents if content.type == "function_result"]
    text = "".join(content.text for content in message.contents if content.type == "text")
    if results:
        return {"role": "tool", "tool_call_id": results[0].call_id, "content": str(results[0].result)}
    if calls:
        made = [
            {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in calls
        ]
        return {"role": role, "content": text or None, "tool_calls": made}
    return {"role": role, "content": text}


# ------------------------------------------------------------------------ LangChain and langmem


def _count(messages: Sequence[Any]) -> int:
    return sum(4 + _tokens(f"{message.content}{getattr(message, 'tool_calls', None) or ''}") for message in messages)


def _langchain(**options: Any) -> Callable[[list[Raw], int], list[Raw]]:
    def fit(messages: list[Raw], budget: int) -> list[Raw]:
        from langchain_core.messages import convert_to_messages, convert_to_openai_messages, trim_messages

        kept = trim_messages(
            convert_to_messages(messages),
            max_tokens=budget,
            token_counter=_count,
            strategy="last",
            include_system=True,
            **options,
        )
        return convert_to_openai_messages(kept)  # type: ignore[return-value]

    return fit


def _langmem(messages: list[Raw], budget: int) -> list[Raw]:
    from langchain_core.messages import AIMessage
    from langchain_core.runnables import RunnableLambda

    model = RunnableLambda(lambda prompt: AIMessage("What was said before."))
    return langmem_within(messages, budget, model, summary_tokens=max(16, budget // 8))


def langmem_within(messages: list[Raw], budget: int, model: Any, *, summary_tokens: int) -> list[Raw]:
    """Return what langmem makes of the messages, with a model that writes its summary."""
    from langchain_core.messages import convert_to_messages, convert_to_openai_messages
    from langmem.short_term import summarize_messages

    read = convert_to_messages(messages)
    for number, message in enumerate(read):
        message.id = str(number)
    done = summarize_messages(
        read, running_summary=None, model=model, max_tokens=budget, max_summary_tokens=summary_tokens, token_counter=_count
    )
    return convert_to_openai_messages(done.messages)  # type: ignore[return-value]


# ------------------------------------------------------------------------ smaller packages


def _ctx_compact(messages: list[Raw], budget: int) -> list[Raw]:
    import ctx_compact

    return list(ctx_compact.compact(messages, max_tokens=budget).messages)


def _tessera(messages: list[Raw], budget: int) -> list[Raw]:
    import tessera

    return list(tessera.compact(messages, max_tokens=budget).transcript)


def _chatfit(messages: list[Raw], budget: int) -> list[Raw]:
    import chatfit.tokens

    chatfit.tokens._tiktoken_encoder = lambda model: None  # as without tiktoken: its vocabulary is not on this disk
    return list(chatfit.fit(messages, budget).messages)


def _cutctx(policy: str) -> Callable[[list[Raw], int], list[Raw]]:
    def fit(messages: list[Raw], budget: int) -> list[Raw]:
        import cutctx

        made = cutctx.default_chain(prompt_id="summary") if policy == "chain" else cutctx.DropOldestPolicy()
        transcript = cutctx.Transcript(tuple(_turns_of_cutctx(messages)))
        plan = made.decide(transcript, cutctx.CompactionBudget(budget))
        summaries = {request.group_id: "What was said before." for request in plan.summarization_requests}
        view = cutctx.CompactionExecutor().apply(transcript, plan, summaries=summaries).transcript
        return [_of_cutctx(turn, messages) for turn in view.turns]

    return fit


def _turns_of_cutctx(messages: list[Raw]) -> Iterator[Any]:
    """Return a turn for each message; a call and its results share an id, as cutctx documents."""
    import cutctx

    roles = {"developer": "system", "function": "tool"}
    exchange: dict[str, str] = {}
    for place, message in enumerate(messages):
        calls = message.get("tool_calls") or ()
        exchange.update(dict.fromkeys([call["id"] for call in calls], f"exchange {place}"))
        name = exchange.get(calls[0]["id"] if calls else message.get("tool_call_id", ""))
        content = message.get("content") or ""
        text = content if isinstance(content, str) else str(content)
        role = cutctx.Role(roles.get(message["role"], message["role"]))
        yield cutctx.TranscriptTurn(str(place), role, text, 4 + _tokens(f"{text}{calls or ''}"), tool_call_id=name)


def _of_cutctx(turn: Any, messages: list[Raw]) -> Raw:
    if not turn.turn_id.isdigit():
        return {"role": "assistant", "content": turn.content}
    message = messages[int(turn.turn_id)]
    return {**message, "content": turn.content} if turn.metadata else message


RIVALS = (
    Rival("agent-framework-core", "`TokenBudgetComposedStrategy`", _agent_framework("budget")),
    Rival("agent-framework-core", "`TruncationStrategy`", _agent_framework("truncation")),
    Rival("agent-framework-core", "`ContextWindowCompactionStrategy`", _agent_framework("window")),
    Rival("langchain-core", "`trim_messages`, its defaults", _langchain()),
    Rival(
        "langchain-core",
        "`trim_messages`, `start_on` and `end_on` as documented",
        _langchain(start_on="human", end_on=("human", "tool")),
    ),
    Rival("langmem", "`summarize_messages`", _langmem),
    Rival("ctx-compact", "`compact`", _ctx_compact),
    Rival("tessera-transcript", "`compact`", _tessera),
    Rival("chatfit", "`fit`", _chatfit),
    Rival("cutctx", "`DropOldestPolicy`", _cutctx("oldest"), wants="Python 3.12: `make bench-validity PYTHON=python3.12`"),
    Rival("cutctx", "`default_chain`", _cutctx("chain"), wants="Python 3.12: `make bench-validity PYTHON=python3.12`"),
)
