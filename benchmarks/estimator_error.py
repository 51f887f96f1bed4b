"""The errors of the estimating token counters by kind of text, printed as a Markdown table.

    python benchmarks/estimator_error.py --corpus FOLDER --locale /usr/share/locale

Without arguments it measures texts of the standard library and generated texts. ``--corpus`` adds texts of recorded
conversations (``*.jsonl.gz``, one ``{"messages": [...]}`` of OpenAI chat messages a line), ``--locale`` the translated messages
of the programs on this machine, by language. The exact count is toktok's o200k_base. A cell contains the mean error of a text
and, in brackets, the error of the total, in percent.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import email
import gettext
import gzip
import http
import inspect
import json
import logging
import random
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

from compaction.tokens import ByteClassEstimate, BytesPerToken, CharsPerToken, ToktokCounter

PIECE_CHARACTERS = 1_500
FEWEST_CHARACTERS = 20
MOST_CHARACTERS_A_FILE = 60_000
LANGUAGES = {
    "ko": "Korean",
    "ja": "Japanese",
    "zh_CN": "Chinese, simplified",
    "zh_TW": "Chinese, traditional",
    "ru": "Russian",
    "el": "Greek",
    "ar": "Arabic",
    "he": "Hebrew",
    "hi": "Hindi",
    "th": "Thai",
    "vi": "Vietnamese",
    "fr": "French",
    "de": "German",
    "pl": "Polish",
    "fi": "Finnish",
}
COUNTERS = (CharsPerToken(), BytesPerToken(), ByteClassEstimate())


def pieces(texts: Iterable[str]) -> list[str]:
    """Return texts of at most one piece's length, without those that are too short."""
    cut = (text[start : start + PIECE_CHARACTERS] for text in texts for start in range(0, len(text), PIECE_CHARACTERS))
    return [piece for piece in cut if len(piece) >= FEWEST_CHARACTERS]


def generated() -> Iterator[tuple[str, list[str]]]:
    """Yield the kinds that need no files: Python's manual and sources, and generated texts."""
    dice = random.Random(20)
    yield "English prose (Python's manual)", pieces(topics.values())
    folders = [Path(inspect.getfile(package)).parent for package in (asyncio, email, http, json, logging)]
    yield "Python (standard library)", pieces(path.read_text("utf-8") for folder in folders for path in folder.glob("*.py"))
    yield "base64", [base64.b64encode(dice.randbytes(1_000)).decode() for _ in range(100)]
    yield "hexadecimal", [dice.randbytes(600).hex() for _ in range(100)]
    yield "UUIDs, one a line", ["\n".join(str(uuid.UUID(int=dice.getrandbits(128))) for _ in range(30)) for _ in range(100)]
    yield (
        "CSV of numbers",
        ["\n".join(",".join(f"{dice.gauss(0, 99):.3f}" for _ in range(6)) for _ in range(25)) for _ in range(100)],
    )
    yield "emoji", ["".join(chr(dice.randint(0x1F300, 0x1F64F)) for _ in range(50)) for _ in range(100)]


def recorded(corpus: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the kinds found in recorded conversations."""
    customer, coding = list(messages(corpus, "tau_airline")), list(messages(corpus, "sweagent_demos", "openhands"))
    yield "chat (customer service)", pieces(text for role, text in customer if role in {"user", "assistant"})
    yield "chat (several agents)", pieces(text for _, text in messages(corpus, "whowhen_multiagent"))
    results = [text for role, text in customer if role == "tool" and text.startswith(("{", "["))]
    yield "JSON tool results", pieces(results)
    yield "JSON, indented", pieces(json.dumps(json.loads(text), indent=2) for text in results)
    yield "shell output and logs", pieces(text for role, text in coding if role == "tool")
    chinese = (text for _, text in messages(corpus, "acebench_zh"))
    yield "Chinese", pieces(text for text in chinese if sum("一" <= character <= "鿿" for character in text) > len(text) / 2)


def messages(corpus: Path, *names: str) -> Iterator[tuple[str, str]]:
    """Yield the role and text of every message that has a text."""
    for name in names:
        with gzip.open(corpus / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            for line in lines:
                conversation: Mapping[str, Any] = json.loads(line)
                yield from ((each["role"], each["content"]) for each in conversation["messages"] if is_text(each["content"]))


def is_text(content: Any) -> bool:
    return isinstance(content, str)


def translated(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the languages of the message catalogues of installed programs, without lists of countries and languages."""
    for language, name in LANGUAGES.items():
        paths = [path for path in sorted(folder.glob(f"{language}/LC_MESSAGES/*.mo")) if not path.name.startswith("iso_")]
        yield f"{name} (program messages)", pieces("\n".join(catalogue(path))[:MOST_CHARACTERS_A_FILE] for path in paths)


def catalogue(path: Path) -> list[str]:
    """Return the translated messages of a program; none if the file does not have the encoding it declares."""
    with path.open("rb") as file:
        try:
            entries: dict[Any, str] = vars(gettext.GNUTranslations(file))["_catalog"]
        except UnicodeDecodeError:
            return []
    return [text for source, text in entries.items() if source and text != source and len(text) > FEWEST_CHARACTERS]


def row(kind: str, texts: list[str], exact: Callable[[str], int]) -> str:
    truth = [exact(text) for text in texts]
    cells = [kind, str(len(texts)), f"{sum(map(len, texts)) / sum(truth):.2f}"]
    for counter in COUNTERS:
        counts = [counter.count_text(text) for text in texts]
        mean = sum(abs(count - true) / true for count, true in zip(counts, truth, strict=True)) / len(texts)
        cells.append(f"{mean:.1%} ({sum(counts) / sum(truth) - 1:+.1%})".replace("%", ""))
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, help="folder of recorded conversations")
    parser.add_argument("--locale", type=Path, help="folder of message catalogues, such as /usr/share/locale")
    arguments = parser.parse_args()
    exact = ToktokCounter("o200k_base").count_text
    print(f"| kind | texts | characters a token | {' | '.join(counter.name for counter in COUNTERS)} |")
    print(f"|---|---|---|{'---|' * len(COUNTERS)}")
    kinds = [*generated()]
    kinds += recorded(arguments.corpus) if arguments.corpus else []
    kinds += translated(arguments.locale) if arguments.locale else []
    for kind, texts in kinds:
        if texts:
            print(row(kind, texts, exact))


if __name__ == "__main__":
    main()
