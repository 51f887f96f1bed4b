"""Secrets in shapes that were written before the table of `compaction.summarizers.redaction` was extended, and never tuned on.

They say how well the table does on what nobody thought of. Whoever extends the table leaves this file alone: a shape that is
missed here stays missed until something else finds it. Secrets are put together at run time, so that no scanner reports this
file.
"""

from __future__ import annotations

import random
import string
from typing import Final

from .planted_secrets import Planted

_dice = random.Random(77)
_LOWER: Final = string.ascii_lowercase
_LETTERS: Final = string.ascii_letters + string.digits


def _some(alphabet: str, length: int) -> str:
    return "".join(_dice.choices(alphabet, k=length))


def _mixed(length: int) -> str:
    return f"k4Z{_some(_LETTERS, length - 3)}"


def _hex(length: int) -> str:
    return f"9a{_some('0123456789abcdef', length - 2)}"


_SEED: Final = "orbit velvet mango cabin twelve robot ladder pigeon sunset glance hybrid crisp"

UNSEEN: Final = (
    Planted(
        "gitlab",
        "sudo gitlab-runner register --url https://git.example.io --token § --executor docker",
        "gl" + "rt-" + _mixed(20),
    ),
    Planted("gitlab", "registration-token: §", "GR" + "1348941" + _mixed(20)),
    Planted("gitlab", "git clone https://gitlab-ci-token:§@git.example.io/a/b.git", "gl" + "cbt-64_" + _mixed(20)),
    Planted("azure", "git clone https://dan:§@dev.azure.com/org/project/_git/repo", _some(_LOWER + "234567", 52)),
    Planted("azure", "I exported AZURE_DEVOPS_EXT_PAT=§ and az devops works now", _some(_LOWER + "234567", 52)),
    Planted("azure", "az login --service-principal --username app --password § --tenant t", "aB3" + "8Q~" + _mixed(34)),
    Planted("azure", "curl 'https://fn.azurewebsites.net/api/run?code=§'", _mixed(54) + "=="),
    Planted(
        "google",
        '{"installed":{"client_id":"1-a.apps.googleusercontent.com","client_secret":"§"}}',
        "GOC" + "SPX-" + _mixed(28),
    ),
    Planted("google", "The refresh token we got back was §", "1//" + "0g" + _mixed(60)),
    Planted("google", "gcloud auth print-access-token\n§", "ya" + "29." + _mixed(120)),
    Planted("env", "# .env.production\nNODE_ENV=production\nMAIL_PASSWORD=§\nPORT=8080", "Winter-Apple-92"),
    Planted("env", "cat .env\nSTRIPE_SK=§\nDEBUG=0", "sk" + "_test_" + _mixed(24)),
    Planted("env", "export OPENAI_KEY=§", _mixed(40)),
    Planted("env", "GH_PAT=§\nGH_USER=dan", _mixed(40)),
    Planted("env", "ADMIN_CREDS=admin:§", "Glacier!47"),
    Planted("env", "set SMTP_AUTH_PASSWD=§", "frosty44Lake"),
    Planted("hash", "$ cat /etc/nginx/.htpasswd\nops:§", "$apr" + "1$Zt0qGkqv$" + _mixed(22)),
    Planted("hash", "root:§:19700:0:99999:7:::", "$6$" + "kq8aYw2n$" + _some(_LETTERS + "./", 86)),
    Planted("hash", "admin | § | 2024-11-02", "$2" + "b$12$" + _some(_LETTERS + "./", 53)),
    Planted("hash", "alice:§", "{SSHA}" + _mixed(32)),
    Planted("hash", "password_hash: §", "$argon2id" + "$v=19$m=65536,t=3,p=4$" + _mixed(22) + "$" + _mixed(43)),
    Planted("dsn", 'Sentry.init({ dsn: "https://§@o450.ingest.us.sentry.io/77" })', _hex(32)),
    Planted("dsn", "SENTRY_DSN=https://§@sentry.example.io/4", _hex(32)),
    Planted("codes", "Save these backup codes:\n§\nEach works once.", "4821-9930\n1177-2046\n5519-0482\n7730-1264"),
    Planted("codes", "GitHub recovery codes\n§", "a81f3-c09be\n77d1e-4b20c\n0c9aa-fe137"),
    Planted("codes", "My Google app password is §", "kqzv wmtb hxrd ynpc"),
    Planted("codes", "otpauth://totp/Acme:dan?secret=§&issuer=Acme", _some(string.ascii_uppercase + "234567", 32)),
    Planted("codes", "The 2FA secret for the account: §", _some(string.ascii_uppercase + "234567", 32)),
    Planted("wallet", "My seed phrase is: §", _SEED),
    Planted("wallet", 'module.exports = { accounts: { mnemonic: "§" } }', _SEED),
    Planted("wallet", "Write down your recovery phrase:\n\n§\n", _SEED),
    Planted("wallet", "cast send 0xabc --private-key §", "0x" + _hex(64)),
    Planted("wallet", "DEPLOYER_PRIVATE_KEY=§", "0x" + _hex(64)),
    Planted("wallet", "const wallet = new ethers.Wallet('§', provider)", "0x" + _hex(64)),
    Planted("card", "Please charge § exp 04/29 cvv 231", "4539 1488 0343 6467"),
    Planted("card", '{"card_number": "§", "exp_month": 4}', "5425233430109903"),
    Planted("card", "Kreditkarte: §", "3782 822463 10005"),
    Planted("card", "카드번호 § 로 결제해 주세요", "4012-8888-8888-1881"),
    Planted("iban", "Send the deposit to § until Friday.", "DE89 3704 0044 0532 0130 00"),
    Planted("iban", '"iban":"§"', "GB29NWBK60161331926819"),
    Planted("iban", "IBAN FR: §", "FR14 2004 1010 0505 0001 3M02 606"),
    Planted("table", "user      password      role\n--------  ------------  -----\ndan       §  admin", "Tulip77!Rain"),
    Planted("table", "NAME   TOKEN   AGE\nci-bot   §   3d", _mixed(32)),
    Planted("table", "<tr><th>Password</th><td>§</td></tr>", "maroon-Kite31"),
    Planted("csv", "email,password,plan\ndan@example.io,§,free\n", "Cobalt_91x"),
    Planted("csv", 'id;login;Passwort\n7;dan;"§"', "Rotwein!88"),
    Planted("csv", "host\tuser\tpwd\ndb1\tapp\t§", "s1lver-Fox"),
    Planted("list", "passwords:\n  - §\n", "Harbor55Moon"),
    Planted("list", '"api_keys": ["§"]', _mixed(32)),
    Planted("list", "tokens = ['§']", _mixed(36)),
    Planted("german", "Das Kennwort lautet §", "Birnbaum19"),
    Planted("german", "Zugangsdaten: dan / §", "Regen#Tag4"),
    Planted("german", "Mein neues Passwort für den Server ist §.", "Kuckuck-77"),
    Planted("korean", "관리자 비번은 § 입니다", "namu2024!"),
    Planted("korean", "API 키: §", _mixed(32)),
    Planted("korean", "패스워드 = §", "gureum_88A"),
    Planted("language", "Mot de passe du compte : §", "Citron-vert9"),
    Planted("language", "пароль: §", "Zima2024snow"),
    Planted("language", "La clave de la base de datos es §", "Naranja*52"),
    Planted("language", "数据库密码是 §", "Qing2024hai"),
    Planted("service", "TS_AUTHKEY=§ tailscale up", "tskey-" + "auth-" + _mixed(17) + "-" + _mixed(32)),
    Planted("service", "nvidia key § hits the rate limit", "nv" + "api-" + _mixed(64)),
    Planted(
        "service",
        "docker swarm join --token § 10.0.0.4:2377",
        "SWM" + "TKN-1-" + _some(_LOWER + string.digits, 50) + "-" + _some(_LOWER, 25),
    ),
    Planted("service", "kubeadm join 10.0.0.1:6443 --token §", "k7f3q1.0a9d8e7c6b5f4123"),
    Planted("service", "WIFI:T:WPA;S:Office;P:§;;", "welcome-2-Office"),
    Planted("service", "HubSpot: §", "pat-" + "na1-" + "9a8b7c6d-1e2f-4a3b-8c4d-5e6f7a8b9c0d"),
)
"""The secrets, each in its shape."""

