"""Prints what each subject keeps of what a person says.

A sample, and the page:

    python -m benchmarks.retention.words --quick
    python -m benchmarks.retention.words --date 2026-11-29 --write docs/words.md
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from compaction import MessageIndex
from compaction.tokens import counter

from ..recorded import CORPUS
from .forms import LANGUAGES, forms
from .inventions import BUDGETS, Digests, checked, corpus_digests
from .report import condition_table, inventions_table, share_table, talks_table, totals_table
from .scores import Outcome, outcomes
from .sessions import CALLS, WINDOWS, Case, cases
from .subjects import SUBJECTS
from .talks import SHARE, talk_outcomes

HEAD: Final = """\
# What stays of a person's words

Made by `python -m benchmarks.retention.words{options}`{date}, seed {seed}. Tokens are counted with `{counter}`.

## Rules and tasks in sessions

In each of {sessions:,} sessions a person gives a task and six ground rules, in one of {forms} forms and {languages} languages,
in the first, second or tenth message, half of them between paragraphs about other things. An agent then makes {calls} tool
calls, in most sessions with more tasks in between. All conversations exceed their window. The wordings in
`benchmarks/retention/words` were written without sight of the code that is measured, and are frozen.

- *rules*, *tasks*: the share that is whole in a request, in % rounded down: of each session the request with the fewest, and
  then, *at the end*, its last request. *all kept*: sessions that keep every rule and task in every request.
- *cuts*: runs that removed groups; *without*: those without a summary; *refused*: those whose summary was refused or failed.
- *lost*: messages of the user that were neither sent nor replaced by a summary that was sent.
- *over*: requests over the window; *ms*: CPU time of a request.

`gateway` is what `compaction serve` forwards by default. `token_budget` compacts the whole list at four requests of each.
`truncation` drops the oldest groups.
"""
QUICK: Final = ("dashes", "tags", "paragraph", "agents_md", "after_trace", "middle")


TALKS: Final = """\
## Conversations between people

{talks} conversations of each kind, of about {tokens:,} tokens, generated from the texts in `talks/`, are brought down to
{share:.0%} of their tokens. Each has questions and the sentences that answer them. In %: sentences that are sent word for word,
and in brackets those of which all longer words and numbers are in one message. `rare sentences` sends the sentences with the
most rare words for their length, and the last message.
"""
INVENTIONS: Final = """\
## What digests invent

Each line of a digest must be in what it was made from, except for labels, headings, message numbers and marks of what was left
out; `inventions.py` has the rules. A note that a value changed must be about one thing. Recorded conversations were brought
down to {budgets} of their tokens by `token_budget`; the conversations between people are those above.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and, if asked to, write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few forms, languages and calls")
    parser.add_argument("--forms", nargs="+", choices=forms(), default=None, metavar="FORM")
    parser.add_argument("--languages", nargs="+", choices=LANGUAGES, default=None, metavar="CODE")
    parser.add_argument("--calls", nargs="+", type=int, default=None, help="numbers of tool calls")
    parser.add_argument("--windows", nargs="+", type=int, default=WINDOWS, metavar="TOKENS")
    parser.add_argument("--subjects", nargs="+", choices=SUBJECTS, default=list(SUBJECTS), metavar="NAME")
    parser.add_argument("--repeats", type=int, default=1, help="sessions of each form in each language")
    parser.add_argument("--talks", type=int, default=None, help="conversations between people, of each kind")
    parser.add_argument("--recorded", type=int, default=None, help="recorded conversations of each file, for inventions")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--counter", default="chars/4", help="how tokens are counted")
    parser.add_argument("--date", default="", help="the date to write")
    parser.add_argument("--write", type=Path, help="the page to write")
    options = parser.parse_args(arguments)
    chosen = list(
        cases(
            options.seed,
            options.repeats,
            of_forms=options.forms or (QUICK if options.quick else forms()),
            languages=options.languages or (LANGUAGES[::4] if options.quick else LANGUAGES),
            calls=options.calls or (CALLS[:2] if options.quick else CALLS),
            windows=options.windows,
        )
    )
    head = HEAD.format(
        options=" --quick" if options.quick else "",
        date=f" on {options.date}" if options.date else "",
        seed=options.seed,
        counter=options.counter,
        sessions=len(chosen),
        forms=len({each.form for each in chosen}),
        languages=len({each.code for each in chosen}),
        calls=_listed(sorted({each.calls for each in chosen})),
    )
    talks = (1 if options.quick else 10) if options.talks is None else options.talks
    recorded = (0 if options.quick else 20) if options.recorded is None else options.recorded
    parts = [
        head,
        *sessions_part(chosen, options.subjects, options.counter, options.seed),
        *talks_part(talks, recorded, options.counter, options.seed),
    ]
    text = "\n\n".join(part.strip() for part in parts) + "\n"
    print(text)
    if options.write:
        options.write.write_text(text, "utf-8")


def sessions_part(chosen: Sequence[Case], subjects: Sequence[str], tokens: str, seed: int) -> list[str]:
    """Return the tables of the sessions."""
    found: list[Outcome] = []
    for each in outcomes(chosen, {name: SUBJECTS[name] for name in subjects}, counter(tokens), seed):
        found.append(each)
        if len(found) % (20 * len(subjects)) == 0:
            print(f"{len(found) // len(subjects):,} of {len(chosen):,} sessions", file=sys.stderr)
    return [
        "\n".join(totals_table(found)),
        "### By condition\n\nRules, and in brackets tasks, in %.\n\n" + "\n".join(condition_table(found)),
        "### By form\n\nRules in %, worst first.\n\n" + "\n".join(share_table("form", found, lambda each: each.case.form)),
        "### By language\n\nRules in %, worst first.\n\n"
        + "\n".join(share_table("language", found, lambda each: each.case.code)),
    ]


def talks_part(talks: int, recorded: int, tokens: str, seed: int) -> list[str]:
    """Return the tables of the conversations between people, and of inventions."""
    found, counted = list(talk_outcomes(talks, seed, counter(tokens))), dict[str, Digests]()
    for each in found:
        name = f"{each.kind}, {each.subject}"
        counted[name] = counted.get(name, Digests()) + checked(each.view, each.talk.messages)
    if recorded and not CORPUS.is_dir():
        print(f"no recorded conversations: {CORPUS} is absent\n")
    elif recorded:
        counted |= corpus_digests(CORPUS, recorded, seed, counter(tokens))
    sizes = [MessageIndex(list(each.talk.messages), counter=tokens).tokens for each in found]
    average = round(sum(sizes) / max(1, len(sizes)), -2)
    return [
        TALKS.format(talks=talks, tokens=int(average), share=SHARE) + "\n" + "\n".join(talks_table(found)),
        INVENTIONS.format(budgets=_listed([f"{share:.0%}" for share in BUDGETS])) + "\n" + "\n".join(inventions_table(counted)),
    ]


def _listed(numbers: Sequence[object]) -> str:
    """Return numbers in words: ``20, 70 or 300``."""
    *first, last = map(str, numbers)
    return f"{', '.join(first)} or {last}" if first else last


if __name__ == "__main__":
    logging.getLogger("compaction").setLevel(logging.ERROR)  # what failed is in the tables
    main()
