"""Digests and lists of facts do not keep secrets: they are stored, and sent again with every request."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.summarizers import DigestSummarizer, FactSummarizer
from tests.support.chats import Chat, call, result, user
from tests.support.planted_secrets import Planted, secrets
from tests.support.scripted import request_for


def summary_of(summarizer: DigestSummarizer | FactSummarizer, chat: Chat, **options: Any) -> str:
    return str(summarizer.summarize(request_for(summarizer, chat, budget=2_000, **options)))


def chats_with(text: str) -> list[Chat]:
    return [[user(text)], [user("Read notes.txt."), call("c1", name="read"), result("c1", text)]]


def kept(planted: tuple[Planted, ...], summarizer: DigestSummarizer | FactSummarizer) -> list[str]:
    return [each.shape for each in planted for chat in chats_with(each.text) if each.secret in summary_of(summarizer, chat)]


@pytest.mark.parametrize("summarizer", [DigestSummarizer(), DigestSummarizer(growth=1.0), FactSummarizer()])
def test_secrets_do_not_get_into_a_summary(summarizer: DigestSummarizer | FactSummarizer) -> None:
    """Of the shapes that `redact` recognizes, none stays, whether the user or a tool showed it."""
    found = kept(secrets("further", "unseen"), summarizer)
    assert set(found) <= {"<th>user</th><th>password</th></tr>\n<tr><td>dan</td><td>§</td>"}


@pytest.mark.parametrize("summarizer", [DigestSummarizer(), FactSummarizer()])
def test_an_earlier_summary_is_redacted(summarizer: DigestSummarizer | FactSummarizer) -> None:
    chat = [user("Go on with build 4.2.1.")]
    assert "hunter2x" not in summary_of(summarizer, chat, previous="## Critical Context\n- password: hunter2x")


def test_redaction_can_be_switched_off() -> None:
    chat = [user("The password: hunter2x is for build 4.2.1.")]
    assert "hunter2x" in summary_of(DigestSummarizer(redact=None), chat)
    assert "hunter2x" in summary_of(FactSummarizer(redact=None), chat)


def test_its_repr_is_the_same_in_every_process() -> None:
    """The default is shown by its name, since caches and stores distinguish summarizers by their `repr`."""
    assert repr(DigestSummarizer()) == "DigestSummarizer(growth=0.45, redact=redact)"
    assert repr(FactSummarizer()) == "FactSummarizer(redact=redact)"
