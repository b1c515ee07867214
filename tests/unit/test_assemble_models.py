"""Adapters reach the models of a machine through the assembly."""

from pathlib import Path

import pytest

from remit.assemble import add_model, list_models, settings_of, show_model
from remit.core.failure import RequestRejected
from tests.unit.inference.tiny_model import write_tiny_model


def test_a_model_that_was_added_is_listed_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remit.inference.local.models.WEIGHTS_MODULE", "a_package_that_is_not_installed")
    settings = settings_of({"REMIT_MODELS": str(tmp_path / "models")})
    assert list_models(settings) == ()
    heard: list[str] = []
    kept = add_model(str(write_tiny_model(tmp_path / "tiny.gguf")), settings, heard.append)
    assert list_models(settings) == (kept,)
    assert heard == [f"kept as {kept.path}"]
    for name in ("tiny", str(tmp_path / "tiny.gguf")):
        assert show_model(name, settings).architecture == "llama"
    with pytest.raises(RequestRejected, match="known are tiny"):
        show_model("other", settings)
