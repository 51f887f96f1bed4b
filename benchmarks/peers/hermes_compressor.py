"""Hermes Agent's compressor from its package, with our counter and our digest.

As in Hermes Agent, each call compresses if needed, up to three times while that helps.
"""

from __future__ import annotations

import copy
import os
import tempfile
from types import SimpleNamespace
from typing import Any

import attrs

from compaction.replay import Candidate, CandidateSetting
from compaction.tokens import MessageMeter

from .digest import digest_of

_PASSES = 3


@attrs.frozen
class _Hermes:
    def __call__(self, setting: CandidateSetting) -> Any:
        compressor = _compressor(setting)
        meter = MessageMeter(setting.counter)
        state: list[Any] = []
        read = [0]

        def tokens() -> int:
            return sum(meter.measure(setting.format.read(raw))[0] for raw in state)

        def view(messages: list[Any]) -> list[Any]:
            state.extend(messages[read[0] :])
            read[0] = len(messages)
            for _ in range(_PASSES):
                before = tokens()
                if not compressor.should_compress(before):
                    break
                state[:] = compressor.compress(copy.copy(state), current_tokens=before)
                if tokens() > 0.95 * before:
                    break
            return list(state)

        return view


def _compressor(setting: CandidateSetting) -> Any:
    os.environ.setdefault("HERMES_HOME", tempfile.mkdtemp(prefix="hermes-"))
    from agent import context_compressor

    def call_llm(*_: Any, messages: Any, **options: Any) -> Any:
        text = digest_of(messages[-1]["content"], int(0.1 * setting.window), setting.counter)
        return SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content=text), finish_reason="stop")])

    context_compressor.call_llm = call_llm
    context_compressor.get_model_context_length = lambda *_, **options: setting.window
    return context_compressor.ContextCompressor("replayed", quiet_mode=True)


HERMES = Candidate("hermes-agent", _Hermes())
