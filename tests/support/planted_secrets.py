"""Made-up secrets in the shapes in which people write them, built at run time so that no scanner reports this file.

A shape is a text with ``§`` in the place of the secret. `PLANTED` pairs every shape with a secret; `HARMLESS` contains texts
without a secret. The tests of redaction and its benchmark read both.
"""

from __future__ import annotations

import base64
import json
import random
import string
from typing import Final

import attrs


@attrs.frozen
class Planted:
    """A text with a secret in it.

    Args:
        family: The kind of text, such as ``"yaml"``.
        shape: The text, with ``§`` in the place of the secret.
        secret: The secret.
    """

    family: str
    shape: str
    secret: str

    @property
    def text(self) -> str:
        """The shape with the secret in place of ``§``."""
        return self.shape.replace("§", self.secret)

    def kept_in(self, redacted: str) -> bool:
        """Whether the secret, or a line of it, is still in the text."""
        return any(line in redacted for line in self.secret.splitlines() if len(line) > 3)


_dice = random.Random(1101)
_LETTERS: Final = string.ascii_letters + string.digits


def _some(alphabet: str, length: int) -> str:
    """Return random characters of an alphabet."""
    return "".join(_dice.choices(alphabet, k=length))


def _mixed(length: int) -> str:
    return f"b7Q{_some(_LETTERS, length - 3)}"


def _hex(length: int) -> str:
    return f"4e{_some('0123456789abcdef', length - 2)}"


def _encoded(length: int) -> str:
    return base64.b64encode(_dice.randbytes(length)).decode()


def _key_lines(lines: int) -> str:
    return "\n".join(_some(_LETTERS + "+/", 64) for _ in range(lines))


