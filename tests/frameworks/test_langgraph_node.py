"""The LangGraph node, invoked without a graph: its updates, its state, its log, and retries."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from compaction import CompactionResult, Edit, MessageIndex, last
from compaction.errors import ConfigurationError
from compaction.integrations.langgraph import StateKeys, SummarizationNode
from compaction.strategies import Summarization, ToolResult, Truncation
from compaction.triggers import always, tokens_exceed
from tests.frameworks.test_langchain_calls import NOTES
from tests.support.scripted import Awaited, TooLong

NEVER = Truncation(trigger=tokens_exceed(1_000_000), keep=last(groups=1))
TRUNCATION = Truncation(trigger=tokens_exceed(300), keep=last(groups=2))
SUMMARY = Summarization(trigger=tokens_exceed(300), keep=last(groups=2))


def node_of(strategy: Any = SUMMARY, keys: StateKeys | None = None, **options: Any) -> SummarizationNode:
    return SummarizationNode(strategy, keys=keys, counter="chars/4", **options)


async def test_the_keys_of_a_chat_state() -> None:
    """The view and the edits are under ``context``, beside what else is there, and the summary is a key of its own."""
    node = node_of(keys=StateKeys.chat_state(), name="short")
    assert node.name == "short"
    given: dict[str, Any] = {"messages": NOTES, "context": {"user": "Kim"}}
    update = node.invoke(given)
    assert update.keys() == {"context", "summary"}
    assert update["context"].keys() == {"user", "messages", "compaction"}
    assert (update["context"]["user"], len(update["context"]["messages"]) < 8) == ("Kim", True)
    assert "Note 0" in update["summary"]
    assert given == {"messages": NOTES, "context": {"user": "Kim"}}
    assert (await node(given)).keys() == update.keys()
    bare = node_of(keys=StateKeys.chat_state()).invoke({"messages": NOTES[:1]})
    assert bare == {"context": {"messages": NOTES[:1]}, "summary": ""}
    odd = node_of(keys=StateKeys.chat_state()).invoke({"messages": NOTES[:1], "context": None})
    assert odd == bare


def test_a_new_process_continues_with_the_saved_edits() -> None:
    """The saved edits give the same view; they are written again only if they changed."""
    first = node_of().invoke({"messages": NOTES})
    saved = json.loads(json.dumps(first["compaction"]))
    resumed = node_of(NEVER).invoke({"messages": NOTES, "compaction": saved})
    assert resumed == {"llm_input_messages": first["llm_input_messages"]}
    assert node_of(NEVER).invoke({"messages": NOTES}) == {"llm_input_messages": NOTES}
    unsaved = node_of(keys=StateKeys(state=None)).invoke({"messages": NOTES})
    assert (list(unsaved), len(unsaved["llm_input_messages"]) < 8) == (["llm_input_messages"], True)


def test_a_framework_that_gives_ids_to_summaries() -> None:
    """LangGraph does so in place, if it streams messages; a new process has the same view nevertheless."""
    node, state, seen = node_of(), dict[str, Any](), list[Any]()
    for _ in range(3):
        seen += [message.model_copy(update={"id": f"{len(seen)}-{message.id}"}) for message in NOTES]
        state.update(node.invoke({"messages": seen, **state}))
        for number, message in enumerate(state["llm_input_messages"]):
            message.id = message.id or f"streamed-{number}"
    saved = json.loads(json.dumps(state["compaction"]))
    assert json.dumps(saved).count('"streamed-') == 2
    resumed = node_of(NEVER).invoke({"messages": seen, "compaction": saved})
    assert [each.content for each in resumed["llm_input_messages"]] == [each.content for each in state["llm_input_messages"]]


def test_a_state_without_messages() -> None:
    with pytest.raises(ConfigurationError, match=r"the state has no 'messages'.*keys=StateKeys"):
        node_of().invoke({"chat": []})


async def test_a_summarizer_that_is_awaited() -> None:
    strategy = Summarization(Awaited("Some notes."), trigger=tokens_exceed(300), keep=last(groups=2))
    update = await node_of(strategy, StateKeys(summary="summary")).ainvoke({"messages": NOTES})
    assert update["summary"].endswith("Some notes.")


def test_messages_that_cannot_be_read() -> None:
    update = node_of(keys=StateKeys(summary="summary")).invoke({"messages": ["no message"]})
    assert update == {"llm_input_messages": ["no message"], "summary": ""}


def test_rewriting() -> None:
    """The messages are replaced if anything changed; otherwise the update is empty."""
    node = node_of(keys=StateKeys.rewriting())
    assert node.invoke({"messages": NOTES[:2]}) == {}
    removal, *view = node.invoke({"messages": NOTES})["messages"]
    assert (removal.type, len(view) < 8, view[-1]) == ("remove", True, NOTES[-1])


@pytest.mark.parametrize(
    "keys",
    [{"view": "messages"}, {"state": "messages"}, {"summary": "compaction"}, {"messages": "compaction", "state": "compaction"}],
)
def test_a_key_that_is_named_twice(keys: Any) -> None:
    """Two uses of one key are an error; a use without a key is none."""
    with pytest.raises(ConfigurationError, match="names a key twice"):
        StateKeys(**keys)
    assert StateKeys(view=None, state=None, summary=None).messages == "messages"


def test_a_counter_of_message_lists() -> None:
    """A text counts what it adds to a message, at least nothing, under the function's name, and never claims to be exact."""

    def words(messages: list[Any]) -> int:
        return 9 + sum(len(each.text.split()) for each in messages) if "less" not in messages[0].text else 0

    counter: Any = SummarizationNode(NEVER, token_counter=words).conversations.options.counter
    assert [counter.count_text(text) for text in ("two words", "", "less")] == [2, 0, 0]
    assert counter.name.endswith("test_a_counter_of_message_lists.<locals>.words")
    assert counter.exact is False
    with pytest.raises(ConfigurationError, match="not both"):
        SummarizationNode(NEVER, counter="chars/4", token_counter=words)


