"""The plots of ``docs/benchmarks.md``."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "compaction"
from matplotlib import pyplot as plt  # noqa: E402  # after the backend is chosen

from compaction.replay import ReplayResult  # noqa: E402


def plot_frontier(result: ReplayResult, path: Path, ours: Container[str]) -> None:
    """Plot cost against recall with intervals as SVG; the same result gives the same file."""
    figure, axes = plt.subplots(figsize=(9, 5))
    for name, summary in result.summaries.items():
        cost, usable = summary.macro["cost"], summary.macro["usable"]
        if cost.value is None or usable.value is None or cost.low is None or usable.low is None:
            continue
        colour = "#0969da" if name in ours else "#bf3989" if name in ("none", "truncate", "hysteresis") else "#57606a"
        wide = [[cost.value - cost.low], [(cost.high or cost.value) - cost.value]]
        high = [[usable.value - usable.low], [(usable.high or usable.value) - usable.value]]
        axes.errorbar(cost.value, usable.value, xerr=wide, yerr=high, fmt="o", color=colour, elinewidth=0.8, alpha=0.85)
        axes.annotate(name, (cost.value, usable.value), textcoords="offset points", xytext=(6, 5), fontsize=8, color=colour)
    axes.set_xlim(0, 1.6)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("cost, as a share of sending everything (further right is cut off)")
    axes.set_ylabel("needed facts in a request that would be taken")
    axes.set_title(f"Window of {result.setting.window:,} tokens, {len(result.exceeding)} sessions", fontsize=10)
    axes.grid(visible=True, alpha=0.25)
    figure.tight_layout()
    figure.savefig(path, format="svg", metadata={"Date": None})
    plt.close(figure)