_WORDS: Final = ("hunter22", "Tr0ub4dor&3", "s3cr3t-Pa55", "qWerty!2024", "blue7Falcon", "x9#kLm2p")
_SHAPES: Final[dict[str, tuple[str, ...]]] = {
    "env file": (
        "DB_PASS=§\nDB_HOST=db", "MYSQL_PWD=§", "export SMTP_PASS='§'", "ADMIN_PW=§", "POSTGRES_PASSWORD=§ # staging",
        "REDIS_AUTH_PASS=§", "DB_PASSWORD_PROD=§", "PASSWORD1=§", "ROOT_PASSWD=\"§\"",
    ),
    "netrc": (
        "machine api.example.io login dan password §", "machine h\n  login dan\n  password §\n", "default login ftp password §",
    ),
    "package registry": (
        "[pypi]\nusername = dan\npassword = §", "index-url = https://dan:§@pypi.example.io/simple", "_password=§",
    ),
    "url": (
        "postgres://app:§@db:5432/main", "mongodb+srv://app:§@cluster0.example.net/?w=1", "redis://:§@cache:6379/0",
        "amqp://guest:§@mq//", "postgresql+psycopg2://app:§@/main", "jdbc:mysql://db/main?user=app&password=§",
        "jdbc:oracle:thin:scott/§@db:1521:xe", "Driver={ODBC};Server=db;UID=sa;PWD=§;", "ftp://dan:§@files.example.io/a",
        "Server=db;User Id=sa;Password=§;Encrypt=yes", "http://user:§@proxy:3128",
    ),
    "yaml": (
        "db:\n  password: §\n  port: 5432", 'db_pass: "§"', "env:\n- name: DB_PASSWORD\n  value: §", "adminPassword: §",
        "ansible_ssh_pass: §", "ansible_become_pass: '§'", "environment:\n  - POSTGRES_PASSWORD=§", "password: |\n  §\n",
        "smtp_pass : §",
    ),
    "json": (
        '{"password": "§"}', r'{\"user\": \"a\", \"password\": \"§\"}', '{"name": "DB_PASSWORD", "value": "§"}', '{"pass":"§"}',
        '{"userPassword":"§","role":"x"}', '{"key": "db_password",\n "value": "§"}', "{'passwd': '§'}",
    ),
    "ini, toml, properties": (
        "[client]\nuser=app\npassword=§", 'password = "§"', "spring.datasource.password=§", "requirepass §\nport 6379",
        "bind_pw = §", 'wpa_passphrase=§\nssid=home', 'network={\n ssid="home"\n psk="§"\n}', "db.pass: §",
    ),
    "xml": (
        "<password>§</password>", '<property name="password" value="§"/>', '<add key="DbPassword" value="§" />',
        "<key>Password</key>\n<string>§</string>", '<user name="a" password="§"/>', '<string name="db_password">§</string>',
        '<publishProfile userPWD="§" />', "<server><id>x</id><passphrase>§</passphrase></server>",
    ),
    "curl": (
        "curl -u admin:§ https://h", "curl --user 'admin:§' https://h", "curl -uadmin:§ https://h",
        "curl --proxy-user dan:§ https://h", """curl -d '{"password":"§"}' https://h""",
        "curl -d 'user=a&password=§' https://h",
        "wget --http-password=§ https://h",
    ),
    "command line": (
        "mysql -uroot -p§ main", "tool --password § --verbose", "sshpass -p § ssh dan@host", "sshpass -p '§' scp a host:",
        "docker login -u dan -p § registry.io", "redis-cli -h cache -a § ping", "PGPASSWORD=§ psql -U app",
        "openssl rsa -in k.pem -passin pass:§", "gpg --batch --passphrase § -d f", "echo 'root:§' | chpasswd",
        "echo § | sudo -S apt update", "echo '§' | docker login -u dan --password-stdin", "sqlcmd -S db -U sa -P §",
        'psql "host=db user=app password=§"', "helm install x --set adminPassword=§", "htpasswd -b .htpasswd dan §",
        "kubectl create secret generic db --from-literal=password=§", "vault kv put secret/db password=§",
        "mysqldump -u root --password=§ main", "mongosh -u admin -p § --authenticationDatabase admin",
        "az login --service-principal -u app -p § --tenant t",
    ),
    "markdown": (
        "| password | § |", "| **Password** | `§` |", "| user | password |\n|---|---|\n| admin | § |",
        "| DB_PASS | § | staging |",
        "- **Password:** §", "- **Password**: `§`", "* Password: `§`", "Password: **§**",
        " id | login | password\n----+-------+----------\n  1 | admin | §\n(1 row)",
    ),
    "sql": (
        "CREATE USER 'app'@'%' IDENTIFIED BY '§';", "CREATE ROLE app WITH LOGIN PASSWORD '§';", "ALTER USER app PASSWORD '§';",
        "SET PASSWORD FOR 'app'@'%' = PASSWORD('§');", "CREATE LOGIN app WITH PASSWORD = '§';",
        "ALTER USER app IDENTIFIED WITH mysql_native_password BY '§';", "CREATE USER app ENCRYPTED PASSWORD '§'",
    ),
    "code": (
        'password = "§"', "const dbPassword = '§';", 'dbPassword := "§"', 'String password = "§";',
        "define('DB_PASSWORD', '§');",
        'connect(user="a", password="§")', "config['password'] = '§'", 'user.setPassword("§");', "'password' => '§',",
        'new NetworkCredential("a", "§")', 'requests.get(url, auth=("dan", "§"))', 'props.setProperty("db.password", "§");',
        'let password: String = "§".to_string();', "password: '§',", 'os.environ["DB_PASSWORD"] = "§"', 'self.passwd="§"',
        'var password = `§`;', 'smtp.login("dan@example.io", "§")', "private static final String PASS = \"§\";",
    ),
    "prose": (
        "The password is §.", "the password for the admin account is §", "Use § as the password.", "My password: §",
        "The root password was changed to §", "Set the password to § please", "Your temporary password is: §",
        "log in as admin with password §", "user: admin, pass: §", "비밀번호는 § 입니다", "密码：§", "パスワードは§です",
        "Passwort: §",
        "contraseña: §", "mot de passe : §", "credentials: admin / §",
    ),
}  # fmt: skip

