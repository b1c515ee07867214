"""Faults between us and a server, in the codes of inference.

Rule 1: a message names the model, the place and the way out, and is one line of bounded length.
Rule 2: what a server says is data: it is cut, freed of control characters, and a key in it is blotted out.
Rule 3: a call that a server turned away costs nothing; one that broke off may have cost anything.
Rule 4: an exception that is no failure of a connection is a bug: it passes as it is.
"""

import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from remit.core.failure import ErrorCode
from remit.core.journal.codec import read_json
from remit.core.regex import regex
from remit.inference.engine import EngineFault

# What a server may say in a message of ours; more is a page.
SAID_CHARS_MAX = 300
# How much of a refusal is read at all.
REFUSAL_BYTES_MAX = 64 * 1024
# Seconds or a date.
RETRY_AFTER_CHARS_MAX = 40
# A pause of more than a day is no pause.
RETRY_AFTER_S_MAX = 86_400
# How deep the causes of an exception are looked at.
CAUSES_MAX = 16

BLOT = "***"
# A shorter key is none: people write "x" where a server of their own asks for one, and answers are full of such words.
SECRET_CHARS_MIN = 16

_ENGINE_ERROR, _UNAVAILABLE = ErrorCode.INFERENCE_ENGINE_ERROR, ErrorCode.INFERENCE_MODEL_UNAVAILABLE
_EXCEEDED = ErrorCode.INFERENCE_CONTEXT_EXCEEDED

# How servers say that a conversation does not fit: by a code, or in words.
_TOO_LONG_CODES = frozenset(
    {"context_length_exceeded", "exceed_context_size_error", "model_max_prompt_tokens_exceeded", "request_too_large"}
)
_TOO_LONG_WORDS = regex(
    r"maximum context length|context[ _-](?:length|limit|size|window)[^.]{0,40}exceed"
    r"|exceed[^.]{0,60}context[ _-](?:length|limit|size|window)|(?:prompt|input|request|conversation) is too long"
    r"|reduce the length of the (?:messages|prompt|input)|inputs? tokens \+ max_new_tokens",
    re.IGNORECASE,
)
# As much of what a server says as is looked at.
_LOOKED_AT_CHARS_MAX = 10_000
_NO_MONEY_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_error"})
# How a server says in the middle of a stream that it cannot serve the model now.
_OVERLOADED_CODE = "overloaded_error"

# Others of their family only say that more bytes are needed.
_TLS_FAILURES = (ssl.SSLError, ssl.SSLCertVerificationError, ssl.SSLEOFError)

# Statuses with which a server says that it read too much.
_TOO_LARGE = 413
_MAY_BE_TOO_LONG = frozenset({400, 422, 500})
# Statuses with which a server says that an account is empty; the first says nothing else.
_NO_MONEY = 402
_MAY_BE_NO_MONEY = frozenset({400, 403, 429})
# Statuses that say that a model is not served now; every other that makes one unavailable says so next time, too.
_UNSERVED = frozenset({503, 529})
# Of what a server says that is not its own failure, only this may pass by itself: too slow, in conflict, too early, too many.
_PASSING = frozenset({408, 409, 425, 429})
_SERVER_FAILED = 500


class Api(NamedTuple):
    """What an API is called, which extra asks it, its path behind a url, where such a url ends, and what holds the key."""

    name: str
    extra: str
    path: str
    url_hint: str
    key_variable: str


CHAT_COMPLETIONS = Api("chat completions", "openai", "/chat/completions", "most urls end in /v1", "OPENAI_API_KEY")
MESSAGES = Api("Messages API", "anthropic", "/v1/messages", "the url stands before /v1/messages", "ANTHROPIC_API_KEY")


@dataclass(frozen=True, slots=True)
class EndpointPlace:
    """Which model, where, the key that no message may hold, and the API that is spoken there."""

    model: str
    url: str
    key: str = field(default="", repr=False)
    api: Api = CHAT_COMPLETIONS

    def blotted(self, text: str) -> str:
        """A text of the server's without the key."""
        return text.replace(self.key, BLOT) if len(self.key) >= SECRET_CHARS_MIN else text

    def said(self, text: str) -> str:
        """A text of the server's, fit for a message of ours."""
        # Before anything is cut: half a key is still half a key.
        text = text.replace(self.key, BLOT) if self.key else text
        line = " ".join(text[: 4 * SAID_CHARS_MAX].split())[:SAID_CHARS_MAX]
        return "".join(char if char.isprintable() else "?" for char in line)


