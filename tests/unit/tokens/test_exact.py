"""Exact counters: toktok and tiktoken agree, and neither uses the network."""

from __future__ import annotations

import base64
import pickle
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from compaction.errors import UnknownCounter
from compaction.tokens import EstimateWarning, TiktokenCounter, ToktokCounter, counter, resolve
from compaction.tokens.tiktoken_counter import load_tiktoken, vocabulary_file
from compaction.tokens.toktok_counter import load_toktok

toktok = pytest.importorskip("toktok", reason="the vocabulary these tests write comes from toktok")

TOKENS = {"o200k_base": 199_998, "cl100k_base": 100_256}
TEXTS = st.text(st.one_of(st.characters(), st.integers(0xD800, 0xDFFF).map(chr), st.sampled_from(" \n\t'/aE1한")))


@pytest.fixture(autouse=True)
def network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a test that looks up a host name."""
    asked: list[Any] = []

    def refuse(*arguments: Any, **_: Any) -> None:
        asked.append(arguments)
        raise OSError("these tests have no network")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    yield
    assert asked == []


@pytest.fixture(scope="module")
def vocabularies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like tiktoken's after its downloads, written from toktok's equal vocabularies."""
    folder = tmp_path_factory.mktemp("data-gym-cache")
    for encoding, tokens in TOKENS.items():
        token_bytes = toktok._encoding(encoding).decode_single_token_bytes
        lines = (base64.b64encode(token_bytes(rank)) + b" %d\n" % rank for rank in range(tokens))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
            path = vocabulary_file(encoding)
        assert path is not None
        path.write_bytes(b"".join(lines))
    return folder


@pytest.fixture
def fresh_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolve, "_resolved", {})
    monkeypatch.setattr("tiktoken.registry.ENCODINGS", {})


@pytest.fixture
def without_toktok(fresh_process: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "toktok", None)


@pytest.fixture
def without_vocabulary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def with_vocabulary(vocabularies: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(vocabularies))
    return vocabularies