_KEYED: Final[dict[str, tuple[str, ...]]] = {
    "env file": (
        "JWT_SECRET=§", "NEXTAUTH_SECRET=§", "STRIPE_WEBHOOK_SECRET=§", "DD_API_KEY=§", "ENCRYPTION_KEY=§",
        "APP_SECRET_KEY='§'",
        "AZURE_CLIENT_SECRET=§", "APP_KEY=base64:§", "FERNET_KEY=§", "CI_DEPLOY_TOKEN=§", "API_KEY_V2=§", "HMAC_KEY=§",
    ),
    "package registry": (
        "//registry.npmjs.org/:_authToken=§", "//r.example.io/:_auth=§", ":rubygems_api_key: §", "[registry]\ntoken = \"§\"",
    ),
    "url": ("https://h/?access_token=§&page=2", "https://h/a?api_key=§", "https://a.blob.core.windows.net/b?sv=2024&sig=§"),
    "yaml": (
        "client_secret: §", "auth:\n  token: §", "- name: API_TOKEN\n  value: \"§\"", "webhookSecret: §", "x: {apiKey: §}",
    ),
    "json": (
        '{"clientSecret": "§"}', '{"accessToken":"§"}', '{"refresh_token": "§"}', '{"SecretAccessKey": "§"}',
        '{"SessionToken": "§"}', '{"name":"API_KEY","value":"§"}', '{"primaryKey": "§"}', r'{\"apiKey\":\"§\"}',
    ),
    "ini, toml, properties": (
        "auth_token = '§'", "[default]\naws_secret_access_key = §", "PrivateKey = §", "PresharedKey = §", "app.jwt.secret=§",
    ),
    "xml": ('<add key="ApiSecret" value="§"/>', '<string name="api_key">§</string>', "<accessToken>§</accessToken>"),
    "http": (
        "Authorization: Bearer §", "Authorization: Basic §", "authorization: token §", "Proxy-Authorization: Basic §",
        "X-API-Key: §", "X-Auth-Token: §", "X-Vault-Token: §", "Cookie: session=§; theme=dark", "PRIVATE-TOKEN: §",
        "Set-Cookie: JSESSIONID=§; Path=/; HttpOnly", "x-goog-api-key: §", "Ocp-Apim-Subscription-Key: §",
        "Authorization: AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders=host, Signature=§",
        "headers={'Authorization': 'Bearer §'}",
    ),
    "curl": (
        "curl -H 'X-API-Key: §' https://h", 'curl -H "Authorization: Bearer §" https://h', "curl -b 'sid=§' https://h",
        "curl --cookie \"session=§\" https://h",
    ),
    "command line": (
        "tool --token=§", "tool --api-key §", "aws configure set aws_secret_access_key §", "npm config set //r/:_authToken §",
        "echo § | gh auth login --with-token", "tool --client-secret '§'",
    ),
    "markdown": (
        "| API key | § |", "| `AWS_SECRET_ACCESS_KEY` | `§` |", "| name | token |\n|:--|--:|\n| ci | § |", "**API key**: §",
        "|  SecretAccessKey |  §  |",
    ),
    "kubernetes": (
        "kind: Secret\ndata:\n  password: §\n", "kind: Secret\nmetadata:\n  name: db\ndata:\n  blob: §\n",
        "    client-key-data: §",
        "  .dockerconfigjson: §", "  tls.key: §", "users:\n- user:\n    token: §", "stringData:\n  api-token: \"§\"",
    ),
    "docker": ('{"auths": {"https://r.io": {"auth": "§"}}}', '{"auths":{"r.io":{"identitytoken":"§"}}}'),
    "cloud": (
        "AWS_SECRET_ACCESS_KEY=§", "AWS_SESSION_TOKEN=§", "AccountName=a;AccountKey=§;EndpointSuffix=core.windows.net",
        "Endpoint=sb://a/;SharedAccessKeyName=r;SharedAccessKey=§", '"refresh_token": "§"', "secret_key: §", "ARM_ACCESS_KEY=§",
    ),
    "sql": ("CREATE SECRET s (TYPE s3, KEY_ID 'a', SECRET '§');", "CREDENTIALS 'aws_access_key_id=a;aws_secret_access_key=§'"),
    "code": (
        "const apiKey = '§';", 'String secretKey = "§";', "ENV['SECRET_TOKEN'] = '§'", 'os.Setenv("API_TOKEN", "§")',
        'client = Client(api_key="§")', 'process.env.AUTH_TOKEN = "§"', 'config.secret_key_base = "§"', "$token = '§';",
    ),
    "prose": (
        "my API key is §", "The access token is §", "API Key: §", "here is the client secret: §", "the token for CI is `§`",
    ),
}  # fmt: skip

_HEX_KEYED: Final[dict[str, tuple[str, ...]]] = {
    "env file": ("SECRET_KEY_BASE=§", "RAILS_MASTER_KEY=§", "SESSION_SECRET=§", "DATADOG_API_KEY=§"),
    "json": ('{"api_key": "§"}', '{"secret":"§"}'),
    "cloud": ("cognitive_services_key: §", "X-Amz-Security-Token=§"),
}

