r"""Regular expressions for the places where people write secrets: beside a name, in a header, a URL, a command, a sentence.

Every expression is linear: repeats are bounded, or cannot start again within what they match. ``\n`` written as two
characters, as in the JSON of a tool call, ends a word like the character itself.
"""

from __future__ import annotations

import re
from typing import Final

_NAMES: Final[dict[str, str]] = {
    "password": r"passw(?:or)?d|passwort|passphrase|passcode|passe|pwd|(?P<short>pass|pw|psk)|contraseña|senha"
    "|비밀번호|암호|密码|密碼|口令|パスワード",
    "secret": "secret(?:[ _-]?(?:access[ _-]?)?key)?",
    "token": r"token|credentials?|jsessionid|phpsessid|connect\.sid",
    "weak": "auth|dockerconfigjson",
    "key": "key",
}
_NAME: Final = "(?:" + "|".join(f"(?P<{kind}>{shape})" for kind, shape in _NAMES.items()) + ")"
_ENDING: Final = "(?:[_-]?(?:base|prod|production|dev|data|staging|test|live|value|old|new|v?[0-9]{1,2}))?"
_QUOTE: Final = r"""\\{0,3}["'`]"""
_TYPE: Final = r"(?::[ \t]?(?:str|string|String|&str|Optional\[str\]|str \| None)[ \t]?)?"
_VALUE_KEY: Final = rf"(?:{_QUOTE})?[Vv]alue(?:{_QUOTE})?[ \t]?[:=][ \t]?"
_FOR: Final = r"(?:[ \t](?:for|of|to|on|in)[ \t][^\n.,:;|]{1,48}?)?"
_OPERATORS: Final[dict[str, str]] = {
    "pair": rf"{_QUOTE},?\s{{0,40}}{_VALUE_KEY}|\s{{0,4}}\n\s{{0,40}}{_VALUE_KEY}|</key>\s{{0,40}}<string>",
    "assign": rf"(?:{_QUOTE})?\]?\*{{0,2}}[ \t]{{0,8}}(?:{_TYPE}=[=>]?|:=|[:：])\*{{0,2}}"
    r"(?:[ \t]{0,8}[|>][+-]?[ \t]{0,8}\n)?[ \t]{0,40}\*{0,2}",
    "tag": rf"(?:{_QUOTE})?>",
    "cell": r"[`*]{0,3}[ \t]{0,40}\|[ \t]{0,40}",
    "says": rf"{_FOR}[ \t]{{1,4}}(?:is|was|will be|should be|=|to)(?:[ \t](?:now|set|changed|reset|updated))?(?:[ \t]to)?:?"
    r"[ \t]{1,4}\*{0,2}|[는은][ \t]{1,4}|[ \t]?(?:是|は)[ \t]?",
    "comma": rf"{_QUOTE}[ \t]?,[ \t]?(?={_QUOTE})",
    "call": rf"\([ \t]?(?={_QUOTE})",
    "gap": r"[ \t]{1,8}",
}
_OPERATOR: Final = "(?:" + "|".join(f"(?P<{name}>{shape})" for name, shape in _OPERATORS.items()) + ")"
_DOUBLE: Final = r'\\{0,3}"(?P<double>(?:[^"\n\\]|\\(?!["nrt\\])[^\n]){4,4096})\\{0,3}"'
_SINGLE: Final = r"\\{0,3}'(?P<single>(?:[^'\n\\]|\\(?!['nrt\\])[^\n]){4,4096})\\{0,3}'"
_TICKED: Final = r"`(?P<ticked>[^`\n]{4,4096})`"
_BARE: Final = r"""(?P<bare>[^\s"'`\\,;&<>(){}\[\]|]{4,4096})(?P<code>[(\[])?"""
_VALUE: Final = f"(?:{_DOUBLE}|{_SINGLE}|{_TICKED}|{_BARE})"