@pytest.fixture(scope="module")
def tiktoken_counter(vocabularies: Path) -> TiktokenCounter:
    """Tiktoken's o200k_base, loaded from disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(vocabularies))
        loaded = load_tiktoken("o200k_base")
    assert loaded is not None
    return loaded


@pytest.mark.parametrize("encoding", TOKENS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXTS)
def test_toktok_and_tiktoken_agree(with_vocabulary: Path, encoding: str, text: str) -> None:
    """Both count the same, lone surrogates and blanks included; only an apostrophe before the long s is known to differ."""
    assume("ſ" not in text)
    reference = load_tiktoken(encoding)
    assert reference is not None
    assert ToktokCounter(encoding).count_text(text) == reference.count_text(text)


@pytest.mark.parametrize("special", ["<|endoftext|>", "<|endofprompt|>", "<|fim_prefix|> and <|im_start|>user"])
def test_special_tokens_are_plain_text(tiktoken_counter: TiktokenCounter, special: str) -> None:
    counts = {tiktoken_counter.count_text(special), ToktokCounter("o200k_base").count_text(special)}
    assert len(counts) == 1
    assert counts.pop() > 5


@pytest.mark.parametrize("text", [" " * 1_000_000, " \t" * 500_000, "\n" * 1_000_000], ids=["spaces", "mixed", "lines"])
def test_a_million_blanks(tiktoken_counter: TiktokenCounter, text: str, capfd: pytest.CaptureFixture[str]) -> None:
    """A run of blanks too long for tiktoken is counted in halves, within 3 tokens of the exact count and without output."""
    exact = ToktokCounter("o200k_base").count_text(text)
    assert abs(tiktoken_counter.count_text(text) - exact) <= 3
    assert capfd.readouterr().err == ""


def test_toktok_without_its_private_tokenizer(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = ToktokCounter("o200k_base").count_text("def f(x): return x  # 함수")
    monkeypatch.setitem(sys.modules, "toktok", _module(batch_count=toktok.batch_count))
    assert ToktokCounter("o200k_base").count_text("def f(x): return x  # 함수") == expected


def test_toktok_with_a_tokenizer_that_counts_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    disagreeing = _module(batch_count=toktok.batch_count, _encoding=lambda _: _module(count=len))
    monkeypatch.setitem(sys.modules, "toktok", disagreeing)
    assert ToktokCounter("o200k_base").count_text("Hello, world!") == 4


def _module(**members: Any) -> ModuleType:
    module = ModuleType("toktok")
    vars(module).update(members)
    return module


def test_toktok_lacks_old_encodings() -> None:
    """An encoding that toktok lacks gives ``None`` instead of an error, because tiktoken may have it."""
    assert load_toktok("p50k_base") is None


@pytest.mark.parametrize("encoding", TOKENS)
def test_exact_counters_pickle_by_name(fresh_process: None, with_vocabulary: Path, encoding: str) -> None:
    for original in (load_toktok(encoding), load_tiktoken(encoding)):
        pickled = pickle.dumps(original)
        assert len(pickled) < 200
        assert pickle.loads(pickled) == original


def test_auto_estimates_with_one_warning(without_toktok: None, without_vocabulary: Path) -> None:
    """Without both, ``"auto"`` estimates, warns once in a process, and does not use the network."""
    with pytest.warns(EstimateWarning, match="estimate") as told:
        first = counter("auto")
    assert len(told) == 1
    assert told[0].filename == __file__
    assert counter("auto") is first is counter("estimate")
    assert (first.name, first.exact) == ("estimate", False)


@pytest.mark.parametrize("spec", ["o200k_base", "cl100k_base", "gpt-4o", "gpt-3.5-turbo"])
def test_a_name_gets_that_encoding_or_an_error(without_toktok: None, without_vocabulary: Path, spec: str) -> None:
    with pytest.raises(UnknownCounter, match=r"not on this machine.*pip install '\.\[fast\]'.*tiktoken\.get_encoding"):
        counter(spec)


def test_a_file_that_appears_later_is_found(without_toktok: None, without_vocabulary: Path, vocabularies: Path) -> None:
    with pytest.raises(UnknownCounter):
        counter("cl100k_base")
    found = vocabulary_file("cl100k_base")
    assert found is not None
    found.write_bytes((vocabularies / found.name).read_bytes())
    assert counter("cl100k_base").count_text("hello world") == 2


def test_a_damaged_file_is_left_alone(without_toktok: None, without_vocabulary: Path) -> None:
    """A vocabulary file with a wrong checksum counts as missing and is not deleted, as tiktoken would do."""
    damaged = vocabulary_file("o200k_base")
    assert damaged is not None
    damaged.write_bytes(b"half of a downl")
    assert load_tiktoken("o200k_base") is None
    assert damaged.read_bytes() == b"half of a downl"


def test_a_tokenizer_that_fails_on_short_texts_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the tokenizer for short texts is raised: the counter does not halve them any further."""

    def fail(text: str, **_: Any) -> list[int]:
        raise ValueError(f"cannot read {len(text)} characters")

    monkeypatch.setattr("tiktoken.get_encoding", lambda _: SimpleNamespace(encode=fail))
    with pytest.raises(ValueError, match="cannot read 625 characters"):
        TiktokenCounter("o200k_base").count_text("x" * 10_000)


def test_a_cache_turned_off_means_a_download(without_toktok: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    assert vocabulary_file("o200k_base") is None
    with pytest.raises(UnknownCounter, match="not on this machine"):
        counter("o200k_base")


def test_where_tiktoken_keeps_its_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The folder is the first one set of two environment variables, else a temporary one; the file has tiktoken's name."""
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    monkeypatch.delenv("DATA_GYM_CACHE_DIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    name = "fb374d419588a4632f3f557e76b4b70aebbca790"
    assert vocabulary_file("o200k_base") == tmp_path / "data-gym-cache" / name
    monkeypatch.setenv("DATA_GYM_CACHE_DIR", str(tmp_path / "gym"))
    assert vocabulary_file("o200k_base") == tmp_path / "gym" / name
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "tik"))
    assert vocabulary_file("o200k_base") == tmp_path / "tik" / name


def test_an_encoding_already_loaded_needs_no_file(
    without_toktok: None, vocabularies: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(vocabularies))
    assert load_tiktoken("cl100k_base") is not None
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert load_tiktoken("cl100k_base") is not None
    assert load_tiktoken("o200k_base") is None


def test_without_tiktoken_encodings_go_by_name(fresh_process: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("tiktoken", "tiktoken.model", "tiktoken.registry"):
        monkeypatch.setitem(sys.modules, module, None)
    assert counter("o200k_base").exact
    assert load_tiktoken("o200k_base") is None
    with pytest.raises(UnknownCounter, match="models are known only with tiktoken"):
        counter("gpt-4o")
