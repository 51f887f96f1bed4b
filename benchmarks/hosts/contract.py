"""The contract of a host: the situations, the cases that every framework can be asked for alike, and why a cell is not equal.

A case belongs to the situation that its name begins with. A framework's file lists the cases that need code of its own; the
others follow from `common`. Each cell of frameworks x situations is a case, or `REASONS` says why there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from .measure import Case
from .server import Conduct

SITUATIONS: Final[Mapping[str, str]] = {
    "tool loop": "five calls a turn, three at once",
    "25 calls a turn": "a turn is longer than the window",
    "streaming": "replies are streamed",
    "structured output": "the answer has a type",
    "approval": "a call waits for a person, and another process resumes it",
    "parallel sub-agents": "a tool asks other agents, each with a conversation of its own",
    "hand-offs": "another agent continues the conversation",
    "50 sessions at once": "50 conversations in one process",
    "time travel": "each fifth turn is taken back and asked differently",
    "branches": "a conversation goes on in two ways, in turns",
    "a process a turn": "each turn has new objects and only what was saved",
    "a copy a turn": "each turn has deep copies of the integration's objects",
    "a pickle a turn": "each turn has pickled and unpickled objects",
    "usage in the history": "a process a turn, where a token has 1.9 characters and the estimate is four",
    "1.9 characters a token": "the provider counts 2.1 times the estimate",
    "usage late": "only the last reply of a turn reports usage",
    "usage missing": "no reply reports usage",
    "usage a thousandth": "replies report a thousandth of their tokens",
    "overflow once": "one request that fits is refused as too long",
    "429 once": "one request is refused with 429, and the user asks again",
    "native items": "replies hold the provider's own compaction, the newest of which must stay",
    "a pin": "a tool result of the first turn must stay",
    "cancellation in mid-summary": "each third summary is cancelled under way, and the user asks again",
    "the summarizer fails": "its model answers with errors",
    "the summarizer hangs": "its model does not answer in time",
}
"""Each situation, and what it means."""

_COMMON: Final[Mapping[str, Mapping[str, Any]]] = {
    "50 sessions at once": {"sessions": 50},
    "time travel": {"travels": "back"},
    "branches": {"travels": "both ways"},
    "a process a turn": {"restarts": "new"},
    "a copy a turn": {"restarts": "copied"},
    "a pickle a turn": {"restarts": "pickled"},
    "usage in the history": {"restarts": "new", "brief": True, "characters_per_token": 1.9},
    "1.9 characters a token": {"characters_per_token": 1.9},
    "usage late": {"conduct": Conduct(reports="late")},
    "usage missing": {"conduct": Conduct(reports="never")},
    "usage a thousandth": {"conduct": Conduct(reports="a thousandth")},
    "overflow once": {"conduct": Conduct(refuses="as too long")},
    "429 once": {"conduct": Conduct(refuses="with 429")},
    "a pin": {"conduct": Conduct(pinned=True)},
    "cancellation in mid-summary": {"cancel_every": 3},
    "the summarizer fails": {"summaries": "fail"},
    "the summarizer hangs": {"summaries": "hang"},
}

NATIVE: Final[Mapping[str, Any]] = {"conduct": Conduct(native=True)}
"""The options of "native items", for the frameworks whose provider has them."""


OVERFLOW: Final[Mapping[str, Any]] = {"conduct": Conduct(refuses="as too long")}
"""The options of "overflow once", for the cases that need other options too."""


LEFT_OUT: Final = frozenset({("LangGraph", "overflow once")})
"""Common cases that a framework cannot pass, by framework and situation."""


def common(case: Callable[..., Case], **options: Any) -> Iterator[Case]:
    """Yield the cases that need no code of a framework, except `LEFT_OUT`.

    Args:
        case: Makes a case of the framework from a name and options.
        options: Options of all these cases.
    """
    for name, own in _COMMON.items():
        made = case(name, **{**own, **options})
        if (made.host, name) not in LEFT_OUT:
            yield made


_ANY: Final = "any"
_OWN_LISTS: Final = "its agents hand over a text, and each has a list of its own, as parallel sub-agents"
_STRICTEST: Final = (
    "its messages may go to any provider, so a call stays behind what the user said before it, as in the plain loop on"
    " Anthropic Messages, which has the same figures"
)
_SOME_TOKENS: Final = (
    "its requests have some tokens more, such as titles in the tools' schemas, so a summary is due a request earlier"
)
REASONS: Final[Mapping[tuple[str, str], str]] = {
    (_ANY, "time travel"): (
        "the turn that is taken back may go on as a branch, so a summary that was written in it goes with it and is written"
        " again; a program with a session of its own keeps it"
    ),
    (_ANY, "branches"): (
        "a branch begins with the view of its conversation, so its first summary may come some requests later than in a loop"
        " that starts another session, at the price of one prefix break"
    ),
    ("Agent Framework", "hand-offs"): "hand-offs are a workflow of another package, agent-framework-orchestrations",
    ("Agent Framework", "native items"): "its client leaves these items out of the messages that it returns",
    ("Agent Framework", "a pin"): _STRICTEST,
    ("Agent Framework", "parallel sub-agents"): _SOME_TOKENS,
    ("Agent Framework", "1.9 characters a token"): _SOME_TOKENS,
    ("Anthropic SDK", "approval"): "its tool runner runs all tools",
    ("Anthropic SDK", "hand-offs"): "it has no agents",
    ("Anthropic SDK", "structured output"): "it changes nothing but a field of the request",
    ("Google ADK", "hand-offs"): "the next agent gets what was said before as a text, and its list begins with it",
    ("Google ADK", "native items"): "Gemini has none",
    ("LangChain", "hand-offs"): "its agents are then nodes of a graph: see LangGraph",
    ("LangChain", "native items"): _STRICTEST,
    ("LangChain", "a pin"): _STRICTEST,
    ("LangChain", "structured output"): _SOME_TOKENS,
    ("LangChain", "1.9 characters a token"): _SOME_TOKENS,
    ("LangGraph", "25 calls a turn"): "its node is between any two calls, as in the tool loop",
    ("LangGraph", "approval"): "an interrupt stops the graph between two nodes, as the end of a process does",
    ("LangGraph", "a pin"): _STRICTEST,
    ("LangGraph", "native items"): _STRICTEST,
    ("LangGraph", "overflow once"): "its node does not see the model's error; `CompactionMiddleware` of LangChain does",
    ("LangGraph", "parallel sub-agents"): "each is a graph with a thread of its own, as the sessions at once",
    ("LangGraph", "streaming"): (
        "`ChatOpenAI` reports no usage in the streams of other servers than OpenAI's, unless told to with `stream_usage=True`"
    ),
    ("LangGraph", "structured output"): "the application calls the model",
    ("LangGraph", "1.9 characters a token"): _SOME_TOKENS,
    ("LiteLLM proxy", "approval"): "its clients run the tools",
    ("LiteLLM proxy", "hand-offs"): "its clients have the agents",
    ("LiteLLM proxy", "structured output"): "it changes nothing but a field of the request",
    ("OpenAI Agents SDK", "the summarizer fails"): (
        "one request exceeds the window by our count, which has some tokens more; past the window, a paused summarizer is asked"
    ),
    ("OpenAI Agents SDK", "the summarizer hangs"): "as when it fails",
    ("pydantic-ai", "a pin"): _STRICTEST,
    ("pydantic-ai", "structured output"): _SOME_TOKENS,
    ("pydantic-ai", "1.9 characters a token"): _SOME_TOKENS,
    ("pydantic-ai", "hand-offs"): "the application gives a history to another agent, as between two turns",
    ("pydantic-ai", "native items"): "the framework itself leaves out what precedes the item, a summary too",
    ("Strands", "hand-offs"): _OWN_LISTS,
    ("Strands", "native items"): "Bedrock has none",
}
"""Why there is no case, or why it is not equal, by framework and situation; `reason` reads it."""


def reason(host: str, situation: str) -> str | None:
    """Return why a cell is empty or not equal; ``None`` if nothing is known of it."""
    return REASONS.get((host, situation)) or REASONS.get((_ANY, situation))
