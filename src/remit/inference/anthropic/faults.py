"""What goes wrong between us and a server of the Messages API, in the four codes of inference.

Rule 1: a message names the model, the place and the way out, and is one line of bounded length.
Rule 2: what a server says is data: it is cut, freed of control characters, and a key in it is blotted out.
Rule 3: a call that a server turned away costs nothing; one that broke off may have cost anything.
"""

import re
from collections.abc import Mapping
from typing import Any

from remit.core.failure import ErrorCode
from remit.core.regex import regex
from remit.inference.anthropic.spec import KEY_VARIABLE
from remit.inference.engine import EngineFault
from remit.inference.openai.faults import Place, error_in, message_of, retry_after_s, too_long, waiting

_ENGINE_ERROR, _UNAVAILABLE = ErrorCode.INFERENCE_ENGINE_ERROR, ErrorCode.INFERENCE_MODEL_UNAVAILABLE
_EXCEEDED = ErrorCode.INFERENCE_CONTEXT_EXCEEDED


_TOO_LARGE = 413
_MAY_BE_TOO_LONG = frozenset({400, 422, 500})
# How the vendor and servers that speak like it say that a conversation does not fit.
_TOO_LONG_WORDS = regex(
    r"(?:prompt|input|request|conversation) is too long|exceeds?[^.]{0,60}context[ _-](?:length|limit|size|window)"
    r"|context[ _-](?:length|limit|size|window)[^.]{0,40}exceed|maximum context length",
    re.IGNORECASE,
)
# As much of what a server says as is looked at.
_LOOKED_AT_CHARS_MAX = 10_000
# Failures that a server tells by their type, in the middle of a stream too.
_TOO_LARGE_TYPE, _OVERLOADED_TYPE, _BILLING_TYPE = "request_too_large", "overloaded_error", "billing_error"


def fault_of_status(place: Place, status: int, headers: Mapping[str, str], body: bytes) -> EngineFault:
    """Why a server turned a call away, told from its status and what it says about it."""
    error = error_in(body)
    told = place.said(message_of(error))
    said = f": {told}" if told else ""
    if status == _TOO_LARGE or (status in _MAY_BE_TOO_LONG and _is_too_long(error)):
        return too_long(place, told)
    model, url, wait = repr(place.model), place.url, waiting(place, headers)
    code, message = _ENGINE_ERROR, f"{url} answered with status {status}{wait}{said}"
    match status:
        case 401:
            code, message = _UNAVAILABLE, f"{url} refused the key; set {KEY_VARIABLE} to one that it takes{said}"
        case 402 | 400 | 403 if status == 402 or _type_of(error) == _BILLING_TYPE:
            code, message = _UNAVAILABLE, f"{url} has nothing left to spend for this key; top it up{said}"
        case 403:
            code, message = _UNAVAILABLE, f"{url} does not let this key use model {model}; use another one{said}"
        case 404:
            way_out = "check both; the url stands before /v1/messages"
            code, message = _UNAVAILABLE, f"{url} knows no model {model}, or no Messages API; {way_out}{said}"
        case 429:
            message = f"{url} gets too many calls{wait}{said}"
        case 503 | 529:
            code, message = _UNAVAILABLE, f"{url} cannot serve model {model} now{wait}{said}"
        case _ if 300 <= status < 400:
            moved = place.said(headers.get("location", "")) or "somewhere else"
            code, message = _UNAVAILABLE, f"{url} has moved to {moved}; name that url if you trust it"
    return EngineFault(code, message, retry_after_s=retry_after_s(headers))


def fault_of_event(place: Place, error: Any) -> EngineFault:
    """Why a server broke off in the middle of an answer, as it says itself."""
    told = place.said(message_of(error))
    said = f": {told}" if told else ""
    if _is_too_long(error):
        return too_long(place, told, was_cut=True)
    if _type_of(error) == _OVERLOADED_TYPE:
        message = f"{place.url} cannot serve model {place.model!r} now{said}"
        return EngineFault(_UNAVAILABLE, message, was_cut=True)
    message = f"{place.url} failed while model {place.model!r} answered{said}"
    return EngineFault(_ENGINE_ERROR, message, was_cut=True)


def _type_of(error: Any) -> str:
    kind = error.get("type") if isinstance(error, dict) else None
    return kind if isinstance(kind, str) else ""


def _is_too_long(error: Any) -> bool:
    told = message_of(error)[:_LOOKED_AT_CHARS_MAX]
    return _type_of(error) == _TOO_LARGE_TYPE or bool(_TOO_LONG_WORDS.search(told))
