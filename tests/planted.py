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
        return marked | self._surrounded()

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
