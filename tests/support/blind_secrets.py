# ruff: noqa: E501
"""Shapes of secrets and harmless texts, written without sight of the table in `summarizers/redaction/secrets.toml`.

They are frozen: what fails is a reason to repair the table's general rules, never to change this list. `{alnum:32}` stands for random
letters and digits, `{hex:8}`, `{upper:16}` (capitals and digits), `{digits:6}`, `{b64:44}`, `{b32:16}`, `{word:9}` and `{pass:12}` (a
password of letters, digits and signs) for the like. What stands between « and » is the secret.
"""

from __future__ import annotations

import base64
import random
import re
import string

_ALPHABETS = {
    "alnum": string.ascii_letters + string.digits,
    "hex": "0123456789abcdef",
    "upper": string.ascii_uppercase + string.digits,
    "lower": string.ascii_lowercase + string.digits,
    "digits": string.digits,
    "b32": string.ascii_uppercase + "234567",
    "word": string.ascii_lowercase,
}
_BLANK = re.compile(r"\{(\w+):(\d+)\}")

_SECRETS = (
    "GRAFANA_URL=https://g.example glsa «glsa_{alnum:32}_{hex:8}»",
    "the key of Linear is «lin_api_{alnum:40}»",
    "Notion integration: «ntn_{digits:11}{alnum:35}»",
    "airtable.configure(«pat{alnum:14}.{hex:64}»)",
    "doppler run --token «dp.pt.{alnum:43}»",
    "postman login --with «PMAK-{hex:24}-{hex:34}»",
    "mysql://x pscale «pscale_tkn_{alnum:43}»",
    "supabase link «sbp_{hex:40}»",
    "databricks configure «dapi{hex:32}»",
    "shopify theme push «shpat_{hex:32}»",
    "bot started with «{digits:9}:AA{alnum:33}»",
    "twilio api:core «SK{hex:32}»",
    "mailgun client «key-{hex:32}»",
    "SENDGRID «SG.{alnum:22}.{alnum:43}»",
    "mailchimp «{hex:32}-us12»",
    "doctl auth init -t «dop_v1_{hex:64}»",
    "//registry.npmjs.org/:_authToken=«npm_{alnum:36}»",
    "twine upload -u __token__ -p «pypi-AgEIcHlwaS5vcmcC{alnum:90}»",
    "docker login -u bob -p «dckr_pat_{alnum:27}»",
    "huggingface-cli login «hf_{alnum:34}»",
    "replicate «r8_{alnum:37}»",
    "groq «gsk_{alnum:52}»",
    "grok «xai-{alnum:80}»",
    "sonar «pplx-{alnum:48}»",
    "claude «sk-ant-api03-{alnum:93}AA»",
    "codex «sk-proj-{alnum:74}T3BlbkFJ{alnum:74}»",
    "post it to https://hooks.slack.com/services/«T{upper:9}/B{upper:10}/{alnum:24}»",
    "post it to https://discord.com/api/webhooks/{digits:18}/«{alnum:68}»",
    "client.run('«M{alnum:23}.{alnum:6}.{alnum:38}»')",
    "DefaultEndpointsProtocol=https;AccountName=store;AccountKey=«{b64:88}»;EndpointSuffix=core.windows.net",
    "https://store.blob.core.windows.net/c/f.txt?sv=2023-01-03&se=2025-01-01&sr=b&sig=«{alnum:43}%3D»",
    "aws_secret_access_key = «{b64:40}»",
    "https://b.s3.amazonaws.com/f?X-Amz-Date=20250301T000000Z&X-Amz-Signature=«{hex:64}»",
    '"private_key": "-----BEGIN PRIVATE KEY-----\\n«{b64:64}\\n{b64:64}»\\n-----END PRIVATE KEY-----\\n"',
    "stripe.api_key = '«rk_live_{alnum:24}»'",
    "stripe listen: signing «whsec_{alnum:32}»",
    "square «sq0csp-{alnum:43}»",
    "machine api.example.com login bob password «{pass:14}»",
    "db.internal:5432:billing:app:«{pass:14}»",
    "curl -u bob:«{pass:14}» https://api.example.com/v1",
    "mysql -u root -p'«{pass:14}»' billing",
    "sshpass -p «{pass:12}» ssh bob@host",
    "Authorization: Basic «{b64:32}»",
    "Cookie: theme=dark; sessionid=«{lower:32}»",
    "Set-Cookie: connect.sid=«s%3A{alnum:32}.{alnum:43}»; Path=/; HttpOnly",
    "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ndata:\n  db-password: «{b64:24}»",
    'variable "db_password" {\n  type    = string\n  default = "«{pass:14}»"\n}',
    "jdbc:postgresql://db.internal/billing?user=app&password=«{alnum:14}»",
    "Server=db;Database=billing;Uid=app;Pwd=«{alnum:14}»;",
    "REDIS_URL=redis://:«{alnum:20}»@cache.internal:6379/0",
    "mongodb+srv://app:«{alnum:18}»@cluster0.abcde.mongodb.net/billing",
    "amqp://guest:«{alnum:12}»@mq.internal/",
    "The WiFi password is «{word:6}-{digits:4}-{word:5}», the guest net has none.",
    "mot de passe : «{pass:12}»",
    "la contraseña es «{pass:12}»",
    "a senha do banco é «{pass:12}»",
    "Das Passwort lautet «{pass:12}»",
    "パスワードは「«{pass:12}»」です",
    "密码：«{pass:12}»",
    "비밀번호: «{pass:12}»",
    "otpauth://totp/Corp:bob?secret=«{b32:32}»&issuer=Corp",
    "[Interface]\nPrivateKey = «{b64:43}=»\nAddress = 10.0.0.2/32",
    "# created: 2025-03-01\n«AGE-SECRET-KEY-1{upper:58}»",
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n«{b64:64}\n{b64:64}»\n=aB3d\n-----END PGP PRIVATE KEY BLOCK-----",
    "PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 1\n«{b64:48}»\nPrivate-MAC: {hex:64}",
    "wallet «xprv9s21ZrQH143K{alnum:95}»",
    "vault login «hvs.{alnum:90}»",
    'token = "«{alnum:14}.atlasv1.{alnum:67}»"',
    "newrelic «NRAK-{upper:27}»",
    "DD_API_KEY=«{hex:32}»",
    "Authorization: SSWS «00{alnum:40}»",
    '{"client_id": "web", "client_secret": "«{alnum:64}»"}',
    "firebase.initializeApp({ apiKey: '«AIza{alnum:35}»' })",
    "tailscale up --authkey «tskey-auth-{alnum:12}-{alnum:32}»",
    "export CF_API_TOKEN=«{alnum:40}»",
    "SNOWSQL_PWD=«{pass:14}»",
    "net user bob «{pass:12}» /add",
    'ConvertTo-SecureString "«{pass:14}»" -AsPlainText -Force',
    "<server><id>nexus</id><username>ci</username><password>«{pass:14}»</password></server>",
    "define( 'DB_PASSWORD', '«{pass:14}»' );",
    "SECRET_KEY = 'django-insecure-«{pass:40}»'",
    "secret_key_base: «{hex:128}»",
    "APP_KEY=base64:«{b64:43}=»",
    '{"access_token": "«{alnum:40}»", "refresh_token": "abc", "expires_in": 3600}',
    "GET /v1/me?access_token=«{alnum:40}» HTTP/1.1",
    "user,password,role\nbob,«{pass:10}»,admin",
    "| user | password |\n|---|---|\n| bob | «{pass:10}» |",
    "git clone https://bob:«{alnum:20}»@git.example.com/bob/repo.git",
    "x-api-key: «{alnum:40}»",
    "protocol=https\nhost=git.example.com\nusername=bob\npassword=«{alnum:20}»",
    "Log in as admin with the password «{pass:10}» and look.",
    "My passphrase is «{word:6} {word:5} {word:7} {word:4}».",
    "the PIN of the card is «{digits:4}»",
    "my SSN is «{ssn:9}»",
    'rclone.conf\n[drive]\ntype = drive\ntoken = {"access_token":"«ya29.{alnum:120}»","token_type":"Bearer"}',
    "kubeadm join 10.0.0.1:6443 --token «{lower:6}.{lower:16}»",
    "PGPASSWORD=«{pass:12}» psql -h db billing",
    "htpasswd -b .htpasswd bob «{pass:10}»",
    "echo 'bob:«{pass:10}»' | chpasswd",
    "openssl enc -aes-256-cbc -k «{pass:12}» -in a -out b",
    "smbclient //nas/share -U 'bob%«{pass:10}»'",
)