UNSEEN_HARMLESS: Final = (
    f"index {_hex(7)}..{_hex(7)} 100644",
    f"Merge: {_hex(7)} {_hex(7)}",
    f'etag: W/"{_hex(32)}"',
    f"0x{_hex(64)} mined in block 19000000",
    f'"resolved": "https://registry.example.io/a/-/a-1.2.3.tgz#{_hex(40)}"',
    f'checksum = "{_hex(64)}"',
    f'name = "serde"\nchecksum = "{_hex(64)}"',
    f"trace_id={_hex(32)} span_id={_hex(16)}",
    f"data:image/png;base64,iVBORw0KGgo{_mixed(400)}",
    f"uid {_hex(8)}-1a2b-4c3d-8e4f-{_hex(12)} created",
    "order 4929111122223333444 was shipped",
    "timestamp 1718033122123456 reached",
    "call +49 30 1234567 today",
    "ISBN 978-3-16-148410-0",
    "version 10.4.22000.1 installed",
    "!function(e,t){var n=e.key,r=t.token;return n(r)}(a,b);",
    "const r=t.password,n=e.secret||o.token;",
    "words: alpha beta gamma delta epsilon zeta eta theta iota kappa lambda",
    "The recovery of the database took two hours.",
    "Backup codes are not supported yet.",
    "user,role,plan\ndan,admin,free",
    "keys:\n  - name\n  - email2",
    'tokens: ["the", "cat2", "sat"]',
    "passwords:\n  - must be long\n  - must have 2 digits",
    "The seed of the random generator is 1234.",
    "git log --pretty=format:%h2",
    "das Passwort ist zu kurz",
    "비밀번호를 잊으셨나요?",
    "пароль обязателен",
    "el clave2 de la tabla",
    "Der Schlüssel zum Erfolg ist Übung",
    f"Signed-off-by: Dan <dan@example.io>\nChange-Id: I{_hex(40)}",
    "pin: GPIO17",
    "pinned to 1.2.34",
    "AB12CD34EF56 was picked up",
    "card_4421486",
    "flight HAT204, gate B12",
    "container 3f2a91bc77de exited",
    "sess = tf.Session(2)",
    "SELECT token, password FROM users WHERE id = 12345",
)
"""Texts without a secret."""
