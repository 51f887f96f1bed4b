"""Conversion between formats: everything that both formats can express is kept, and each loss is reported with its place."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.errors import InvalidMessage, UnknownFormat
from compaction.formats import MessageFormat, anthropic, bedrock, gemini, openai_chat, openai_responses
from compaction.messages import ToolCallPart, ToolResultPart
from compaction.testing import conversations as chat_conversations
from tests.support.conversion import convert
from tests.support.wires import anthropic_conversations, bedrock_conversations, gemini_conversations, responses_conversations

Raw = dict[str, Any]

CHAT: list[Any] = [
    {"role": "system", "content": "be brief"},
    {
        "role": "user",
        "content": [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}],
    },
    {
        "role": "assistant",
        "content": "let me look",
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"q": 1}'}},
            {"id": "b", "type": "function", "function": {"name": "look", "arguments": "{}"}},
        ],
    },
    {"role": "tool", "tool_call_id": "b", "content": "two"},
    {"role": "tool", "tool_call_id": "a", "content": "one"},
    {"role": "assistant", "content": "done"},
]
RESPONSES: list[Any] = [
    {"type": "message", "role": "system", "content": "be brief"},
    {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}],
    },
    {"type": "message", "role": "assistant", "content": "let me look"},
    {"type": "function_call", "call_id": "a", "name": "look", "arguments": '{"q": 1}'},
    {"type": "function_call", "call_id": "b", "name": "look", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "b", "output": "two"},
    {"type": "function_call_output", "call_id": "a", "output": "one"},
    {"type": "message", "role": "assistant", "content": "done"},
]
ANTHROPIC: list[Any] = [
    {"role": "system", "content": "be brief"},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "see"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
        ],
    },
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "let me look"},
            {"type": "tool_use", "id": "a", "name": "look", "input": {"q": 1}},
            {"type": "tool_use", "id": "b", "name": "look", "input": {}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "b", "content": "two"},
            {"type": "tool_result", "tool_use_id": "a", "content": "one"},
        ],
    },
    {"role": "assistant", "content": "done"},
]
GEMINI: list[Any] = [
    {"role": "user", "parts": [{"text": "see"}, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]},
    {
        "role": "model",
        "parts": [
            {"text": "let me look"},
            {"functionCall": {"id": "a", "name": "look", "args": {"q": 1}}},
            {"functionCall": {"id": "b", "name": "look", "args": {}}},
        ],
    },
    {
        "role": "user",
        "parts": [
            {"functionResponse": {"id": "b", "name": "look", "response": {"result": "two"}}},
            {"functionResponse": {"id": "a", "name": "look", "response": {"result": "one"}}},
        ],
    },
    {"role": "model", "parts": [{"text": "done"}]},
]
BEDROCK: list[Any] = [
    {"role": "user", "content": [{"text": "see"}, {"image": {"format": "png", "source": {"bytes": b"\0\0\0"}}}]},
    {
        "role": "assistant",
        "content": [
            {"text": "let me look"},
            {"toolUse": {"toolUseId": "a", "name": "look", "input": {"q": 1}}},
            {"toolUse": {"toolUseId": "b", "name": "look", "input": {}}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"toolResult": {"toolUseId": "b", "content": [{"text": "two"}]}},
            {"toolResult": {"toolUseId": "a", "content": [{"text": "one"}]}},
        ],
    },
    {"role": "assistant", "content": [{"text": "done"}]},
]
WRITTEN: dict[str, list[Any]] = {
    "openai-chat": CHAT,
    "openai-responses": RESPONSES,
    "anthropic": ANTHROPIC,
    "gemini": GEMINI,
    "bedrock": BEDROCK,
}


@pytest.mark.parametrize("source", ["openai-chat", "openai-responses", "anthropic"])
@pytest.mark.parametrize("target", list(WRITTEN))
def test_the_same_conversation_in_every_format(source: str, target: str) -> None:
    """Content that every format can express converts equally from each; Gemini and Bedrock lose the system message."""
    done = convert(WRITTEN[source], to=target, format=source)
    assert done.messages == WRITTEN[target]
    assert [(problem.where, problem.rule) for problem in done.lost] == (
        [("messages[0]", "system")] if target in ("gemini", "bedrock") else []
    )


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses", "anthropic"])
def test_from_bedrock(target: str) -> None:
    """A Bedrock conversation converts without loss to the same messages as the others, except their system message."""
    done = convert(BEDROCK, to=target)
    assert (done.messages, done.lost) == (WRITTEN[target][1:], ())


def test_what_one_side_says_twice_is_one_message_in_bedrock() -> None:
    """In Bedrock, tool results and the user messages after them become one message; consecutive answers are joined too."""
    chat = [
        *CHAT[1:5],
        {"role": "user", "content": "and?"},
        {"role": "user", "content": "well?"},
        CHAT[-1],
        CHAT[2],
        *CHAT[3:5],
    ]
    done = convert(chat, to=bedrock)
    assert (bedrock.validate(done.messages), done.lost) == ([], ())
    assert [next(iter(block)) for message in done.messages[2:4] for block in message["content"]] == [
        *("toolResult", "toolResult", "text", "text"),
        *("text", "text", "toolUse", "toolUse"),
    ]


def test_documents_in_bedrock_have_a_name_and_words() -> None:
    """A document's name is changed to allowed characters; a document without text beside it, or with bad data, is lost."""
    file = {"type": "file", "file": {"filename": "plan_1.pdf", "file_data": "data:application/pdf;base64,AAAA"}}
    asked = {"role": "user", "content": [{"type": "text", "text": "?"}, file]}
    document = {"name": "plan-1-pdf", "format": "pdf", "source": {"bytes": b"\0\0\0"}}
    assert convert([asked], to=bedrock).messages[0]["content"][1] == {"document": document}
    alone = convert([{"role": "user", "content": [file]}], to=bedrock, format=openai_chat)
    assert (alone.messages, [problem.rule for problem in alone.lost]) == ([], ["media", "empty"])
    broken = {**file, "file": {**file["file"], "file_data": "data:application/pdf;base64,A"}}
    assert [problem.rule for problem in convert([{**asked, "content": [asked["content"][0], broken]}], to=bedrock).lost] == [
        "media"
    ]


