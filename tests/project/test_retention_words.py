"""The benchmark of a person's words: its texts are frozen and complete, and its figures count what they say."""

from __future__ import annotations

import hashlib
import tomllib

import attrs
import pytest

from benchmarks.retention.words.forms import FOLDER, LANGUAGES, RuleSet, forms, language, written
from benchmarks.retention.words.inventions import Sources, inventions
from benchmarks.retention.words.judging import Finder
from benchmarks.retention.words.scores import Outcome, outcomes
from benchmarks.retention.words.sessions import Case, build, cases
from benchmarks.retention.words.subjects import SUBJECTS, Subject
from benchmarks.retention.words.talks import KINDS, rare_sentences, talk
from compaction import MessageIndex
from compaction.formats import validate
from compaction.tokens import counter

CHARS = counter("chars/4")
CASE = Case(form="dashes", code="en", chosen=0, position=2, calls=20, results="files", window=8_000, turns=4)


def outcome_of(name: str, subject: Subject | None = None) -> Outcome:
    [found] = outcomes([CASE], {name: subject or SUBJECTS[name]}, CHARS)
    return found


def test_the_texts_are_frozen() -> None:
    """Every file of texts has the hash in ``frozen.toml``: it did not change since the figures were measured."""
    frozen = tomllib.loads((FOLDER / "frozen.toml").read_text("utf-8"))["files"]
    texts = [path for path in FOLDER.rglob("*.toml") if path.name != "frozen.toml"]
    assert {path.relative_to(FOLDER).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in texts} == frozen


@pytest.mark.parametrize("code", LANGUAGES)
def test_each_language_is_complete(code: str) -> None:
    """Each language has three sets of a task, six rules and two later tasks, all different."""
    sets = language(code).sets
    assert [(len(each.rules), len(each.later)) for each in sets] == [(6, 2)] * 3
    said = [text for each in sets for text in (each.task, *each.rules, *each.later)]
    assert len(set(said)) == len(said)


@pytest.mark.parametrize("form", forms())
def test_each_form_has_its_task_and_rules(form: str) -> None:
    for code in LANGUAGES:
        chosen: RuleSet = language(code).sets[0]
        wanted = {chosen.task, *chosen.rules}
        assert Finder(wanted).found([{"role": "user", "content": written(form, code, chosen)}]) == wanted


def test_sessions_are_valid_and_exceed_their_window() -> None:
    """Sessions are valid conversations, larger than their window, and the same for the same seed."""
    chosen = list(cases(1, 1, of_forms=["table"], calls=[20, 70]))
    assert chosen == list(cases(1, 1, of_forms=["table"], calls=[20, 70]))
    for case in chosen:
        session = build(case)
        assert validate(list(session.messages)) == []
        assert MessageIndex(list(session.messages), counter=CHARS).tokens > case.window
        assert [session.messages[at]["role"] for _, at in (*session.rules, *session.tasks)] == ["user"] * 9 or case.turns < 4


def test_dropping_everything_loses_rules_tasks_and_messages() -> None:
    """A baseline that drops the oldest groups loses them without a summary, and each cut is counted."""
    found = outcome_of("truncation")
    assert (found.rules, found.last_rules, found.lost) == (0, 0, 4)
    assert 0 < found.cuts.cuts == found.cuts.without


def test_sending_everything_keeps_everything() -> None:
    """With a window for the whole conversation, every rule and task is in every request, and nothing is cut."""
    [found] = outcomes([attrs.evolve(CASE, window=1_000_000)], {"adaptive": SUBJECTS["adaptive"]}, CHARS)
    assert (found.rules, found.tasks, found.lost, found.cuts.cuts) == (1, 1, 0, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_evidence_is_in_the_conversation(kind: str) -> None:
    """Each sentence that answers a question is in the conversation, and marks are not."""
    said = talk(kind, 3)
    texts = [each["content"] for each in said.messages]
    assert [sentence for _, sentence in said.evidence if not any(sentence in text for text in texts)] == []
    assert [text for text in texts if "«" in text or "{" in text] == []
    assert MessageIndex(rare_sentences(said.messages, 900, CHARS), counter=CHARS).tokens <= 900


SOURCES = Sources(
    [
        "Never restart the primary region. The primary region is eu-north-3, says Ada.",
        "read_file path src/app.py",
        "The cutlery is 43 cents lower. It was 64,70 before.",
    ]
)


@pytest.mark.parametrize(
    ("line", "invented"),
    [
        ("## Anything at all", False),
        ("- Never restart the primary region. (message 12)", False),
        ("> 3. User: never restart\tthe primary region", False),
        ("- Ada: The primary region is ... says Ada.", False),
        ("- read_file(src/app.py) -> ok", False),
        ("- Names: eu-north-3 Ada", False),
        ("- (3 more of the user's messages)", False),
        ('- 43 cents lower (the assistant had said: "The cutlery is 43 cents lower.")', False),
        ('- 43 cents lower (the assistant had said: "It was 65 before.")', True),
        ("- The primary region is us-west-2.", True),
        ("- Names: eu-north-4", True),
        ("- Status: Ada says it was before", True),
        ("- The primary region is eu-north-3, says Ada. (now 43, since message 24)", True),
        ("- The cutlery is 43 cents lower. -> The primary region is eu-north-3, says Ada.", True),
    ],
)
def test_inventions(line: str, invented: bool) -> None:
    """A line is an invention if anything but its labels is not in the sources, or two things are joined."""
    assert inventions(line, SOURCES) == ([line] if invented else [])
