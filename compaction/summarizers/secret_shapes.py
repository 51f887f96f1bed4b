r"""What a secret looks like: tokens that services make recognizable, and the places where people write passwords.

Only shapes that say what they are stand here. A commit id, a checksum, a UUID or a path looks as random as a key, and is what a
summary is most often needed for; so randomness alone is never taken for a secret.

Every expression is linear: bounded repeats, and an unbounded one only where what precedes it cannot start again within what it
matches. ``\n`` written as two characters, as in the JSON of a tool call, counts as the end of a word.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["ASSIGNMENT", "AUTHORIZATION", "COOKIE", "CREDENTIALS", "OPTION", "PLACEHOLDERS", "PRIVATE_KEY", "SAID", "TOKENS", "URL_PASSWORD"]

_START: Final = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))"

_TOKEN_SHAPES: Final[dict[str, str]] = {
    "anthropic-key": r"sk-ant-[A-Za-z0-9_-]{16,}",
    "openrouter-key": r"sk-or-v1-[A-Za-z0-9]{32,}",
    "openai-key": r"(?:sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,}|sk-(?=[A-Za-z-]{0,64}[0-9])[A-Za-z0-9_-]{20,})",
    "github-token": r"(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,})",
    "gitlab-token": r"gl(?:pat|ptt|dt|rt|cbt)-[A-Za-z0-9_-]{20,}",
    "slack-token": r"(?:xox[abceoprs]-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{10,})",
    "aws-key-id": r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])",
    "google-key": r"(?:AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,})",
    "stripe-key": r"(?:[rs]k_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/=]{20,})",
    "huggingface-token": r"hf_[A-Za-z]{4,}[A-Za-z0-9]{24,}",
    "npm-token": r"npm_[A-Za-z0-9]{36}",
    "pypi-token": r"pypi-[A-Za-z0-9_-]{50,}",
    "sendgrid-key": r"SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,}",
    "twilio-key": r"SK[0-9a-f]{32}(?![A-Za-z0-9])",
    "digitalocean-token": r"do[oprt]_v1_[0-9a-f]{64}",
    "databricks-token": r"dapi[0-9a-f]{32}",
    "groq-key": r"gsk_[A-Za-z0-9]{40,}",
    "xai-key": r"xai-[A-Za-z0-9]{40,}",
    "shopify-token": r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}",
    "vault-token": r"hv[sbr]\.[A-Za-z0-9_-]{24,}",
    "linear-key": r"lin_api_[A-Za-z0-9]{32,}",
    "notion-token": r"(?:ntn_|secret_)[A-Za-z0-9]{40,}",
    "telegram-token": r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])",
    "age-key": r"AGE-SECRET-KEY-1[0-9A-Z]{58}",
    "jwt": r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?",
}

TOKENS: Final = re.compile(
    _START + "(?:" + "|".join(f"(?P<{kind.replace('-', '_')}>{shape})" for kind, shape in _TOKEN_SHAPES.items()) + ")"
    r"|https://hooks\.slack\.com/(?:services|workflows)/(?P<slack_webhook>[A-Za-z0-9/_-]{20,})"
    r"|https://(?:\w{1,20}\.)?discord(?:app)?\.com/api/webhooks/(?P<discord_webhook>[A-Za-z0-9/_-]{20,})"
)
"""Tokens that say themselves what they are; the group that matched names the kind, with underscores."""

PRIVATE_KEY: Final = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
"""The first line of a private key; what follows it is found by `compaction.summarizers.redaction`."""

_NAMES: Final[dict[str, str]] = {
    "password": r"passw(?:or)?d|passwort|passphrase|passcode|pwd|비밀번호|암호|密码|密碼|口令|パスワード",
    "secret": r"secret|secret[_-]?key|client[_-]?secret|secret[_-]?access[_-]?key|private[_-]?key|signing[_-]?key|encryption[_-]?key",
    "api-key": r"api[_-]?key|access[_-]?key|account[_-]?key|shared[_-]?access[_-]?key|auth[_-]?key|x-amz-signature",
    "token": r"token|credentials?|jsessionid|phpsessid|connect\.sid",
}
_NAME: Final = "(?:" + "|".join(f"(?P<{kind.replace('-', '_')}>{names})" for kind, names in _NAMES.items()) + ")"
_QUOTED: Final = r"""(?P<quote>\\?["'])(?P<quoted>[^"'\n\\]{4,512})(?P=quote)"""
_BARE: Final = r"""(?P<bare>[^\s"'`\\,;&<>(){}\[\]|]{4,512})(?P<after>[(\[.]?)"""

ASSIGNMENT: Final = re.compile(
    rf"""(?i){_NAME}(?:\\?["'])?(?P<separator>[ \t]{{0,8}}(?:=>|:=|==?|[:：])[ \t]{{0,8}})(?:{_QUOTED}|{_BARE})"""
)
"""A name that means a secret, as the end of a longer name or alone, and what is assigned to it."""

OPTION: Final = re.compile(rf"""(?i)--(?:[a-z0-9]{{1,20}}-){{0,4}}{_NAME}[ \t]{{1,4}}(?:{_QUOTED}|{_BARE})""")
"""The same as an option on a command line."""

SAID: Final = re.compile(rf"""(?i){_NAME}(?:\s{{1,4}}is|\s{{0,2}}[는은은は是])\s{{1,4}}(?:now\s{{1,4}})?(?:{_QUOTED}|{_BARE})""")
"""The same in a sentence."""

AUTHORIZATION: Final = re.compile(r"(?i)\b(bearer|basic)[ \t]{1,4}(?=[A-Za-z._~+/-]{0,512}[0-9=])([A-Za-z0-9._~+/-]{16,}={0,2})")
"""A credential in an ``Authorization`` header, or quoted from one."""

COOKIE: Final = re.compile(r"""(?i)\b((?:set-)?cookie\\?["']?[ \t]{0,4}[:=][ \t]{0,4}\\?["']?)([\w.-]{1,64}=[^\r\n"'\\]{4,4096})""")
"""A cookie header with at least one value."""

URL_PASSWORD: Final = re.compile(r"""(://[^\s:/@"'<>]{0,128}:)([^\s/@"'<>{}$]{1,256})(?=@)""")
"""The password in ``scheme://user:password@host``."""

CREDENTIALS: Final = re.compile(r"""((?:\s|^)(?:-u|--user)[ =]{1,2}\\?["']?[\w.@%+-]{1,64}:)(?=[^\s"'\\]{0,255}[A-Za-z])([^\s"'\\$]{4,256})""")
"""``-u user:password``, as curl takes it."""

PLACEHOLDERS: Final = re.compile(
    r"(?i)[*x.•_-]+|(?:your|my|some|the|a|an|new|old|test|dummy|fake|example|sample)?[ _-]?"
    r"(?:password|passwd|pwd|secret|token|key|api[ _-]?key|value|here|string|str|text|none|null|nil|true|false|bytes|bool|optional"
    r"|required|undefined|changeme|placeholder|redacted|hidden|masked|input|prompt|field)s?(?:[ _-]?(?:here|value|name))?"
)
"""Words that stand where a secret would."""
