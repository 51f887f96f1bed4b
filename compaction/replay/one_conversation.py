"""Replay of one conversation: call by call, the request each candidate would have sent, and its consequences."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from ..formats import resolve
from ..models import ModelPrices
from ..tokens import MessageMeter
from .candidates import Candidate, CandidateAction, CandidateSession, CandidateSetting
from .recordings import Recording
from .records import CacheUse, CandidateRun, PrefixBreak, ReplayedCall, ReplayedConversation, ReplaySetting, Share
from .request_chain import RequestChain, RequestDiff
from .transcript import Transcript

_MOST_COMPACTIONS = 4  # a larger number counts as this


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
        needs=transcript.needs,
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
        self._failed: dict[str, list[int]] = {}  # by error: the messages at which it was raised
        self._sent: list[Any] = []  # the last request
        self._sent_at = 0  # the number of recorded messages before it
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
                    f"{error}, {'once,' if len(at) == 1 else f'{len(at):,} times, first'} at message {at[0]}"
                    for error, at in self._failed.items()
                ]
            ),
        )

    def _attempt(self, ordinal: int, call: Callable[[], Any]) -> Any:
        """Return what a candidate's code returns; ``None`` if it raised, which is noted."""
        try:
            return call()
        except Exception as error:  # reported in the output; the replay continues
            self._failed.setdefault(f"{type(error).__name__}: {error}", []).append(ordinal)
            return None

    def _call(self, number: int, session: CandidateSession) -> ReplayedCall:
        ordinal = self._transcript.calls[number]
        now = self._tick(number)
        view, actions, seconds = self._request(ordinal, session)
        before = self._requests.visible
        diff = self._requests.add(view)
        compacted = diff.broken or bool(actions)
        left, back = self._moved(before, number) if compacted else ((), ())
        if compacted:
            self._note_survival(ordinal)
        missing_facts, shares = self._found(number)
        # some caches end only between messages, others at any block of tokens
        shared = diff.shared_tokens if self._setting.prices.block_tokens else diff.shared_whole_tokens
        return ReplayedCall(
            ordinal=ordinal,
            tokens=diff.tokens,
            messages=len(view),
            over=diff.tokens > self._setting.window,
            broken_rules=self._broken_rules(ordinal, view),
            cache=self._cache.send(diff.tokens, shared_tokens=shared, now=now),
            broken=PrefixBreak(diff.lost_tokens, diff.shared_messages, _cause(actions, diff)) if diff.broken else None,
            compacted=compacted,
            seconds=seconds,
            missing_facts=missing_facts,
            shares=shares,
            actions=tuple(actions),
            left=left,
            back=back,
        )

    def _tick(self, number: int) -> float | None:
        """Set the clock to the time of the call's last message if it was recorded, else one second later."""
        times = self._transcript.recording.times
        time_of_call = times[self._transcript.calls[number] - 1] if times else None
        self._now = self._now + 1.0 if time_of_call is None else max(self._now, time_of_call)
        return time_of_call

    def _request(self, ordinal: int, session: CandidateSession) -> tuple[list[Any], Sequence[CandidateAction], float]:
        """Return the request, the actions behind it, and the CPU seconds it took.

        If the candidate raises, the request is the last one and the messages that were recorded since.
        """
        history = list(self._transcript.recording.messages[:ordinal])
        start = time.thread_time()
        view = self._attempt(ordinal, lambda: list(session.view(history)))
        seconds = time.thread_time() - start
        actions: Sequence[CandidateAction] = ()
        if view is None:
            view = self._sent + history[self._sent_at :]
        else:
            actions = self._attempt(ordinal, session.actions) or ()
        self._sent, self._sent_at = view, ordinal
        return view, actions, seconds

    def _broken_rules(self, ordinal: int, view: list[Any]) -> tuple[str, ...]:
        """Return the rules that a request breaks more often than the whole history; O(request), unless it is the history."""
        if view == self._transcript.recording.messages[:ordinal]:
            return ()
        broken = Counter(problem.rule for problem in self._transcript.format.validate(view))
        return tuple(sorted(broken - self._transcript.broken_rules(ordinal))) if broken else ()

    def _found(self, number: int) -> tuple[tuple[int, ...], dict[str, Share]]:
        """Return the needed facts that the request lacks, by place, and its shares."""
        contains, contains_span = self._requests.contains, self._requests.contains_span
        needs, places = self._transcript.needs[number], self._transcript.places[number]
        facts = [contains(fact.text, where) for fact, where in zip(needs.facts, places.facts, strict=True)]
        said = [each for each in self._transcript.said if each.ordinal < needs.ordinal]
        quoted = [self._requests.quoted_of(each) for each in said]
        return tuple([place for place, found in enumerate(facts) if not found]), {
            "facts": Share(sum(facts), len(facts)),
            "words": Share(sum(contains(word, where) for word, where in places.words.items()), len(places.words)),
            "spans": Share(sum(contains_span(span, where) for span, where in places.spans.items()), len(places.spans)),
            "said": Share(sum(words for words, _ in quoted), sum(len(each.words) for each in said)),
            "sentences": Share(sum(sentences for _, sentences in quoted), sum(len(each.sentences) for each in said)),
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


def _cause(actions: Sequence[CandidateAction], diff: RequestDiff) -> str:
    """Return the cause of a broken prefix: the action that concerns the earliest message."""
    if not actions:
        return "the request was rebuilt"
    first = min(actions, key=lambda action: action.ordinals[:1] or (diff.shared_messages,))
    return f"{first.by}: {first.reason or first.kind}"


class PromptCache:
    """A model of a provider's prompt cache. Holds state: the time of the last request.

    Only the previous request is compared: providers match exact prefixes, and a conversation is one chain of requests.
    """

    def __init__(self, rules: ModelPrices) -> None:
        self._rules = rules
        self._used_at: float | None = None

    def send(self, tokens: int, *, shared_tokens: int, now: float | None = None) -> CacheUse:
        """Send the next request, which starts like the previous one, and return how its tokens are billed.

        If the time (``now``) was not recorded, nothing expires.
        """
        rules = self._rules
        if tokens < rules.minimum_tokens:
            return CacheUse(0, 0, tokens)
        read = shared_tokens - shared_tokens % rules.block_tokens if rules.block_tokens else shared_tokens
        if read < rules.minimum_tokens:
            read = 0
        expired = bool(read) and now is not None and self._used_at is not None and now - self._used_at > rules.ttl_seconds
        self._used_at = now
        if expired:
            read = 0
        return CacheUse(read, tokens - read, 0, expired)
