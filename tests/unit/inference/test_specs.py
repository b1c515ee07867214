"""A spec opens an engine, and opens the same one again."""

from hashlib import sha256
from pathlib import Path

import pytest

from remit.core.failure import ErrorCode, RequestRejected
from remit.core.run.inference import ModelInfo, ModelRequest, ModelResult
from remit.core.run.manifest import Source
from remit.inference.engine import StreamHandler
from remit.inference.scripted.engine import ScriptedEngine
from remit.inference.specs import EngineSettings, engine_source, engine_spec, open_engine


class Homemade:
    """An engine that was passed as an object."""

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        return ModelResult()

    def model_info(self) -> ModelInfo:
        return ModelInfo("homemade")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "hello.script.yaml"
    path.write_text("replies:\n  - text: hello\n")
    return path


@pytest.mark.req("1.11")
def test_a_script_is_opened_from_where_the_caller_stands(script: Path) -> None:
    engine = open_engine("scripted:hello.script.yaml", base=script.parent)
    assert engine.model_info().name == "scripted:hello"


def test_an_absolute_path_needs_no_base(script: Path) -> None:
    assert open_engine(f"scripted:{script}", base=Path("/nowhere")).model_info().name == "scripted:hello"


def test_the_spec_of_an_engine_opens_the_same_again(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(script.parent)
    engine = open_engine("scripted:hello.script.yaml", base=Path())
    spec = engine_spec(engine)
    assert spec == f"scripted:{script.resolve()}"
    again = open_engine(spec, base=Path("/"))
    assert (engine_spec(again), again.model_info()) == (spec, engine.model_info())


def test_an_engine_names_the_file_it_relies_on_by_its_digest(script: Path) -> None:
    source = engine_source(open_engine("scripted:hello.script.yaml", base=script.parent))
    digest = sha256(script.read_bytes()).hexdigest()
    assert source == Source("scripted:hello", str(script.resolve()), "", digest)


def test_an_engine_that_was_made_on_the_spot_cannot_be_opened_again() -> None:
    for engine in (Homemade(), ScriptedEngine([{"text": "hi"}])):
        assert (engine_spec(engine), engine_source(engine)) == ("", None)


def test_a_spec_that_is_no_text_opens_nothing() -> None:
    engine = Homemade()
    engine.spec = 5  # type: ignore[attr-defined]  # a user's own attribute of that name
    assert engine_spec(engine) == ""


@pytest.mark.req("0.25")
@pytest.mark.parametrize("spec", ["", "Local", "magic:wand", "Scripted:x.yaml", "scripted", "scripted:"])
def test_a_spec_that_names_no_engine_is_refused_with_those_that_are_known(spec: str, tmp_path: Path) -> None:
    with pytest.raises(RequestRejected) as caught:
        open_engine(spec, base=tmp_path)
    assert caught.value.code == ErrorCode.CONFIG_NO_ENGINE
    assert "scripted:FILE" in caught.value.message


def test_every_kind_is_named_to_a_user_who_asks_for_another(tmp_path: Path) -> None:
    with pytest.raises(RequestRejected) as caught:
        open_engine("magic", base=tmp_path)
    assert "known are local, scripted:FILE, local:MODEL, openai:MODEL" in caught.value.message


@pytest.mark.parametrize("spec", ["openai", "openai:"])
def test_a_vendor_without_a_model_is_refused(spec: str, tmp_path: Path) -> None:
    with pytest.raises(RequestRejected, match="write openai:MODEL"):
        open_engine(spec, base=tmp_path)


def test_a_vendor_is_opened_with_its_settings(tmp_path: Path) -> None:
    engine = open_engine("openai:gpt-4o-mini", base=tmp_path, settings=EngineSettings(openai_api_key="k"))
    assert "gpt-4o-mini" in engine.model_info().name


def test_a_model_that_is_not_there_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(RequestRejected, match="remit models add smollm2") as caught:
        open_engine("local:nothing.gguf", base=tmp_path)
    assert caught.value.code == ErrorCode.CONFIG_NO_ENGINE
