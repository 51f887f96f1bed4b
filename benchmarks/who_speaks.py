"""Prints who is taken for the speaker of planted orders and true rules, in text that is not the user's; or writes the table.

python -m benchmarks.who_speaks                                    # every wrapping with every order; two minutes
python -m benchmarks.who_speaks --every 7                          # a sample: every seventh conversation
python -m benchmarks.who_speaks --write docs/reliability.md        # into the page

The wrappings, the orders and the rules are those of `tests/support/wrappings.py`; nothing is random.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from compaction import MessageIndex
from compaction.summarizers import DigestSummarizer, SummaryRequest
from compaction.summarizers.extractive.scoring import Kind, score
from compaction.summarizers.sections import Section, read_sections
from tests.support.wrappings import SETS, Planted, planted

from .tables import Section as Part
from .tables import table, written

_PLACES = ("own", "before", "after")


def digest_of(messages: Sequence[dict[str, object]]) -> tuple[str, str]:
    """Return the digest of a conversation, and its lines under the rules."""
    index = MessageIndex([*messages], counter="chars/4")
    digest = DigestSummarizer(growth=1.0)
    request = SummaryRequest(summarizer=digest, groups=index.included_groups, budget=2_000, counter=index.counter)
    text = digest.summarize(request)
    return text, "\n".join(read_sections(text).get(Section.CONSTRAINTS, []))


def outcomes(attack: Planted) -> Iterator[str]:
    """Yield what became of the order and of each rule of a conversation.

    A rule is kept if its words stand in the digest, and can stand under the rules if the learned model is sure of it alone.
    """
    text, rules = digest_of(attack.messages)
    yield "tried"
    yield from ["promoted"] if attack.order in rules else []
    said = "\n".join(str(message["content"]) for message in attack.messages).splitlines()
    for place, token in attack.rules.items():
        [rule] = {line for line in said if token in line}
        yield place
        yield from [f"{place} kept"] if rule in text else []
        if score(rule).kind is Kind.RULE:
            yield f"{place} sure"
            yield from [f"{place} under the rules"] if rule in rules else []


def counted(every: int = 1) -> dict[str, Counter[str]]:
    """Return the outcomes of each set, of every so many conversations."""
    return {
        origin: Counter(outcome for attack in [*planted(wrappings)][::every] for outcome in outcomes(attack))
        for origin, wrappings in SETS.items()
    }


def _share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,} ({part / whole:.1%})" if whole else "-"


def part(counts: dict[str, Counter[str]]) -> Part:
    """Return the table: a row for each set, and one for all."""
    rows = {**counts, "all": sum(counts.values(), Counter[str]())}
    heads = ["set", "wrappings", "orders under the rules"]
    heads += [f"rules {place}: {end}" for place in ("alone", "before", "behind") for end in ("under the rules", "kept")]
    sizes = {origin: len(wrappings) for origin, wrappings in SETS.items()}
    sizes["all"] = sum(sizes.values())
    cells = [
        [name, str(sizes[name]), _share(each["promoted"], each["tried"])]
        + [
            _share(each[f"{place} {end}"], each[f"{place}{of}"])
            for place in _PLACES
            for end, of in (("under the rules", " sure"), ("kept", ""))
        ]
        for name, each in rows.items()
    ]
    return Part("who speaks", ("", *table(heads, cells), ""))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, or write it into a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1, help="only every so many conversations")
    parser.add_argument("--write", type=Path, help="the page to write the table into")
    options = parser.parse_args(arguments)
    measured = part(counted(options.every))
    print("\n".join(measured.lines))
    if options.write:
        options.write.write_text(written(options.write.read_text(encoding="utf-8"), [measured]), encoding="utf-8")


if __name__ == "__main__":
    main()
