"""The rules of the Gemini API, each with a name, and what a repair does about it.

``docs/rules/gemini.md`` shows every rule with an example and its source. What depends on the model, such as whether a list may
end with the model's words, is not a rule here. Calls have to be signed only in a list that holds a signature.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..fixes import answer_call, drop, list_content, move_result, part_at
from ..pairing import NOT_RECORDED, Fields, Finding, Pairing, Path, Slot, shown_path
from ..repairing import Draft
from ..rulebook import Rule, RuleBook
from ..wire import fields_of
from .checks import join_problem, message_problems
from .fields import call_body, content_role, hosted_call, hosted_result, is_signed, name_of, pairing_key, parts_of, result_body

# ------------------------------------------------------------------------ calls and results


def _slots(fields: Fields, body_of: Any, *, model: bool) -> Iterator[Slot]:
    for position, part in enumerate(parts_of(fields) if (content_role(fields) == "model") is model else ()):
        if (body := body_of(part)) is not None:
            yield Slot(("parts", position), pairing_key(body))


def _calls(fields: Fields) -> list[Slot]:
    return list(_slots(fields, call_body, model=True))


def _stub(call: Any, key: str) -> dict[str, Any]:
    body = call_body(call) or {}
    answer = {"name": name_of(body), "response": {"error": NOT_RECORDED}}
    return {"functionResponse": {"id": body["id"], **answer} if body.get("id") else answer}


_PAIRING: Final = Pairing(
    calls=_calls,
    results=lambda fields: _slots(fields, result_body, model=False),
    continues=lambda before, after: bool(_calls(before)) and any(_slots(after, result_body, model=False)),
    only_results=lambda fields: all(result_body(part) is not None for part in parts_of(fields)),
    stub=_stub,
    content="parts",
    counted=True,
    again="result-without-call",
)


# ------------------------------------------------------------------------ the whole list


def _list_problems(contents: Sequence[Fields]) -> Iterator[tuple[int, Finding]]:
    """Yield results of the provider's own tools without a call, and calls that are not signed."""
    signs = any(is_signed(part) for fields in contents for part in parts_of(fields))
    turn = _current_turn(contents) if signs else len(contents)
    hosted: set[str] = set()
    for index, fields in enumerate(contents):
        parts = parts_of(fields) if content_role(fields) == "model" else ()
        for position, part in enumerate(parts):
            if (call := hosted_call(part)) is not None:
                hosted.add(call)
            elif (result := hosted_result(part)) is not None and result not in hosted:
                text = "its call does not stand before it"
                yield index, (f".parts[{position}]", "server-result-without-call", text)
        calls = _calls(fields)
        if index >= turn and calls and not is_signed(parts[int(calls[0].path[1])]):
            text = "the first call of a step in the current turn is signed"
            yield index, (shown_path(calls[0].path), "unsigned-call", text)


def _current_turn(contents: Sequence[Fields]) -> int:
    """Return where the current turn begins: after the last content in which the user says something."""
    for index in range(len(contents) - 1, -1, -1):
        fields = contents[index]
        said = [part for part in parts_of(fields) if result_body(part) is None]
        if content_role(fields) == "user" and said:
            return index + 1
    return 0


# ------------------------------------------------------------------------ fixes


def _rename_role(draft: Draft, index: int, path: Path) -> str | None:
    if draft.value(index, path) != "assistant":
        return None
    draft.write(index, path, "model")
    return "it was renamed"


def _join_words(draft: Draft, index: int, path: Path) -> str | None:
    """Put a call into one content with the words of the model before it."""
    first = index
    while first and content_role(draft.fields(first - 1)) == "model" and not _calls(draft.fields(first - 1)):
        first -= 1
    if first == index:
        return None
    for place in range(index, first, -1):
        joined = [*parts_of(draft.fields(place - 1)), *parts_of(draft.fields(place))]
        draft.write(place - 1, ("parts",), joined)
        draft.remove(place)
    return "it was put into one content with the words before it"


RULES: Final[Mapping[str, Rule]] = {
    "no-messages": Rule("reach", "There is at least one content.", "send at least one content"),
    "unreadable-message": Rule(
        "message", "A content is an object.", "pass dictionaries, or the google-genai package's Content objects"
    ),
    "unknown-role": Rule(
        "message",
        "The role is user or model; none means user. `function` is an older name for the user's responses.",
        "use one of user, model",
        _rename_role,
    ),
    "malformed-content": Rule(
        "message",
        "Parts are a list.",
        "make 'parts' a list",
        list_content(lambda value: isinstance(value, str) or fields_of(value) is not None),
    ),
    "no-parts": Rule(
        "message", "A content has a part.", "give it a part, or leave the content out", drop("the content was removed", up=1)
    ),
    "empty-part": Rule(
        "message",
        "A part holds data; an empty text is none, unless it carries a signature.",
        "leave the part out",
        drop("the part was removed"),
    ),
    "malformed-part": Rule(
        "message",
        "A part is an object that holds one thing, its text a string; a call or response has a name, and arguments or "
        "a response that are an object.",
        "make it an object with one field of data",
        part_at(lambda text: {"text": text}),
    ),
    "part-not-allowed": Rule(
        "message",
        "Calls stand in contents of the model, responses in those of the user.",
        "put calls into the model's contents, responses into the user's",
    ),
    "misplaced-call": Rule(
        "join",
        "A call comes directly after a content of the user or a function response; so it is never first.",
        "put it directly after a content of the user or a function response",
        _join_words,
        6,
    ),
    "call-without-result": Rule(
        "reach",
        "The content directly after calls has as many responses, of the same names.",
        "put its response into the content directly after it, or leave the call out",
        answer_call,
        5,
    ),
    "pending-call": Rule(
        "reach",
        "The same, where the list ends: a response may still come. Not to be sent, but fine to store.",
        "store it as it is; add the response before sending",
    ),
    "result-without-call": Rule(
        "reach",
        "A response answers a call of the content before.",
        "put it into the content directly after the call, or leave it out",
        move_result,
        5,
    ),
    "server-result-without-call": Rule(
        "reach",
        "The result of a tool that the provider runs, or of code it ran, has its call before it.",
        "keep it with the call before it, or leave it out",
    ),
    "unsigned-call": Rule(
        "reach",
        "Where anything in the list is signed, the first call of each content after the user last spoke carries its "
        "`thoughtSignature`.",
        "send the part as the model wrote it, with its 'thoughtSignature'",
    ),
}
"""Every rule: how far it looks, and what to do where it is broken."""

BOOK: Final = RuleBook(
    rules=RULES,
    pairing=_PAIRING,
    message=message_problems,
    shape="a content is an object with parts",
    join=join_problem,
    joins={
        "misplaced-call": (lambda fields: shown_path(_calls(fields)[0].path), "a call follows the user or a function response")
    },
    whole=_list_problems,
)
