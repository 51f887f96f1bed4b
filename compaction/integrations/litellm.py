"""LiteLLM proxy: a callback that compacts the conversations of all clients before they reach a model.

    compaction = ProxyCompaction(presets.context_window(200_000))     # in the file that ``callbacks:`` of the config names

``docs/frameworks/litellm.md`` has the whole configuration. The proxy calls ``async_pre_call_hook`` with each request. A hook
cannot repeat a request, but the proxy's router can: after a length error it tries the model's ``context_window_fallbacks``. The
callback therefore makes each request's own model its first fallback. When the first attempt fails, the deployment's failure
hook compacts further. When the router tries again, the deployment's pre-call hook replaces the messages with the shorter ones.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Final, Unpack

import attrs

from ..formats import ANTHROPIC_API, CHAT_API, RESPONSES_API, ModelAPI, StreamedUsage, fields_of, items_of
from ..stores import SessionStore
from ..strategies import StrategyLike
from .conversation import FrameworkConversations, FrameworkTurn
from .options import CommonOptions, IntegrationOptions
from .requirements import LITELLM, framework_class, import_framework

__all__ = ["ProxyCompaction", "conversation_scope"]

_CustomLogger: Any = framework_class("litellm.integrations.custom_logger", "CustomLogger")
_APIS: Final[Mapping[str, ModelAPI]] = {
    "completion": CHAT_API,
    "acompletion": CHAT_API,
    "anthropic_messages": ANTHROPIC_API,
    "responses": RESPONSES_API,
    "aresponses": RESPONSES_API,
}


@attrs.define(eq=False)
class _Sent:
    """A request under way. Holds state: the turn, and the error to raise at the next attempt if nothing more can be removed."""

    turn: FrameworkTurn
    key: str
    refusal: Exception | None = None


class ProxyCompaction(_CustomLogger):
    """A callback of the LiteLLM proxy that compacts chat completions, Responses and Anthropic messages.

    Each conversation is found by the session id that its client sends, in any header or field that the proxy reads, and by
    its messages. Virtual keys, users, teams, end users and models share nothing. Tools and the system prompt count. The usage
    that the provider reports, streamed or not, corrects the counts. A request that the provider finds too long is compacted
    further and sent once more. A request with the header ``x-compact-focus`` is compacted now, with a summary that gives most
    room to the header's text.

    Conversations that a provider keeps (``previous_response_id``, ``store``, ``thread`` and so on) are not compacted, and
    neither are the proxy's pass-through endpoints, which call no hook. Holds state: its ``conversations``, and the requests
    under way.

    Args:
        strategy: The strategy; its trigger decides when it runs. Its summarizer must not use this proxy with the same callback.
        store: Where to save the edits, if anywhere; a restarted proxy finds them by the messages.
        options: As for `IntegrationOptions`: ``counter=``, ``window=``, ``on_failure=``, ``on_event=`` and so on.

    Raises:
        ConfigurationError: If the framework is missing or too old, or an option is out of range.
    """

    def __init__(self, strategy: StrategyLike, *, store: SessionStore | None = None, **options: Unpack[CommonOptions]) -> None:
        LITELLM.check()
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        given = IntegrationOptions(strategy=strategy, **options)
        formats = [api.format for api in (CHAT_API, ANTHROPIC_API, RESPONSES_API)]
        self.conversations = {each.name: FrameworkConversations(given, each, store=store) for each in formats}
        self._sent: weakref.WeakKeyDictionary[Any, _Sent] = weakref.WeakKeyDictionary()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_sent": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _sent=weakref.WeakKeyDictionary())

    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: dict[str, Any], call_type: str
    ) -> dict[str, Any]:
        """Return the request with compacted messages."""
        api = _APIS.get(call_type)
        messages = None if api is None or api.kept(data) else items_of(data.get(api.key))
        if api is None or not messages:
            return data
        conversations = self.conversations[api.format.name]
        headers = fields_of((fields_of(data.get("proxy_server_request")) or {}).get("headers")) or {}
        turn = await conversations.turn(
            messages,
            id=_session_id(data),
            scope=conversation_scope(user_api_key_dict, data),
            model=_model_name(data.get("model")),
            focus=headers.get("x-compact-focus"),
            overhead_tokens=conversations.count(*api.beside(data)),
        )
        self._sent[data["litellm_logging_obj"]] = _Sent(turn, api.key)
        return {**data, api.key: turn.view, "context_window_fallbacks": _with_retry(data)}

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: Any) -> dict[str, Any] | None:
        """Put the shorter messages into a further attempt."""
        sent = self._known(kwargs)
        if sent is None:
            return None
        if sent.refusal is not None:
            error, sent.refusal = sent.refusal, None
            # An error of this kind is not tried again: the router takes the next fallback.
            raise import_framework("litellm").ContextWindowExceededError(
                message=str(error), model=str(kwargs.get("model")), llm_provider=str(kwargs.get("custom_llm_provider") or "")
            ) from error
        return {**kwargs, sent.key: sent.turn.view} if sent.turn.was_refused else None

    async def async_post_call_failure_deployment_hook(
        self, request_data: Mapping[str, Any], exception: Exception, call_type: Any, fallback_depth: int | None = None
    ) -> None:
        """Compact further if an attempt was too long; once for each request."""
        if (sent := self._known(request_data)) is not None:
            try:
                await sent.turn.overflowed(exception)
            except Exception as error:
                sent.refusal = error

    async def async_post_call_success_hook(self, data: dict[str, Any], user_api_key_dict: Any, response: Any) -> None:
        """Record the usage of a reply that is not streamed."""
        if (sent := self._known(data)) is not None:
            usage = StreamedUsage()
            usage.add(response)
            sent.turn.record_usage(usage.read())

    async def async_post_call_streaming_iterator_hook(
        self, user_api_key_dict: Any, response: Any, request_data: dict[str, Any]
    ) -> AsyncGenerator[Any]:
        """Yield the events of a streamed reply, and record the usage that they report."""
        sent, usage = self._known(request_data), StreamedUsage()
        try:
            async for event in response:
                usage.add(event)
                yield event
        finally:
            if sent is not None:
                sent.turn.record_usage(usage.read())

    def _known(self, data: Mapping[str, Any]) -> _Sent | None:
        """Return the request that this data belongs to; the proxy creates a logging object for each request."""
        made = data.get("litellm_logging_obj")
        return None if made is None else self._sent.get(made)


def _session_id(data: Mapping[str, Any]) -> str | None:
    """Return the session id that the client sent, as the proxy found it in headers and metadata."""
    buckets = [fields_of(data.get(name)) or {} for name in ("metadata", "litellm_metadata")]
    if any(bucket.get("litellm_session_id_generated") for bucket in buckets):  # by the proxy, for this request alone
        return None
    found = (data.get("litellm_session_id"), *(bucket.get("session_id") for bucket in buckets))
    return next((each for each in found if isinstance(each, str) and each), None)


def conversation_scope(auth: Any, data: Mapping[str, Any]) -> str:
    """Return a name for the requests that may share a conversation: those of one key, team, user, end user and model.

    The keys are in the proxy's ``UserAPIKeyAuth`` of the request.
    """
    names = [getattr(auth, name, None) for name in ("api_key", "team_id", "user_id", "end_user_id")]
    return json.dumps([*names, data.get("user"), data.get("model")], default=str)


def _model_name(group: object) -> str | None:
    """Return the name of the model behind a model group of the proxy, taken from its first deployment."""
    if not isinstance(group, str):
        return None
    router = import_framework("litellm.proxy.proxy_server").llm_router
    found: Sequence[Any] = (router.get_model_list(model_name=group) if router is not None else None) or ()
    first = fields_of(found[0]) if found else None
    info, params = (fields_of((first or {}).get(name)) or {} for name in ("model_info", "litellm_params"))
    name = info.get("base_model") or params.get("model") or group
    return str(name)


def _with_retry(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the fallbacks for a request that is too long: the same model with shorter messages, then the configured ones."""
    router = import_framework("litellm.proxy.proxy_server").llm_router
    given: list[Any] = data.get("context_window_fallbacks") or getattr(router, "context_window_fallbacks", None) or []
    model = data.get("model")
    if not isinstance(model, str):
        return given
    chain = import_framework("litellm.router_utils.fallback_event_handlers").get_fallback_model_group
    others, _ = chain(fallbacks=given, model_group=model)
    # The router does not try the bare name of the model that failed; it sets this field itself.
    again = {"model": model, "fallback_depth": 0}
    return [{model: [again, *(others or [])]}, *given]
