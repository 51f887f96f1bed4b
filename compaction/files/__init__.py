r"""Files of recorded conversations, read with the position of every message and written atomically.

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

from .json_text import replace_list
from .reading import FileConversation, read_conversations, unreadable_errors
from .writing import open_replacement, write_text
from .writing import unwritable_errors as unwritable_errors

__all__ = ["FileConversation", "open_replacement", "read_conversations", "replace_list", "unreadable_errors", "write_text"]