_HARMLESS = """
commit {hex:40}
Merge branch 'main' at {hex:7}
sha256:{hex:64}
image: nginx@sha256:{hex:64}
request_id={hex:8}-{hex:4}-4{hex:3}-a{hex:3}-{hex:12}
trace id {hex:32}, span id {hex:16}
ETag: "{hex:32}"
"integrity": "sha512-{b64:86}=="
github.com/spf13/cobra v1.8.0 h1:{b64:43}=
checksum = "{hex:64}"
    {file = "attrs-23.2.0-py3-none-any.whl", hash = "sha256:{hex:64}"},
md5sum {hex:32}  build.tar.gz
data:image/png;base64,iVBORw0KGgo{b64:200}
<script integrity="sha384-{b64:64}" crossorigin="anonymous">
pod billing-{lower:10}-{lower:5} is Running
arn:aws:iam::{digits:12}:role/deploy
arn:aws:s3:::billing-exports/2025/03
i-0{hex:16} is stopping
vpc-{hex:17} subnet-{hex:17}
customer cus_{alnum:14} paid with pi_{alnum:24}
order ord_{alnum:14} has 3 items
session ended after 41 minutes
build #{digits:5} failed in 4 min 12 s
uid=1000(bob) gid=1000(bob)
color: #{hex:6}; background: #{hex:6}
Tracking number 1Z{upper:16}
ISBN 978-3-{digits:2}-{digits:6}-1
phone +49 30 {digits:8}
The password must have at least 12 characters.
Passwords are hashed with argon2 before they are stored.
password = os.environ["DB_PASSWORD"]
password = getpass.getpass("Password: ")
def check_password(user: User, password: str) -> bool:
if password is None: raise ValueError("password missing")
self.password_field.send_keys(self.password)
<input type="password" name="password" placeholder="Your password">
password: ${DB_PASSWORD}
password: {{ vault_db_password }}
PASSWORD=changeme
"password": null
"password": "********"
password=<your password>
api_key: YOUR_API_KEY
OPENAI_API_KEY=sk-...
export TOKEN=$(cat /run/secrets/token)
Authorization: Bearer $TOKEN
Authorization: Bearer <token>
const token = await getToken(user.id);
token = tokenizer.next_token()
The token limit is 128000 tokens.
max_tokens: 4096
tokens_per_second=81.4
The token expires after 3600 seconds.
secret = Secret.from_name("billing")
secretKeyRef: {name: db, key: password}
primary_key: customer_id
key = lambda row: row.price
sort_key=("country", "city")
for key, value in settings.items():
PRIMARY KEY (id, created_at)
public key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{b64:43} bob@laptop
ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQ{b64:120}
-----BEGIN CERTIFICATE----- MIID{b64:60} -----END CERTIFICATE-----
-----BEGIN PUBLIC KEY----- MIIB{b64:60} -----END PUBLIC KEY-----
fingerprint SHA256:{b64:43}
key ID {upper:16}
PublicKey = {b64:43}=
The secret of a good soup is patience.
It is no secret that the port is shallow.
She kept the key under the mat.
Das Passwort muss mindestens zwölf Zeichen haben.
Bitte ändern Sie Ihr Passwort regelmäßig.
Le mot de passe doit contenir au moins douze caractères.
La contraseña debe tener al menos doce caracteres.
A senha precisa ter doze caracteres.
パスワードは12文字以上にしてください。
密码至少需要十二个字符。
비밀번호는 12자 이상이어야 합니다.
Passwort vergessen? Hier klicken.
Mot de passe oublié ?
비밀번호를 잊으셨나요?
忘记密码？
パスワードをお忘れですか？
test_password_is_hashed PASSED
AssertionError: password mismatch
ERROR invalid token at line 14
SyntaxError: Unexpected token '<'
fatal: Authentication failed for 'https://git.example.com/repo.git/'
401 Unauthorized: invalid api key
Set-Cookie: theme=dark; Path=/
Cookie policy: we use cookies.
?page=2&sort=price&q=harbour
https://example.com/reset-password?lang=de
https://docs.example.com/api/authentication#tokens
postgres://localhost/billing
redis://cache.internal:6379/0
https://user@git.example.com/repo.git
bob:x:1000:1000:Bob:/home/bob:/bin/bash
-rw-r--r-- 1 bob bob 4096 Mar  3 10:02 passwords.py
The pin connector has 40 contacts.
Pin the version to 1.4.2, please.
pinned: true
GPIO PIN = 17
npm WARN deprecated har-validator@5.1.5
v1.24.0-alpha.3+{hex:7}
const a=function(t,e){return t.map((function(t){return e[t.id]||null}))};
!function(e,t){"object"==typeof exports?module.exports=t():e.{lower:3}=t()}(this,function(){});
.{lower:8}{display:flex}.{lower:8}>a{color:red}
/static/js/main.{hex:8}.chunk.js
/_next/static/{alnum:21}/_buildManifest.js
webpack://app/./src/index.js?{hex:4}
AAAA{b64:60}
{b64:76}
{hex:128}
rowversion 0x{hex:16}
0x{hex:8} in main () at main.c:12
MAC 0{hex:1}:1b:{hex:2}:{hex:2}:{hex:2}:{hex:2}
fe80::{hex:4}:{hex:4}:{hex:4}:{hex:4}
10.0.{digits:1}.{digits:1}:6443
2025-03-01T10:02:11.{digits:6}Z
epoch 17{digits:8}
latitude 53.{digits:6}, longitude 9.{digits:6}
total 1,{digits:3},{digits:3} rows
Invoice 2025-{digits:5} over 1.240,00 EUR
order number {digits:10}
IMEI check skipped
chr1:{digits:7}-{digits:7}
ATGCGTACGTTAGCATGCATCGATCGATTTAGCGC
MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQ
doi:10.1000/{lower:8}
arXiv:2403.{digits:5}
CVE-2024-{digits:5}
RFC 6750 describes bearer tokens.
bearer of the ring
basic auth is switched off
Basic research needs time.
OAuth has four grant types.
client_id: web-app
client_secret: ${CLIENT_SECRET}
refresh_token_ttl: 86400
session_timeout=1800
csrf_token()
{% csrf_token %}
"token_type": "Bearer"
"tokens": ["the", "harbour", "hotel"]
usage: login [-u USER] [-p PASSWORD]
curl -u "$USER:$PASS" https://api.example.com
mysql -u root -p billing
docker login registry.example.com
ssh -p 2222 bob@host
tar -p -xzf build.tar.gz
openssl x509 -in cert.pem -noout -text
sudo -k
psql -h db -U app billing
net user
chmod 600 ~/.ssh/id_ed25519
cat .env.example
secrets.toml was changed
Secrets Manager is enabled in eu-central-1.
kubectl get secrets -n billing
kind: SecretStore
import secrets
secrets.token_hex(16)
hashlib.sha256(password.encode()).hexdigest()
bcrypt.checkpw(password, stored)
private final String password;
val token: String? = null
let apiKey = process.env.API_KEY;
apiKey: import.meta.env.VITE_KEY
@Value("${spring.datasource.password}")
spring.datasource.password=${DB_PASS}
ENV PASSWORD_FILE=/run/secrets/db
--token-file /etc/token
auth: none
credentials: include
credential helper: store
The credentials are in the vault.
Ask Bob for the credentials.
please send me the password by phone
I forgot my password again
the password was wrong twice
what is the password policy?
Reset the token when the user logs out.
Each key is a country, each value a city.
A key of the map is lower case.
Schlüssel: Land, Wert: Stadt
clé : pays
key: country
passkey support is planned
passage: two boats at noon
passed: 14
pwd: /home/bob
PWD=/workspace/billing
OLDPWD=/tmp
user: bob, role: admin
login: bob
username=bob
TOKENIZERS_PARALLELISM=false
AUTHOR=Bob Stone
authToken?: string;
Monkey: see, do
keyboard: de
keywords: harbour, hotel
the seed is 42
seed=20250301
mnemonic: nop, mov, add
recovery took 14 minutes
backup codes are printed once
account: savings
IBAN is missing
card: visa, expires 04/27
CREATE INDEX idx_{lower:8} ON orders (id);
uuid4 {hex:8}-{hex:4}-4{hex:3}-8{hex:3}-{hex:12}
gist.github.com/bob/{hex:32}
snapshot rds:billing-2025-03-01-{digits:2}-{digits:2}
file_{alnum:24} was uploaded
call_{alnum:24} returned 3 rows
toolu_01{alnum:22}
resp_{hex:48}
chatcmpl-{alnum:29}
msg_01{alnum:22}
"""


