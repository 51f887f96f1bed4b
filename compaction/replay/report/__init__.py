"""The report of a replay: one HTML file, readable offline, that shows figures, requests and missing facts.

Charts are drawn as SVG by the page's own script, about 200 lines: a chart library would add megabytes to each file to draw
four simple charts. Transcripts are untrusted: the script inserts them as text, never as markup, and the page's
content security policy forbids it to load or send anything.
"""

from __future__ import annotations

from .page import report_html, write_report

__all__ = ["report_html", "write_report"]
