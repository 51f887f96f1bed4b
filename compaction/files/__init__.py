r"""Files of recorded conversations: read with the position of every message, and written as a whole or not at all.

>>> import tempfile
>>> from pathlib import Path
>>> path = Path(tempfile.mkdtemp(), "runs.jsonl")
>>> _ = path.write_text('[{"role": "user", "content": "one"},  {"role": "user", "content": "two"}]\n')
>>> with write_text(path) as write:
...     for conversation in read_conversations(path):
...         _ = write(conversation.with_messages(conversation.messages[1:]))
>>> path.read_text()
'[{"role": "user", "content": "two"}]\n'
"""

from __future__ import annotations

from .conversation import FileConversation
from .reading import read_conversations
from .writing import write_text

__all__ = ["FileConversation", "read_conversations", "write_text"]
