r"""Regular expressions for secrets that are recognizable by themselves: tokens of services, web tokens, private keys.

Only unmistakable forms are listed. A commit id, a checksum, a UUID or a path looks as random as a key, and a summary needs it,
so randomness alone never counts as a secret. ``\n`` written as two characters, as in the JSON of a tool call, ends a word like
the character itself. Every expression is linear: repeats are bounded, or cannot start again within what they match.
"""

from __future__ import annotations

import re
from typing import Final

_TOKENS: Final[dict[str, str]] = {
    "anthropic_key": r"sk-ant-[A-Za-z0-9_-]{16,}",
    "openrouter_key": r"sk-or-v1-[A-Za-z0-9]{32,}",
    "openai_key": r"sk-(?:proj-|svcacct-|admin-|(?=[A-Za-z-]{0,64}[0-9]))[A-Za-z0-9_-]{20,}",
    "github_token": r"gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,}",
    "gitlab_token": r"gl(?:pat|ptt|dt|rt|cbt|ft|soat)-[A-Za-z0-9_-]{20,}",
    "grafana_token": r"gl(?:sa|c)_[A-Za-z0-9+/=_]{32,}",
    "slack_token": r"xox[abceoprs]-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{10,}",
    "aws_key": r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])",
    "alibaba_key": r"LTAI[A-Za-z0-9]{16,24}(?![A-Za-z0-9])",
    "google_key": r"AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}",
    "stripe_key": r"[rs]k_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/=]{20,}",
    "square_key": r"sq0(?:csp|atp|idp)-[A-Za-z0-9_-]{22,}",
    "huggingface_token": r"hf_[A-Za-z0-9]{30,}",
    "replicate_token": r"r8_[A-Za-z0-9]{37}",
    "npm_token": r"npm_[A-Za-z0-9]{36}",
    "pypi_token": r"pypi-[A-Za-z0-9_-]{50,}",
    "rubygems_key": r"rubygems_[0-9a-f]{48}",
    "docker_token": r"dckr_[op]at_[A-Za-z0-9_-]{24,}",
    "sendgrid_key": r"SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,}",
    "mailgun_key": r"key-[0-9a-f]{32}(?![A-Za-z0-9])",
    "mailchimp_key": r"[0-9a-f]{32}-us[0-9]{1,2}(?![A-Za-z0-9])",
    "twilio_key": r"SK[0-9a-f]{32}(?![A-Za-z0-9])",
    "digitalocean_token": r"do[oprt]_v1_[0-9a-f]{64}",
    "databricks_token": r"dapi[0-9a-f]{32}",
    "groq_key": r"gsk_[A-Za-z0-9]{40,}",
    "xai_key": r"xai-[A-Za-z0-9]{40,}",
    "perplexity_key": r"pplx-[A-Za-z0-9]{40,}",
    "tavily_key": r"tvly-[A-Za-z0-9-]{28,}",
    "langsmith_key": r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}",
    "shopify_token": r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}",
    "vault_token": r"hv[sbr]\.[A-Za-z0-9_-]{24,}",
    "terraform_token": r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}",
    "pulumi_token": r"pul-[0-9a-f]{40}",
    "doppler_token": r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9.]{40,}",
    "planetscale_token": r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_=.-]{32,}",
    "supabase_token": r"sbp_[0-9a-f]{40}",
    "newrelic_key": r"NRAK-[A-Z0-9]{27}",
    "dynatrace_token": r"dt0[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}",
    "sentry_token": r"sntry[su]_[A-Za-z0-9+/=_-]{40,}",
    "postman_key": r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}",
    "figma_token": r"fig[dou]_[A-Za-z0-9_-]{40,}",
    "airtable_token": r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}",
    "atlassian_token": r"ATATT3[A-Za-z0-9_=-]{100,}",
    "linear_key": r"lin_api_[A-Za-z0-9]{32,}",
    "notion_token": r"(?:ntn|secret)_[A-Za-z0-9]{40,}",
    "telegram_token": r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])",
    "discord_token": r"[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}",
    "age_key": r"AGE-SECRET-KEY-1[0-9A-Z]{58}",
    "jwt": r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?",
}
_WEBHOOKS: Final[dict[str, str]] = {
    "slack_webhook": r"https://hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{20,}",
    "discord_webhook": r"https://discord(?:app)?\.com/api/webhooks/[A-Za-z0-9/_-]{20,}",
}
_WORD_START: Final = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))"
_ALL: Final = "|".join(f"(?P<{kind}>{shape})" for kind, shape in (_TOKENS | _WEBHOOKS).items())

TOKEN: Final = re.compile(f"{_WORD_START}(?:{_ALL})")
"""A token with a recognizable form; the group that matched names the kind."""

TOKEN_PARTS: Final = (
    "sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "glptt-", "gldt-", "glrt-", "glcbt-", "glft-",
    "glsoat-",
    "glsa_", "glc_", "xox", "xapp-", "AKIA", "ASIA", "ABIA", "ACCA", "LTAI", "AIza", "ya29.", "GOCSPX-", "k_live_", "k_test_",
    "whsec_", "sq0", "hf_", "r8_", "npm_", "pypi-", "rubygems_", "dckr_", "SG.", "key-", "-us", "SK", "_v1_", "dapi",
    "gsk_", "xai-",
    "pplx-", "tvly-", "lsv2_", "shpat_", "shpca_", "shppa_", "shpss_", "hvs.", "hvb.", "hvr.", ".atlasv1.", "pul-", "dp.",
    "pscale_",
    "sbp_", "NRAK-", "dt0", "sntry", "PMAK-", "figd_", "figo_", "figu_", "irtable", "ATATT3", "lin_api_", "ntn_",
    "secret_", ":AA",
    "iscord", "AGE-SECRET-KEY-", "eyJ", "hooks.slack.com",
)  # fmt: skip
"""Each token holds one of these, which is quick to look for; a Discord or Airtable token counts in a text that names it."""

PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----|---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----"
    r"|Private-Lines: [0-9]{1,4}(?=\s)"
)
"""The first line of a private key; `compaction.summarizers.redaction` finds its end."""

_BREAK: Final = r"(?:\s|\\{1,3}[nrt]){1,8}"
KEY_LINES: Final = re.compile(
    rf"(?:{_BREAK}(?:Proc-Type|DEK-Info): [\w,-]{{1,80}})*(?:{_BREAK}[A-Za-z0-9+/=]{{16,128}})*"
    rf"(?:{_BREAK}(?:[A-Za-z0-9+/]{{1,64}}={{1,2}}|[A-Za-z0-9+/]{{1,64}}\Z))?"
)
"""The lines of a private key that has no end."""
