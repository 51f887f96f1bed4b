"""Google ADK: a plugin for an app, whose callbacks an agent takes too, and the contents it compacts as a wire format.

    app = App(name="shop", root_agent=agent, plugins=[CompactionPlugin(presets.context_window(32_000))])

A whole program is ``examples/google_adk_shopping.py``. ADK builds the contents of each request from the events of its session.
The plugin compacts them on their way to the model, so the session stays whole. It also records the usage that the provider
reports, and repeats a request that was too long.

The format is Gemini's, applied to the ``google-genai`` package's Content objects. Unchanged parts stay the same objects, and
every edit produces a Content, because ADK and its plugins read attributes.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Unpack

import attrs

from ..formats import Gemini, Repair
from ..messages import Message, Part
from ..strategies import StrategyLike
from .conversation import FrameworkConversations, FrameworkTurn
from .options import CommonOptions, IntegrationOptions
from .requirements import GOOGLE_ADK, framework_class, import_framework

__all__ = ["AdkContents", "CompactionPlugin", "adk_contents"]

_BasePlugin: Any = framework_class("google.adk.plugins.base_plugin", "BasePlugin")
_UNDER_WAY: Final = 256  # the most calls remembered until their usage is reported; a cancelled call stays behind


class AdkContents(Gemini):
    """The format of ``LlmRequest.contents``; use the shared instance ``adk_contents``.

    Reading needs no framework installed: a message is any object with ``role`` and ``parts``.
    """

    name = "adk-contents"
    takes = "pass the contents of an LlmRequest"

    def key(self, raw: Any) -> Any:
        return raw

    def changed(self, message: Message, parts: Sequence[Part]) -> Message:
        return self.read(_content(super().changed(message, parts).raw))

    def new(self, role: str, text: str) -> Message:
        return self.read(_content(super().new(role, text).raw))

    def repair(self, raws: Sequence[Any]) -> Repair:
        found = super().repair(raws)
        return attrs.evolve(found, messages=[_content(raw) for raw in found.messages])

    def to_wire(self, raw: Any) -> Any:
        return raw.to_json_dict()

    def from_wire(self, data: Any) -> Any:
        return import_framework("google.genai.types").Content.model_validate_json(json.dumps(data))

    def _fields(self, raw: Any, position: int = 0) -> Mapping[str, Any]:
        """Return the role and the parts of a content, with the parts as the same objects."""
        if isinstance(raw, Mapping) or not hasattr(raw, "parts"):
            return super()._fields(raw, position)
        return {"role": raw.role, "parts": raw.parts}


adk_contents = AdkContents()


def _content(raw: Any) -> Any:
    """Return a Content, built from fields; a Content itself stays the same object."""
    return import_framework("google.genai.types").Content.model_validate(raw)


class CompactionPlugin(_BasePlugin):
    """A plugin that compacts the requests of each agent of an app.

    For all agents of an app: ``App(..., plugins=[CompactionPlugin(strategy)])``, after the plugins that change contents.
    For one agent: ``LlmAgent(..., **CompactionPlugin(strategy).callbacks)``.

    A conversation belongs to a session, an agent and a branch, so each sub-agent has its own. The edits are saved in the
    session's state with the event of the call. Calls whose history the provider keeps (``previous_interaction_id``) and live
    calls, which have no callbacks, are not compacted. Holds state: its ``conversations``.

    Args:
        strategy: The strategy; its trigger decides when it runs.
        name: The plugin's name.
        options: As for `IntegrationOptions`: ``counter=``, ``window=``, ``on_failure=``, ``on_event=`` and so on.

    Raises:
        ConfigurationError: If the framework is missing or too old, or an option is out of range.
    """

    def __init__(self, strategy: StrategyLike, *, name: str = "compaction", **options: Unpack[CommonOptions]) -> None:
        GOOGLE_ADK.check()
        super().__init__(name)  # pyright: ignore[reportUnknownMemberType]
        self.conversations = FrameworkConversations(IntegrationOptions(strategy=strategy, **options), adk_contents)
        self._under_way: OrderedDict[_Call, FrameworkTurn] = OrderedDict()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_under_way": OrderedDict()}  # a copy has no call under way

    @property
    def callbacks(self) -> dict[str, Callable[..., Any]]:
        """The callbacks for a single ``LlmAgent``; to add other callbacks, pass lists."""
        return {
            "before_model_callback": self.before_model_callback,
            "after_model_callback": self.after_model_callback,
            "on_model_error_callback": self.on_model_error_callback,
        }

    def compact_next(self, tool_context: Any, focus: str = "") -> None:
        """Compact before the next call of the agent that runs a tool, with the context that ADK passes to the tool.

        Whatever the trigger says; a summary gives most room to ``focus``.
        """
        self.conversations.compact_next(focus, _call_of(tool_context))

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        """Compact the contents of a request."""
        if llm_request.previous_interaction_id:
            return
        call, config = _call_of(callback_context), llm_request.config
        tools = [tool for tool in config.tools or () if hasattr(tool, "model_dump_json")]
        shown = [tool.model_dump_json(exclude_none=True) for tool in tools]
        self._under_way[call] = turn = await self.conversations.turn(
            llm_request.contents,
            id=f"{call.session}/{call.agent}",
            saved=callback_context.state.get(call.state_key),
            overhead_tokens=self.conversations.count(str(config.system_instruction or ""), *shown),
            model=llm_request.model,
            key=call,
            usages=_usages(callback_context.get_invocation_context(), llm_request.contents),
        )
        if len(self._under_way) > _UNDER_WAY:
            self._under_way.popitem(last=False)
        self._send(turn, callback_context, llm_request)

    def _send(self, turn: FrameworkTurn, context: Any, request: Any) -> None:
        request.contents = turn.view
        name = _call_of(context).state_key
        if (state := turn.state(context.state.get(name))) is not None:
            context.state[name] = state

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
        """Record the usage that a response reports; for a stream, that of its last response."""
        usage = None if llm_response.partial else llm_response.usage_metadata
        if usage is not None and (turn := self._under_way.pop(_call_of(callback_context), None)) is not None:
            turn.record_usage(usage)

    async def on_model_error_callback(self, *, callback_context: Any, llm_request: Any, error: Exception) -> Any:
        """Compact a request that was too long further, and return its response; ``None`` for other errors.

        If the second attempt fails too, ADK raises the first error, with a note about the second.

        Raises:
            BudgetUnsatisfiable: If nothing more may be removed; ADK raises a plugin's error as the cause of a ``RuntimeError``.
        """
        turn = self._under_way.get(_call_of(callback_context))
        if turn is None or await turn.overflowed(error) is None:
            return None
        self._send(turn, callback_context, llm_request)
        run = callback_context.get_invocation_context()
        try:
            run.increment_llm_call_count()
            responses = run.agent.canonical_model.generate_content_async(llm_request, stream=False)
            return [None, *[each async for each in responses]][-1]
        except Exception as second:
            error.add_note(f"It was compacted and sent once more: {second!r}")
            return None


@attrs.frozen
class _Call:
    """The place of a model call, at which one call at a time is under way."""

    session: str  # with its application and user
    agent: str  # with its branch and its task
    invocation: str

    @property
    def state_key(self) -> str:
        """The name under which the session's state stores the edits of this agent."""
        return f"compaction:{self.agent}"


def _call_of(context: Any) -> _Call:
    run = context.get_invocation_context()
    session = run.session
    agent = "/".join(each for each in (run.agent.name, run.branch, getattr(run, "isolation_scope", None)) if each)
    return _Call(f"{session.app_name}/{session.user_id}/{session.id}", agent, run.invocation_id)


def _usages(run: Any, contents: Sequence[Any]) -> list[Any]:
    """Return the usage of each content: that of the agent's last event for the newest answer, which the session stored."""
    events = (each for each in reversed(run.session.events) if each.author == run.agent.name and each.branch == run.branch)
    usage = next((event.usage_metadata for event in events if event.usage_metadata is not None), None)
    answer = next((place for place in reversed(range(len(contents))) if contents[place].role == "model"), None)
    return [usage if place == answer else None for place in range(len(contents))]