# --- retries ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keys", [StateKeys(), StateKeys.rewriting(), StateKeys.chat_state()], ids=["view", "rewrite", "chat"])
async def test_a_node_that_is_run_once_more(keys: StateKeys) -> None:
    """It gets a shorter view under the same key, with its other arguments and the rest of the state; so does an awaited one."""
    strategy = Summarization(Awaited("Some notes."), trigger=tokens_exceed(1_000_000), keep=last(groups=1))
    seen: list[Any] = []

    def answer(state: Any, config: str, *, store: str) -> Any:
        """Answer."""
        seen.append(state)
        if len(seen) == 1:
            raise TooLong("prompt is too long: 740 tokens > 500 maximum")
        return [config, store]

    async def awaited(state: Any, config: str, *, store: str) -> Any:
        """Answer."""
        return answer(state, config, store=store)

    given = {"messages": NOTES, "other": 1, "context": {"user": "Kim"}}
    for node in (node_of(NEVER, keys).retrying(answer), node_of(strategy, keys).retrying(awaited)):
        seen.clear()
        said = node(given, "a", store="b")
        assert (said if node.__name__ == "answer" else await said) == ["a", "b"]
        assert node.__doc__ == "Answer."
        view = seen[1]
        for name in (keys.view or "messages").split("."):
            view = view[name]
        assert (len(view) < 8, seen[0], seen[1]["other"], seen[1]["context"]["user"]) == (True, given, 1, "Kim")


def test_what_is_not_retried() -> None:
    """After another error nothing runs. A length error of messages that cannot be read is raised, and the node runs once."""
    results: list[CompactionResult] = []
    for messages, error, ran in ((NOTES, ZeroDivisionError(), 0), (["no message"], TooLong("prompt is too long: 9 > 4"), 1)):
        calls: list[Any] = []

        def failing(state: Any, error: Exception = error, calls: list[Any] = calls) -> Any:
            calls.append(state)
            raise error

        before = len(results)
        with pytest.raises(type(error)):
            node_of(NEVER, on_result=results.append).retrying(failing)({"messages": messages})
        assert (len(calls), len(results) - before) == (1, ran)


# --- the log ----------------------------------------------------------------------------------------------------------


def logged(caplog: pytest.LogCaptureFixture, node: SummarizationNode, messages: list[Any]) -> dict[str, dict[str, Any]]:
    """Return the fields of each record of a run."""
    caplog.clear()
    caplog.set_level(logging.INFO, logger="compaction.langgraph")
    node.invoke({"messages": messages})
    return {record.getMessage(): record.__dict__ for record in caplog.records if record.name == "compaction.langgraph"}


def broken(index: MessageIndex) -> Iterator[Edit]:
    """A strategy that fails."""
    raise ZeroDivisionError("key sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ")
    yield  # makes it a generator


def test_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """A change is logged with its figures, a summary with its length, and a failure without secrets; nothing else is."""
    results: list[CompactionResult] = []
    node = node_of(keys=StateKeys(summary="summary"), on_result=results.append)
    assert logged(caplog, node, NOTES[:1]) == {}
    records = logged(caplog, node, NOTES)
    assert list(records) == ["conversation_summarized", "context_compressed"]
    after = results[-1].after
    assert records["conversation_summarized"]["input_messages"] == len(NOTES) - after.messages + 1
    assert records["conversation_summarized"]["summary_length"] > 40
    figures = records["context_compressed"]
    assert figures["original_tokens"] == results[-1].before.tokens
    assert figures["compressed_tokens"] == after.tokens
    assert figures["compression_ratio"] == f"{100 - 100 * after.tokens / results[-1].before.tokens:.1f}%"
    assert list(logged(caplog, node_of(TRUNCATION), NOTES)) == ["context_compressed"]
    failed = logged(caplog, node_of(broken), NOTES)
    assert list(failed) == ["summarization_failed"]
    told = failed["summarization_failed"]
    assert (told["error_type"], "abcdefg" in told["error"]) == ("ZeroDivisionError", False)


def test_only_summaries_are_the_summary() -> None:
    """A note in place of tool calls is not a summary of the conversation."""
    messages: list[Any] = [HumanMessage("Prices?")]
    for turn in range(4):
        call = {"name": "look_up", "args": {}, "id": f"c{turn}"}
        messages += [AIMessage("", tool_calls=[call]), ToolMessage("5 euros. " * 40, tool_call_id=f"c{turn}")]
    node = node_of(ToolResult(trigger=always, keep=last(groups=1)), StateKeys(summary="summary"))
    update = node.invoke({"messages": messages})
    assert (len(update["llm_input_messages"]) < len(messages), update["summary"]) == (True, "")
