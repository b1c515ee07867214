"""Addresses that a store recorded get no key of ours unless they are configured here, too."""

import pytest

from remit.core.failure import RequestRejected
from remit.inference.endpoint.recorded import ENGINE_ADDRESS_NOT_CONFIGURED, keyless_where_unknown
from remit.inference.specs import EngineSettings, engine_spec, open_recorded

OURS = EngineSettings(openai_api_key="sk-ours", anthropic_api_key="sk-ant-ours")
EVIL = "https://evil.example/v1"


@pytest.mark.parametrize(
    "spec",
    [
        f"openai:m?url={EVIL}",
        "openai:m?url=http://evil.example/v1&plain_http=allowed",
        f"openai:m?url={EVIL}&rpm=10",
        f"vllm:m?url={EVIL}",
        f"ollama:m?url={EVIL}",
        f"anthropic:m?url={EVIL}",
        "openai:m?url=https://api.openai.com.evil.example/v1",
        "openai:m?url=https://api.openai.com:8443/v1",
        "openai:m?url=http://api.openai.com/v1&plain_http=allowed",
    ],
)
def test_an_address_that_is_not_configured_is_refused_before_a_key_could_leave(spec: str) -> None:
    with pytest.raises(RequestRejected, match="REMIT_ENGINE_URLS") as refused:
        open_recorded(spec, settings=OURS)
    assert refused.value.code == ENGINE_ADDRESS_NOT_CONFIGURED


@pytest.mark.parametrize("member", [f"openai:m?url={EVIL}", f"anthropic:m?url={EVIL}"])
def test_every_member_of_a_chain_is_looked_at(member: str) -> None:
    with pytest.raises(RequestRejected, match="evil"):
        open_recorded(f"openai:m?url=http://127.0.0.1:1/v1|{member}", settings=OURS)


@pytest.mark.parametrize(
    ("spec", "base_url"),
    [
        ("openai:m?url=https://api.openai.com/v1", ""),
        ("openai:m?url=https://API.openai.com:443/v1/", ""),
        ("openai:m?url=https://gateway.example/v1", "https://gateway.example/v1/"),
        ("vllm:m?url=https://gateway.example/v1", "https://gateway.example/v1"),
    ],
)
def test_an_address_that_is_configured_gets_its_key_however_it_is_spelled(spec: str, base_url: str) -> None:
    settings = EngineSettings(openai_api_key="sk-ours", openai_base_url=base_url)
    assert keyless_where_unknown(spec, settings) is settings


def test_who_configured_a_gateway_does_not_send_its_key_to_the_vendor() -> None:
    settings = EngineSettings(openai_api_key="sk-gateway", openai_base_url="https://gateway.example/v1")
    with pytest.raises(RequestRejected, match="OPENAI_BASE_URL"):
        keyless_where_unknown("openai:m?url=https://api.openai.com/v1", settings)


def test_further_addresses_are_named_in_the_settings() -> None:
    settings = EngineSettings(openai_api_key="sk-ours", anthropic_api_key="sk-ant", urls=(EVIL,))
    for spec in (f"openai:m?url={EVIL}", f"anthropic:m?url={EVIL}"):
        assert keyless_where_unknown(spec, settings) is settings


def test_this_machine_is_asked_without_a_key_and_others_where_there_is_none() -> None:
    assert keyless_where_unknown("openai:m?url=http://127.0.0.1:1/v1", OURS).openai_api_key == ""
    assert keyless_where_unknown("anthropic:m?url=http://localhost:1", OURS).anthropic_api_key == ""
    nothing = EngineSettings()
    assert keyless_where_unknown(f"openai:m?url={EVIL}", nothing) is nothing


def test_what_asks_no_address_is_opened_as_it_is(tmp_path: object) -> None:
    assert keyless_where_unknown("scripted:/x.json", OURS) is OURS
    engine = open_recorded("openai:m?url=http://127.0.0.1:1/v1|openai:n?url=http://127.0.0.1:2/v1", settings=OURS)
    assert engine_spec(engine).count("|") == 1