def test_the_same_format_is_the_same_list() -> None:
    """Messages that are already in the target format are returned as the same objects."""
    assert [id(message) for message in convert(CHAT, to="openai-chat").messages] == [id(message) for message in CHAT]


def test_from_gemini_calls_get_ids() -> None:
    """Calls from Gemini, which pairs by name and order, get unique ids, and their responses get the same ids."""
    done = convert(GEMINI, to="openai-chat")
    ids = [call["id"] for call in done.messages[1]["tool_calls"]]
    assert len(set(ids)) == 2
    assert [message["tool_call_id"] for message in done.messages[2:4]] == ids
    assert done.lost == ()


@pytest.mark.parametrize(
    ("messages", "source", "target", "lost"),
    [
        pytest.param(
            [{"role": "user", "content": "hi", "name": "Ann"}],
            "openai-chat",
            "anthropic",
            [("messages[0].name", "name")],
            id="name",
        ),
        pytest.param(
            [{"role": "assistant", "content": "hi", "reasoning": "hm"}],
            "openai-chat",
            "gemini",
            [("messages[0]", "reasoning")],
            id="thoughts",
        ),
        pytest.param(
            [*CHAT[:1], {"role": "user", "content": ""}, CHAT[-1]],
            "openai-chat",
            "anthropic",
            [("messages[1]", "empty")],
            id="empty",
        ),
        pytest.param(
            [CHAT[1], CHAT[0], CHAT[1]],
            "openai-chat",
            "anthropic",
            [("messages[1]", "moved-system")],
            id="instruction in between",
        ),
        pytest.param(
            [
                {
                    "role": "user",
                    "content": [
                        {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
                        {"type": "text", "text": "?"},
                    ],
                }
            ],
            "openai-chat",
            "anthropic",
            [("messages[0]", "media")],
            id="sound",
        ),
        pytest.param(
            [
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}],
                },
                {"role": "tool", "tool_call_id": "a", "content": "1"},
            ],
            "openai-chat",
            "gemini",
            [("messages[0]", "arguments"), ("messages[0]", "first-call")],
            id="plain text as arguments",
        ),
        pytest.param(
            [
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "a",
                            "content": [{"type": "image", "source": {"type": "url", "url": "x://y"}}],
                            "is_error": True,
                        }
                    ],
                }
            ],
            "anthropic",
            "openai-chat",
            [("messages[0]", "failed"), ("messages[0]", "media")],
            id="a failed result with a picture",
        ),
        pytest.param(
            [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]}],
            "anthropic",
            "gemini",
            [("messages[0]", "orphan")],
            id="result of no call",
        ),
        pytest.param(
            [{"type": "web_search_call", "id": "ws_1"}],
            "openai-responses",
            "anthropic",
            [("messages[0]", "empty"), ("messages[0]", "part")],
            id="hosted tool",
        ),
        pytest.param(
            [{"role": "assistant", "content": None, "function_call": {"name": "now", "arguments": "{}"}}, CHAT[-1]],
            "openai-chat",
            "openai-responses",
            [("messages[0]", "unanswered")],
            id="a call that nothing answers",
        ),
    ],
)
def test_what_is_lost_is_named(messages: list[Any], source: str, target: str, lost: list[tuple[str, str]]) -> None:
    """Each loss is reported with its place in the source, a rule and a remedy."""
    done = convert(messages, to=target, format=source)
    assert sorted((problem.where, problem.rule) for problem in done.lost) == lost
    assert [problem for problem in done.lost if not problem.remedy] == []


