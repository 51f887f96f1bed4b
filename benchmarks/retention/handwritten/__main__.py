"""Prints what each preset keeps of the conversations that were written by hand.

Some of them, and the page:

    python -m benchmarks.retention.handwritten --quick
    python -m benchmarks.retention.handwritten --date 2026-11-29 --write docs/handwritten.md
    python -m benchmarks.retention.handwritten --only doctor_history --subjects adaptive --losses
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from compaction.tokens import counter

from .conversations import Conversation, conversation, names
from .judging import BEFORE, LINES, NEAR, SHORT, marked_tokens
from .report import conversation_table, kind_table, language_table, losses, speaker_table, totals_table
from .scores import Outcome, outcomes, sizes
from .subjects import SUBJECTS

HEAD: Final = """\
# What stays of conversations written by hand

Made by `python -m benchmarks.retention.handwritten{options}`{date}. Tokens are counted with `{counter}`.

{conversations} conversations in {languages} languages were written by hand, without sight of the code that is measured: coding
with corrections, trips of several people, contracts, lessons, customer service, fiction, dictation, tables, pasted mails, rules
that are revoked. They are small text files in `benchmarks/retention/handwritten/conversations`; `conversations.py` describes
their format. A conversation has {least} to {most} messages and {small:,} to {large:,} tokens.

{items:,} items are marked, each with the words that count. A session gets the conversation message by message, in a window of
{windows} of the conversation's tokens. There is a request before each answer of the assistant, and one at the end. An item must
be in each request from its message on, until it is revoked, replaced or done.

- *in every request*: items that are in all requests that must have them, in % rounded down. *at the end*: the same of the last
  request. *all kept*: conversations that keep every item in every request.
- *revoked*: items that the last request has without what revoked or replaced them.
- *of others*: words of others, such as orders in a pasted mail, that can be mistaken for the user's own: the {near} characters
  before them neither name their source nor say that they were pasted or printed.
- *sent*: tokens of all requests, in % of what the whole conversation would have taken. *over*: requests over the window.
  *ms*: CPU time of a request.

`token_budget` compacts the whole list at four requests of each. `truncation` drops the oldest groups. `people` sends only the
system message and what people said, newest first, to show how much room these words take. The lines with items would take
{needed} % of the smaller window.
"""
HOW: Final = """\
## How words are found

An item is there if one line of a message has all its words, or all words of an alternative. Capitals, quotation marks, white
space and separators of thousands do not count. Other words with the same meaning do not count either.

An answer, such as "the second one", is there only if words of what it answers are at most {lines} lines away, or in the
{before} messages before it. An answer of up to {short} characters counts only where a line begins with it. Where it matters who
said something, the name must be in the line, or in the message's field `name`.
"""
PARTS: Final = """\
## By kind

Here and below: items in every request in %, with the smaller window, and in brackets with the larger one.

{kinds}

## By who said it

{speakers}

## By language

{by_language}

## By conversation

Worst first, by the presets. `python -m benchmarks.retention.handwritten --only NAME --losses` lists what is missing.

{by_conversation}
"""
QUICK: Final = ("doctor_history", "invoice_rounding", "kitchen_numbers", "launch_meeting_ko", "moving_to_gijon")
WINDOWS: Final = (0.2, 0.4)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and, if asked to, write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few conversations")
    parser.add_argument("--only", nargs="+", choices=names(), default=None, metavar="NAME", help="these conversations")
    parser.add_argument("--subjects", nargs="+", choices=SUBJECTS, default=list(SUBJECTS), metavar="NAME")
    parser.add_argument("--windows", nargs="+", type=float, default=WINDOWS, metavar="SHARE", help="shares of the conversation")
    parser.add_argument("--counter", default="chars/4", help="how tokens are counted")
    parser.add_argument("--losses", action="store_true", help="list what is missing")
    parser.add_argument("--date", default="", help="the date to write")
    parser.add_argument("--write", type=Path, help="the page to write")
    options = parser.parse_args(arguments)
    chosen = [conversation(name) for name in options.only or (QUICK if options.quick else names())]
    found: list[Outcome] = []
    for said in chosen:
        found += outcomes(
            [said], {name: SUBJECTS[name] for name in options.subjects}, options.windows, counter(options.counter)
        )
        print(f"{said.name}", file=sys.stderr)
    text = page(chosen, found, quick=options.quick, tokens=options.counter, date=options.date)
    print(text)
    if options.losses:
        print("\n".join(losses(found)))
    if options.write:
        options.write.write_text(text, "utf-8")


def page(chosen: Sequence[Conversation], found: Sequence[Outcome], *, quick: bool, tokens: str, date: str) -> str:
    """Return the page."""
    lengths = [len(each.messages) for each in chosen]
    totals = [sizes(each, counter(tokens))[-1] for each in chosen]
    windows = sorted({each.share for each in found})
    head = HEAD.format(
        options=" --quick" if quick else "",
        date=f" on {date}" if date else "",
        counter=tokens,
        conversations=len(chosen),
        languages=len({each.language for each in chosen}),
        least=min(lengths),
        most=max(lengths),
        small=min(totals),
        large=max(totals),
        items=sum(len(each.items) for each in chosen),
        windows=" or ".join(f"{share:.0%}" for share in windows),
        near=NEAR,
        needed=round(100 * sum(map(marked_tokens, chosen)) / (sum(totals) * windows[0])),
    )
    parts = PARTS.format(
        kinds="\n".join(kind_table(found)),
        speakers="\n".join(speaker_table(found)),
        by_language="\n".join(language_table(found)),
        by_conversation="\n".join(conversation_table(found)),
    )
    return (
        "\n\n".join(
            [
                head.strip(),
                "\n".join(totals_table(found)),
                HOW.format(lines=LINES, before=BEFORE, short=SHORT).strip(),
                parts.strip(),
            ]
        )
        + "\n"
    )


if __name__ == "__main__":
    logging.getLogger("compaction").setLevel(logging.ERROR)  # what failed is in the tables
    main()
