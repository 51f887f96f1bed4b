"""The report of a replay: one HTML file, readable offline, that shows figures, requests and missing facts.

Charts are drawn as SVG by the page's own scripts: a chart library would add megabytes to each file to draw a few simple charts.
Transcripts are untrusted: the scripts insert them as text, never as markup, and the page's content security policy forbids
them to load or send anything.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from ...files import write_text
from ..recommendation import MINIMUM_RECALL
from ..result import ReplayResult
from .data import conversation_data, overview_data

__all__ = ["CALLS_PER_MONTH", "report_html", "write_report"]

_SCRIPTS: Final = ("draw.js", "advice.js", "frontier.js", "charts.js", "sizes.js", "fates.js", "transcript.js", "main.js")


CALLS_PER_MONTH: Final = 10_000
"""Calls a month for which a report states the money saved, until its reader enters another number."""


def write_report(
    result: ReplayResult, path: Path, *, minimum_recall: float = MINIMUM_RECALL, calls_per_month: int = CALLS_PER_MONTH
) -> None:
    """Write the report of a replay to a file, whole or not at all.

    Args:
        result: The result of the replay.
        path: The file; an existing file is replaced.
        minimum_recall: Share of the needed facts that a recommended strategy keeps, from 0 to 1.
        calls_per_month: Your model calls a month, for the money saved.

    Raises:
        UnwritableFile: If the file cannot be written.
    """
    with write_text(path, compress=False) as write:
        for piece in _pieces(result, minimum_recall, calls_per_month):
            write(piece)


def report_html(result: ReplayResult, *, minimum_recall: float = MINIMUM_RECALL, calls_per_month: int = CALLS_PER_MONTH) -> str:
    """Return the report as HTML, with the options of `write_report`; O(characters of the conversations)."""
    return "".join(_pieces(result, minimum_recall, calls_per_month))


def _pieces(result: ReplayResult, minimum_recall: float, calls_per_month: int) -> Iterator[str]:
    """Yield the page in order; each conversation is compressed, and decompressed in the browser when it is opened."""
    head, _, tail = _asset("page.html").partition("<!-- data -->")
    overview = overview_data(result, minimum_recall, calls_per_month)
    advice = overview["recommended"]
    sentences = [text for text in (advice["headline"], advice["rule"], *advice["reasons"]) if text]
    plain = "".join(f"<p>{html.escape(text)}</p>\n" for text in sentences).encode(errors="replace").decode()
    yield head.replace("/* style */", _asset("style.css")).replace("<!-- recommendation -->", plain)
    yield f'<script type="application/json" id="overview">{_json(overview)}</script>\n'
    for place, conversation in enumerate(result.conversations):
        packed = gzip.compress(_json(conversation_data(result, conversation)).encode(), compresslevel=6, mtime=0)
        yield f'<script type="text/plain" id="conversation-{place}">{base64.b64encode(packed).decode()}</script>\n'
    yield tail.replace("/* scripts */", "\n".join(_asset(name) for name in _SCRIPTS))


def _asset(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8")


def _json(value: Any) -> str:
    """Return JSON that is safe inside a script element, whatever its strings contain."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")
