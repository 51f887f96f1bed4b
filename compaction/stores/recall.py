"""Three tools with which an agent searches and reads stored messages: plain functions with JSON schemas.

::

    tools = [*my_tools, *tool_schemas()]                                     # offer the tools to the model
    if call.name in TOOLS:                                                   # and answer its calls
        content = handle_tool_call(call.name, call.arguments, store=store, session=session)

The functions raise typed errors. `handle_tool_call` never raises: it returns the error as JSON, so that the model can correct
its call.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, cast
from unicodedata import normalize

import attrs

from ..checks import is_count
from ..errors import InputError
from .base import RANKED, NotStored, Store, StoredRecord, query_words

_WORD: Final = re.compile(r"(?:[^\W_]|[\u0300-\u036f])+")
_ACCENTS: Final = re.compile(r"[\u0300-\u036f]+")
_LINE_CHARS: Final = 240
_LINES_EACH: Final = 3
_EXCERPT_CHARS: Final = 16_000
_PAGE: Final = 64


def compaction_grep(store: Store, session: str, query: str, *, limit: int = 10, context: int = 1) -> dict[str, Any]:
    """Return the stored messages that contain all words of a query, best first by bm25, each with its matching lines.

    Args:
        store: The store.
        session: The session to search.
        query: Words; ``"quoted words"`` must be adjacent. Only whole words match, in upper or lower case.
        limit: Messages to return, 1 to 50.
        context: Lines before and after each matching line, 0 to 5.

    Raises:
        InputError: If an argument is out of range.
        StateError: If the store cannot be read.
    """
    _check("compaction_grep", query=query, limit=limit, context=context)
    found = store.search(session, query, limit=limit)
    terms = [words for term in query_words(query) if (words := [word for word, _ in _words(term)])]
    results: list[dict[str, Any]] = []
    room = _EXCERPT_CHARS
    for hit in found.hits:
        lines = _lines(hit.record.text, terms, context)
        room -= sum(len(line) for line in lines)
        if room < 0:  # never for the first result: the lines of one message take at most half of the room
            break
        results.append({**_brief(hit.record), "score": round(hit.score, 3), "lines": lines})
    answer: dict[str, Any] = {"query": query, "matches": found.matches, "results": results}
    if len(results) < len(found.hits):
        answer["note"] = f"only {len(results)} of {len(found.hits)} results fit; narrow the query"
    if found.capped:
        answer["ranked"] = f"only the newest {RANKED:,} matches were ranked; older ones exist, narrow the query to reach them"
    return answer


def compaction_expand(
    store: Store, session: str, id: str, *, to: str | None = None, offset: int = 0, limit: int = 8_000, form: str = "text"
) -> dict[str, Any]:
    """Return a stored message, all messages that a stub or summary stands for, or a range; one page of characters at a time.

    Cost: O(characters up to the end of the page).

    Args:
        store: The store.
        session: The session of the record.
        id: The id in a stub, in a summary's mark, or from a search.
        to: The last message of a range that starts at ``id``, in the order in which they were stored.
        offset: Characters to skip: 0, or ``next_offset`` of the page before.
        limit: Characters of the page, 1 to 100,000.
        form: ``"text"``, or ``"json"``: one message a line, exactly as it was sent. A single message without searchable text is
            returned as JSON in both.

    Raises:
        InputError: If an argument is out of range.
        StateError: If an id is not stored, or the store cannot be read.
    """
    _check("compaction_expand", id=id, to=to, form=form, offset=offset, limit=limit)
    [record] = store.get(session, [id])
    missing: list[str] = []  # filled while the page reads the records
    records = _range(store, session, record, to) if to is not None else _leaves(store, session, record, missing)
    is_single = to is None and record.kind == "message"
    page, more = _page((_shown(each, form, is_single) for each in records), offset, limit)
    answer: dict[str, Any] = {**_brief(record), "form": form, "offset": offset, "content": page}
    if more:
        answer["next_offset"] = offset + len(page)
    if missing:
        answer["missing"] = missing
    return answer


def _shown(record: StoredRecord, form: str, is_single: bool) -> str:
    """Return a message as a page shows it; in a list of several, a text begins with the message's id and role."""
    if form == "json":
        return record.data
    return (record.text or record.data) if is_single else f"[{record.id} {record.role}]\n{record.text}"


def compaction_describe(store: Store, session: str, *, id: str | None = None) -> dict[str, Any]:
    """Return what was compacted in a session, by which strategy, why, when and how much; or the same for one record.

    Args:
        store: The store.
        session: The session to describe.
        id: One message, stub or summary; ``None`` for the whole session.

    Raises:
        InputError: If the id is not a text.
        StateError: If it is not stored, or the store cannot be read.
    """
    _check("compaction_describe", id=id)
    if id is not None:
        [record] = store.get(session, [id])
        return _about(record)
    described = store.describe(session)
    return {
        "messages": sum(tally.messages for tally in described.tallies),
        "tokens": sum(tally.tokens for tally in described.tallies),
        "chars": sum(tally.chars for tally in described.tallies),
        "compacted": [attrs.asdict(tally) for tally in described.tallies],
        "newest_summaries": [_about(record) for record in described.summaries],
    }


