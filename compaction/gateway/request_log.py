"""The log: one line of JSON for each request, without texts, keys or query strings."""

from __future__ import annotations

import json
import logging
from typing import Any, Final

_logger: Final = logging.getLogger("compaction.gateway")


def log_request(**fields: Any) -> None:
    """Log a request. Fields that are ``None`` or empty are omitted, and seconds are rounded to a tenth of a millisecond."""
    if _logger.isEnabledFor(logging.INFO):
        shown = {name: round(value, 4) if isinstance(value, float) else value for name, value in fields.items()}
        _logger.info(json.dumps({name: value for name, value in shown.items() if value not in (None, "", (), 0.0)}))
