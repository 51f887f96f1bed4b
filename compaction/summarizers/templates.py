"""placeholder"""
from __future__ import annotations
import attrs
__all__ = ["SummaryTemplate", "default_template"]
@attrs.frozen
class SummaryTemplate:
    text: str = ""
def default_template() -> SummaryTemplate:
    return SummaryTemplate()
