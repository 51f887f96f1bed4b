"""The planted secrets that redaction finds, its changes to recorded conversations, and its speed; writes docs/prompts.md.

    python -m benchmarks.redaction --corpus ../shared/corpus/dev

If ``detect-secrets`` is installed, its detectors are measured too, except those based on randomness alone.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from time import process_time

from compaction.summarizers import redact
from tests.support.planted_secrets import Planted, harmless, secrets

from .tables import Section, table, written

PAGE = Path(__file__).resolve().parents[1] / "docs" / "prompts.md"
SHAPES: dict[str, tuple[Planted, ...]] = {name: secrets(name) for name in ("planted", "further", "unseen")}
TEXTS_WITHOUT = harmless(*SHAPES)
RANDOMNESS = ("Base64 High Entropy String", "Hex High Entropy String")


def by_detect_secrets() -> Callable[[str], str] | None:
    """Redact with the detectors of detect-secrets; ``None`` if it is not installed."""
    try:
        from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
    except ImportError:
        return None
    kinds = get_mapping_from_secret_type_to_class().items()
    detectors = [kind() for name, kind in kinds if name not in RANDOMNESS]

    def redacted(text: str) -> str:
        found = {each for line in text.splitlines() for detector in detectors for each in detector.analyze_string(line)}
        for each in sorted(found, key=len, reverse=True):
            text = text.replace(each, "[REDACTED]") if len(each) >= 4 else text
        return text

    return redacted


def recorded(folder: Path) -> list[str]:
    """Yield the texts of recorded conversations."""
    found: list[str] = []
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            contents = [each.get("content") for line in lines for each in json.loads(line)["messages"]]
            found += [content for content in contents if isinstance(content, str)]
    return found


def row(name: str, redacted: Callable[[str], str], texts: list[str]) -> list[str]:
    found = [f"{sum(not each.kept_in(redacted(each.text)) for each in shapes)} of {len(shapes)}" for shapes in SHAPES.values()]
    wrong = sum(redacted(text) != text for text in TEXTS_WITHOUT)
    megabytes = sum(map(len, texts)) / 1e6
    start = process_time()
    marks = sum(redacted(text).count("[REDACTED") - text.count("[REDACTED") for text in texts)
    seconds = process_time() - start
    return [name, *found, f"{wrong} of {len(TEXTS_WITHOUT)}", f"{marks / megabytes:.1f}", f"{megabytes / seconds:.1f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True, help="folder of recorded conversations")
    texts = recorded(parser.parse_args().corpus)
    rows = [row("`redact`", redact, texts)]
    if (other := by_detect_secrets()) is not None:
        rows.append(row("detect-secrets, its detectors of forms and names", other, texts))
    found = [f"{name} secrets found" for name in SHAPES]
    heads = ["", *found, "harmless texts changed", "redactions a megabyte, recorded", "megabytes a second"]
    PAGE.write_text(written(PAGE.read_text("utf-8"), [Section("redaction", table(heads, rows))]), encoding="utf-8")


if __name__ == "__main__":
    main()
