"""langmem's running summary, used as documented: the history is kept, and a request is built from it and the summary."""

from __future__ import annotations

from typing import Any

import attrs
from langchain_core.messages import BaseMessage
from langmem.short_term import summarize_messages

from compaction.replay import Candidate, CandidateSetting

from .langchain_middleware import DigestModel, Translated


@attrs.frozen
class _Langmem:
    """Summarizes the oldest messages above 80 % of the window, down to half of it."""

    def __call__(self, setting: CandidateSetting) -> Any:
        translated = Translated(setting)
        model = DigestModel(budget=int(0.1 * setting.window), counter=setting.counter)
        state: list[BaseMessage] = []
        running: list[Any] = [None]

        def view(messages: list[Any]) -> list[Any]:
            state.extend(translated.new(messages))
            result = summarize_messages(
                state,
                running_summary=running[0],
                model=model,
                max_tokens=int(0.5 * setting.window),
                max_tokens_before_summary=int(0.8 * setting.window),
                max_summary_tokens=int(0.1 * setting.window),
                token_counter=translated.tokens,
            )
            running[0] = result.running_summary or running[0]
            return [translated.raw(each) for each in result.messages]

        return view


LANGMEM = Candidate("langmem", _Langmem())