def test_custom_calls_keep_their_kind() -> None:
    """A call of a custom tool and its result keep their kind in both OpenAI formats."""
    items = [
        {"type": "custom_tool_call", "call_id": "a", "name": "sql", "input": "select 1"},
        {"type": "custom_tool_call_output", "call_id": "a", "output": "1"},
    ]
    chat = convert(items, to="openai-chat").messages
    assert chat[0]["tool_calls"] == [{"id": "a", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}]
    assert convert(chat, to="openai-responses").messages == items


@pytest.mark.parametrize(
    ("part", "target", "written"),
    [
        (
            {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}},
            "openai-responses",
            {"type": "input_image", "image_url": "https://x/y.png", "detail": "low"},
        ),
        (
            {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
            "anthropic",
            {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
        ),
        (
            {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
            "gemini",
            {"fileData": {"fileUri": "https://x/y.png"}},
        ),
        (
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA"}},
            "anthropic",
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AA"}},
        ),
        (
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA"}},
            "openai-responses",
            {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AA"},
        ),
        (
            {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
            "gemini",
            {"inlineData": {"mimeType": "audio/wav", "data": "AA"}},
        ),
    ],
)
def test_media(part: Raw, target: str, written: Raw) -> None:
    """Pictures, sounds and files are written in the target's form, as data or as an address."""
    message = {"role": "user", "content": [{"type": "text", "text": "see"}, part]}
    [done] = convert([message], to=target, format="openai-chat").messages
    assert done.get("content", done.get("parts"))[1] == written


@pytest.mark.parametrize(
    ("messages", "options", "error"),
    [
        ([{"role": "user", "content": "hi"}], {"to": "morse"}, UnknownFormat),
        ([{"role": "tool", "content": "x"}, {"role": "model", "parts": []}], {"to": "anthropic"}, UnknownFormat),
        (["hi"], {"to": "anthropic", "format": "openai-chat"}, InvalidMessage),
    ],
)
def test_what_cannot_be_converted(messages: list[Any], options: Raw, error: type[Exception]) -> None:
    """A typed error is raised for an unknown format, a list of several formats and a message that cannot be read."""
    with pytest.raises(error):
        convert(messages, **options)


SOURCES: list[tuple[MessageFormat, st.SearchStrategy[list[Any]]]] = [
    (openai_chat, chat_conversations()),
    (openai_responses, responses_conversations()),
    (anthropic, anthropic_conversations()),
    (gemini, gemini_conversations()),
    (bedrock, bedrock_conversations()),
]
TARGETS = [openai_chat, openai_responses, anthropic, gemini, bedrock]
MODELS_START = {"misplaced-call", "starts-with-answer"}
WAITING = {"pending-call", "trailing-space"}


def links(format: MessageFormat, messages: list[Any]) -> tuple[list[str], list[str]]:
    """Return the names called, in order, and the sorted texts of the results."""
    read = [format.read(message) for message in messages]
    calls = [part.name for message in read for part in message.parts if isinstance(part, ToolCallPart)]
    return calls, sorted(part.text for message in read for part in message.parts if isinstance(part, ToolResultPart))


@pytest.mark.parametrize(
    "around",
    [
        ({"role": "assistant", "content": "Fine."}, {"role": "user", "content": ""}, None),
        (None, {"role": "user", "content": "Well?"}, {"role": "assistant", "content": ""}),
    ],
    ids=["after nothing said", "before nothing said"],
)
def test_an_instruction_beside_a_message_that_goes(around: tuple[Any, Any, Any]) -> None:
    """An instruction beside an empty message, which is removed, is moved if its new neighbours do not allow it."""
    before, neighbour, after = around
    messages = [each for each in (before, neighbour, {"role": "system", "content": "Be brief."}, after) if each is not None]
    done = convert(messages, to="anthropic", format="openai-chat")
    assert anthropic.validate(done.messages) == []
    assert sorted(problem.rule for problem in done.lost) == ["empty", "moved-system"]


@pytest.mark.parametrize("target", TARGETS, ids=[format.name for format in TARGETS])
@pytest.mark.parametrize(("source", "drawn"), SOURCES, ids=[format.name for format, _ in SOURCES])
@given(data=st.data())
def test_what_was_valid_stays_valid(
    source: MessageFormat, drawn: st.SearchStrategy[list[Any]], target: MessageFormat, data: st.DataObject
) -> None:
    """A valid conversation is one in the target too, with the same calls; the input stays, and the output can be JSON."""
    messages = data.draw(drawn)
    before = copy.deepcopy(messages)
    done = convert(messages, to=target, format=source)
    assert messages == before
    stored = json.loads(json.dumps([target.to_wire(message) for message in done.messages]))
    assert [target.from_wire(message) for message in stored] == done.messages
    broken = {problem.rule for problem in target.validate(done.messages)} if done.messages else set()
    known = {problem.rule for problem in source.validate(messages)} | WAITING
    if any(problem.rule == "unanswered" for problem in done.lost):
        known |= {"call-without-result"}  # chat completions alone take a function_call that nothing answers
    if target in (gemini, bedrock):
        known |= MODELS_START  # where a call or any answer may not be first
    assert broken - known == set()
    if not done.lost:
        assert links(target, done.messages)[0] == links(source, messages)[0]


@pytest.mark.parametrize("name", ["cassettes", "tau_airline"])
def test_recorded_conversations(corpus: Callable[[str], list[dict[str, Any]]], name: str) -> None:
    """Repaired recorded conversations are valid in every other format, and no call is lost in converting there and back."""
    for conversation in corpus(name):
        messages = openai_chat.repair(conversation["messages"]).messages
        for target in TARGETS[1:]:
            done = convert(messages, to=target, format=openai_chat)
            assert {problem.rule for problem in target.validate(done.messages)} <= WAITING | MODELS_START
            back = convert(done.messages, to=openai_chat, format=target)
            assert links(openai_chat, back.messages)[0] == links(openai_chat, messages)[0]


def test_an_id_that_anthropic_refuses_is_replaced() -> None:
    """A call id with characters that Anthropic refuses is replaced in the call and its result; other formats keep it."""
    call = {"id": "functions.now:0", "type": "function", "function": {"name": "now", "arguments": "{}"}}
    chat = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "functions.now:0", "content": "noon"},
    ]
    made = convert(chat, to=anthropic).messages
    assert anthropic.validate(made) == []
    assert made[1]["content"][0]["id"] == made[2]["content"][0]["tool_use_id"]
    assert convert(chat, to=openai_responses).messages[1]["call_id"] == "functions.now:0"


@pytest.mark.parametrize("target", [openai_chat, anthropic, gemini, bedrock], ids=lambda format: format.name)
def test_a_result_that_came_late_follows_its_call(target: MessageFormat) -> None:
    """An output that comes late, as Responses allows, is moved directly after its call, and the move is reported."""
    items: list[Any] = [
        {"role": "user", "content": "hi"},
        {"type": "function_call", "call_id": "a", "name": "now", "arguments": "{}"},
        {"type": "function_call", "call_id": "b", "name": "now", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "b", "output": "noon"},
        {"role": "user", "content": "well?"},
        {"type": "function_call_output", "call_id": "a", "output": "one"},
        {"type": "function_call", "call_id": "c", "name": "now", "arguments": "{}"},
        {"role": "user", "content": "and?"},
        {"type": "function_call_output", "call_id": "c", "output": "two"},
    ]
    assert openai_responses.validate(items) == []
    done = convert(items, to=target)
    assert target.validate(done.messages) == []
    assert [(problem.where, problem.rule) for problem in done.lost] == [
        ("messages[5]", "moved-result"),
        ("messages[8]", "moved-result"),
    ]
    assert links(target, done.messages) == (["now"] * 3, ["noon", "one", "two"])


def test_blanks_that_end_the_last_answer_go() -> None:
    """Trailing blanks of a last answer, which Anthropic refuses, are removed, and the removal is reported."""
    done = convert(
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "well: \n"}], to=anthropic, format=openai_chat
    )
    assert done.messages[1] == {"role": "assistant", "content": "well:"}
    assert [(problem.where, problem.rule) for problem in done.lost] == [("messages[1]", "blanks")]
