"""Addresses that a store recorded, and who gets our keys there.

Rule 1: a key of the environment goes to the address that is configured for it, else to its vendor, and nowhere else. What a run
        wrote down is no configuration: the writer of the store chose it.
Rule 2: this machine is asked without a key; any other address that is not configured is refused where a key would be sent.
"""

from dataclasses import replace
from urllib.parse import urlsplit

from remit.core.failure import RequestRejected
from remit.inference.anthropic import spec as anthropic_spec
from remit.inference.anthropic.spec import read_place
from remit.inference.endpoint.limits import take_limits
from remit.inference.openai import spec as openai_spec
from remit.inference.openai.presets import URLS
from remit.inference.openai.spec import Endpoint, read_endpoint
from remit.inference.specs import EngineSettings

ENGINE_ADDRESS_NOT_CONFIGURED = "ENGINE_ADDRESS_NOT_CONFIGURED"

_PORTS = {"http": 80, "https": 443}


def keyless_where_unknown(spec: str, settings: EngineSettings) -> EngineSettings:
    """The settings to open a recorded spec with: without the key where its address is not configured here.

    Raises RequestRejected where a server elsewhere would have been sent a key.
    """
    kind = spec.partition(":")[0]
    if kind not in (openai_spec.OPENAI, anthropic_spec.ANTHROPIC, *URLS):
        return settings
    rest = take_limits(spec)[0].partition(":")[2]
    if kind == anthropic_spec.ANTHROPIC:
        place = read_place(rest, url_default=settings.anthropic_base_url)
        known, key, variable = settings.anthropic_base_url, settings.anthropic_api_key, "ANTHROPIC_BASE_URL"
        vendor, keyless = anthropic_spec.VENDOR_URL, replace(settings, anthropic_api_key="")
    else:
        place = read_endpoint(rest, url_default=URLS.get(kind) or settings.openai_base_url)
        known, key, variable = settings.openai_base_url, settings.openai_api_key, "OPENAI_BASE_URL"
        vendor, keyless = openai_spec.VENDOR_URL, replace(settings, openai_api_key="")
    if not key or _address(place.url) in {_address(url) for url in (known or vendor, *settings.urls)}:
        return settings
    if not place.is_loopback:
        raise _refused(spec, place, variable)
    return keyless


def _address(url: str) -> tuple[str, str, int, str]:
    """An address as servers tell them apart: however it is spelled, the same server and path."""
    parts = urlsplit(url)
    port = parts.port or _PORTS.get(parts.scheme.lower(), 0)
    return parts.scheme.lower(), (parts.hostname or "").rstrip("."), port, parts.path.rstrip("/")


def _refused(spec: str, place: Endpoint, variable: str) -> RequestRejected:
    message = (
        f"engine {spec!r:.200} is recorded with the address {place.url}, which is not configured here, so it is not given "
        f"your key; if it should have it, set {variable}={place.url}, or name it in REMIT_ENGINE_URLS"
    )
    return RequestRejected(ENGINE_ADDRESS_NOT_CONFIGURED, message, {"address": place.url})
