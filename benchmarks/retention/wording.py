"""The wordings of planted items: read from TOML, checked, and filled with values.

    python -m benchmarks.retention.wording FILE...      # says what is wrong in files of wordings

A text holds slots, such as ``{port}``, and marks: ``«...»`` around the words by which an item is found, ``‹...›`` around those
without which it is not understood. ``|`` separates alternatives, of which the text says the first.
"""

from __future__ import annotations

import random
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from .matching import Group, Passage, normalised

LANGUAGES: Final = ("en", "de", "ko", "zh")
CHANGED: Final = {"changed_once": 2, "changed_twice": 3, "changed_back": 3}
PAIRS: Final = ("error", "id")
ITEMS: Final = ("rule", "prohibition", "preference", "fact", "value", *CHANGED, "decision", "task", *PAIRS)
DISTRACTORS: Final = ("chatter", "quoted_rule", "retrieved", "hypothetical", "pasted")
FOLDER: Final = Path(__file__).parent / "wordings"
MINIMUM: Final = {**dict.fromkeys(ITEMS, 12), **dict.fromkeys(DISTRACTORS, 8)}

_SLOT: Final = re.compile(r"\{([a-z_]+)(?::([2-9]))?\}")
_MARK: Final = re.compile(r"«([^«»‹›]+)»|‹([^«»‹›]+)›")
_HEADER: Final = re.compile(
    r"^\s*(?:[-*#]\s|[\w ]{1,24}[:：]\s)|\b(?:rule|note|preference|decision|todo|important|reminder|remember)s?\s*:"
    r"|\b(?:merke|wichtig|regel|hinweis|notiz|entscheidung|aufgabe)\s*:|\bremember (?:that|to|this)|\bmerk dir"
    r"|기억해|(?:규칙|참고|중요)\s*:|记住|(?:规则|注意|重要|决定)[:：]",
    re.IGNORECASE,
)


@attrs.frozen
class Statement:
    """A text with its slots filled, and the words it is judged by.

    Args:
        text: The text without marks.
        core: The words by which it is found.
        meaning: The words without which it is not understood.
        role: Who says it.
    """

    text: str
    core: tuple[Group, ...]
    meaning: tuple[Group, ...]
    role: str = "user"


@attrs.frozen
class Wordings:
    """The wordings of a language.

    Args:
        language: Its code.
        pools: The words that slots of its own are filled with.
        kinds: The wordings of each kind, each as its texts.
    """

    language: str
    pools: Mapping[str, Sequence[str]]
    kinds: Mapping[str, Sequence[tuple[str, ...]]]


def _built_in(rng: random.Random) -> dict[str, str]:
    """Return a value for each built-in slot."""
    return {
        "amount": str(rng.randrange(1_001, 99_999)),
        "count": str(rng.randrange(13, 998)),
        "percent": f"{rng.randrange(1, 98)}.{rng.randrange(1, 10)}",
        "port": str(rng.randrange(1_025, 65_000)),
        "version": f"{rng.randrange(1, 12)}.{rng.randrange(1, 40)}.{rng.randrange(1, 10)}",
        "date": f"2026-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}",
        "time": f"{rng.randrange(6, 23):02}:{rng.randrange(1, 60):02}",
        "hex": f"{rng.randrange(16**7, 16**8):08x}",
        "code": f"{rng.choice('BCDFGHJKLMNPQRSTVWXZ')}{rng.choice('BCDFGHJKLMNPQRSTVWXZ')}-{rng.randrange(10_000, 99_999)}",
    }


BUILT_IN: Final = frozenset(_built_in(random.Random(0)))


def fill(texts: Sequence[str], pools: Mapping[str, Sequence[str]], rng: random.Random) -> tuple[Statement, ...]:
    """Return the texts of one wording as statements; the same slot has the same value in each.

    >>> [each.text for each in fill(["The «{pet}» of ‹Ines›."], {"pet": ["cat"]}, random.Random(0))]
    ['The cat of Ines.']
    """
    drawn: dict[str, str] = {}

    def value(found: re.Match[str]) -> str:
        name, number = found[1], found[0]
        while number not in drawn:
            new = rng.choice(list(pools[name])) if name in pools else _built_in(rng)[name]
            if len(pools.get(name, ())) == 1 or new not in drawn.values():
                drawn[number] = new
        return drawn[number]

    return tuple(_statement(_SLOT.sub(value, text)) for text in texts)


def _statement(marked: str) -> Statement:
    role, text = ("assistant", marked[len(_SAYS) :]) if marked.startswith(_SAYS) else ("user", marked)
    found = list(_MARK.finditer(text))
    core = tuple(tuple(each[1].split("|")) for each in found if each[1])
    meaning = tuple(tuple(each[2].split("|")) for each in found if each[2])
    return Statement(_MARK.sub(lambda each: (each[1] or each[2]).split("|")[0], text), core, meaning, role)


_SAYS: Final = "assistant> "


def load(folder: str, language: str) -> Wordings:
    """Return the wordings of a language; ``folder`` is ``"dev"`` or ``"judging"``."""
    return read(FOLDER / folder / f"{language}.toml")


def read(path: Path) -> Wordings:
    """Return the wordings of a file."""
    data: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    kinds = {
        kind: [(each,) if isinstance(each, str) else tuple(each) for each in wordings]
        for kind, wordings in data.items()
        if kind != "slots"
    }
    return Wordings(path.stem, data.get("slots", {}), kinds)


