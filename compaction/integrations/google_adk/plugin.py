"""A plugin for Google ADK, whose callbacks one agent can take instead, and ADK's contents as a wire format.

ADK builds the contents of each request from the events of its session. They are compacted on their way to the model, so the
session stays whole. The same object learns the usage that the provider reports, and sends a request that was too long again.

The format is Gemini's on the ``google-genai`` package's Content objects. A part that no edit touches stays the same object, and
what an edit makes is a Content again, because ADK and its plugins read attributes.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from ...formats import Gemini, Repair
from ...messages import Message, Part
from ...strategies import StrategyLike
from ...tokens import counter
from ..conversation import FrameworkConversations, FrameworkTurn
from ..options import IntegrationOptions
from ..requirements import GOOGLE_ADK, framework_class, import_framework


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
        """Return the role and the parts of a content; the parts are the objects they were."""
        if isinstance(raw, Mapping) or not hasattr(raw, "parts"):
            return super()._fields(raw, position)
        return {"role": raw.role, "parts": raw.parts}


adk_contents = AdkContents()


def _content(raw: Any) -> Any:
    """Return a Content: the same one, or one made of these fields."""
    return import_framework("google.genai.types").Content.model_validate(raw) if isinstance(raw, Mapping) else raw


if TYPE_CHECKING:

    class _BasePlugin:
        def __init__(self, name: str) -> None: ...

else:
    _BasePlugin = framework_class("google.adk.plugins.base_plugin", "BasePlugin")


_UNDER_WAY: Final = 256
"""The largest number of calls remembered until their usage is reported; a call that was cancelled leaves one behind."""


class CompactionPlugin(_BasePlugin):
    """A plugin that compacts what each agent of an app sends.

    For all agents of an app: ``App(..., plugins=[CompactionPlugin(strategy)])``, after the plugins that change contents.
    For one agent: ``LlmAgent(..., **CompactionPlugin(strategy).callbacks)``.

    A conversation is that of a session, an agent and a branch, so each sub-agent has its own. What was decided is saved in the
    session's state with the event of the call. Calls whose history the provider keeps (``previous_interaction_id``) and live
    calls, which have no callbacks, are not compacted. Holds state: the conversations used last.

    Args:
        strategy: The strategy; its trigger decides when it runs.
        name: The plugin's name.
        options: As for `IntegrationOptions`: ``counter=``, ``window=``, ``on_failure=``, ``on_event=`` and so on.

    Raises:
        ConfigurationError: If the framework is missing or too old, or an option is out of range.
    """

    def __init__(self, strategy: StrategyLike, *, name: str = "compaction", **options: Any) -> None:
        GOOGLE_ADK.check()
        super().__init__(name)
        self.options = IntegrationOptions(strategy=strategy, **options)
        self._conversations = FrameworkConversations(self.options, adk_contents)
        self._counter = counter(self.options.counter)
        self._under_way: OrderedDict[_Call, FrameworkTurn] = OrderedDict()
        self._asked: dict[_Call, str] = {}

    @property
    def callbacks(self) -> dict[str, Callable[..., Any]]:
        """The arguments of an ``LlmAgent`` that is compacted alone; put into lists to have others beside them."""
        return {
            "before_model_callback": self.before_model_callback,
            "after_model_callback": self.after_model_callback,
            "on_model_error_callback": self.on_model_error_callback,
        }

    def compact_next(self, tool_context: Any, focus: str = "") -> None:
        """Compact before the next call of the agent that runs this tool, whatever the strategy's trigger says.

        Args:
            tool_context: The context that ADK passes to a tool.
            focus: A topic that a summary should give most room to, if any.
        """
        self._asked[_call_of(tool_context)] = focus

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        """Compact the contents of a request."""
        if llm_request.previous_interaction_id:
            return
        call = _call_of(callback_context)
        turn = await self._conversations.turn(
            llm_request.contents,
            id=f"{call.session}/{call.agent}",
            saved=callback_context.state.get(call.state_key),
            overhead_tokens=self._overhead(llm_request),
            model=llm_request.model,
            focus=self._asked.pop(call, None),
        )
        self._under_way[call] = turn
        if len(self._under_way) > _UNDER_WAY:
            self._under_way.popitem(last=False)
        self._send(turn, callback_context, llm_request)

    def _send(self, turn: FrameworkTurn, context: Any, request: Any) -> None:
        """Put the view into the request, and what was decided into the session's state."""
        request.contents = turn.view
        name = _call_of(context).state_key
        state = turn.state(context.state.get(name))
        if state is not None:
            context.state[name] = state

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
        """Record the usage that a response reports; of a stream, that of the last piece."""
        if not llm_response.partial and llm_response.usage_metadata is not None:
            turn = self._under_way.pop(_call_of(callback_context), None)
            if turn is not None:
                turn.record_usage(llm_response.usage_metadata)

    async def on_model_error_callback(self, *, callback_context: Any, llm_request: Any, error: Exception) -> Any:
        """Return the response to a request that was too long, compacted harder and sent once more; ``None`` for other errors.

        If that fails too, ADK raises the first error, with a note of the second.

        Raises:
            BudgetUnsatisfiable: If nothing more may be removed; ADK raises a plugin's error as the cause of a ``RuntimeError``.
        """
        turn = self._under_way.get(_call_of(callback_context))
        if turn is None or await turn.overflowed(error) is None:
            return None
        self._send(turn, callback_context, llm_request)
        try:
            return await _response(callback_context.get_invocation_context(), llm_request)
        except Exception as second:
            error.add_note(f"It was compacted and sent once more: {second!r}")
            return None

    def _overhead(self, request: Any) -> int:
        """Return the tokens of what stands beside the contents: the instruction and the tools."""
        instruction = request.config.system_instruction or ""
        tools = [tool for tool in request.config.tools or () if hasattr(tool, "model_dump_json")]
        shown = [str(instruction), *(tool.model_dump_json(exclude_none=True) for tool in tools)]
        return sum(map(self._counter.count_text, shown))


@attrs.frozen
class _Call:
    """The place of a model call: one call at a time is under way at each.

    Args:
        session: The session, with its application and user.
        agent: The agent, with its branch and its task.
        invocation: The run of the runner.
    """

    session: str
    agent: str
    invocation: str

    @property
    def state_key(self) -> str:
        """The name in the session's state under which the decisions for this agent are saved."""
        return f"compaction:{self.agent}"


def _call_of(context: Any) -> _Call:
    run = context.get_invocation_context()
    session = run.session
    agent = "/".join(each for each in (run.agent.name, run.branch, getattr(run, "isolation_scope", None)) if each)
    return _Call(f"{session.app_name}/{session.user_id}/{session.id}", agent, run.invocation_id)


async def _response(run: Any, request: Any) -> Any:
    """Return the whole response to a request, which counts as a call of this run."""
    run.increment_llm_call_count()
    last = None
    async for response in run.agent.canonical_model.generate_content_async(request, stream=False):
        last = response
    return last
