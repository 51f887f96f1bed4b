r"""Regular expressions for secrets: tokens that services make recognizable, and the places where people write passwords.

Only unmistakable forms are listed. A commit id, a checksum, a UUID or a path looks as random as a key, and a summary needs it,
so randomness alone never counts as a secret.

Every expression is linear: repeats are bounded, or cannot start again within what they match. ``\n`` written as two
characters, as in the JSON of a tool call, ends a word like the character itself.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = [
    "ASSIGNED",
    "AUTHORIZATION",
    "CODE",
    "COOKIE",
    "OPTION",
    "PLACEHOLDER",
    "PRIVATE_KEY",
    "TOKEN",
    "URL_PASSWORD",
    "USER_PASSWORD",
]

_TOKENS: Final[dict[str, str]] = {
    "anthropic_key": r"sk-ant-[A-Za-z0-9_-]{16,}",
    "openrouter_key": r"sk-or-v1-[A-Za-z0-9]{32,}",
    "openai_key": r"sk-(?:proj-|svcacct-|admin-|(?=[A-Za-z-]{0,64}[0-9]))[A-Za-z0-9_-]{20,}",
    "github_token": r"gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,}",
    "gitlab_token": r"gl(?:pat|ptt|dt|rt|cbt)-[A-Za-z0-9_-]{20,}",
    "slack_token": r"xox[abceoprs]-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{10,}",
    "aws_key": r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])",
    "google_key": r"AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}",
    "stripe_key": r"[rs]k_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/=]{20,}",
    "huggingface_token": r"hf_[A-Za-z0-9]{30,}",
    "npm_token": r"npm_[A-Za-z0-9]{36}",
    "pypi_token": r"pypi-[A-Za-z0-9_-]{50,}",
    "sendgrid_key": r"SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,}",
    "twilio_key": r"SK[0-9a-f]{32}(?![A-Za-z0-9])",
    "digitalocean_token": r"do[oprt]_v1_[0-9a-f]{64}",
    "databricks_token": r"dapi[0-9a-f]{32}",
    "groq_key": r"gsk_[A-Za-z0-9]{40,}",
    "xai_key": r"xai-[A-Za-z0-9]{40,}",
    "shopify_token": r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}",
    "vault_token": r"hv[sbr]\.[A-Za-z0-9_-]{24,}",
    "linear_key": r"lin_api_[A-Za-z0-9]{32,}",
    "notion_token": r"(?:ntn|secret)_[A-Za-z0-9]{40,}",
    "telegram_token": r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])",
    "age_key": r"AGE-SECRET-KEY-1[0-9A-Z]{58}",
    "jwt": r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?",
}
_WEBHOOKS: Final[dict[str, str]] = {
    "slack_webhook": r"https://hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{20,}",
    "discord_webhook": r"https://discord(?:app)?\.com/api/webhooks/[A-Za-z0-9/_-]{20,}",
}
_WORD_START: Final = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))"


def _one_of(shapes: dict[str, str]) -> str:
    return "|".join(f"(?P<{kind}>{shape})" for kind, shape in shapes.items())


TOKEN: Final = re.compile(f"{_WORD_START}(?:{_one_of(_TOKENS)}|{_one_of(_WEBHOOKS)})")
"""A token with a recognizable form; the group that matched names the kind."""

PRIVATE_KEY: Final = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
"""The first line of a private key; `compaction.summarizers.redaction` finds its end."""

_NAMES: Final[dict[str, str]] = {
    "password": "passw(?:or)?d|passwort|passphrase|passcode|pwd|비밀번호|암호|密码|密碼|口令|パスワード",
    "secret": "secret(?:[_-]?(?:access[_-]?)?key)?|(?:private|signing|encryption)[_-]?key",
    "api_key": "(?:api|access|account|auth|shared[_-]?access)[_-]?key|x-amz-signature",
    "token": r"token|credentials?|jsessionid|phpsessid|connect\.sid",
}
_NAME: Final = f"(?:{_one_of(_NAMES)})"
_TYPE: Final = r"(?::[ \t]?(?:str|string|Optional\[str\]|str \| None)[ \t]?)?"
_ASSIGNS: Final = rf"""(?:\\{{0,3}}["'])?[ \t]{{0,8}}(?:{_TYPE}=[=>]?|:=|[:：])[ \t]{{0,8}}"""
_SAYS: Final = r"[ \t]{1,4}(?:is|=)[ \t]{1,4}|[는은][ \t]{1,4}|[ \t]?(?:是|は)[ \t]?"
_DOUBLE: Final = r'\\{0,3}"(?P<double>(?:[^"\n\\]|\\(?!["nrt\\])[^\n]){4,4096})\\{0,3}"'
_SINGLE: Final = r"\\{0,3}'(?P<single>(?:[^'\n\\]|\\(?!['nrt\\])[^\n]){4,4096})\\{0,3}'"
_BARE: Final = r"""(?P<bare>[^\s"'`\\,;&<>(){}\[\]|]{4,4096})(?P<call>[(\[])?"""
_VALUE: Final = f"(?:{_DOUBLE}|{_SINGLE}|{_BARE})"

ASSIGNED: Final = re.compile(f"(?i){_NAME}(?:{_ASSIGNS}|{_SAYS}){_VALUE}")
"""A name that people give to secrets, alone or at the end of a longer name, and the value assigned to it."""

OPTION: Final = re.compile(f"(?i)--(?:[a-z0-9]{{1,20}}-){{0,4}}{_NAME}[ \\t]{{1,4}}{_VALUE}")
"""The same as an option on a command line."""

CODE: Final = re.compile(
    r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|[a-z]+(?:_[a-z]+)+[0-9]?|[a-z]+(?:[A-Z][a-z]+)+|(?:[A-Z][a-z]+){2,}|\$\w+|%\w+%"
    r"|0x[0-9a-fA-F]+|[~.]{0,2}/.*"
)
"""A value that is a variable, an attribute, an address or a path rather than a secret."""

PLACEHOLDER: Final = re.compile(
    r"(?i)[*x.•_-]+|\$\{.*|\{\{.*|%\(.*|<.*|\[.*"
    r"|(?:(?:your|my|some|the|a|an|new|old|test|dummy|fake|example|sample)[ _-]?){0,2}"
    r"(?:password|passwd|pwd|secret|token|key|api[ _-]?key|value|string|str|text|none|null|nil|true|false|bytes|bool|optional"
    r"|required|undefined|changeme|placeholder|redacted|hidden|masked|input|prompt|field|name)s?(?:[ _-]?(?:here|value|name))?"
)
"""A placeholder in the place of a secret."""

AUTHORIZATION: Final = re.compile(
    r"""(?i)(\bauthorization\\?["']?[ \t]{0,4}[:=][ \t]{0,4}\\?["']?(?:[a-z-]{1,16}[ \t]{1,4})?|\b(?:bearer|basic)[ \t]{1,4})"""
    r"(?=[A-Za-z._~+/-]{0,512}[0-9=])[A-Za-z0-9._~+/-]{16,}={0,2}"
)
"""A credential in an ``Authorization`` header, or quoted from one."""

COOKIE: Final = re.compile(r"""(?i)(\b(?:set-)?cookie\\?["']?[ \t]{0,4}[:=][ \t]{0,4}\\?["']?)[\w.-]{1,64}=[^\r\n"'\\]{4,}""")
"""A cookie header with at least one value."""

URL_PASSWORD: Final = re.compile(r"""(://[^\s:/@"'<>]{0,128}:)[^\s/@"'<>{}$]{1,256}(?=@(?!sha256:))""")
"""The password in ``scheme://user:password@host``."""

USER_PASSWORD: Final = re.compile(
    r"""((?<!\S)(?:-u|--user)[ =]{1,2}\\?["']?[\w.@%+-]{1,64}:)"""
    r"""(?=[^\s"'\\]{0,255}[A-Za-z])(?=[a-z-]{0,255}[^\sa-z"'\\-])[^\s"'\\$]{4,256}"""
)
"""``-u user:password``, as curl takes it."""