TOOLS: Final[Mapping[str, Callable[..., dict[str, Any]]]] = {
    "compaction_grep": compaction_grep,
    "compaction_expand": compaction_expand,
    "compaction_describe": compaction_describe,
}
"""The tools by their names."""


def handle_tool_call(name: str, arguments: Mapping[str, Any] | str | None, *, store: Store, session: str = "default") -> str:
    """Answer a model's call of a tool with JSON text; if the call fails, with ``{"error": ...}``.

    Args:
        name: The tool.
        arguments: The model's arguments: a mapping, or JSON text.
        store: The store.
        session: The session to read, which the model cannot choose.
    """
    try:
        tool = TOOLS.get(name)
        if tool is None:
            raise InputError(f"unknown tool {name!r}; the tools are {', '.join(TOOLS)}")
        given = _arguments(name, arguments)
        return json.dumps(tool(store, session, **given), ensure_ascii=False).encode().decode()
    except UnicodeEncodeError:
        return json.dumps({"error": f"{name}: an argument contains a lone surrogate; leave it out"})
    except Exception as error:
        return json.dumps({"error": f"{type(error).__name__}: {error}"})


def tool_schemas() -> list[dict[str, Any]]:
    """Return the tools' schemas in the form of OpenAI's ``tools``; a new list each time.

    >>> [schema["function"]["name"] for schema in tool_schemas()]
    ['compaction_grep', 'compaction_expand', 'compaction_describe']
    """
    return [{"type": "function", "function": {"name": name, **copy.deepcopy(schema)}} for name, schema in _SCHEMAS.items()]


