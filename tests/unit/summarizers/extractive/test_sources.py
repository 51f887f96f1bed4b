"""A digest invents nothing: each of its lines, without its labels, is found in the messages that it was made from."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.summarizers import DigestSummarizer, FactSummarizer
from tests.support.chats import Chat, assistant, call, result, user
from tests.support.limits import examples
from tests.support.scripted import request_for

LISTS = r"(?:Paths and links seen|Names and ids seen|Numbers seen|Phrases seen|Changed|Read): "
LABEL = re.compile(r"^(?:- )*(?:(?:First|Assistant|Earlier system message|Quoted or pasted|Result): )?")
COUNTED = re.compile(r"\(\d+ (?:more had no room|texts were so long that only both ends were read)\)")
NOTE = re.compile(r" \((?:was (.+) until|now (.+), since) message \d+\)$")
PLACE = re.compile(r" \((?:earlier, )?message \d+\)$")
CUTS = re.compile(r" ?\.\.\.|…| \| | -> |[(),:]| - ")
FROM = re.compile(r"From (\S.*?\)): (.*)")
OUTCOMES = {"ok", "no result", "no output", ""}


def squeezed(text: str) -> str:
    return " ".join(text.split())


def sources(chat: Chat) -> str:
    """Everything that a chat says, in one line."""
    parts: list[str] = []
    for message in chat:
        content = message.get("content") or ""
        parts += [content] if isinstance(content, str) else [part.get("text") or "" for part in content]
        for called in message.get("tool_calls") or ():
            parts += [called["function"]["name"], *values_in(called["function"]["arguments"])]
    return squeezed(" \n ".join(parts))


def values_in(arguments: str) -> list[str]:
    """The values of a call's arguments, as texts; the arguments themselves if they are not JSON."""
    try:
        left: list[Any] = [json.loads(arguments)]
    except ValueError:
        return [arguments]
    found: list[str] = []
    while left:
        value = left.pop()
        if isinstance(value, dict | list):
            left += value.values() if isinstance(value, dict) else value
        else:
            found.append(value if isinstance(value, str) else json.dumps(value))
    return found


def inventions(digest: str, chat: Chat) -> list[str]:
    """The lines of a digest that are not in its sources."""
    said = sources(chat)
    return [line for line in digest.splitlines() if not is_found(line.strip(), said)]


def is_found(line: str, said: str) -> bool:
    if not line or line.startswith("#") or COUNTED.search(line) or re.fullmatch(r"- </?[\w:.-]+>|</[\w:.-]+>", line):
        return True
    line = PLACE.sub("", LABEL.sub("", line))
    if found := FROM.match(line):
        return is_found(f"- {found[1]}", said) and is_found(f"- Numbers seen: {found[2]}", said)
    if listed := re.match(LISTS, line):
        return all(squeezed(value) in said for pair in re.findall(r'"([^"]*)"|(\S+)', line[listed.end() :]) for value in pair)
    noted = NOTE.search(line)
    if noted is not None:
        return (noted[1] or noted[2]) in said and is_found(line[: noted.start()], said)
    if squeezed(line) in said:
        return True
    pieces = CUTS.split(line)
    if " -> " in line:  # of JSON, an outcome has single values
        pieces = [each for piece in pieces for each in ([piece] if squeezed(piece) in said else piece.split())]
    return all(piece.strip() in {*OUTCOMES, "no", "output", "result"} or squeezed(piece) in said for piece in pieces)


def summaries(chat: Chat, budget: int) -> list[str]:
    each = (DigestSummarizer(growth=1.0), FactSummarizer())
    return [summarizer.summarize(request_for(summarizer, chat, budget=budget)) for summarizer in each]


names = st.sampled_from(["ferry", "bakery", "port", "limit", "Postgres", "backup", "primary", "region", "deposit", "포트"])
values = st.sampled_from(["14:35", "8080", "9090", "$956", "eu-north-3", "us-west-2", "60", "7", "v2.3.1", "2026-03-14"])
sentences = st.one_of(
    st.builds("The {} is {}.".format, names, values),
    st.builds("The {} is now {}.".format, names, values),
    st.builds("Never touch the {} without {}.".format, names, names),
    st.builds("The {} {} is {}.".format, names, names, values),
    st.builds("We decided on {} because of the {}, {} of them.".format, names, names, values),
    st.sampled_from(
        ["Make that 15:20.", "Thanks!", "请不要修改 config.yaml。", "___ ... ---", "-1 49 60 62", '"Never," he said, "ever."']
    ),
)
lines = st.lists(sentences, min_size=1, max_size=4).map(" ".join)
blocks = st.one_of(
    lines,
    st.lists(lines, min_size=1, max_size=4).map(
        lambda items: "Please keep to this:\n" + "\n".join(f"- {item}" for item in items)
    ),
    st.lists(lines, min_size=1, max_size=3).map(
        lambda items: "## Rules\n\n" + "\n".join(f"{n}. {i}" for n, i in enumerate(items))
    ),
    st.lists(lines, min_size=1, max_size=3).map(lambda items: "<rules>\n" + "\n".join(items) + "\n</rules>"),
    st.lists(sentences, min_size=1, max_size=3).map(
        lambda items: "| what |\n|---|\n" + "\n".join(f"| {item} |" for item in items)
    ),
    lines.map(lambda text: f"A mail from the landlord:\n\n{text}"),
    lines.map(lambda text: f"```\n{text}\n```"),
    st.just("2026-01-03 10:11:12 ERROR no disk\nTraceback (most recent call last):\nKeyError: 'x'"),
)
texts = st.lists(blocks, min_size=1, max_size=3).map("\n\n".join)


@st.composite
def chats(draw: st.DrawFn) -> Chat:
    chat: Chat = []
    for turn in range(draw(st.integers(1, 6))):
        chat.append(user(draw(texts)))
        if draw(st.booleans()):
            arguments = f'{{"path": "src/{draw(names)}.py", "line": {turn}}}'
            chat += [call(f"c{turn}", arguments=arguments), result(f"c{turn}", draw(texts))]
        chat.append(assistant(draw(lines)))
    return chat


@examples(75)
@given(chats(), st.integers(12, 600))
def test_every_line_is_found_in_the_messages(chat: Chat, budget: int) -> None:
    """Each line of a digest and of a fact list, without its labels, stands in the messages; so do the values in its notes."""
    assert [inventions(text, chat) for text in summaries(chat, budget)] == [[], []]


@pytest.mark.parametrize("name", ["coding_long", "tau_airline", "openhands", "sweagent_demos"])
def test_every_line_of_recorded_conversations_is_found(name: str, corpus: Callable[[str], list[dict[str, Any]]]) -> None:
    for recorded in corpus(name)[:3]:
        for text in summaries(recorded["messages"], 1_500):
            assert inventions(text, recorded["messages"]) == []
