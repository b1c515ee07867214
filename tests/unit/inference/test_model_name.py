"""How a model is named by code that does not open it."""

from pathlib import Path

import pytest

from remit.core.failure import RequestRejected
from remit.inference.model_name import model_named, model_names
from remit.inference.specs import EngineSettings, engine_spec, open_engine

KEYS = EngineSettings(openai_api_key="sk-none", anthropic_api_key="sk-none", openai_base_url="https://proxy.example/v1")
URL = "http://127.0.0.1:8080/v1"


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ("scripted:s.json", "scripted:s.json"),
        ("scripted:s.json", "scripted:./sub/../s.json"),
        ("scripted:s.json", "scripted:s"),
        ("scripted:s.json", "s"),
        (f"openai:m?url={URL}&price=1/2&window=100", f"openai:m?window=100&url={URL}&price=1/2"),
        (f"openai:m?url={URL}&price=1/2", f"openai:m?url={URL}"),
        (f"openai:m?url={URL}&rpm=10", f"openai:m?rpm=7&url={URL}/"),
        (f"openai:m?url={URL}", "openai:m"),
        (f"openai:m?url={URL}", "m"),
        ("openai:m", "openai:m?window=100"),
        ("openai:org/m", "openai:org%2Fm"),
        ("ollama:qwen3", "ollama:qwen3?window=100"),
        ("vllm:q", "q"),
        ("anthropic:claude", "anthropic:claude?window=100"),
        (f"openai:a?url={URL}|scripted:s.json", f"openai:a?url={URL}"),
        (f"openai:a?url={URL}|scripted:s.json", "scripted:s.json"),
        (f"openai:a?url={URL}&window=9|scripted:s.json", f"openai:a?url={URL} | scripted:s.json"),
    ],
)
def test_a_model_is_meant_by_every_spelling_of_what_would_run_it(engine: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "s.json").write_text('{"replies": [{"text": "Hi"}]}')
    opened = open_engine(engine, base=tmp_path, settings=KEYS)
    names = model_names(opened.model_info().name, engine_spec(opened))
    assert model_named(said, base=tmp_path, settings=KEYS) in names


@pytest.mark.parametrize(
    "said", ["openai:other", "openai:m?url=http://127.0.0.1:9/v1", "other", "ollama:m", "scripted:m"]
)
def test_another_model_is_not_meant(said: str, tmp_path: Path) -> None:
    opened = open_engine(f"openai:m?url={URL}", base=tmp_path, settings=KEYS)
    names = model_names(opened.model_info().name, engine_spec(opened))
    assert model_named(said, base=tmp_path, settings=KEYS) not in names


@pytest.mark.parametrize("said", ["scripted:gone.json", "openai:", "local:gone", "whatever", "scripted:"])
def test_what_opens_nothing_stays_as_it_was_said(said: str, tmp_path: Path) -> None:
    assert model_named(said, base=tmp_path) == said


def test_a_local_model_is_meant_by_its_file_and_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "tiny.gguf").touch()
    settings = EngineSettings(models=tmp_path)
    spec = f"local:{tmp_path / 'tiny.gguf'}"
    assert model_named("local:tiny.gguf", base=tmp_path, settings=settings) == spec
    assert model_named(spec, base=Path("/"), settings=settings) == spec
    assert model_named("local:tiny", base=Path("/"), settings=settings) in (spec, "local:tiny")


def test_options_that_nobody_knows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestRejected):
        model_named("openai:m?colour=red", base=tmp_path)
