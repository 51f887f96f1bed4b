"""Rules that several wire formats share, worded with each format's own terms."""

from __future__ import annotations

from collections.abc import Mapping

from .rulebook import Rule


def common_rules(*, objects: str, message: str = "message", result: str = "result", result_id: str = "") -> Mapping[str, Rule]:
    """Return the shared rules by name.

    Args:
        objects: The Python objects that the format reads, such as ``"dictionaries"``.
        message: The format's word for a message.
        result: The format's word for the result of a call.
        result_id: The field in which a result names its call.
    """
    article = "An" if message[0] in "aeiou" else "A"
    return {
        "no-messages": Rule("reach", f"A conversation has at least one {message}.", f"send at least one {message}"),
        "unreadable-message": Rule("message", f"{article} {message} is an object.", f"pass {objects}"),
        "empty-text": Rule("message", "A text block contains more than blanks.", "leave the block out", "block"),
        "call-without-id": Rule("message", "A call has an id.", f"give the call an id, and its {result} the same id", "id"),
        "result-without-id": Rule(
            "message",
            f"{'An' if result[0] in 'aeiou' else 'A'} {result} names the call that it answers.",
            f"set '{result_id}' to the id of the call it answers",
        ),
        "duplicate-result": Rule("reach", f"A call has one {result}.", f"keep one {result} for each call", "pair"),
        "pending-call": Rule(
            "reach",
            f"A call at the end of the list has its {result}. Without it, the list can be stored but not sent.",
            f"store the list unchanged; add the {result} before sending it",
        ),
    }
