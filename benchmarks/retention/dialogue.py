"""Measures how much of what is asked about later one compaction keeps of conversations between people.

    python -m benchmarks.retention.dialogue FOLDER [--half 1]

FOLDER holds copies of public sets, which are not part of this project: ``locomo/*.json`` (LoCoMo's ``data/locomo10.zip``: two
people over months), ``friendsqa/*.json`` (FriendsQA's ``dat``: several speakers, the scenes of an episode together) and
``qmsum/**/*.json`` (QMSum's ``data/ALL/test`` and ``val``: real meetings). Its ``train``, as ``rest/**/*.json``, is only for
``--fit``, and may be missing. Each question names the utterances that hold its answer. The share of their sentences that are
still in the view is averaged over the questions.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from compaction import MessageIndex, last, presets, run_sync
from compaction.strategies import SlidingWindow, Strategy
from compaction.tokens import TokenCounter, counter
from compaction.triggers import tokens_exceed

from .dialogue_fit import fitted

_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+")
_WORD: Final = re.compile(r"\w+")
_LEAST_WORDS: Final = 4  # of a sentence that can hold an answer


@attrs.frozen
class Talk:
    """A conversation between people.

    Args:
        messages: Its utterances: of two people, one is the user and the other the assistant; of more, all are the user.
        evidence: For each question, the sentences that hold its answer.
    """

    messages: list[dict[str, Any]]
    evidence: list[list[str]]


def sentences(text: str) -> list[str]:
    """Return the sentences of an utterance."""
    return _SENTENCE.split(" ".join(text.split()))


def long_enough(texts: Sequence[str]) -> list[str]:
    """Return the sentences of utterances that can hold an answer."""
    return [each for text in texts for each in sentences(text) if len(_WORD.findall(each)) >= _LEAST_WORDS]


def locomo(folder: Path) -> Iterator[Talk]:
    for path in sorted(folder.glob("*.json")):
        given = json.loads(path.read_text())
        turns: dict[str, str] = {}
        messages: list[dict[str, Any]] = []
        for number in range(1, 100):
            for turn in given.get(f"session_{number}", ()):
                turns[turn["dia_id"]] = turn["text"]
                role = "user" if turn["speaker"] == given["speaker_a"] else "assistant"
                messages.append({"role": role, "content": turn["text"]})
        asked = [[turns[each] for each in qa["evidence"] if each in turns] for qa in given["qa"] if qa["category"] != 5]
        yield Talk(messages, [found for each in asked if (found := long_enough(each))])


def friendsqa(folder: Path) -> Iterator[Talk]:
    episodes: dict[str, tuple[list[str], list[list[str]]]] = {}
    for path in sorted(folder.glob("*.json")):
        for scene in json.loads(path.read_text())["data"]:
            texts, evidence = episodes.setdefault(scene["title"].rpartition("_")[0], ([], []))
            for paragraph in scene["paragraphs"]:
                said = {each["uid"]: each for each in paragraph["utterances:"]}
                texts += [f"{', '.join(each['speakers'])}: {each['utterance']}" for each in said.values()]
                for qa in paragraph["qas"]:
                    found = [_answer(said[each["utterance_id"]]["utterance"], each) for each in qa["answers"]]
                    evidence.append(list(dict.fromkeys(filter(None, found))))
    for texts, evidence in episodes.values():
        yield Talk([{"role": "user", "content": text} for text in texts], [each for each in evidence if each])


def _answer(text: str, answer: Mapping[str, Any]) -> str:
    """Return the sentence with the first word of an answer; empty for a speaker's name."""
    end = -1 if answer["is_speaker"] else answer["inner_start"]
    for sentence in sentences(text):
        if 0 <= end < len(sentence.split()):
            return sentence
        end -= len(sentence.split())
    return ""


