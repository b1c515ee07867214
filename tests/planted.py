"""Secrets to plant: one of each shape, made by chance from a seed, so that no file holds anything that looks like one."""

import base64
import string
from collections.abc import Callable
from random import Random
from urllib.parse import quote

LETTERS = string.ascii_letters + string.digits
BASE64 = LETTERS + "+/"
CAPITALS = string.ascii_uppercase + string.digits
HEX = "0123456789abcdef"
DIGITS_AND_SMALL = string.ascii_lowercase + string.digits
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


class Planted:
    """Makes secrets; each has the part that must stand nowhere, which of a connection string is the password."""

    def __init__(self, seed: int = 7) -> None:
        self._chance = Random(seed)

    def letters(self, count: int, alphabet: str = LETTERS) -> str:
        """Letters by chance, digits and letters among them."""
        while True:
            drawn = "".join(self._chance.choice(alphabet) for _ in range(count))
            if count < 8 or (any(map(str.isdigit, drawn)) and any(map(str.isalpha, drawn))):
                return drawn

    def all(self) -> dict[str, tuple[str, str]]:
        """By name: the text in which a secret stands, and the secret itself."""
        marked = {name: (value, value) for name, value in self._marked().items()}
        surrounded = self._surrounded()
        return marked | surrounded | {name: (value, value) for name, value in self._rarer().items()}

    def _marked(self) -> dict[str, str]:
        w = self.letters
        lines = "\n".join(w(64, BASE64) for _ in range(6))
        return {
            "aws": "AK" + "IA" + w(16, CAPITALS),
            "aws session": "AS" + "IA" + w(16, CAPITALS),
            "github": "gh" + "p_" + w(36),
            "github oauth": "gh" + "o_" + w(36),
            "github server": "gh" + "s_" + w(36),
            "github fine": "github" + "_pat_" + w(22) + "_" + w(59),
            "gitlab": "gl" + "pat-" + w(20),
            "slack": "xo" + "xb-" + "123456789012-" + w(24),
            "stripe": "sk" + "_live_" + w(24),
            "stripe restricted": "rk" + "_live_" + w(24),
            "webhook": "wh" + "sec_" + w(32),
            "openai": "sk" + "-" + w(48),
            "openai project": "sk" + "-proj-" + w(60),
            "anthropic": "sk" + "-ant-api03-" + w(80),
            "google": "AI" + "za" + w(35),
            "google client": "GOC" + "SPX-" + w(28),
            "npm": "np" + "m_" + w(36),
            "pypi": "py" + "pi-" + w(80),
            "twilio": "S" + "K" + w(32, HEX),
            "sendgrid": "S" + "G." + w(22) + "." + w(43),
            "mailgun": "ke" + "y-" + w(32, HEX),
            "mailchimp": w(32, HEX) + "-us" + "12",
            "telegram": "123456789" + ":A" + w(34),
            "discord": "M" + w(23) + "." + w(6) + "." + w(38),
            "web token": "ey" + "J" + w(20) + ".ey" + "J" + w(40) + "." + w(43),
            "rsa": f"-----BEGIN RSA {'PRIVATE'} KEY-----\n{lines}\n-----END RSA {'PRIVATE'} KEY-----",
            "ec": f"-----BEGIN EC {'PRIVATE'} KEY-----\n{lines}\n-----END EC {'PRIVATE'} KEY-----",
            "openssh": f"-----BEGIN OPENSSH {'PRIVATE'} KEY-----\n{lines}\n-----END OPENSSH {'PRIVATE'} KEY-----",
            "pgp": f"-----BEGIN PGP {'PRIVATE'} KEY BLOCK-----\n{lines}\n-----END PGP {'PRIVATE'} KEY BLOCK-----",
            "digitalocean": "dop" + "_v1_" + w(64, HEX),
            "heroku": "HR" + "KU-AA" + w(56),
            "databricks": "da" + "pi" + w(32, HEX),
            "vault": "hv" + "s." + w(24),
            "shopify": "shp" + "at_" + w(32, HEX),
            "square": "sq0" + "atp-" + w(22),
            "linear": "lin" + "_api_" + w(40),
            "notion": "nt" + "n_" + w(46),
            "huggingface": "h" + "f_" + w(34),
            "doppler": "dp" + ".st.prd." + w(43),
            "age": "AGE-SECRET" + "-KEY-1" + w(58, CAPITALS),
            "chance": "Zq3+" + w(40, BASE64) + "9xQ2",
        }

    def _rarer(self) -> dict[str, str]:
        """Named as their kinds are."""
        w = self.letters
        return {
            "extended_key": "xp" + "rv" + w(107, BASE58),
            "aws_bedrock_key": "AB" + "SK" + w(120, BASE64),
            "atlassian_token": "AT" + "ATT3x" + w(60),
            "slack_token": "xa" + "pp-1-" + w(40),
            "paypal_token": "access" + "_token$production$" + w(16, DIGITS_AND_SMALL) + "$" + w(32, HEX),
            "langchain_key": "ls" + "v2_pt_" + w(32, HEX) + "_" + w(10, HEX),
            "azure_secret": w(3) + "8" + "Q" + "~" + w(34),
            "alibaba_key": "LT" + "AI" + w(20),
            "tencent_key": "AK" + "ID" + w(32),
            "rubygems_key": "ruby" + "gems_" + w(48, HEX),
            "docker_token": "dc" + "kr_pat_" + w(27),
            "clojars_token": "CLO" + "JARS_" + w(60, DIGITS_AND_SMALL),
            "brevo_key": "xkey" + "sib-" + w(64, HEX) + "-" + w(16),
            "postman_key": "PM" + "AK-" + w(24, HEX) + "-" + w(34, HEX),
            "terraform_token": w(14) + ".atlas" + "v1." + w(67),
            "pulumi_token": "pu" + "l-" + w(40, HEX),
            "airtable_token": "pa" + "t" + w(14) + "." + w(64, HEX),
            "figma_token": "fi" + "gd_" + w(40),
            "grafana_token": "gl" + "sa_" + w(32) + "_" + w(8, HEX),
            "newrelic_key": "NR" + "AK-" + w(27, CAPITALS),
            "dynatrace_token": "dt0" + "c01." + w(24, CAPITALS) + "." + w(64, CAPITALS),
            "sentry_token": "sntr" + "ys_" + w(120, BASE64),
            "supabase_key": "sb" + "p_" + w(40, HEX),
            "planetscale_token": "psc" + "ale_tkn_" + w(43),
            "tailscale_key": "ts" + "key-auth-" + w(40),
            "fly_token": "fo" + "1_" + w(60),
            "ci_token": "CC" + "IPAT_" + w(22) + "_" + w(40, HEX),
            "hosting_token": "nf" + "p_" + w(36),
            "sourcegraph_token": "sg" + "p_" + w(40, HEX),
            "facebook_token": "EA" + "AB" + w(120),
            "cloudflare_key": "v1" + ".0-" + w(24, HEX) + "-" + w(146, HEX),
            "onepassword_token": "ops" + "_eyJ" + w(200),
            "easypost_key": "EZ" + "AK" + w(54),
        }

    def _surrounded(self) -> dict[str, tuple[str, str]]:
        def beside(before: str, value: str, behind: str = "") -> tuple[str, str]:
            return before + value + behind, value

        w = self.letters
        return {
            "aws secret": beside("aws_secret_access_key = ", w(40, BASE64)),
            "azure": beside("AccountName=shop;AccountKey=", w(86, BASE64) + "==", ";EndpointSuffix=core.example"),
            "azure signature": beside("https://shop.example/c?sv=2022&sig=", quote(w(43, BASE64) + "=", safe="")),
            "postgres": beside("postgres://ann:", w(14), "@db.example/shop"),
            "mysql": beside("mysql://root:", w(14), "@db.example:3306/shop"),
            "mongodb": beside("mongodb+srv://ann:", w(14), "@cluster.example/shop"),
            "redis": beside("redis://:", w(14), "@cache.example:6379/0"),
            "amqp": beside("amqp://guest:", w(14), "@queue.example//"),
            "jdbc": beside("jdbc:sqlserver://db.example:1433;user=sa;password=", w(14), ";encrypt=true"),
            "basic": beside("https://ann:", w(14), "@api.example/v1"),
            "password": beside("password=", w(12)),
            "api key": beside('"api_key": "', w(20), '"'),
            "token": beside("token=", w(20)),
            "secret": beside("client_secret: ", w(24)),
            "bearer": beside("Authorization: Bearer ", w(32)),
            "said": beside("the password is ", w(12), ", keep it safe"),
        }


def as_base64(text: str) -> str:
    """The text in base64."""
    return base64.b64encode(text.encode()).decode()


def as_hex(text: str) -> str:
    """The text in hexadecimal."""
    return text.encode().hex()


def as_url(text: str) -> str:
    """The text as a part of an address."""
    return quote(text, safe="")


def as_is(text: str) -> str:
    """The text."""
    return text


ENCODINGS: dict[str, Callable[[str], str]] = {"plain": as_is, "base64": as_base64, "hex": as_hex, "url": as_url}
