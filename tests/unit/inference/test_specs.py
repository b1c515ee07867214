"""A spec opens an engine, and opens the same one again."""

from hashlib import sha256
from pathlib import Path

import pytest

from remit.core.failure import ErrorCode, RequestRejected
from remit.core.inference import ModelInfo, ModelRequest, ModelResult
from remit.core.manifest import Source
from remit.inference.engine import StreamHandler
from remit.inference.scripted import ScriptedEngine
from remit.inference.specs import engine_source, engine_spec, open_engine


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
    engine.spec = 5  # type: ignore[attr-defined]  # somebody's own attribute of that name
    assert engine_spec(engine) == ""


@pytest.mark.req("0.25")
@pytest.mark.parametrize("spec", ["", "local", "magic:wand", "Scripted:x.yaml", "scripted", "scripted:"])
def test_a_spec_that_names_no_engine_is_refused_with_those_that_are_known(spec: str, tmp_path: Path) -> None:
    with pytest.raises(RequestRejected) as caught:
        open_engine(spec, base=tmp_path)
    assert caught.value.code == ErrorCode.CONFIG_NO_ENGINE
    assert "scripted:FILE" in caught.value.message
