"""Redaction removes secrets from a text and keeps ordinary identifiers."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from compaction.summarizers import redact
from tests.support.planted_secrets import SETS, Planted, harmless, secrets

# Made up, and built here so that no scanner reports this file.
DIGITS = "0123456789"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
LONG = (LETTERS + DIGITS) * 3

SECRETS = [
    ("sk-" + LONG[:48], "openai-key"),
    ("sk-proj-" + LONG[:40], "openai-key"),
    ("sk-ant-api03-" + LONG[:40], "anthropic-key"),
    ("sk-or-v1-" + "0a" * 32, "openrouter-key"),
    ("ghp_" + LONG[:36], "github-token"),
    ("github_pat_" + LONG[:40], "github-token"),
    ("glpat-" + LONG[:20], "gitlab-token"),
    ("xoxb-" + DIGITS + "-" + LONG[:20], "slack-token"),
    ("AKIA" + "IOSFODNN7EXAMPLE", "aws-key"),
    ("AIza" + LONG[:35], "google-key"),
    ("sk_live_" + LONG[:24], "stripe-key"),
    ("hf_" + LONG[:34], "huggingface-token"),
    ("npm_" + LONG[:36], "npm-token"),
    ("SG." + LONG[:22] + "." + LONG[:43], "sendgrid-key"),
    ("eyJ" + LONG[:20] + ".eyJ" + LONG[:30] + "." + LONG[:40], "jwt"),
    ("12345678:AA" + LONG[:33], "telegram-token"),
    ("pa-" + LONG[:43], "voyage-key"),
    ("-".join(["471104"] * 8), "recovery-key"),
]
PLACES = [
    ("password = '{}'", "hunter2", "password"),
    ('{{"password": "{}"}}', "letmein", "password"),
    (r"{{\"password\": \"{}\"}}", "letmein", "password"),
    ("密码：{}", "abc12345", "password"),
    ("账号名为Grace，密码为{}。你会做出反应", "hunter789", "password"),
    ("--PASSWORD {} --verbose", "hunter2", "password"),
    ("--SECRET {} --verbose", "hunter2xyz", "secret"),
    ("--PW {} --verbose", "hunter2", "password"),
    ("Server=db;User Id=sa;Password={};Encrypt=yes", "Pa55word!", "password"),
    ("postgres://app:{}@db.local:5432/main", "s3cr3t", "password"),
    ("redis://:{}@host:6379/0", "p4ss", "password"),
    ("curl -u admin:{} https://host", "S3cret", "password"),
    ("AccountKey={};EndpointSuffix=core", "abcdEFGH1234567890==", "api-key"),
    ('-H "X-Api-Key: {}"', "12ab34cd56ef", "api-key"),
    ("Authorization: Bearer {}", "abcdef0123456789abcdef", "credential"),
    ("authorization: token {}", "0123456789abcdef0123", "credential"),
    ("Set-Cookie: {}", "sid=abcd1234; Path=/", "cookie"),
    ("Authorization: Basic {}", "YTpi", "credential"),
    ("<input type='password' name='p' value='{}'>", "let-me!in", "password"),
    ("mariadb -u app -p{} shop", "S3cret99", "password"),
    *(
        (f'mysql -u root -p"{{}}"{end}', secret, "password")
        for end in ("", " main")
        for secret in ("*hunter22", "[hunter22", "**{{a")
    ),
    *(
        ("sshpass -p {} ssh ann@host", secret, "password")
        for secret in ("{Hunter22", "[hunter22]", "{hunter22}", "***hunter22")
    ),
    ("password — {}", "hunter22", "password"),
    ("<pw>{}</pw>", "let-me!in", "password"),
    ("| token | {} |", "0a" * 20, "token"),
    ("SIGNING_KEY={}", "let-me!in-now", "secret"),
]
# An operator of `redaction.names`, a kind of name, a text with the secret in « and », and a similar text without one.
OPERATORS = [
    ("variable", "password", "DB_PASSWORD=«hunter»", "DB_PASSWORD=${HUNTER}"),
    ("variable", "secret", "CLIENT_SECRET=«let-me!in-now»", "CLIENT_SECRET=Required-Later"),
    ("assign", "password", "password = «hunter2»", "password = required"),
    ("assign", "password", "password: str = '«let me in»'", "password: str = user.password"),
    ("assign", "password", "--db-password «hunter2» --verbose", "--db-password required"),
    ("assign", "secret", "aws_secret_access_key = «wJalrXUtnFEMI/K7MDENG»", "secret: tls-cert-v2"),
    ("assign", "token", "?access_token=«abcdef123456»&page=2", "token=abc123"),
    ("assign", "password", '"name": "DB_PASSWORD", "value": "«hunter»"', '"name": "DB_PASSWORD", "value": "string"'),
    ("assign", "password", "<password>«hunter2»</password>", "<password>required</password>"),
    ("assign", "token", "<token>«abcdef123456»</token>", "<token>abcdefghijkl</token>"),
    ("says", "password", "The password for the server is «hunter2».", "The password is wrong."),
    ("says", "token", "The token is «abcdef123456».", "The token is invalid."),
    ("foreign", "password", "비밀번호는 «hunter2» 입니다", "비밀번호는 필수입니다"),
    ("field", "password", "<td>password</td><td>«german12»</td>", "<td>password</td><td>german1</td>"),
    ("cell", "password", "| password | «german12» |", "| password | german1 |"),
    ("cell", "token", "| token | «a1B2c3D4» |", "| token | word2vec |"),
    ("argument", "password", "login('password', '«let-me!in»')", "t('password', 'Enter your password')"),
    ("argument", "token", "Set('token', '«a1B2c3D4»')", "Token('token', 'keyword2')"),
    ("argument", "password", "Password('«let-me!in»')", "Password('Enter your password again')"),
    ("gap", "password", "machine db login anna password «hunter22»", "a password hunter2"),
    ("gap", "token", "add token «aB3dE5fG7hI9jK1lM»", "add token abcdef123456"),
    # ``pass``, ``pw`` and ``psk``
    ("assign", "password", "storepass=«hunter2xyz»", "compass=hunter2xyz"),
    ("assign", "password", "smtpPass: «hunter2xyz»", "Second pass: report-2024.v2"),
    ("assign", "password", "pw: '«let-me!in»'", "PASS: test-b22"),
    ("cell", "password", "| db_pass | «hunter22» |", "pass | hunter22 |"),
]
HARMLESS = [
    "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "550e8400-e29b-41d4-a716-446655440000",
    "/usr/lib/python3.11/site-packages/openai/_client.py",
    "https://github.com/a/b/commit/9116169cf0d2",
    '{"id": "call_8fJkd92kd93kd9", "reservation_id": "JG7FMM", "user_id": "mia_li_3668"}',
    "password = get_password()",
    "token = tokens[0]",
    "password=self.password, token=user_token",
    "def login(user, password): ...",
    'secret = os.environ["SECRET"]',
    "password=$DB_PASSWORD password=${DB_PASSWORD}",
    '{"type": "password", "password": "your-password-here"}',
    "max_tokens=2000 token_count: 12345678",
    'eos_token: "<|endoftext|>"',
    "PWD=/home/user/project OLDPWD=/root",
    "password: required.",
    *(
        f"mysql -u root -p{each} main"
        for each in ("****", "{{password}}", "{password}", "[password]", "{db.password}", "{db['pw1']}", "password")
    ),
    "docker run -u 1000:1000 image && docker run -u node:node image",
    "docker pull docker://alpine:3.18@sha256:" + "0a" * 32,
    "http://localhost:8080/foo@bar git@github.com:user/repo.git",
    "sk-learn-is-a-nice-library-for-everybody",
    "The bearer of this letter has a basic understanding-of-things.",
    "cat password | s3cmd9 put",
    'yield Token("keyword2", value)',
    "pass=1204 fail=0003",
    "| password | ftp://h0st1.example |",
    "| password | k8s9 |",
    '_("password", "re-enter")',
    "| password | `the new one` |",
    'The password "the new one" was refused.',
    "token: 12345678 of 20000000",
    'token: "the 2nd word of 10"',
    "CACHE_KEY=" + LONG[:24],
    *("Pin 4711 auf der Karte anheften", "tan 4711", "span 4711", "TAN 4711-01-02"),
    "Der Zugangsschlüssel steht im Safe, Fach 4711.",
]


@pytest.mark.parametrize(("secret", "kind"), SECRETS, ids=[f"{kind}-{number}" for number, (_, kind) in enumerate(SECRETS)])
@pytest.mark.parametrize("around", ["{}", "the key: {}, and more", '{{"content": "key\\n{}"}}', "export X={}\n"])
def test_tokens_of_services(secret: str, kind: str, around: str) -> None:
    assert redact(around.format(secret)) == around.format(f"[REDACTED:{kind}]")


@pytest.mark.parametrize(("place", "secret", "kind"), PLACES)
@pytest.mark.parametrize("before", ["", "See:\n", r"See:\n", r"See:\\n", r"See:\t"])
def test_places_of_secrets(place: str, secret: str, kind: str, before: str) -> None:
    """A line break or a tab before them may be two characters, as in the JSON of a tool call."""
    assert redact(before + place.format(secret)) == before + place.format(f"[REDACTED:{kind}]")


@pytest.mark.parametrize(("operator", "kind", "secret", "harmless"), OPERATORS)
def test_examples_of_operators(operator: str, kind: str, secret: str, harmless: str) -> None:
    """A line break before a secret may be two characters, as in the JSON of a tool call."""
    before, _, after = re.split("[«»]", secret)
    for start in ("", "See:\n", r"See:\n"):
        assert redact(start + secret.replace("«", "").replace("»", "")) == f"{start}{before}[REDACTED:{kind}]{after}"
    for start in ("", "See:\n"):
        assert redact(start + harmless) == start + harmless


@pytest.mark.parametrize("name", SETS)
def test_secrets_in_json_go(name: str) -> None:
    """A secret that is removed from a text is removed from the JSON of that text, too."""
    found = [each for each in secrets(name) if not each.kept_in(redact(each.text))]
    assert [each.text for each in found if each.kept_in(redact(json.dumps(f"See:\n{each.text}", ensure_ascii=False)))] == []


@pytest.mark.parametrize(
    "text",
    [
        *("Die PIN 4711 gilt für alle Türen.", "Meine PIN lautet 4711.", "Die PIN der Karte ist 4711.", "TAN 4711123"),
        *("Die SMS-TAN lautet 471112.", "mTAN 471112", "PUK: 47111234", "Geheimzahl: 4711", "Meine Geheimzahl ist 4711."),
        *("Türcode 4711", "Zugangsschlüssel: 4711mLp92xQ", "Der Zugangsschlüssel lautet 4711mLp92xQ."),
        *("Lizenzschlüssel: 4711Kb82mLp92xQz", "Das Kennwort für den Server lautet Sommer4711!"),
    ],
)
def test_german_names_of_secrets(text: str) -> None:
    assert "4711" not in redact(text)


@pytest.mark.parametrize("end", ["]", "", "\n", " " * 10_000, " tokens = []"])
@pytest.mark.parametrize("quote", ['"', ""])
def test_a_list_of_secrets_that_is_cut_off(quote: str, end: str) -> None:
    text = f"passwords = [{quote}hunter22{quote}, {quote}Xk29fj3a{quote}{end}"
    assert redact(text) == text.replace("hunter22", "[REDACTED:password]").replace("Xk29fj3a", "[REDACTED:password]")
    assert "Xk29f" not in redact('passwords = ["hunter22", "Xk29fj3')


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_text_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("quote", ['"', "'"])
@pytest.mark.parametrize("start", ["", "a", "ab", "abc", "abcd", "abcde"])
def test_an_escaped_quote_is_part_of_a_password(start: str, quote: str) -> None:
    """It may stand anywhere in the value; a value whose own quotation marks are escaped ends at the next one."""
    text = f"{{{quote}password{quote}: {quote}{start}\\{quote}cdefgh12{quote}, {quote}user{quote}: {quote}ann{quote}}}"
    assert redact(text) == text.replace(f"{start}\\{quote}cdefgh12", "[REDACTED:password]")
    inner = json.dumps({"password": start, "user": "an12"})
    assert json.loads(json.loads(redact(json.dumps(inner))))["user"] == "an12"


@pytest.mark.parametrize("line_end", ["\n", r"\n", r"\\n"])
@pytest.mark.parametrize("name", ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"])
def test_private_keys(name: str, line_end: str) -> None:
    key = line_end.join([f"-----BEGIN {name}-----", *[LONG[:64]] * 20, "ab==", f"-----END {name}-----"])
    assert redact(f"before{line_end}{key}{line_end}after") == f"before{line_end}[REDACTED:private-key]{line_end}after"


def test_private_key_cut_off() -> None:
    """A private key without an end is replaced as far as it goes, and a sentence about keys stays."""
    key = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", "Proc-Type: 4,ENCRYPTED", "", LONG[:64], LONG[:64], LONG[:30]])
    assert redact(key) == "[REDACTED:private-key]"
    said = "A line of -----BEGIN PRIVATE KEY----- begins it, and so on."
    assert redact(said) == "A line of [REDACTED:private-key] begins it, and so on."
    assert redact(f"{key}\n\nThe file ends here.") == "[REDACTED:private-key]\n\nThe file ends here."


@pytest.mark.parametrize("planted", secrets("planted"), ids=lambda planted: planted.family)
def test_planted_secrets_go(planted: Planted) -> None:
    within = redact(f"Here is the output of the last step:\n\n{planted.text}\n\nIt took 3 s.")
    assert not planted.kept_in(redact(planted.text))
    assert not planted.kept_in(within)
    assert within.startswith("Here is the output of the last step:\n\n")
    assert within.endswith("\n\nIt took 3 s.")


@pytest.mark.parametrize(("name", "most"), [("further", 1), ("unseen", 0), ("blind", 4), ("newest", 4)])
def test_nearly_all_shapes_of_a_set_go(name: str, most: int) -> None:
    """Sets after the first were written without sight of the table; docs/prompts.md names those that stay."""
    around = "Here is the output:\n\n{}\n\nIt took 3 s."
    left = [each for each in secrets(name) for text in (each.text, around.format(each.text)) if each.kept_in(redact(text))]
    assert len({each.text for each in left}) <= most


@pytest.mark.parametrize(
    ("name", "changed"), [(name, ["Set-Cookie: theme=dark; Path=/"] if name == "blind" else []) for name in SETS]
)
def test_harmless_texts_stay(name: str, changed: list[str]) -> None:
    assert [text for text in harmless(name) if redact(text) != text] == changed


@pytest.mark.parametrize(
    "text", ["the access token is b7qh8bd9ga28pdzjdq: 7R1KnPZe0i9g2PxguUsC", "WIFI:T:WPA;S:Office;P:" + LONG[:70]]
)
def test_the_kind_of_what_is_redacted_is_no_name(text: str) -> None:
    """A text behind a redacted secret is judged as it was before."""
    once = redact(text)
    assert "[REDACTED:" in once
    assert redact(once) == once


def test_redacting_planted_secrets_twice_changes_nothing() -> None:
    texts = [each.text for each in secrets(*SETS)]
    assert [once for once in map(redact, texts) if redact(once) != once] == []


@pytest.mark.parametrize("noise", [bytes(range(256)) * 40, b"\x66\x2e\x0f\x1f\x84\x00" * 900, bytes(6_000)])
def test_encoded_data_stays(noise: bytes) -> None:
    """An image or a program in base64 is not taken for a token."""
    text = f"data:image/png;base64,{base64.b64encode(noise).decode()}"
    assert redact(text) == text


@pytest.mark.parametrize(
    ("number", "kept"),
    [
        (r"\n4111 1111 1111 1111", False),
        ("4111 1111 1111 1111", False),
        ("4111 1111 1111 1112", True),
        ("DE75 5121 0800 1245 1261 99", False),
        ("DE75 5121 0800 1245 1261 98", True),
    ],
)
def test_numbers_need_their_checksum(number: str, kept: bool) -> None:
    assert (number in redact(f"Pay with {number}, please.")) is kept


def test_each_of_several_card_numbers_is_judged() -> None:
    """A number that follows another one after a blank is replaced, too, if its own checksum is right."""
    mark = "[REDACTED:card-number]"
    assert redact("4111 1111 1111 1111 5500 0055 5555 5559 4111 1111 1111 1112") == f"{mark} {mark} 4111 1111 1111 1112"


@pytest.mark.parametrize("name", ["key", "token"])
def test_a_secret_inside_a_long_value_goes(name: str) -> None:
    """A value in quotation marks that is itself no secret, because it is a text, may hold one."""
    text = "The parts are on the shelf near the door. " * 9 + "DB_PASSWORD=hunter2x9Q, password: hunter2x9Q, and more."
    assert "hunter2x9Q" not in redact(json.dumps({name: text}))


@pytest.mark.parametrize("name", ["tau_airline", "sweagent_demos", "openhands", "cassettes", "inspect_logs"])
def test_recorded_conversations_stay(corpus: Callable[[str], list[dict[str, Any]]], name: str) -> None:
    messages = [json.dumps(message, ensure_ascii=False) for talk in corpus(name) for message in talk["messages"]]
    assert [text for text in messages if redact(text) != text] == []


@pytest.mark.parametrize(
    "text",
    [r"DOMAIN\token=Xk29dkLq81mZp02xY", r"C:\npm_Ab12Cd34Ef56Gh78Ij90Kl12Mn34Op56Qr78", r"postgres://root:t\r0ub4dor9@db/x"],
)
def test_a_backslash_before_a_letter_is_not_always_a_blank(text: str) -> None:
    """In JSON it is; elsewhere the two characters may belong to a word or to the secret."""
    assert "[REDACTED:" in redact(text)


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r\r\n", "\r", r"\n", r"\r\n", r"\r", r"\\r\\n"])
@pytest.mark.parametrize(
    "text",
    [
        *(
            f"name{gap}password\nalice{gap}hunT3r-22x!\nbobby{gap}Xk9$mQ2vLp\n"
            for gap in ("|", "│", "║", "┃", "\t", ";", ",", "   ")
        ),
        *(f"password{gap}name\nhunT3r-22x!{gap}alice\nXk9$mQ2vLp{gap}bobby" for gap in ("|", "\t", ",", "   ")),
        "name,password,\nalice,hunT3r-22x!,\nbobby,Xk9$mQ2vLp,\n",
        *(f'name{gap}password\n"Doe{gap} ""Ann"""{gap}hunT3r-22x!\n{gap}"Xk9{gap}mQ2vLp"' for gap in ("\t", ";", ",")),
        'name,password\n6" nail,hunT3r-22x!\n"5 ft,Xk9$mQ2vLp\n',
        "| name | password |\n|---|---|\n| a \\| b | hunT3r-22x! |\n| c:\\ | Xk9\\|mQ2vLp |\n",
    ],
)
def test_a_column_of_secrets_is_found_whatever_ends_a_line(text: str, line_end: str) -> None:
    redacted = redact(text.replace("\n", line_end))
    assert [redacted.count(each) for each in ("[REDACTED:", "hunT3r", "Xk9")] == [2, 0, 0]


def test_a_table_in_json_may_have_quoted_cells() -> None:
    """The quotation marks that JSON puts around the whole text belong to no cell."""
    text = 'name,password,note\n"Doe, Ann",hunT3r-22x!,"a, b"\nbobby,Xk9$mQ2vLp,c\n'
    for value in (text, [text], {"csv": text}):
        redacted = redact(json.dumps(value))
        assert [redacted.count(each) for each in ("[REDACTED:", "hunT3r", "Xk9")] == [2, 0, 0]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    "text", ["passwords:\n  - hunT3r-22x\n  - hunT3r-22y\n", "apiVersion: v1\nkind: Secret\ndata:\n  user: hunT3rMjI=\n"]
)
def test_a_list_of_secrets_is_found_whatever_ends_a_line(text: str, line_end: str) -> None:
    assert "hunT3r" not in redact(text.replace("\n", line_end))