_TOKENS: Final[tuple[tuple[str, str], ...]] = (
    ("OpenAI", "sk-" + "proj-" + _mixed(48)), ("OpenAI, old", "sk-" + _mixed(48)),
    ("Anthropic", "sk-" + "ant-api03-" + _mixed(90)),
    ("OpenRouter", "sk-" + "or-v1-" + _hex(64)), ("GitHub", "gh" + "p_" + _mixed(36)),
    ("GitHub, fine", "github" + "_pat_" + _mixed(82)),
    ("GitLab", "gl" + "pat-" + _mixed(20)), ("Slack", "xo" + "xb-123456789012-" + _mixed(24)),
    ("AWS", "AK" + "IA" + _some(string.ascii_uppercase, 16)),
    ("Google", "AI" + "za" + _mixed(35)), ("Stripe", "sk" + "_live_" + _mixed(24)), ("Hugging Face", "hf" + "_" + _mixed(34)),
    ("npm", "np" + "m_" + _mixed(36)), ("PyPI", "py" + "pi-" + _mixed(90)),
    ("SendGrid", "S" + "G." + _mixed(22) + "." + _mixed(43)),
    ("Twilio", "S" + "K" + _hex(32)), ("DigitalOcean", "do" + "p_v1_" + _hex(64)), ("Databricks", "da" + "pi" + _hex(32)),
    ("Groq", "gs" + "k_" + _mixed(52)), ("xAI", "xa" + "i-" + _mixed(80)), ("Shopify", "shp" + "at_" + _hex(32)),
    ("Vault", "hv" + "s." + _mixed(90)), ("Linear", "lin" + "_api_" + _mixed(40)), ("Notion", "nt" + "n_" + _mixed(46)),
    ("Telegram", "123456789" + ":AA" + _mixed(33)), ("age", "AGE-" + "SECRET-KEY-1" + _some(string.ascii_uppercase, 58)),
    ("Mailgun", "key" + "-" + _hex(32)), ("Mailchimp", _hex(32) + "-us" + "12"), ("Square", "sq" + "0csp-" + _mixed(43)),
    ("Perplexity", "pp" + "lx-" + _mixed(48)), ("Replicate", "r8" + "_" + _mixed(37)),
    ("Grafana", "gl" + "sa_" + _mixed(32) + "_" + _hex(8)),
    ("New Relic", "NR" + "AK-" + _some(string.ascii_uppercase, 27)), ("Sentry", "snt" + "rys_" + _mixed(80)),
    ("Postman", "PM" + "AK-" + _hex(24) + "-" + _hex(34)),
    ("Docker Hub", "dckr" + "_pat_" + _mixed(27)), ("Atlassian", "AT" + "ATT3" + _mixed(180)),
    ("Airtable", "pat" + _mixed(14) + "." + _hex(64)),
    ("Supabase", "sb" + "p_" + _hex(40)), ("Doppler", "dp" + ".pt." + _mixed(43)),
    ("PlanetScale", "pscale" + "_tkn_" + _mixed(43)),
    ("Pulumi", "pul" + "-" + _hex(40)), ("Terraform Cloud", _mixed(14) + ".atlas" + "v1." + _mixed(64)),
    ("Figma", "fig" + "d_" + _mixed(40)),
    ("RubyGems", "rubygems" + "_" + _hex(48)), ("Tavily", "tv" + "ly-" + _mixed(32)),
    ("LangSmith", "ls" + "v2_pt_" + _hex(32) + "_" + _hex(10)),
    ("Discord", "MTA" + _mixed(21) + "." + _mixed(6) + "." + _mixed(38)), ("Alibaba", "LT" + "AI" + _mixed(20)),
    ("Dynatrace", "dt" + "0c01." + _some(string.ascii_uppercase, 24) + "." + _some(string.ascii_uppercase, 64)),
)  # fmt: skip


def _jwt(claims: dict[str, object]) -> str:
    parts = [json.dumps({"alg": "HS256", "typ": "JWT"}), json.dumps(claims)]
    return ".".join([*(base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts), _mixed(43)])


