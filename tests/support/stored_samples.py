"""The samples of `compaction.testing` in the formats besides chat completions, as the package stores them.

``python -m tests.support.stored_samples`` writes them again; a test checks that they are up to date.
"""

from __future__ import annotations

import json
from pathlib import Path

import compaction.testing
from compaction.formats import MessageFormat, anthropic, bedrock, gemini, openai_chat, openai_responses
from compaction.testing import sample_conversations
from tests.support.conversion import convert

STORED = (openai_responses, anthropic, gemini, bedrock)


def sample_file(format: MessageFormat) -> Path:
    """The file in which the package stores the samples of a format."""
    return Path(compaction.testing.__path__[0], "stored", f"{format.name}.json")


def sample_text(format: MessageFormat) -> str:
    """Return the stored samples: a list of conversations, one a line."""
    samples = [convert(chat, to=format, format=openai_chat).messages for chat in sample_conversations()]
    return "[\n" + ",\n".join(json.dumps(list(map(format.to_wire, sample))) for sample in samples) + "\n]\n"


if __name__ == "__main__":
    for each in STORED:
        sample_file(each).write_text(sample_text(each), encoding="utf-8")
