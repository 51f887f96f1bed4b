"""Prints what each subject keeps of planted items.

The wordings for development at a budget of 20 %, and the page:

    python -m benchmarks.retention
    python -m benchmarks.retention --set judging --budget 0.1 0.2 0.3 0.5 0.7 --peers --write docs/retention.md
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from pkgutil import resolve_name
from typing import Final

from compaction import MessageIndex
from compaction.tokens import TokenCounter, counter

from .generator import EACH, generate
from .peers import peers
from .planted import Conversation
from .recorded import CORPUS, plant_into_recorded
from .report import Outcome, kind_table, measured, totals_table
from .subjects import SUBJECTS
from .wording import DISTRACTORS, ITEMS, LANGUAGES

HEAD: Final = """\
# What one compaction keeps

Made by `python -m benchmarks.retention --set {set} --budget {budgets}{options}` on {date}, seed {seed}. Tokens are counted with
`{counter}`.

Items of {kinds} kinds, {each} of each, and distractors of {distractors} kinds are planted at random places into each of
{generated} generated conversations in {languages} and {recorded} recorded ones, of {least:,} to {most:,} tokens.
They are said in everyday words, mostly in the middle of longer messages. Each subject brings a conversation down to the budget
with one call. `benchmarks/retention/wordings` has the rules of judging.

- *survives*: the item's key words are found, in %; of a value that changed, its last value.
- *meaning*: of the items that survive, the share that can be understood: a value has its key, a rule its object, a decision its
  reason. *both*: the share of all items that survive and can be understood.
- *stale*: of the values that changed, the share where the old value is sent without the last one, or both without their order.
- *false rules*: small talk, rules of other people, retrieved and pasted texts that a summary presents as rules of the user;
  *false values*: hypothetical values that it presents without their condition.
- *room used*: tokens sent, in % of the budget; *over*: the share of requests over it.

The oracle knows what was planted, and shows what the budget allows. `digest` and `facts` are one-shot summaries of all but the
newest messages, which have two fifths of the budget; `digest, full` fills all of its room. `user messages` sends the newest of
what the user said, and nothing else.
"""

CHATS: Final = """
## Chats without tools

The same conversations without calls and results (`--chats`), with a budget of {budget:.0%}.

{table}
"""
PEERS: Final = """
## Other packages

The same conversations with a budget of {budget:.0%}. All count a token for four characters. Packages that ask a model for a
summary get our digest in its place; it may have half of the budget. `truncation` is our rule that drops the oldest groups.

{table}
"""
TYPICAL: Final = 0.2


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and, if asked to, write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=("dev", "judging"), default="dev", dest="folder", help="which wordings")
    parser.add_argument("--budget", type=float, nargs="+", default=[0.2], help="shares of a conversation's tokens")
    parser.add_argument("--conversations", type=int, default=20, help="of each language")
    parser.add_argument("--recorded", type=int, default=12, help="recorded conversations with planted items")
    parser.add_argument("--languages", nargs="+", choices=LANGUAGES, default=LANGUAGES)
    parser.add_argument("--subjects", nargs="+", default=list(SUBJECTS), help=f"of {', '.join(SUBJECTS)}; or module:function")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--counter", default="auto", help="how tokens are counted")
    parser.add_argument("--chats", action="store_true", help="leave out calls and their results")
    parser.add_argument("--peers", action="store_true", help="also other packages (make bench-retention)")
    parser.add_argument("--write", type=Path, help="the page to write")
    options = parser.parse_args(arguments)
    conversations = _conversations(options)
    subjects = {name: SUBJECTS[name] if name in SUBJECTS else resolve_name(name) for name in options.subjects}
    tokens = counter(options.counter)
    sizes = [MessageIndex(list(each.messages), counter=tokens).tokens for each in conversations]
    generated = sum(each.source == "generated" for each in conversations)
    head = HEAD.format(
        set=options.folder,
        budgets=" ".join(map(str, options.budget)),
        options=f"{' --chats' if options.chats else ''}{' --peers' if options.peers else ''}",
        date=datetime.now(UTC).date().isoformat(),
        seed=options.seed,
        counter=tokens.name,
        kinds=len(ITEMS),
        each=EACH,
        distractors=len(DISTRACTORS),
        languages=", ".join(options.languages),
        generated=generated,
        recorded=len(conversations) - generated,
        least=min(sizes),
        most=max(sizes),
    )
    outcomes = measured(conversations, subjects, options.budget, tokens)
    text = page(head, outcomes)
    if options.peers:
        budget = outcomes[0].budget if len(options.budget) == 1 else TYPICAL
        text += "" if options.chats else as_chats(conversations, budget, tokens)
        text += beside_peers(conversations, budget)
    print(text)
    if options.write:
        options.write.write_text(text, "utf-8")


def _conversations(options: argparse.Namespace) -> list[Conversation]:
    found: list[Conversation] = []
    for language in options.languages:
        found += generate(options.folder, language, options.conversations, options.seed)
    found += recorded(options.folder, options.recorded, options.seed)
    return [each.without_calls() for each in found] if options.chats else found


def as_chats(conversations: Sequence[Conversation], budget: float, tokens: TokenCounter) -> str:
    """Return the section about the same conversations without calls."""
    subjects = {name: SUBJECTS[name] for name in ("token_budget", "digest", "user messages", "truncation")}
    outcomes = measured([each.without_calls() for each in conversations], subjects, [budget], tokens)
    return CHATS.format(budget=budget, table="\n".join(totals_table(outcomes)))


def beside_peers(conversations: Sequence[Conversation], budget: float) -> str:
    """Return the section about other packages."""
    ours = {name: SUBJECTS[name] for name in ("token_budget", "digest, full", "truncation")}
    outcomes = measured(conversations, {**ours, **peers()}, [budget], counter("chars/4"))
    return PEERS.format(budget=budget, table="\n".join(totals_table(outcomes)))


def recorded(folder: str, conversations: int, seed: int) -> list[Conversation]:
    """Return recorded conversations with planted items; none, and one line that says why, where the recordings are absent."""
    if not conversations:
        return []
    if not CORPUS.is_dir():
        print(f"no recorded conversations: {CORPUS} is absent\n")
        return []
    return list(plant_into_recorded(folder, conversations, seed))


def page(head: str, outcomes: Sequence[Outcome]) -> str:
    """Return the page: the totals, and by kind and language at the budget next to 20 %."""
    budget = min({each.budget for each in outcomes}, key=lambda share: abs(share - TYPICAL))
    parts = [head, "## Totals", "\n".join(totals_table(outcomes))]
    parts.append(
        f"## By kind and language, at {budget:.0%}\n\nIn % of all: survives, and in brackets survives with its meaning;"
        " in italics, distractors that are presented as what they are not."
    )
    for subject in dict.fromkeys(each.subject for each in outcomes):
        chosen = [each for each in outcomes if (each.subject, each.budget) == (subject, budget)]
        parts.append(f"### {subject}\n\n" + "\n".join(kind_table(chosen)))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