def _filled(template: str, source: random.Random) -> str:
    def some(found: re.Match[str]) -> str:
        kind, length = found[1], int(found[2])
        if kind == "b64":
            return base64.b64encode(source.randbytes(length)).decode()[:length]
        if kind == "pass":
            body = "".join(source.choices(_ALPHABETS["alnum"], k=length - 3))
            return f"{body[:4]}{source.choice('!#_-')}{body[4:]}{source.randrange(10)}{source.choice('!#_')}"
        if kind == "ssn":
            return f"{source.randrange(100, 600)}-{source.randrange(10, 99)}-{source.randrange(1000, 9999)}"
        return "".join(source.choices(_ALPHABETS[kind], k=length))

    return _BLANK.sub(some, template)


def blind_secrets(templates: tuple[str, ...] = _SECRETS) -> list[tuple[str, str]]:
    """Return each text with the secret in it."""
    source = random.Random(20261126)
    found: list[tuple[str, str]] = []
    for template in templates:
        text = _filled(template, source)
        secret = text[text.index("«") + 1 : text.index("»")]
        found.append((text.replace("«", "").replace("»", ""), secret))
    return found


def blind_harmless(templates: tuple[str, ...] = tuple(_HARMLESS.strip().splitlines())) -> list[str]:
    """Return texts that hold no secret, though some look so."""
    source = random.Random(6261120)
    return [_filled(each, source) for each in templates]