def _planted() -> list[Planted]:
    """Return every shape with a secret; words for passwords, random characters for keys."""
    found: list[Planted] = []
    for family, shapes in _SHAPES.items():
        found += [Planted(family, shape, _WORDS[number % len(_WORDS)]) for number, shape in enumerate(shapes)]
    for family, shapes in _KEYED.items():
        found += [
            Planted(family, shape, _encoded(33) if family in {"kubernetes", "docker"} else _mixed(40)) for shape in shapes
        ]
    for family, shapes in _HEX_KEYED.items():
        found += [Planted(family, shape, _hex(64)) for shape in shapes]
    for service, token in _TOKENS:
        found.append(Planted("token of a service", f"I ran it with § ({service}), it failed", token))
    for name in ("RSA PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY", "PRIVATE KEY", "PGP PRIVATE KEY BLOCK"):
        found.append(Planted("private key", f"-----BEGIN {name}-----\n§\n-----END {name}-----", _key_lines(6)))
    found.append(
        Planted(
            "private key",
            "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n§\n---- END SSH2 ENCRYPTED PRIVATE KEY ----",
            _key_lines(4),
        )
    )
    found.append(Planted("private key", "PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 3\n§\nPrivate-MAC: 0", _key_lines(3)))
    for shape in ("token: §", "I got §, is it valid?", "localStorage.setItem('jwt', '§')"):
        found.append(Planted("JSON web token", shape, _jwt({"sub": "dan", "iat": 1_516_239_022})))
    return found


PLANTED: Final = tuple(_planted())
"""The secrets, each in its shape."""

_HASH: Final = _hex(40)
_UUID: Final = "550e8400-e29b-41d4-a716-446655440000"
HARMLESS: Final = (
    f"commit {_HASH}", f"git checkout {_HASH[:12]} # token parser", f"sha256:{_hex(64)}", f"key {_HASH} was pushed", _UUID,
    f"secret id {_UUID}", f"{_hex(64)}  dist/app.tar.gz", f'"integrity": "sha512-{_encoded(64)}"', f"--hash=sha256:{_hex(64)}",
    f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA{_mixed(43)} dan@host", f"key fingerprint SHA256:{_mixed(43)}",
    "password reset page", "token count: 512", "The password is required.", "a password field2 on page2",
    "the password is case-sensitive",
    "the password is 8-16 characters long", "the token is base64", "password sha256 and argon2", "tests pass: 1234 fail: 3",
    "PASS: TestLogin2 (0.00s)", "--- PASS: TestFoo2 (0.00s)", "PASS tests/test_x2.py", "bypass=cache1234", "compass: north2024",
    "passed=12345", "pass = 12 of 14", "if x: pass  # python3", "primary key (user_id2)", "primary_key: customer_id_2024",
    '"key": "cart_item_12345678"', "token_type: Bearer", '"tokens": 128000', "max_tokens=16000", "token_ids: [1, 2, 3]",
    "tokens per second is 1234.5", "secretary: Jones2024", "secret: true", "secretName: my-tls-2024",
    "secretKeyRef:\n  name: db2",
    "private_key_path: ~/.ssh/id_rsa2", "password_file: /run/secrets/db2", "token_url: https://h/oauth2/token",
    "auth: required",
    "auth: oauth2", "password_min_length = 12", "access_token_expires_in=3600", "Authorization: Bearer <token>",
    "| password | string | required |", "| password | varchar(255) | NO |", "| token | int64 | the id |",
    "| password | at least 8 |",
    "| name | password |\n|---|---|\n| dan | required |", "| key | value |\n|---|---|\n| a1b2c3d4e5 | 2 |",
    "ssh -p 2222 dan@host", "docker run -p 8080:80 nginx", "mkdir -p build/a1b2", "mysql -u root -p main",
    "redis-cli -p 6379 ping",
    "cp -a src1 dst22", "echo hello1 | sudo tee /etc/x", "change the password to a stronger one",
    "reset the password with form2",
    "use utf8 as the encoding", "use step2024 as a name", "login with google/oauth2", "credentials: application/json",
    "kind: Secret\nmetadata:\n  namespace: production\n  name: db\n", '["password", "email2"]',
    "getToken(user_token2)", "get_secret('prod/db/creds')", "<label for='password'>Password</label>",
    "<password>required</password>",
    '{"name": "password", "type": "string"}', "def check(password: str, token: str | None) -> bool:",
    "password=args.password2x",
    "the key is cart_2024", "signature: (a: int, b2: str) -> int", "auth_module = google_auth_v2", "press any key to exit2024",
    "PASSWORD_HASHERS = ['argon2']", "token = next(tokens)", "The API key is missing.", "the secret is kept in vault2",
    "The token for CI is stored in Vault.", "basic auth", "CREATE TABLE users (id int, password varchar(64))",
    "-----BEGIN CERTIFICATE-----",
    "cookie policy", "sk-learn-is-a-nice-library-for-everybody", "author=dan2024x", f"authored-by: {_HASH[:10]}",
    "x-request-id: " + _UUID,
)  # fmt: skip
"""Texts without a secret."""
