r"""Redaction of secrets in texts that outlive a conversation: prompts and summaries, digests, stores, records and logs.

A summary is sent again with every request, stored, and shown to other models, so secrets must not get into it. `redact`
recognizes a secret by its form, by its checksum, by the name that it belongs to, or by the head of its column. The forms and
the names are the table ``secrets.toml``. It is a safety net, not a guarantee: a secret described in other words is not found.
``secrets.py`` has the order of the searches, ``searches.py`` what they share, each other module some of their kinds.

Over-redaction damages a summary. So randomness alone never counts as a secret, and the weaker the sign that a value belongs to
a name, the more it must look like a secret. ``\n`` written as two characters, as in the JSON of a tool call, ends a word like
the character itself. Every expression is linear: repeats are bounded, or cannot start again within what they match.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import export_lazily

if TYPE_CHECKING:
    from .searches import REDACTED as REDACTED
    from .secrets import redact

__all__ = ["redact"]

export_lazily(__name__, {"secrets": "redact", "searches": "REDACTED"})