NAMED: Final = re.compile(f"(?i){_NAME}{_ENDING}{_OPERATOR}(?={_VALUE})")
"""A name that people give to secrets, alone or at the end of a longer name, and in a lookahead the value that belongs to it.

The groups say the kind of name, the operator between the two, and how the value is quoted."""

NAME_ALONE: Final = re.compile(f"(?i)[*`\"' ]{{0,4}}[\\w. -]{{0,40}}?(?P<name>{_NAME}){_ENDING}[*`\"' ]{{0,4}}")
"""The head of a column of secrets, if `KEY_KIND` knows a name that ends in ``key``."""

KEY_KIND: Final = re.compile(
    "(?i)(?:(?P<secret>private|signing|encryption|master|fernet|hmac|pre[_-]?shared|cipher|client)"
    "|(?P<api_key>api|access|account|auth|subscription|services?|shared[_-]?access)"
    r"|(?P<weak>app|primary|secondary|license|session|storage|deploy|admin|ssh|tls))[ ._-]?\Z"
)
"""The word before ``key`` that makes it a name for secrets."""

AUTHORIZATION: Final = re.compile(
    r"""(?i)(?P<basic>\bauthorization\\?["']?[ \t]{0,4}[:=][ \t]{0,4}\\?["']?basic[ \t]{1,4})[A-Za-z0-9+/]{4,4096}={0,2}"""
    r"""|(?P<head>"""
    r"""\bauthorization\\?["']?[ \t]{0,4}[:=][ \t]{0,4}\\?["']?(?:[a-z-]{1,16}[ \t]{1,4})?|\b(?:bearer|basic)[ \t]{1,4})"""
    r"(?=[A-Za-z._~+/-]{0,512}[0-9=])[A-Za-z0-9._~+/-]{16,}={0,2}"
)
"""A credential in an ``Authorization`` header, or quoted from one."""

COOKIE: Final = re.compile(
    r"""(?i)(\b(?:set-)?cookie\\?["']?[ \t]{0,4}[:=][ \t]{0,4}\\?["']?|(?<!\S)(?:-b|--cookie)[ =]\\?["'])"""
    r"""[\w.-]{1,64}=[^\r\n"'\\]{4,}"""
)
"""A cookie header, or curl's option, with at least one value."""

URL_PASSWORD: Final = re.compile(
    r"""(://[^\s:/@"'<>]{0,128}:|jdbc:oracle:thin:\w{1,64}/)[^\s/"'<>{}$]{1,256}(?=@(?!sha256:))"""
)
"""The password in ``scheme://user:password@host``."""

URL_SIGNATURE: Final = re.compile(r"(?i)([?&;]sig=|\b(?:x-amz-)?signature=)[A-Za-z0-9%+/=_-]{16,512}")
"""The signature of a URL or a request that needs no other credential."""