def skeleton(texts: Sequence[str]) -> str:
    """Return a wording without what may differ between two that are the same: marks, slots, case, punctuation."""
    bare = " ".join(_SLOT.sub(" ", _statement(text).text) for text in texts)
    return re.sub(r"[\W_\d]+", "", normalised(bare))


def likeness(one: str, other: str) -> float:
    """Return the share of pieces of five characters that two skeletons have in common.

    >>> likeness("theferryleavesatnoon", "theferryleavesatnoon"), likeness("theferry", "oneapple")
    (1.0, 0.0)
    """
    ones, others = ({text[n : n + 5] for n in range(max(1, len(text) - 4))} for text in (one, other))
    return len(ones & others) / len(ones | others)


def problems(wordings: Wordings) -> list[str]:
    """Return what is wrong in the wordings of a language."""
    found = [f"unknown kind {kind!r}" for kind in wordings.kinds if kind not in MINIMUM]
    found += [f"pool {name!r} has a built-in name" for name in wordings.pools if name in BUILT_IN]
    found += [f"pool {name!r} has fewer than 8 entries" for name, pool in wordings.pools.items() if len(set(pool)) < 8]
    for kind, minimum in MINIMUM.items():
        given = wordings.kinds.get(kind, ())
        if len(given) < minimum:
            found.append(f"{kind}: {len(given)} wordings, at least {minimum}")
        found += [f"{kind}[{place}]: {problem}" for place, each in enumerate(given) for problem in _wrong(kind, each, wordings)]
    seen: dict[str, str] = {}
    for kind, given in wordings.kinds.items():
        for place, each in enumerate(given):
            name = f"{kind}[{place}]"
            if (first := seen.setdefault(skeleton(each), name)) != name:
                found.append(f"{name} says the same as {first}")
    return found or [*_found_elsewhere(wordings)]


def _found_elsewhere(wordings: Wordings) -> Iterator[str]:
    """Yield the wordings whose core another wording or the filler says too, so that it could be found without the item."""
    rng = random.Random(0)
    filled = {
        f"{kind}[{place}]": (kind, fill(texts, wordings.pools, rng))
        for kind, given in wordings.kinds.items()
        for place, texts in enumerate(given)
    }
    said = {name: Passage(normalised("\n".join(each.text for each in texts)), 0) for name, (_, texts) in filled.items()}
    filler = tomllib.loads((FOLDER / "filler" / f"{wordings.language}.toml").read_text("utf-8"))
    said |= {f"the filler ({text!r})": Passage(normalised(text), 0) for texts in filler.values() for text in texts}
    for name, (kind, texts) in filled.items():
        cores = [texts[-1].core] if kind in ITEMS else [(group,) for group in texts[-1].core]
        yield from (
            f"{name}: {core} is also in {other}"
            for core in cores
            if not all(re.search(r"\d", word) for group in core for word in group)  # another draw gives other values
            for other, passage in said.items()
            if other != name and passage.has_all(core)
        )


def _wrong(kind: str, texts: tuple[str, ...], wordings: Wordings) -> Iterator[str]:
    wanted = CHANGED.get(kind, 2 if kind in (*PAIRS, "retrieved") else 1)
    if len(texts) != wanted:
        yield f"{len(texts)} texts, not {wanted}"
        return
    unknown = {found[1] for text in texts for found in _SLOT.finditer(text)} - BUILT_IN - set(wordings.pools)
    if unknown:
        yield f"unknown slots {sorted(unknown)}"
        return
    said = fill(texts, wordings.pools, random.Random(0))
    for each in said:
        if re.search("[«»‹›]", each.text):
            yield f"marks that do not close: {each.text!r}"
    yield from _missing(kind, texts, said)
    spoken = {"error": (), "id": texts[:1], "retrieved": ()}.get(kind, texts)
    if kind in ITEMS:
        yield from (f"a header word: {text!r}" for text in spoken if _HEADER.search(text.removeprefix(_SAYS)))


def _missing(kind: str, texts: tuple[str, ...], said: Sequence[Statement]) -> Iterator[str]:
    if kind in CHANGED:
        if not all(each.core for each in said):
            yield "a text without a core"
        if not any(each.meaning for each in said):
            yield "no meaning"
        if kind == "changed_back" and said[0].core != said[2].core:
            yield "the third text does not name the first value"
        if kind != "changed_back" and said[0].core == said[-1].core:
            yield "the last value is the first"
        return
    if not said[-1].core:
        yield "no core"
    needs_meaning = kind in ITEMS or kind == "hypothetical"
    if needs_meaning and not any(each.meaning for each in said):
        yield "no meaning"
    if kind == "id" and not {each[0] for each in _SLOT.finditer(texts[0])} & {each[0] for each in _SLOT.finditer(texts[1])}:
        yield "the question and the row share no slot"
    if kind == "rule" and len(re.findall(r"[.!?。！？]|다\b|요\b", said[0].text)) < 2:
        yield "one sentence only"


def main(paths: Sequence[str]) -> int:
    """Print what is wrong in files; return 1 if anything is."""
    count = 0
    for path in paths:
        for problem in problems(read(Path(path))):
            print(f"{path}: {problem}")
            count += 1
    print(f"{count} problems")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
