"""The report of a replay: one HTML file, readable offline, that shows figures, requests and missing facts.

Charts are drawn as SVG by the page's own script, about 200 lines: a chart library would add megabytes to each file to draw
four simple charts. Transcripts are untrusted: the script inserts them as text, never as markup, and the page's
content security policy forbids it to load or send anything.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from ...files import write_text
from ..result import ReplayResult
from .data import conversation_data, overview_data

__all__ = ["report_html", "write_report"]

_SCRIPTS: Final = ("draw.js", "charts.js", "fates.js", "transcript.js", "main.js")


def write_report(result: ReplayResult, path: Path) -> None:
    """Write the report of a replay to a file, whole or not at all.

    Args:
        result: The result of the replay.
        path: The file; an existing file is replaced.

    Raises:
        UnwritableFile: If the file cannot be written.
    """
    with write_text(path, compress=False) as write:
        for piece in _pieces(result):
            write(piece)


def report_html(result: ReplayResult) -> str:
    """Return the report as HTML; O(characters of the conversations)."""
    return "".join(_pieces(result))


def _pieces(result: ReplayResult) -> Iterator[str]:
    """Yield the page in order; each conversation is compressed, and decompressed in the browser when it is opened."""
    head, _, tail = _asset("page.html").partition("<!-- data -->")
    yield head.replace("/* style */", _asset("style.css"))
    yield f'<script type="application/json" id="overview">{_json(overview_data(result))}</script>\n'
    for place, conversation in enumerate(result.conversations):
        packed = gzip.compress(_json(conversation_data(result, conversation)).encode(), compresslevel=6, mtime=0)
        yield f'<script type="text/plain" id="conversation-{place}">{base64.b64encode(packed).decode()}</script>\n'
    yield tail.replace("/* scripts */", "\n".join(_asset(name) for name in _SCRIPTS))


def _asset(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8")


def _json(value: Any) -> str:
    """Return JSON that is safe inside a script element, whatever its strings contain."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")