_WORD: Final = r"""\\?["']?(?P<value>[^\s"'`\\|;&<>$()]{4,256})"""
_ARGUMENTS: Final = r"[^\n|;&]{0,160}?[ \t]"
_PIPED: Final = r"""\\?["']?[ ]?\|[ ]?"""
COMMANDS: Final[dict[str, re.Pattern[str]]] = {
    word: re.compile(shape)
    for word, shape in {
        "-u": r"""(?<!\S)(?:-u|--(?:proxy-)?user)[ =]{0,2}\\?["']?[\w.@%+-]{1,64}:"""
        r"""(?=[^\s"'\\]{0,255}[A-Za-z])(?=[a-z-]{0,255}[^\sa-z"'\\-])(?P<value>[^\s"'\\$]{4,256})""",
        "sshpass": rf"\bsshpass{_ARGUMENTS}-p[ ]?{_WORD}",
        " login": rf"\b(?:docker|podman|az|oras) login{_ARGUMENTS}(?:-p|--password)[ =]?{_WORD}",
        "mongo": rf"\bmongo(?:sh|dump|restore|export|import)?{_ARGUMENTS}-p[ ]?{_WORD}",
        "redis-cli": rf"\bredis-cli{_ARGUMENTS}-a[ ]{_WORD}",
        "sqlcmd": rf"\bsqlcmd{_ARGUMENTS}-P[ ]?{_WORD}",
        "mysql": rf"\bmysql[a-z-]{{0,12}}{_ARGUMENTS}-p{_WORD}",
        "mariadb": rf"\bmariadb[a-z-]{{0,12}}{_ARGUMENTS}-p{_WORD}",
        "chpasswd": rf"""[ "'][\w.-]{{1,64}}:(?P<value>[^\s"'\\|]{{4,256}}){_PIPED}(?:sudo )?chpasswd""",
        "sudo -s": rf"\b(?:echo|printf)(?: -n)? {_WORD}{_PIPED}sudo -S",
        "--password-stdin": rf"\b(?:echo|printf)(?: -n)? {_WORD}{_PIPED}[^\n|]{{0,80}}--password-stdin",
        "--with-token": rf"\b(?:echo|printf)(?: -n)? {_WORD}{_PIPED}[^\n|]{{0,80}}--with-token",
        "htpasswd": rf"\bhtpasswd -\w{{0,4}}b\w{{0,4}} \S{{1,128}} \S{{1,64}} {_WORD}",
        "requirepass": rf"\brequirepass[ \t]{{1,8}}{_WORD}",
        "login ": rf"\blogin[ \t]{{1,8}}(?!with |using |by )\S{{1,128}}\s{{1,16}}password[ \t]{{1,8}}{_WORD}",
        "identified": r"""(?i)\bidentified (?:with \S{1,64} )?by(?: password)? ["'](?P<value>[^"'\n]{4,256})["']""",
        "auth": r"""(?:\bauth\s?=\s?|HTTPBasicAuth|[bB]asic_?[aA]uth)\(\s?["'][^"'\n]{1,64}["']\s?,\s?"""
        r"""["'](?P<value>[^"'\n]{4,256})["']""",
        "networkcredential": r"""\bNetworkCredential\(\s?"[^"\n]{1,64}"\s?,\s?"(?P<value>[^"\n]{4,256})\"""",
        ".login(": r"""\.login\(\s?["'][^"'\n]{1,64}["']\s?,\s?["'](?P<value>[^"'\n]{4,256})["']""",
    }.items()
}
"""Passwords in arguments of a command, a statement or a call, each under a word, in small letters, that occurs with it."""

_UNSPACED: Final = r"""[`"']?(?P<value>[^\s"'`|;&<>()\[\]{}]{6,256})"""
SENTENCES: Final[dict[str, re.Pattern[str]]] = {
    word: re.compile(f"(?i){shape}")
    for word, shape in {
        " as ": rf"\b(?:use|with|enter|try) {_UNSPACED}[`\"']? as (?:the|your|my|its|a) (?:\w{{1,20}} )?{_NAME}",
        "cred": rf"\bcred(?:ential)?s?(?: are| with| as)?:? {{1,4}}[\w.@+-]{{1,64}} ?/ ?{_UNSPACED}",
        "login": rf"\blogin(?: is| with| as)?:? {{1,4}}[\w.@+-]{{1,64}} ?/ ?{_UNSPACED}",
    }.items()
}
"""Passwords in a sentence that puts them before their name, or beside a user's name."""

SECRET_DATA: Final = re.compile(r"(?m)^[ \t]{0,16}(?:stringData|data):[ \t]*\n(?:[ \t]{1,16}\S[^\n]{0,65536}\n?){1,64}")
"""The values of a Kubernetes Secret."""

SECRET_ENTRY: Final = re.compile(
    r"(?m)^([ \t]{1,16}[\w.-]{1,253}:[ \t]{1,4}[\"']?)[A-Za-z0-9+/]{4,65536}={0,2}(?=[\"']?[ \t]{0,4}$)"
)
"""One of these values."""
