"""Replay of one conversation: call by call, the request each candidate would have sent, and its consequences."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from ..formats import resolve
from ..tokens import MessageMeter
from .candidates import Candidate, CandidateAction, CandidateSession, CandidateSetting
from .prompt_cache import PromptCache
from .recordings import Recording
from .records import CandidateRun, PrefixBreak, ReplayedCall, ReplayedConversation, ReplaySetting, Share
from .request_chain import RequestChain, RequestDiff
from .transcript import Needs, Transcript

_MOST_COMPACTIONS = 4


def replay_conversation(recording: Recording, candidates: Sequence[Candidate], setting: ReplaySetting) -> ReplayedConversation:
    """Replay one conversation, as `without_unreadable` returns it, under every candidate."""
    transcript = Transcript(
        recording,
        format=resolve(recording.format),
        meter=MessageMeter(setting.counter),
        window=setting.window,
        overhead_tokens=setting.overhead_tokens,
    )
    return ReplayedConversation(
        recording=attrs.evolve(recording, notes=(*recording.notes, *_notes(transcript))),
        tokens=transcript.cumulative[-1],
        exceeds=any(need.tokens > setting.window for need in transcript.needs),
        needs=tuple([need.without_places() for need in transcript.needs]),
        output_tokens=tuple([sum(transcript.tokens[at] for at in answer) for answer in transcript.answers]),
        timed=bool(recording.times) and None not in recording.times,
        runs={each.name: _CandidateReplay(transcript, each, setting).run() for each in candidates},
    )


def _notes(transcript: Transcript) -> list[str]:
    """Return the problems of a log, in words."""
    rules = Counter(transcript.broken_rules(len(transcript.messages)))
    rules.pop("no-messages", None)
    notes = [f"the log itself breaks {rule}, {count} times" for rule, count in sorted(rules.items())]
    if transcript.messages and transcript.messages[0].role == "assistant":
        notes.append("it starts with an answer without a question; that call is not replayed")
    if not transcript.calls:
        notes.append("it contains no call: no assistant message has a history")
    return notes


class _CandidateReplay:
    """One conversation replayed under one candidate. Holds state: the clock, the requests, the failures."""

    def __init__(self, transcript: Transcript, candidate: Candidate, setting: ReplaySetting) -> None:
        self._transcript = transcript
        self._candidate = candidate
        self._setting = setting
        self._requests = RequestChain(transcript)
        self._cache = PromptCache(setting.prices)
        self._now = 0.0
        self._failed: Counter[str] = Counter()
        self._first_failed: dict[str, int] = {}
        self._last: tuple[int, list[Any]] = (0, [])
        self._compacted_at: list[int] = []
        self._survival: dict[int, Share] = {}

    def run(self) -> CandidateRun:
        setting = CandidateSetting(
            window=self._setting.window,
            counter=self._setting.counter,
            format=self._transcript.format,
            overhead_tokens=self._setting.overhead_tokens,
            clock=lambda: self._now,
        )
        session = self._attempt(0, lambda: self._candidate.session(setting))
        calls = [] if session is None else [self._call(number, session) for number in range(len(self._transcript.calls))]
        return CandidateRun(
            candidate=self._candidate.name,
            calls=tuple(calls),
            survival=dict(sorted(self._survival.items())),
            failures=tuple(
                [
                    f"{error}, {times} times, first at message {self._first_failed[error]}"
                    for error, times in self._failed.items()
                ]
            ),
        )

    def _attempt(self, ordinal: int, call: Callable[[], Any]) -> Any:
        """Return what a candidate's code returns; ``None`` if it raised, which is noted."""
        try:
            return call()
        except Exception as error:  # reported in the output; the replay continues
            words = f"{type(error).__name__}: {error}"
            self._failed[words] += 1
            self._first_failed.setdefault(words, ordinal)
            return None

    def _call(self, number: int, session: CandidateSession) -> ReplayedCall:
        transcript, setting = self._transcript, self._setting
        needs = transcript.needs[number]
        now = self._tick(number)
        view, actions, seconds = self._view(number, session)
        before = self._requests.visible
        step = self._requests.add(view)
        self._last = needs.ordinal, view
        shared = step.shared_tokens if setting.prices.block_tokens else step.whole_tokens
        use = self._cache.send(step.tokens, shared_tokens=shared, now=now)
        compacted = step.broken or bool(actions)
        left, back = self._moved(before, number) if compacted else ((), ())
        if compacted:
            self._note_survival(needs.ordinal)
        return ReplayedCall(
            ordinal=needs.ordinal,
            tokens=step.tokens,
            messages=len(view),
            over=step.tokens > setting.window,
            broken_rules=self._broken_rules(needs.ordinal, view),
            cache=use,
            broken=PrefixBreak(step.lost_tokens, step.shared_messages, _cause(actions, step)) if step.broken else None,
            compacted=compacted,
            seconds=seconds,
            actions=tuple(actions),
            left=left,
            back=back,
            **self._missing(needs),
        )

    def _tick(self, number: int) -> float | None:
        """Set the clock to the time of the call's last message if it was recorded, else one second later."""
        times = self._transcript.recording.times
        time_of_call = times[self._transcript.calls[number] - 1] if times else None
        self._now = self._now + 1.0 if time_of_call is None else max(self._now, time_of_call)
        return time_of_call

    def _view(self, number: int, session: CandidateSession) -> tuple[list[Any], Sequence[CandidateAction], float]:
        """Return the request, the actions behind it, and the CPU seconds it took."""
        ordinal = self._transcript.calls[number]
        history = list(self._transcript.recording.messages[:ordinal])
        start = time.thread_time()
        view = self._attempt(ordinal, lambda: list(session.view(history)))
        seconds = time.thread_time() - start
        if view is None:
            known, last = self._last
            return last + history[known:], (), seconds
        return view, self._attempt(ordinal, session.actions) or (), seconds

    def _broken_rules(self, ordinal: int, view: list[Any]) -> tuple[str, ...]:
        """Return the rules that a request breaks more often than the whole history; O(request), unless it is the history."""
        if view == self._transcript.recording.messages[:ordinal]:
            return ()
        broken = Counter(problem.rule for problem in self._transcript.format.validate(view))
        return tuple(sorted(broken - self._transcript.broken_rules(ordinal))) if broken else ()

    def _missing(self, needs: Needs) -> dict[str, Any]:
        """Return what the recorded answer needs, or the user said, and the request does not contain."""
        contains, contains_span = self._requests.contains, self._requests.contains_span
        unsaid = [self._requests.missing_of(each) for each in self._transcript.said if each.ordinal < needs.ordinal]
        return {
            "missing_facts": tuple([at for at, fact in enumerate(needs.facts) if not contains(fact.text, fact.places)]),
            "missing_words": sum(not contains(word, places) for word, places in needs.words),
            "missing_spans": sum(not contains_span(span, places) for span, places in needs.spans),
            "missing_said_words": sum(words for words, _ in unsaid),
            "missing_said_sentences": sum(sentences for _, sentences in unsaid),
        }

    def _moved(self, before: set[int], number: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the recorded messages that left the request at a call, and those that came back."""
        calls = self._transcript.calls
        seen = calls[number - 1] if number else 0
        now = self._requests.visible
        left = [at for at in (*before, *range(seen, calls[number])) if at not in now]
        return tuple(sorted(left)), tuple(sorted(at for at in now if at < seen and at not in before))

    def _note_survival(self, ordinal: int) -> None:
        """Count the user's instructions that are still in the request after a compaction."""
        self._compacted_at.append(ordinal)
        for at, sentence in self._transcript.constraints:
            if at >= ordinal:
                break
            times = min(len(self._compacted_at) - bisect_right(self._compacted_at, at), _MOST_COMPACTIONS)
            quoted = Share(self._requests.quotes(sentence, at), 1)
            self._survival[times] = self._survival.get(times, Share()) + quoted


def _cause(actions: Sequence[CandidateAction], step: RequestDiff) -> str:
    """Return the cause of a broken prefix: the action that concerns the earliest message."""
    if not actions:
        return "the request was rebuilt"
    first = min(actions, key=lambda action: action.ordinals[:1] or (step.shared_messages,))
    return f"{first.by}: {first.reason or first.kind}"
