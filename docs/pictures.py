"""Draws the pictures of README and docs/concepts.md: ``python docs/pictures.py`` writes docs/pictures/*.svg.

Two of them are measured. ``before_after`` shows the figures of ``make demo``. For ``session``, a conversation grows by
one tool call at a time; the provider's prompt cache already has the common beginning of two requests in a row.
"""

from __future__ import annotations

import json
import sys
from html import escape
from pathlib import Path
from typing import Any

from compaction import CompactionSession, MessageIndex, compact_sync, counter, presets
from compaction.formats import validate
from compaction.testing import agent_session

FOLDER = Path(__file__).parent / "pictures"
WINDOW = 8_000
CALLS = 80
INK, BLUE, GREEN, ORANGE = "#1f2937", "#bfdbfe", "#bbf7d0", "#fed7aa"
CACHED, NEW, DOTS = "#60a5fa", "#b45309", 'stroke-dasharray="2 3"'


def box(x: float, y: float, width: float, height: float, fill: str = "none", *, dash: bool = False) -> str:
    """Return a rounded box."""
    dashes = ' stroke-dasharray="5 4"' if dash else ""
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" fill="{fill}" stroke="{INK}"{dashes}/>'


def words(x: float, y: float, text: str, size: int = 14, anchor: str = "middle", *, colour: str = INK) -> str:
    """Return a line of text."""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'


def arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    """Return an arrow."""
    return line(x, y, to_x, to_y, 'stroke-width="1.5" marker-end="url(#head)"')


def line(x: float, y: float, to_x: float, to_y: float, style: str = "") -> str:
    """Return a line."""
    return f'<line x1="{x:g}" y1="{y:g}" x2="{to_x:g}" y2="{to_y:g}" stroke="{INK}" {style}/>'


def bar(x: float, y: float, width: float, height: float, fill: str) -> str:
    """Return a filled area."""
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{fill}"/>'


def picture(width: int, height: int, title: str, *shapes: str) -> str:
    """Return a picture on a light card, which can be read in dark mode, too."""
    head = (
        '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        f'<path d="M0 0L8 4L0 8z" fill="{INK}"/></marker>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
        ' font-family="system-ui, sans-serif">'
        f"<title>{escape(title)}</title><defs>{head}</defs>"
        f'<rect width="{width}" height="{height}" rx="10" fill="#fff"/>' + "".join(shapes) + "</svg>\n"
    )


def groups() -> str:
    """Draw the messages of a conversation, and the groups that they form."""
    messages = [
        ("system", "You are an operator.", "SYSTEM", 1),
        ("user", "Why does checkout fail?", "USER", 1),
        ("assistant", "call A: read_log, call B: read_log", "TOOL_CALL", 3),
        ("tool", "result of A", "", 0),
        ("tool", "result of B", "", 0),
        ("assistant", "Port 5433 is closed.", "ASSISTANT", 1),
        ("user", "Thanks. Open it.", "USER", 1),
    ]
    shapes = [words(190, 30, "messages", 15), words(560, 30, "groups", 15)]
    for place, (role, text, kind, size) in enumerate(messages):
        y = 46 + 44 * place
        fill = GREEN if size == 3 or not size else BLUE
        shapes += [box(20, y, 340, 34, fill), words(32, y + 22, role, 13, "start"), words(120, y + 22, text, 13, "start")]
        if size:
            height = 44 * size - 10
            shapes += [
                arrow(364, y + 17, 434, y + height / 2),
                box(438, y, 244, height, fill),
                words(560, y + height / 2 + 5, kind),
            ]
    shapes.append(
        words(351, 374, "A call and its results are one group. Edits apply to groups, so they are never separated.", 13)
    )
    return picture(702, 392, "Seven messages become five groups", *shapes)


def pipeline() -> str:
    """Draw a pipeline: each strategy has a trigger and yields edits, which the index checks."""
    shapes = [box(20, 60, 110, 60, BLUE), words(75, 86, "messages"), words(75, 106, "12,000 tokens", 12)]
    steps = [
        ("ToolResult", "tokens > 6,000", "7,400"),
        ("Summarization", "tokens > 7,000", "5,100"),
        ("Truncation", "tokens > 8,000", "5,100"),
    ]
    for place, (name, trigger, left) in enumerate(steps):
        x = 170 + 160 * place
        fires = place < 2
        shapes += [
            arrow(x - 38, 90, x - 2, 90),
            box(x, 60, 120, 60, GREEN if fires else "#f3f4f6", dash=not fires),
            words(x + 60, 86, name),
            words(x + 60, 106, trigger, 12, colour=INK if fires else "#4b5563"),
            words(x + 60, 48, f"leaves {left}" if fires else "does not fire", 12, colour="#4b5563"),
        ]
        if fires:
            shapes += [arrow(x + 60, 124, x + 60, 172), words(x + 68, 152, "edits", 12, "start")]
    shapes += [
        arrow(612, 90, 648, 90),
        box(650, 60, 110, 60, BLUE),
        words(705, 86, "the view"),
        words(705, 106, "5,100 tokens", 12),
        box(170, 176, 440, 46, ORANGE),
        words(390, 204, "MessageIndex: applies an edit, or refuses one that breaks a rule", 13),
    ]
    return picture(780, 242, "Three strategies in a pipeline; the index checks their edits", *shapes)


