"""Summarizers without a model: quotations and facts taken from the conversation itself.

The way of a sentence:

1. `reading` reads its message, once: `speech` tells who speaks, `sentences` splits the words, and `scoring` asks the learned
   `classifier` for the kind of each sentence, which becomes one of the `statements`. `facts` and `actions` are the rest.
2. `memory` keeps what holds after all messages: `said` has the statements, `fact_table` the facts. `rounds` keeps the memory
   itself for the next summary.
3. `digest` has `writer` fill a `page` from the memory, the `earlier` summary and, where people talk, the sentences that `talk`
   chooses; `sections` writes the text.

The `excerpt` of the user's words stands beside every summary, whoever wrote it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import export_lazily

if TYPE_CHECKING:
    from .digest import DigestSummarizer, FactSummarizer
    from .digest import message_numbers as message_numbers
    from .digest import quoted_tokens as quoted_tokens
    from .excerpt import excerpt as excerpt
    from .excerpt import is_short_answer as is_short_answer
    from .excerpt import shortened as shortened
    from .excerpt import split_excerpt as split_excerpt
    from .excerpt import task_of as task_of
    from .facts import facts_in as facts_in
    from .page import listed as listed

__all__ = ["DigestSummarizer", "FactSummarizer"]

export_lazily(
    __name__,
    {
        "digest": "DigestSummarizer FactSummarizer message_numbers quoted_tokens",
        "facts": "facts_in",
        "page": "listed",
        "excerpt": "excerpt is_short_answer shortened split_excerpt task_of",
    },
)