def fault_of_status(place: EndpointPlace, status: int, headers: Mapping[str, str], body: bytes) -> EngineFault:
    """Why a server turned a call away, told from its status and what it says about it."""
    error = error_in(body)
    told = place.said(message_of(error))
    said = f": {told}" if told else ""
    if status == _TOO_LARGE or (status in _MAY_BE_TOO_LONG and _is_too_long(error)):
        return too_long(place, told)
    model, url, api, wait = repr(place.model), place.url, place.api, waiting(place, headers)
    code, message = _ENGINE_ERROR, f"{url} answered with status {status}{wait}{said}"
    match status:
        case _ if status == _NO_MONEY or (status in _MAY_BE_NO_MONEY and _codes_of(error) & _NO_MONEY_CODES):
            code, message = _UNAVAILABLE, f"{url} has nothing left to spend for this key; top it up{said}"
        case 401:
            code, message = _UNAVAILABLE, f"{url} refused the key; set {api.key_variable} to one that it takes{said}"
        case 403:
            code, message = _UNAVAILABLE, f"{url} does not let this key use model {model}; use another one{said}"
        case 404:
            way_out = f"check both; {api.url_hint}"
            code, message = _UNAVAILABLE, f"{url} knows no model {model}, or no {api.name}; {way_out}{said}"
        case 429:
            message = f"{url} gets too many calls{wait}{said}"
        case 503 | 529:
            code, message = _UNAVAILABLE, f"{url} cannot serve model {model} now{wait}{said}"
        case _ if 300 <= status < 400:
            moved = place.said(headers.get("location", "")) or "somewhere else"
            code, message = _UNAVAILABLE, f"{url} has moved to {moved}; name that url if you trust it"
    is_refused = status < _SERVER_FAILED and status not in _PASSING
    is_final = is_refused or (code is _UNAVAILABLE and status not in _UNSERVED)
    return EngineFault(code, message, retry_after_s=retry_after_s(headers), is_final=is_final)


def retry_after_s(headers: Mapping[str, str]) -> int:
    """How long a server asks to be left alone, in whole seconds; 0 when it does not, or names a date."""
    wanted = headers.get("retry-after", "").strip()[:RETRY_AFTER_CHARS_MAX]
    return min(int(wanted), RETRY_AFTER_S_MAX) if wanted.isascii() and wanted.isdigit() else 0


def fault_of_event(place: EndpointPlace, error: Any) -> EngineFault:
    """Why a server broke off in the middle of an answer, as it says itself."""
    told = place.said(message_of(error))
    said = f": {told}" if told else ""
    if _is_too_long(error):
        return too_long(place, told, was_cut=True)
    if _OVERLOADED_CODE in _codes_of(error):
        return EngineFault(_UNAVAILABLE, f"{place.url} cannot serve model {place.model!r} now{said}", was_cut=True)
    return EngineFault(_ENGINE_ERROR, f"{place.url} failed while model {place.model!r} answered{said}", was_cut=True)


def fault_of_exception(place: EndpointPlace, error: BaseException) -> EngineFault | None:
    """What a broken connection means; None for what is no failure of a connection."""
    causes = list(_causes(error))
    # By name: this file is read where the package that makes connections is not installed.
    kinds = {kind.__name__ for cause in causes for kind in type(cause).__mro__}
    untrusted = next((cause for cause in causes if type(cause) in _TLS_FAILURES), None)
    if untrusted is not None and "ConnectError" in kinds:
        message = f"{place.url} does not speak https as it should: {place.said(str(untrusted))}; check its certificate"
        return EngineFault(_UNAVAILABLE, message)
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return EngineFault(_UNAVAILABLE, f"there is no machine of the name in {place.url}; check the url")
    if kinds & {"ConnectError", "ConnectTimeout", "ConnectionRefusedError", "UnsupportedProtocol", "ProxyError"}:
        return EngineFault(_UNAVAILABLE, f"nothing answers at {place.url}; start the server, or check the url")
    if kinds & {"TimeoutException"}:
        return EngineFault(_ENGINE_ERROR, f"{place.url} fell silent while it was asked", was_cut=True)
    if kinds & {"TransportError", "StreamError", "EndOfStream", "SSLError"}:
        message = f"the connection to {place.url} was lost while model {place.model!r} was asked"
        return EngineFault(_ENGINE_ERROR, message, was_cut=True)
    return None


def too_long(place: EndpointPlace, told: str, *, was_cut: bool = False) -> EngineFault:
    """A conversation does not fit."""
    message = f"the conversation does not fit into model {place.model!r}" + (f": {told}" if told else "")
    return EngineFault(_EXCEEDED, message, was_cut=was_cut)


def error_in(body: bytes) -> Any:
    """What a refusal says: an object under `error`, or whatever stands there instead."""
    try:
        value = read_json(body)
    except (ValueError, RecursionError):
        return None
    return value.get("error", value) if isinstance(value, dict) else None


def message_of(error: Any) -> str:
    """The words of a failure, wherever a server puts them."""
    if isinstance(error, dict):
        error = error.get("message") or error.get("detail")
    return error if isinstance(error, str) else ""


def _codes_of(error: Any) -> set[str]:
    if not isinstance(error, dict):
        return set()
    return {value for value in (error.get("code"), error.get("type")) if isinstance(value, str)}


def _is_too_long(error: Any) -> bool:
    return bool(_codes_of(error) & _TOO_LONG_CODES) or bool(
        _TOO_LONG_WORDS.search(message_of(error)[:_LOOKED_AT_CHARS_MAX])
    )


def waiting(place: EndpointPlace, headers: Mapping[str, str]) -> str:
    """How long a server asks to be left alone, as the end of a sentence."""
    wanted = place.said(headers.get("retry-after", ""))[:RETRY_AFTER_CHARS_MAX]
    if not wanted:
        return ""
    return f"; it asks to wait {wanted} s" if wanted.isdigit() else f"; it asks to wait until {wanted}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    for _ in range(CAUSES_MAX):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__ or cause.__context__
