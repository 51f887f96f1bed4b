"""The report of a replay: one HTML file that needs no network, to look at figures, requests and what went missing.

Charts are drawn as SVG by the page's own script, about 200 lines: a chart library would add megabytes to each file to draw
four plain charts. Transcripts are hostile text: the script sets them as text and never as markup, and the page's own policy
forbids it to load or send anything.
"""

from __future__ import annotations

from .page import report_html, write_report

__all__ = ["report_html", "write_report"]
