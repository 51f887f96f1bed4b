"""LangChain's two middlewares that shorten a conversation, called as its agents call them before each model call.

The system prompt is not in an agent's state, so it is removed before and added again after. Messages keep their ids, and
unchanged messages are sent as recorded.
"""

from __future__ import annotations

import copy
from typing import Any

import attrs
from langchain.agents.middleware import ClearToolUsesEdit, SummarizationMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, RemoveMessage, convert_to_messages, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatResult

from compaction.replay import Candidate, CandidateSetting
from compaction.tokens import MessageMeter

from .digest import digest_of


class DigestModel(BaseChatModel):
    """A chat model that answers with our digest."""

    budget: int
    counter: Any

    @property
    def _llm_type(self) -> str:
        return "digest"

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any) -> ChatResult:
        names = {"human": "user", "ai": "assistant"}
        prompt = "\n".join(f"{names.get(each.type, each.type)}: {each.text}" for each in messages)
        text = digest_of(messages[0].text if len(messages) == 1 else prompt, self.budget, self.counter)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


class Translated:
    """Converts recorded messages to LangChain's and back. Holds state: the messages by id."""

    def __init__(self, setting: CandidateSetting) -> None:
        self.meter = MessageMeter(setting.counter)
        self._format = setting.format
        self._raws: dict[str, Any] = {}
        self._made: dict[str, Any] = {}
        self._sizes: dict[str, int] = {}

    def new(self, messages: list[Any]) -> list[BaseMessage]:
        """Return the messages that were added since the last call."""
        made: list[BaseMessage] = []
        for ordinal in range(len(self._raws), len(messages)):
            raw = messages[ordinal]
            (message,) = convert_to_messages([{**raw, "content": raw.get("content") or ""}])
            message.id = f"m{ordinal}"
            self._raws[message.id] = raw
            self._made[message.id] = message.content
            self._sizes[message.id] = self.meter.measure(self._format.read(raw, ordinal))[0]
            made.append(message)
        return made

    def raw(self, message: BaseMessage) -> Any:
        """Return a message as recorded; a changed or new one as LangChain writes it."""
        if message.id in self._raws and message.content == self._made[message.id]:
            return self._raws[message.id]
        return convert_to_openai_messages([message])[0]

    def tokens(self, messages: Any, **options: Any) -> int:
        """Return their tokens by the counter of the replay."""
        return sum(self._size(message) for message in messages)

    def _size(self, message: BaseMessage) -> int:
        raw = self.raw(message)
        if raw is not self._raws.get(message.id or ""):
            return self.meter.measure(self._format.read(raw))[0]
        return self._sizes[message.id or ""]


@attrs.frozen
class _Summarization:
    """Summarizes all but the newest half above 80 % of the window."""

    def __call__(self, setting: CandidateSetting) -> Any:
        translated = Translated(setting)
        middleware = SummarizationMiddleware(
            DigestModel(budget=int(0.1 * setting.window), counter=setting.counter),
            trigger=("tokens", int(0.8 * setting.window)),
            keep=("tokens", int(0.4 * setting.window)),
            token_counter=translated.tokens,
            trim_tokens_to_summarize=None,
        )
        state: list[BaseMessage] = []
        head: list[Any] = []

        def view(messages: list[Any]) -> list[Any]:
            fresh = translated.new(messages)
            head.extend(each for each in fresh if each.type == "system")
            state.extend(each for each in fresh if each.type != "system")
            update = middleware.before_model({"messages": state}, None)  # type: ignore[arg-type, typeddict-item]
            if update is not None:
                state[:] = [each for each in update["messages"] if not isinstance(each, RemoveMessage)]
            return [translated.raw(each) for each in (*head, *state)]

        return view


@attrs.frozen
class _ClearToolUses:
    """Clears all but the newest 3 tool results above half of the window, in each request from scratch."""

    def __call__(self, setting: CandidateSetting) -> Any:
        translated = Translated(setting)
        edit = ClearToolUsesEdit(trigger=int(0.5 * setting.window), keep=3)
        state: list[BaseMessage] = []

        def view(messages: list[Any]) -> list[Any]:
            state.extend(translated.new(messages))
            request = copy.copy(state)
            edit.apply(request, count_tokens=translated.tokens)
            return [translated.raw(each) for each in request]

        return view


SUMMARIZATION = Candidate("langchain summarization", _Summarization())
CLEAR_TOOL_USES = Candidate("langchain clear tool uses", _ClearToolUses())
