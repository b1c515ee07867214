"""Shapes of secrets: how keys, tokens and passwords look, by the marks that their makers or their surroundings give them.

Rule 1: every shape has literals, and its pattern is tried only where one of them stands: a text without any costs the time
        to look for them.
Rule 2: every repetition is bounded, so no text costs more than its length.
Rule 3: of an address or an assignment only the value is the secret; the name before it says what the value is for.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from remit.core.regex import regex
from remit.core.secrets.secret_names import (
    BEHIND,
    KEY_OF,
    PASSWORDS,
    SESSIONS,
    is_session,
    is_short,
    is_word_of_its_own,
)
from remit.core.secrets.secret_values import is_chancy, is_key, is_mixed, is_odd, is_password, is_place, is_reference

# A mark counts only at the beginning of a word, and a value of fixed length only at the end of one. In JSON a word may
# begin behind an escaped line or tabulator.
_FRESH = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))"
_DONE = r"(?![A-Za-z0-9])"
_W = r"[A-Za-z0-9_-]"
_A = r"[A-Za-z0-9]"
_HEX = r"[0-9a-f]"
# So much before a literal is looked at, where its shape begins before it.
BEFORE_CHARS_MAX = 64


class Shape(NamedTuple):
    """How one kind of secret looks.

    `pattern` matches from a literal on, and `before` what stands right before it; with `is_folded` the literals are in
    small letters and stand for any. The secret is the group `v` where there is one, else all of it. `is_one` rules out
    what only looks alike: it is given the match, and what stands before it.
    """

    kind: str
    literals: tuple[str, ...]
    pattern: re.Pattern[str]
    before: re.Pattern[str] | None = None
    is_folded: bool = False
    is_one: Callable[[re.Match[str], str], bool] | None = None


def value_span(found: re.Match[str]) -> tuple[int, int] | None:
    """Where the value of a match stands, if it names one."""
    named = ((name, value) for name, value in found.groupdict().items() if name != "w")
    return next((found.span(name) for name, value in named if value is not None), None)


def _value(found: re.Match[str]) -> str:
    span = value_span(found)
    return found[0] if span is None else found.string[slice(*span)]


def _is_chance(found: re.Match[str], _: str) -> bool:
    """Whether a match is more than words and strokes behind a mark that words have, too."""
    return is_mixed(_value(found)[3:])


def _is_hidden(found: re.Match[str], _: str) -> bool:
    value = _value(found)
    return not is_reference(value) and value.casefold() not in ("pass", "passwd", "password", "pwd")


def _is_password(found: re.Match[str], before: str) -> bool:
    value, sign = _value(found), found[1]
    if not is_password(value):
        return False
    if sign.isspace():
        # Without a sign of assignment words follow a name more often than its value.
        if found["b"] is None:
            return is_odd(value) or _STATEMENT.search(before) is not None
        return is_odd(value) and (_LOGIN.search(before) is not None or _is_many_kinds(value))
    # Behind a colon or a verb stands prose as often as a value.
    return found["b"] is None or "=" in sign or is_odd(value)


# What stands before `password VALUE` in a statement, and in a file of logins.
_STATEMENT = regex(r"\b(?:with|set|encrypted|login) {1,3}$", re.IGNORECASE)
_LOGIN = regex(r"\b(?:login|user|account)\s{1,3}\S{1,40}\s{1,3}$", re.IGNORECASE)


def _is_many_kinds(value: str) -> bool:
    return len(value) >= _MANY_CHARS_MIN and value.lower() != value and value.upper() != value and is_chancy(value)


def _is_key(found: re.Match[str], before: str) -> bool:
    value = _value(found)
    is_bare_key = found[0][:3].casefold() == "key"
    if is_bare_key and _KEY_OF.search(before[-16:]) is None:
        return False
    if found[1].isspace() and not (len(value) >= _SAID_CHARS_MIN and is_chancy(value)):
        return False
    return is_key(value) and not is_place(before)


_KEY_OF = regex(rf"(?:{KEY_OF})[_-]?$|(?:api|access|secret) $", re.IGNORECASE)
# A password that only follows its name, outside of a file of logins, is as long; and so is a key.
_MANY_CHARS_MIN = 8
_SAID_CHARS_MIN = 20


def _is_short(found: re.Match[str], before: str) -> bool:
    word, value = found["w"], _value(found)
    if not is_word_of_its_own(before, word) or not is_short(before, word, value):
        return False
    is_compound = before[-1:].isalnum() or before[-1:] == "_"
    return is_compound or "=" in found[1] or word.casefold() in ("pin", "otp") or is_chancy(value)


def _is_session(found: re.Match[str], _: str) -> bool:
    return is_session(_value(found))


def _is_flagged(found: re.Match[str], _: str) -> bool:
    value = _value(found)
    return is_password(value) and (found.groupdict().get("b") is None or is_odd(value))


def _is_login(found: re.Match[str], _: str) -> bool:
    return is_password(_value(found)) or (is_odd(_value(found)) and not is_reference(_value(found)))


def _is_odd_one(found: re.Match[str], _: str) -> bool:
    return is_odd(_value(found))


def _is_cookie(found: re.Match[str], _: str) -> bool:
    return is_mixed(_value(found).partition("=")[2])


def _mark(pattern: str, kind: str, *literals: str) -> Shape:
    return Shape(kind, literals, regex(_FRESH + pattern))


def _loose(pattern: str, kind: str, *literals: str) -> Shape:
    """A mark that words may have as well."""
    return Shape(kind, literals, regex(_FRESH + pattern), is_one=_is_chance)


def _amid(before: str, pattern: str, kind: str, *literals: str) -> Shape:
    """A mark in the middle of what it marks."""
    return Shape(kind, literals, regex(pattern), regex(rf"(?:{before})$"))


def _folded(pattern: str, kind: str, *literals: str) -> Shape:
    return Shape(kind, literals, regex(pattern, re.IGNORECASE), is_folded=True)


def _assigned(kind: str, name: str, literals: tuple[str, ...], is_one: Callable[[re.Match[str], str], bool]) -> Shape:
    """The end of a name, a sign of assignment, and a value: quoted, in quotes within quotes, or bare.

    The sign may be a member that holds the value (`"name": "password", "value": V`, or `"password": {"value": V}`), or only
    space: then the value has to tell more by itself.
    """
    quotes = r"(?:\\{0,3}[\"'`\]]){0,2}"
    member = r"[\s,:{\"'\\]{1,40}(?:value|val)(?:\\{0,3}[\"'])?\s{0,3}[:=]\s{0,3}"
    said = r"\s{1,2}(?:is|was|ist|lautet)[:\s]\s{0,2}|\s{1,3}(?:->|→)\s{1,3}|\s{1,3}for\s{1,3}\S{1,80}\s{0,3}=\s{0,3}"
    sign = rf"({quotes}\s{{0,3}}(?:=>|:=|={{1,3}}|:\*{{0,2}})\s{{0,3}}(?:\[\s{{0,3}})?|{member}|{said}|[ \t]{{1,3}})"
    pattern = rf"(?:{name}){BEHIND}{sign}{_VALUE}"
    return Shape(kind, literals, regex(pattern, re.IGNORECASE), is_folded=True, is_one=is_one)


def _element(kind: str, name: str, literals: tuple[str, ...]) -> Shape:
    """The name of an element, and what the element holds."""
    inside = r"\s{0,3}(?:<!\[CDATA\[)?(?P<v>[^<>&\s]{1,200}?)(?:\]\]>)?\s{0,3}(?:<|&lt;)\\?/"
    pattern = rf"(?:{name}){BEHIND}(?:\s[^<>\n]{{0,100}})?(?:>|&gt;){inside}"
    return Shape(kind, literals, regex(pattern, re.IGNORECASE), is_folded=True, is_one=_is_flagged)


def _optioned(programs: str, options: str, *literals: str) -> Shape:
    """A program that takes a password behind a letter."""
    pattern = rf"(?:{programs})(?:\.exe)?\s(?:[^\n|;]{{0,300}}?\s)?(?:{options})(?P<v>[^\s\"'|;]{{3,200}})"
    return Shape("password", literals, regex(pattern), is_one=_is_login)


_VALUE = (
    r'(?:"(?P<d>(?:[^"\\\n]|\\.){1,200})"'
    r"|'(?P<s>(?:[^'\\\n]|\\.){1,200})'"
    r"|\\{1,3}[\"'](?P<n>[^\"'\\\n]{1,200})\\"
    r"|`?(?P<b>[^\s\"'\\,;&<>{}\[\]()|`]{1,200}(?<![.:?])))"
)
_PEM = (
    r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:[^-]{0,20000}(?:-----END (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----)?)"
)
_PUTTY = r"PuTTY-User-Key-File-[0-9]: [^\n]{1,40}\n(?s:.){1,8000}?Private-MAC: [0-9a-f]{16,128}"
_JWT = (
    rf"eyJ{_W}{{8,4000}}\.(?:eyJ{_W}{{8,8000}}\.{_W}{{0,2000}}"
    rf"|{_W}{{0,2000}}\.{_W}{{8,100}}\.{_W}{{8,8000}}\.{_W}{{8,100}})"
)
_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]{1,20}"
# In an address of a database a password may hold a stroke; elsewhere that begins the path.
_DATABASE = r"(?:postgres(?:ql)?|mysql|mariadb|mongodb|rediss?|amqps?|mssql|sqlserver|clickhouse|cockroachdb)(?:\+[a-z0-9]{1,20})?"
_PASSWORDS = (
    *("password", "passwort", "passwd", "passphrase", "passcode", "pwd", "kennwort", "wachtwoord", "senha", "contrase"),
    *("mot de passe", "mot_de_passe", "mot-de-passe", "motdepasse", "pass phrase", "pass_phrase", "pass-phrase", "psk"),
    *("passw0r", "p@ssw", "heslo", "hasło", "haslo", "lösenord", "losenord", "пароль", "密码", "密碼", "パスワード"),
)
_ENDS = ("=", ":", " ", '"', "'", "\\", "_")
_LOGINS = ("docker", "podman", "az", "oc", "helm", "buildah", "skopeo", "npm", "registry", "nerdctl")
# What a server keeps of a password, as it stands in files of logins.
_HASHES = (
    "$apr1$",
    "$2a$",
    "$2b$",
    "$2y$",
    "$1$",
    "$5$",
    "$6$",
    "$y$",
    "$argon2",
    "$scrypt$",
    "{SHA}",
    "{SSHA}",
    "pbkdf2",
)
_HASH = (
    r"\$(?:apr1|1)\$[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{22}|\$2[aby]\$[0-9]{2}\$[./A-Za-z0-9]{53}"
    r"|\$(?:5|6|y|scrypt|argon2[a-z]{0,2})\$[^\s\"':]{20,300}|\{S?SHA\}[A-Za-z0-9+/]{20,100}={0,2}"
    r"|pbkdf2[_:-][a-z0-9]{3,10}\$[^\s\"']{20,300}"
)
_VENDORS = ("gsk_", "xai-", "r8_", "pplx-", "nvapi-", "csk-", "fw_", "pcsk_", "tgp_v1_", "jina_", "voyage-", "tvly-")

SHAPES: tuple[Shape, ...] = (
    _mark(_PEM, "private_key", "-----BEGIN "),
    _mark(_PUTTY, "private_key", "PuTTY-User-Key-File"),
    _mark(rf"AGE-SECRET-KEY-1{_A}{{20,80}}", "age_key", "AGE-SECRET-KEY-1"),
    _mark(r"[xyz]prv[1-9A-HJ-NP-Za-km-z]{100,112}", "extended_key", "xprv", "yprv", "zprv"),
    _mark(rf"[A-Z]{{4}}[0-9A-Z]{{16}}{_DONE}", "aws_access_key", "AKIA", "ASIA", "ABIA", "ACCA"),
    _mark(r"(?:ABSK|bedrock-api-key-)[A-Za-z0-9+/=]{60,400}", "aws_bedrock_key", "ABSK", "bedrock-api-key-"),
    _mark(rf"gh[pousr]_{_A}{{30,255}}", "github_token", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    _mark(r"github_pat_[A-Za-z0-9_]{30,255}", "github_token", "github_pat_"),
    _mark(rf"gl[a-z]{{2,5}}-{_W}{{20,255}}", "gitlab_token", "glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-"),
    _mark(rf"gl[a-z]{{2,5}}-{_W}{{20,255}}", "gitlab_token", "glsoat-", "glagent-", "glimt-", "gloas-", "glffct-"),
    _mark(r"AT[A-Z0-9x]{2,5}[A-Za-z0-9_=-]{24,300}", "atlassian_token", "ATBB", "ATCTT3x", "ATATT3x"),
    _loose(r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9.-]{10,255}", "slack_token", "xox"),
    _mark(r"xapp-[0-9]-[A-Za-z0-9-]{20,255}", "slack_token", "xapp-"),
    _folded(r"hooks\.slack\.com/[a-z]{5,12}/(?P<v>[A-Za-z0-9/_-]{20,200})", "slack_webhook", "hooks.slack.com/"),
    _folded(rf"/api/webhooks/[0-9]{{10,24}}/(?P<v>{_W}{{20,120}})", "discord_webhook", "/api/webhooks/"),
    _amid(rf"{_FRESH}[MNO]{_W}{{22,28}}", rf"\.{_W}{{5,8}}\.{_W}{{27,45}}", "discord_token", "."),
    _amid(rf"{_FRESH}[0-9]{{8,10}}", rf":{_W}{{35}}(?!{_W})", "telegram_token", ":"),
    _mark(
        rf"[sr]k_[a-z]{{4}}_{_A}{{10,255}}", "stripe_key", "sk_live_", "rk_live_", "sk_test_", "rk_test_", "sk_prod_"
    ),
    _mark(r"whsec_[A-Za-z0-9+/=]{20,120}", "webhook_secret", "whsec_"),
    _mark(rf"(?:sq0[a-z]{{3}}-{_W}{{22,60}}|EAAA{_W}{{56,80}})", "square_token", "sq0", "EAAA"),
    _mark(rf"access_token\$[a-z]{{6,12}}\$[0-9a-z]{{16}}\${_HEX}{{32}}", "paypal_token", "access_token$"),
    _loose(rf"sk-{_W}{{20,300}}", "model_vendor_key", "sk-"),
    _loose(rf"[a-z0-9]{{2,6}}[-_](?:v1_)?{_W}{{24,200}}", "model_vendor_key", *_VENDORS),
    _mark(rf"(?:hf_|api_org_){_A}{{30,60}}", "huggingface_token", "hf_", "api_org_"),
    _mark(rf"ls(?:v2_(?:pt|sk)|_)_{_A}{{20,60}}(?:_{_A}{{6,20}})?", "langchain_key", "lsv2_", "ls__"),
    _mark(rf"AIza{_W}{{35}}", "google_key", "AIza"),
    _mark(
        rf"(?:GOCSPX-{_W}{{20,60}}|ya29\.{_W}{{20,400}}|1//0{_W}{{30,200}})", "google_token", "GOCSPX-", "ya29.", "1//0"
    ),
    _folded(r"[a-z]{10,20}=(?P<v>[A-Za-z0-9+/]{20,120}={0,2})", "azure_key", "accountkey=", "sharedaccesskey="),
    _folded(r".sig=(?P<v>[A-Za-z0-9%+/_-]{30,120}={0,2})", "azure_signature", "?sig=", "&sig=", ";sig="),
    _amid(r"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.-]{3}[0-9]", r"Q~[A-Za-z0-9_~.-]{31,34}", "azure_secret", "Q~"),
    _folded(r"x-amz-[a-z]{4,8}(?:-token|ature)=(?P<v>[A-Za-z0-9%+/=_-]{20,4000})", "aws_signature", "x-amz-s"),
    _mark(rf"LTAI{_A}{{12,26}}{_DONE}", "alibaba_key", "LTAI"),
    _mark(rf"AKID{_A}{{32}}{_DONE}", "tencent_key", "AKID"),
    _mark(rf"npm_{_A}{{30,60}}", "npm_token", "npm_"),
    _loose(rf"pypi-{_W}{{40,400}}", "pypi_token", "pypi-"),
    _mark(rf"rubygems_{_HEX}{{48}}", "rubygems_key", "rubygems_"),
    _mark(rf"dckr_(?:pat|oat)_{_W}{{20,80}}", "docker_token", "dckr_"),
    _mark(r"CLOJARS_[0-9a-z]{40,80}", "clojars_token", "CLOJARS_"),
    _mark(rf"SK{_HEX}{{32}}{_DONE}", "twilio_key", "SK"),
    _mark(rf"SG\.{_W}{{16,32}}\.{_W}{{16,64}}", "sendgrid_key", "SG."),
    _mark(rf"x(?:key|smtp)sib-{_HEX}{{64}}-{_A}{{16}}", "brevo_key", "xkeysib-", "xsmtpsib-"),
    _mark(rf"key-{_HEX}{{32}}{_DONE}", "mailgun_key", "key-"),
    _amid(rf"{_FRESH}{_HEX}{{32}}", rf"-us[0-9]{{1,2}}{_DONE}", "mailchimp_key", "-us"),
    _mark(rf"PMAK-{_HEX}{{20,30}}-{_HEX}{{30,40}}", "postman_key", "PMAK-"),
    _mark(rf"do[opr]_v1_{_HEX}{{64}}", "digitalocean_token", "dop_v1_", "doo_v1_", "dor_v1_"),
    _mark(rf"HRKU-{_W}{{30,80}}", "heroku_key", "HRKU-"),
    _mark(rf"d[a-z]{{3}}{_HEX}{{32}}(?:-[0-9])?{_DONE}", "databricks_token", "dapi", "dkea", "dose"),
    _mark(rf"hv[sbr]\.{_W}{{20,300}}", "vault_token", "hvs.", "hvb.", "hvr."),
    _amid(rf"{_FRESH}{_A}{{14}}", rf"\.atlasv1\.{_W}{{40,100}}", "terraform_token", ".atlasv1."),
    _mark(rf"pul-{_HEX}{{40}}", "pulumi_token", "pul-"),
    _mark(rf"dp\.[a-z]{{2,5}}\.(?:[a-z0-9_-]{{2,40}}\.)?{_A}{{40,44}}", "doppler_token", "dp."),
    _mark(r"shp[a-z]{2,3}_[0-9A-Fa-f]{32}", "shopify_token", "shp"),
    _mark(rf"lin_(?:api|oauth)_{_A}{{30,80}}", "linear_key", "lin_"),
    _mark(rf"(?:secret_{_A}{{43}}|ntn_{_A}{{40,60}}){_DONE}", "notion_token", "secret_", "ntn_"),
    _mark(rf"pat{_A}{{14}}\.{_HEX}{{64}}", "airtable_token", "pat"),
    _mark(rf"fig[dour]_{_W}{{30,80}}", "figma_token", "figd_", "figo_", "figu_", "figr_"),
    _mark(rf"(?:glsa_{_A}{{32}}_[0-9a-fA-F]{{8}}|glc_[A-Za-z0-9+/=]{{32,400}})", "grafana_token", "glsa_", "glc_"),
    _mark(rf"NR[A-Z]{{2}}-{_W}{{19,40}}", "newrelic_key", "NRAK-", "NRJS-", "NRII-"),
    _mark(r"dt0[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}", "dynatrace_token", "dt0"),
    _mark(r"sntry[su]_[A-Za-z0-9+/=_-]{40,400}", "sentry_token", "sntrys_", "sntryu_"),
    _mark(rf"(?:sbp_{_HEX}{{40}}|sb_secret_{_W}{{20,60}})", "supabase_key", "sbp_", "sb_secret_"),
    _mark(r"pscale_[a-z]{2,5}_[A-Za-z0-9_.=-]{30,80}", "planetscale_token", "pscale_"),
    _mark(rf"tskey-[a-z]{{2,10}}-{_W}{{16,80}}", "tailscale_key", "tskey-"),
    _mark(r"f[om][12][ar]?_[A-Za-z0-9+/=_-]{40,800}", "fly_token", "fo1_", "fm1", "fm2"),
    _mark(rf"(?:CCIP[A-Z]{{2,3}}_{_W}{{20,100}}|bk[ua]a_{_HEX}{{40}})", "ci_token", "CCIP", "bkua_", "bkaa_"),
    _mark(rf"(?:nfp|vercel_blob_rw|vc[ap])_{_W}{{24,80}}", "hosting_token", "nfp_", "vercel_blob_rw_", "vca_", "vcp_"),
    _mark(r"sgp_(?:[0-9a-fA-F]{16}_|local_)?[0-9a-fA-F]{40}", "sourcegraph_token", "sgp_"),
    _mark(rf"EAA[A-Z]{_A}{{80,300}}", "facebook_token", "EAA"),
    _mark(rf"v1\.0-{_HEX}{{24}}-{_HEX}{{100,160}}", "cloudflare_key", "v1.0-"),
    _mark(rf"ops_eyJ{_W}{{100,2000}}", "onepassword_token", "ops_eyJ"),
    _mark(rf"EZ[AT]K{_A}{{54}}", "easypost_key", "EZAK", "EZTK"),
    _mark(_JWT, "web_token", "eyJ"),
    Shape(
        "password",
        ("://",),
        regex(r"://[^\s/@:\"']{0,64}:(?P<v>[^\s@\"'<>]{1,200})@"),
        regex(_DATABASE + "$"),
        is_one=_is_hidden,
    ),
    Shape(
        "password",
        ("://",),
        regex(r"://[^\s/@:\"'?#]{0,64}:(?P<v>[^\s/@\"'<>?#]{1,200})@"),
        regex(_SCHEME + "$"),
        is_one=_is_hidden,
    ),
    Shape(
        "authorization",
        ("bearer", "ssws"),
        regex(rf"{_FRESH}(?:bearer|ssws)\s{{1,3}}(?P<v>[A-Za-z0-9+/_.~=-]{{8,4000}})", re.IGNORECASE),
        is_folded=True,
        is_one=_is_chance,
    ),
    _folded(
        r"authorization(?:\\{0,3}[\"'])?\s{0,3}[:=]\s{0,3}(?:\\{0,3}[\"'])?(?:[a-z]{3,12}\s{1,3})?(?P<v>[A-Za-z0-9+/_.~=-]{12,4000})",
        "authorization",
        "authorization",
    )._replace(is_one=_is_odd_one),
    Shape(
        "authorization",
        ("auth",),
        regex(
            r"(?P<w>auth)(?:\\{0,3}[\"'])?\s{0,3}[:=]\s{0,3}(?:\\{0,3}[\"'])?(?:(?:basic|bearer|digest|token)\s{1,3})?"
            r"(?P<v>[A-Za-z0-9+/_.~=-]{12,400})",
            re.IGNORECASE,
        ),
        is_folded=True,
        is_one=_is_short,
    ),
    Shape(
        "cookie",
        ("cookie",),
        regex(
            r"cookie(?:\\{0,3}[\"'])?\s{0,3}[:=]\s{0,3}(?:\\{0,3}[\"'])?"
            # Without a number near its beginning it is no cookie; looking no further keeps the work small.
            r"(?=[^\n\"'\\]{0,200}[0-9])(?P<v>[^\s\"'=;]{1,100}=[^\n\"'\\]{6,4000})",
            re.IGNORECASE,
        ),
        is_folded=True,
        is_one=_is_cookie,
    ),
    Shape(
        "key",
        ("--",),
        regex(
            rf"--(?:[a-z0-9]{{1,20}}[-_]){{0,3}}(?:{PASSWORDS}|pass|pw|pin|otp|token|secret|credentials?|api-?key|[a-z]{{3,10}}-key)"
            rf"{BEHIND}\s{{1,2}}{_VALUE}",
            re.IGNORECASE,
        ),
        is_one=_is_flagged,
    ),
    _optioned("curl|wget", r"-[A-Za-z]{0,6}[uU]\s{0,2}[\"']?[^\s:\"']{1,64}:", "curl", "wget"),
    _optioned("curl|wget", r"--(?:proxy-)?user[\s=]{1,2}[\"']?[^\s:\"']{1,64}:", "curl", "wget"),
    _optioned("https?|xh", r"(?:-a|--auth)[\s=]{1,2}[\"']?[^\s:\"']{1,64}:", "http ", "https ", "xh "),
    _optioned(r"sshpass|mongo[a-z]{0,10}|plink|pscp", r"-pw?\s{0,2}[\"']?", "sshpass", "mongo", "plink", "pscp"),
    _optioned(r"(?:mysql|mariadb)[a-z-]{0,12}|7z", r"-p[\"']?", "mysql", "mariadb", "7z "),
    _optioned("redis-cli", r"-a\s{1,2}[\"']?", "redis-cli"),
    _optioned("ldap[a-z]{3,10}", r"-w\s{1,2}[\"']?", "ldap"),
    _optioned("sqlcmd|bcp|unzip|zip", r"-P\s{0,2}[\"']?", "sqlcmd", "bcp ", "unzip", "zip "),
    _optioned(r"[a-z]{2,10} login", r"-p\s{1,2}[\"']?", *[f"{name} login" for name in _LOGINS]),
    _optioned("smbclient|rpcclient", r"-U\s{0,2}[\"']?[^\s%]{1,64}%", "smbclient", "rpcclient"),
    _optioned("htpasswd", r"-[A-Za-z]{0,4}b[A-Za-z]{0,4}\s{1,2}\S{1,200}\s{1,2}\S{1,64}\s{1,2}[\"']?", "htpasswd"),
    _optioned("keytool|jarsigner", r"-(?:store|key|src|dest)pass\s{1,2}[\"']?", "keytool", "jarsigner"),
    _mark(r"WIFI:(?:[^;\n]{0,100};){0,5}?P:(?P<v>(?:[^;\\\n]|\\.){1,100});", "password", "WIFI:"),
    Shape(
        "password",
        ("identified",),
        regex(
            r"identified(?:\s{1,3}with\s{1,3}\S{1,60})?\s{1,3}(?:by|as)\s{1,3}(?:password\s{1,3})?" + _VALUE,
            re.IGNORECASE,
        ),
        is_folded=True,
        is_one=_is_flagged,
    ),
    Shape("password_hash", _HASHES, regex(_HASH)),
    _element("password", PASSWORDS, _PASSWORDS),
    _element("password", "pass", ("pass",)),
    _element("key", rf"(?:{KEY_OF})[_-]?key|secret|token", ("secret", "token", "api", "access", "private")),
    _assigned("password", PASSWORDS, _PASSWORDS, _is_password),
    _assigned(
        "key",
        "key(?:[_-]?(?:base|id))?|secret|token|credentials?",
        ("key", "secret", "token", "credential"),
        _is_key,
    ),
    _assigned("password", "(?P<w>pass|pw|pin|otp)", ("pass", *[f"pw{end}" for end in _ENDS], "pin", "otp"), _is_short),
    _assigned("cookie", SESSIONS, ("sessionid", "session_id", "session-id", "sessid", "sid"), _is_session),
)
