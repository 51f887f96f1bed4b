r"""Summarizers without a model: quotations and facts taken from the conversation itself.

The way of the user's words through the files, with an example::

    a message     "Rules:\n- Never touch prod.db.\n\n2026-01-03 10:11:12 ERROR no disk"
    voices        OWN: the first two lines; PROGRAM: the last     (`lines` judges a line alone, `voices` beside its neighbours)
    passages      under "Rules:": "Never touch prod.db."; "2026-01-03 ..."             (`sentences` splits prose further)
    statements    "Never touch prod.db.": its kind, RULE, from `kinds`, which asks the learned `classifier`;
                  what it is about, {never, touch, prod}, from `subjects`
    reading       all that one message holds: its statements, its `facts` (prod.db), its calls and results (`actions`)
    memory        what holds after all messages: the `statement_table`, the table of `facts`, the last outcome of each call
    writer        chooses lines for a `page`, those of the `earlier` summary before new ones; where people `talk`, what is
                  likely to be asked about. `digest` says which kind comes first, and how much room it has
    sections      "## Constraints & Preferences\n- Rules:\n  - Never touch prod.db."

| to change | look in |
|---|---|
| whether a statement counts as the user's | `lines`, if the line alone shows it; `labels`, if a block does; else `voices` |
| whether a quoted line counts as the user's | `own_lines` |
| which heading or label a sentence stands under | `passages` |
| where a sentence ends; which sentence asks | `sentences`; `kinds` |
| which words of a language, and which shapes of programs, are known | ``words.toml``, ``shapes.toml`` |
| what is a word | `sentences`; in what a sentence is about, `subjects`; in what the model reads, `classifier` |
| whether a sentence is a rule | the examples in ``benchmarks/statements``; thresholds in `kinds` |
| which statement replaces which | `statement_table`, and `subjects` for what two have in common |
| what counts as an exact fact, and which is kept | `facts` |
| how a call, an error or a row is shown; what counts as the reason for a denial | `actions`; `statements` |
| what comes first, and how much of it | `digest` |
| how a line is written | `writer`, `page`, `sections` |
| what is read again in a later round | `memory`, `earlier` |

Beside every summary, whoever wrote it, stands the `excerpt` of what the user said, written and read by `excerpt_text`;
`own_lines` shortens a message for it, and `questions` finds what a short answer answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import export_lazily

if TYPE_CHECKING:
    from .actions import errors_within as errors_within
    from .digest import DigestSummarizer, FactSummarizer
    from .digest import answer_offline as answer_offline
    from .digest import excerpt_options as excerpt_options
    from .excerpt import excerpt as excerpt
    from .excerpt import task_of as task_of
    from .excerpt_text import quoted_words as quoted_words
    from .excerpt_text import split_excerpt as split_excerpt
    from .excerpt_text import without_excerpts as without_excerpts
    from .facts import facts_in as facts_in
    from .own_lines import shortened as shortened
    from .page import listed as listed
    from .questions import asked_in as asked_in
    from .questions import is_short_answer as is_short_answer
    from .questions import lists_named as lists_named
    from .reading import shows_work as shows_work
    from .sentences import LONGEST_SENTENCE as LONGEST_SENTENCE
    from .sentences import one_line as one_line
    from .statements import DENIAL as DENIAL
    from .statements import denial_in as denial_in

__all__ = ["DigestSummarizer", "FactSummarizer"]

export_lazily(
    __name__,
    {
        "actions": "errors_within",
        "digest": "DigestSummarizer FactSummarizer answer_offline excerpt_options",
        "facts": "facts_in",
        "page": "listed",
        "excerpt": "excerpt task_of",
        "excerpt_text": "quoted_words split_excerpt without_excerpts",
        "own_lines": "shortened",
        "questions": "asked_in is_short_answer lists_named",
        "reading": "shows_work",
        "sentences": "LONGEST_SENTENCE one_line",
        "statements": "DENIAL denial_in",
    },
)