def _schema(description: str, required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {"description": description, "parameters": parameters}


def _text(description: str, **rules: Any) -> dict[str, Any]:
    return {"type": "string", **rules, "description": description}


def _count(description: str, least: int, most: int | None = None) -> dict[str, Any]:
    bounds = {"minimum": least} if most is None else {"minimum": least, "maximum": most}
    return {"type": "integer", **bounds, "description": description}


_SCHEMAS: Final[Mapping[str, dict[str, Any]]] = {
    "compaction_grep": _schema(
        "Search the earlier messages of this conversation that are no longer shown. Returns the best matches"
        " with their ids and matching lines; compaction_expand returns a whole message.",
        ["query"],
        query=_text('Words that must all occur; "quoted words" must stand together.'),
        limit=_count("How many messages; 10 by default.", 1, 50),
        context=_count("Lines around each match; 1 by default.", 0, 5),
    ),
    "compaction_expand": _schema(
        "Return the full original of a stored message, or of everything that a stub or summary stands for. If"
        " next_offset is in the answer there is more: call again with it as offset.",
        ["id"],
        id=_text("The id in a stub, in a summary's first line, or from compaction_grep."),
        to=_text("The id of the last message of a range that starts at id."),
        offset=_count("Characters to skip; 0 by default.", 0),
        limit=_count("Characters; 8,000 by default.", 1, 100_000),
        form=_text("text (default), or json: exactly as it was sent.", enum=["text", "json"]),
    ),
    "compaction_describe": _schema(
        "Say what of this conversation was compacted, by what, why, when and how large it is.",
        [],
        id=_text("One message, stub or summary; leave it out for everything."),
    ),
}
"""The description and the parameters of each tool: for the model, and to check arguments by."""


def _arguments(name: str, arguments: object) -> dict[str, Any]:
    """Return the arguments of a model's call; the function itself checks their values."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError) as error:
            raise InputError(f"{name}: the arguments are not JSON ({error})") from error
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, Mapping):
        raise InputError(f"{name}: the arguments must be an object (got {type(arguments).__name__})")
    given = cast("dict[str, Any]", {**arguments})
    schema: dict[str, Any] = _SCHEMAS[name]["parameters"]
    unknown = [key for key in given if key not in schema["properties"]]
    missing = [key for key in schema["required"] if key not in given]
    if unknown or missing:
        wrong = {"unknown": unknown, "missing": missing}
        problems = "; ".join([f"{word}: {', '.join(keys)}" for word, keys in wrong.items() if keys])
        raise InputError(f"{name}: {problems}; its arguments are {', '.join(schema['properties'])}")
    return {key: value for key, value in given.items() if value is not None or key in schema["required"]}


def _check(name: str, **given: object) -> None:
    """Check the arguments of a tool by its schema; an optional text may be ``None``."""
    schema: dict[str, Any] = _SCHEMAS[name]["parameters"]
    for key, value in given.items():
        rule: dict[str, Any] = schema["properties"][key]
        if rule["type"] == "integer":
            least, most = rule["minimum"], rule.get("maximum", 1 << 53)
            if not is_count(value, least) or is_count(value, most + 1):
                raise InputError(f"{key}={value!r}: must be a whole number from {least} to {most:,}")
        elif value is None and key not in schema["required"]:
            continue
        elif not isinstance(value, str) or not value.strip():
            raise InputError(f"{key}={value!r}: must be a text that is not blank ({rule['description']})")
        elif value not in rule.get("enum", [value]):
            raise InputError(f"{key}={value!r}: must be {' or '.join(rule['enum'])}")


def _brief(record: StoredRecord) -> dict[str, Any]:
    return {"id": record.id, "kind": record.kind, "role": record.role, "position": record.position}


def _about(record: StoredRecord) -> dict[str, Any]:
    """Return the facts about a record, without its content."""
    about = {**_brief(record), "by": record.by, "reason": record.reason, "at": record.at, "tokens": record.tokens}
    if record.kind == "message":
        return {**about, "chars": len(record.data)}
    return {**about, "stands_for": len(record.children), "first": record.children[:1], "last": record.children[-1:]}


def _lines(text: str, terms: list[list[str]], context: int) -> list[str]:
    """Return the first lines that match a term, with their neighbours and numbers; long lines are cut around the match."""
    lines = text.split("\n")
    found = ((place, start) for place, line in enumerate(lines) if (start := _start(line, terms)) is not None)
    starts = dict(islice(found, _LINES_EACH)) or {0: 0}
    shown = sorted({near for place in starts for near in range(place - context, place + context + 1)})
    return [f"{place + 1}: {_cut(lines[place], starts.get(place, 0))}" for place in shown if 0 <= place < len(lines)]


def _start(line: str, terms: list[list[str]]) -> int | None:
    """Return where the first term in a line begins; ``None`` if it has none. The words of a term are adjacent.

    >>> _start("steady, instead", [["tea"]]), _start("a red, green Café", [["cafe"], ["red", "green"]])
    (None, 2)
    """
    folded = _folded(line)
    likely = [term for term in terms if term[0] in folded]
    words = _words(line) if likely else []
    for place, (_, start) in enumerate(words):
        if any([word for word, _ in words[place : place + len(term)]] == term for term in likely):
            return start
    return None


def _words(text: str) -> list[tuple[str, int]]:
    """Return the words of a text as SQLite's search compares them, and where each begins."""
    return [(_folded(found.group()), found.start()) for found in _WORD.finditer(text)]


def _folded(text: str) -> str:
    """Return a text in lower case without accents."""
    return text.lower() if text.isascii() else _ACCENTS.sub("", normalize("NFD", text)).casefold()


def _cut(line: str, place: int) -> str:
    """Return a line, cut around a place if it is long."""
    if len(line) <= _LINE_CHARS:
        return line
    start = max(0, place - _LINE_CHARS // 4)
    end = start + _LINE_CHARS
    return f"{'...' if start else ''}{line[start:end]}{'...' if end < len(line) else ''}"


def _range(store: Store, session: str, first: StoredRecord, to: str) -> Iterator[StoredRecord]:
    """Yield the messages from one to another, read a page at a time."""
    [last] = store.get(session, [to])
    if last.position < first.position:
        raise InputError(f"to={to!r}: must be a message stored after {first.id}")
    position = first.position
    while page := store.range(session, position, _PAGE):
        yield from (record for record in page if record.position <= last.position)
        position = page[-1].position + 1
        if position > last.position:
            return


def _leaves(store: Store, session: str, record: StoredRecord, missing: list[str]) -> Iterator[StoredRecord]:
    """Yield the messages that a record stands for, in order; ids that are not stored are added to ``missing``."""
    seen: set[str] = set()
    waiting = [iter([record])]
    while waiting:
        each = next(waiting[-1], None)
        if each is None:
            waiting.pop()
        elif each.kind == "message":
            yield each
        elif each.id not in seen:
            seen.add(each.id)
            waiting.append(_stored(store, session, each.children, missing))


def _stored(store: Store, session: str, ids: Sequence[str], missing: list[str], page: int = _PAGE) -> Iterator[StoredRecord]:
    """Yield the records with these ids, read a page at a time; ids that are not stored are added to ``missing``."""
    for start in range(0, len(ids), page):
        try:
            yield from store.get(session, ids[start : start + page])
        except NotStored:
            if page == 1:
                missing.append(ids[start])
            else:
                yield from _stored(store, session, ids[start : start + page], missing, page=1)


def _page(texts: Iterator[str], offset: int, limit: int) -> tuple[str, bool]:
    """Join texts by line ends, and return the characters from ``offset`` on, and whether there are more."""
    pieces: list[str] = []
    start, end = 0, offset + limit  # of the piece and of the page, in the joined text
    for number, text in enumerate(texts):
        piece = f"\n{text}" if number else text
        pieces.append(piece[max(0, offset - start) : max(0, end - start)])
        start += len(piece)
        if start > end:
            return "".join(pieces), True
    return "".join(pieces), False