def qmsum(folder: Path) -> Iterator[Talk]:
    for path in sorted(folder.rglob("*.json")):
        given = json.loads(path.read_text())
        turns = [(each["speaker"], _MARKUP.sub("", each["content"])) for each in given["meeting_transcripts"]]
        evidence: list[list[str]] = []
        for query in given["specific_query_list"]:
            places = {place for start, end in query["relevant_text_span"] for place in range(int(start), int(end) + 1)}
            evidence.append(long_enough([turns[place][1] for place in sorted(places) if place < len(turns)]))
        messages = [{"role": "user", "content": f"{speaker}: {text}"} for speaker, text in turns]
        yield Talk(messages, [each for each in evidence if each])


_MARKUP: Final = re.compile(r"\{\w+\}")
SETS: Final[Mapping[str, Callable[[Path], Iterator[Talk]]]] = {"locomo": locomo, "friendsqa": friendsqa, "qmsum": qmsum}


# ---------------------------------------------------------------- subjects


def rarest(messages: Sequence[Mapping[str, Any]], budget: int, tokens: TokenCounter) -> str:
    """Return the sentences with the most rare words per character, in order: the rule that a digest has to beat."""
    said = [each for message in messages for each in sentences(message["content"])]
    words = [set(_WORD.findall(each.lower())) for each in said]
    frequency = Counter(word for each in words for word in each)
    density = [sum(math.log(len(said) / frequency[word]) for word in sorted(each)) for each in words]
    order = sorted(range(len(said)), key=lambda place: -density[place] / (12 + len(said[place])))
    chosen: list[int] = []
    for place in order:
        budget -= tokens.count_text(said[place]) + 1
        if budget < 0:
            break
        chosen.append(place)
    return "\n".join(said[place] for place in sorted(chosen))


def _view(make: Callable[[int], Strategy]) -> Callable[[Sequence[Mapping[str, Any]], int, TokenCounter], str]:
    def view(messages: Sequence[Mapping[str, Any]], budget: int, tokens: TokenCounter) -> str:
        index = MessageIndex(list(messages), counter=tokens)
        run_sync(index, make(budget))
        return "\n".join(str(each["content"]) for each in index.messages())

    return view


SUBJECTS: Final[Mapping[str, Callable[[Sequence[Mapping[str, Any]], int, TokenCounter], str]]] = {
    "token_budget": _view(presets.token_budget),
    "rarest words": rarest,
    "newest messages": _view(lambda budget: SlidingWindow(trigger=tokens_exceed(budget), keep=last(tokens=budget))),
}


def share(talk: Talk, view: str) -> tuple[float, int]:
    """Return the sum of the shares of the questions' sentences that stand in a view, and the number of questions."""
    shown = " ".join(view.split())
    return sum(sum(each in shown for each in asked) / len(asked) for asked in talk.evidence), len(talk.evidence)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--budget", type=float, default=0.2, help="share of a conversation's tokens")
    parser.add_argument("--half", type=int, choices=(0, 1), help="only every second conversation, from the first or the second")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--fit", action="store_true", help="print the weights that the first half of the sets gives")
    parser.add_argument("--subjects", nargs="+", choices=SUBJECTS, default=list(SUBJECTS))
    options = parser.parse_args(arguments)
    tokens = counter("auto")
    if options.fit:
        halves = {name: [*SETS[name](options.folder / name)][::2] for name in options.sets}
        if "qmsum" in halves:
            halves["qmsum"] += qmsum(options.folder / "rest")
        print(fitted({name: [(each.messages, each.evidence) for each in talks] for name, talks in halves.items()}, tokens))
        return
    print(f"| set | questions | {' | '.join(options.subjects)} |\n|---|--:|{'--:|' * len(options.subjects)}")
    for name in options.sets:
        talks = [*SETS[name](options.folder / name)]
        talks = talks if options.half is None else talks[options.half :: 2]
        found = dict.fromkeys(options.subjects, 0.0)
        for talk in talks:
            budget = int(MessageIndex(list(talk.messages), counter=tokens).tokens * options.budget)
            for subject in found:
                found[subject] += share(talk, SUBJECTS[subject](talk.messages, budget, tokens))[0]
        questions = sum(len(talk.evidence) for talk in talks)
        print(f"| {name} | {questions:,} | {' | '.join(f'{each / questions:.2f}' for each in found.values())} |", flush=True)


if __name__ == "__main__":
    main()