def before_after() -> str:
    """Draw the example's tokens by who wrote them: all, after a plain cut, and after a compaction; and what of them is kept."""
    sys.path.insert(0, str(FOLDER.parents[1] / "examples"))
    import demo  # the example's own figures

    messages: list[Any] = json.loads((FOLDER.parents[1] / demo.FILE).read_text(encoding="utf-8"))["messages"]
    compacted = compact_sync(messages, presets.token_budget(demo.BUDGET)).messages
    lists = {"everything": messages, "the newest messages": demo.plain_cut(messages), "compaction": compacted}
    known = {id(message) for message in messages}
    fills = {"instructions": "#94a3b8", "the user": "#f59e0b", "the agent and its tools": CACHED, "summary": "#34d399"}
    shapes, scale = [], 460 / demo.tokens_of(messages)
    for row, (name, sent) in enumerate(lists.items()):
        index, y = MessageIndex(sent, format="openai-chat"), 24 + 62 * row
        kept, problems = demo.kept_in(sent), validate(sent)
        sizes = dict.fromkeys(fills, 0)
        for group in index.included_groups:
            role = group.messages[0].role
            spoken = {"system": "instructions", "user": "the user"}.get(role, "the agent and its tools")
            sizes[spoken if row < 2 or id(group.messages[0].raw) in known else "summary"] += group.tokens
        shapes += [words(170, y + 19, name, 14, "end"), words(170, y + 35, f"{sum(sizes.values()):,} tokens", 12, "end")]
        x = 182.0
        for kind, tokens in sizes.items():
            shapes.append(bar(x, y, tokens * scale, 30, fills[kind]))
            x += tokens * scale
        rules, said = demo.rules(messages), demo.sentences(messages)
        facts = f"rules {sum(map(kept, rules))} of {len(rules)}, the user's sentences {sum(map(kept, said))} of {len(said)}"
        if row:
            shapes.append(words(x + 12, y + 14, facts, 12, "start"))
            refused = "a provider refuses it" if problems else "a provider accepts it"
            shapes.append(words(x + 12, y + 30, refused, 12, "start", colour="#b91c1c" if problems else "#15803d"))
    x = 60.0
    for kind, fill in fills.items():
        shapes += [bar(x, 212, 14, 10, fill), words(x + 22, 221, kind, 12, "start")]
        x += 50 + 8 * len(kind)
    title = f"A coding session of {demo.tokens_of(messages):,} tokens, in {demo.BUDGET:,}: what is sent, and what of it is kept"
    return picture(740, 236, title, *shapes)


def session() -> str:
    """Draw what a session sends on each call: tokens that the prompt cache has, and tokens that it does not have."""
    texts, compacting = counter("o200k_base"), CompactionSession(presets.adaptive(WINDOW), counter="o200k_base")
    messages: list[Any] = agent_session(2 * CALLS, lines=30)
    rows: list[tuple[int, int, int]] = []
    before: list[Any] = []
    for place in (end for end, message in enumerate(messages, 1) if message["role"] in {"user", "tool"}):
        view = compacting.view_sync(messages[:place])
        same = 0
        while same < min(len(view), len(before)) and view[same] == before[same]:
            same += 1
        sizes = [texts.count_text(str(message)) for message in view]
        rows.append((sum(sizes[:same]), sum(sizes[same:]), sum(texts.count_text(str(each)) for each in messages[:place])))
        before = view
    width, height, top = 640, 220, max(WINDOW * 1.6, 1)
    step = width / len(rows)

    def y(tokens: float) -> float:
        return 250 - height * min(tokens, top) / top

    shapes = [words(70, 20, "tokens", 12, "end")]
    for place, (cached, new, _) in enumerate(rows):
        x = 80 + step * place
        shapes.append(bar(x, y(cached), step * 0.8, 250 - y(cached), CACHED))
        shapes.append(bar(x, y(cached + new), step * 0.8, y(cached) - y(cached + new), NEW))
    whole = " ".join(f"{80 + step * (place + 0.4):g},{y(row[2]):g}" for place, row in enumerate(rows) if row[2] <= top)
    shapes += [
        f'<polyline points="{whole}" fill="none" stroke="{INK}" {DOTS}/>',
        line(80, y(WINDOW), 80 + width, y(WINDOW)),
        words(74, y(WINDOW) + 4, f"{WINDOW:,}", 12, "end"),
        words(74, 254, "0", 12, "end"),
        words(80 + width, y(WINDOW) - 6, "the model's window", 12, "end"),
        words(80 + width / 2, 274, f"{len(rows)} calls of one session", 12),
    ]
    shapes += [bar(90, 288, 14, 10, CACHED), words(112, 298, "in the prompt cache", 12, "start")]
    shapes += [bar(260, 288, 14, 10, NEW), words(282, 298, "not in the cache", 12, "start")]
    shapes += [line(410, 293, 426, 293, DOTS), words(432, 298, "everything, without a session", 12, "start")]
    return picture(740, 312, "Tokens of each request of a session, and how many of them the prompt cache has", *shapes)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for draw in (before_after, groups, pipeline, session):
        (FOLDER / f"{draw.__name__}.svg").write_text(draw(), encoding="utf-8")
