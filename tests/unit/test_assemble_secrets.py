"""Secrets come from the store's folder, from the environment and from the caller, and no settings show them."""

import asyncio
from pathlib import Path

import pytest

from remit.assemble import examine, settings_of, system_in_memory, vault_for
from remit.core.failure import RequestRejected
from remit.orchestrate.loop.in_process import InProcessDispatch
from remit.tool.secrets.secret import SECRET_INVALID
from remit.tool.secrets.vault import SECRETS_NOT_PRIVATE

VALUES = {"file": "from-file-0123456789", "variable": "from-variable-0123456789", "caller": "from-caller-0123456789"}


def written(folder: Path, *names: str, mode: int = 0o600) -> Path:
    path = folder / "secrets.toml"
    path.write_text("".join(f'{name} = "{VALUES["file"]}"\n' for name in names))
    path.chmod(mode)
    return folder


def lent(vault: object, name: str) -> str:
    filled = asyncio.run(vault.fill("tool", (("key", name),), timeout_ms=1))  # type: ignore[attr-defined]
    value: str = filled["key"].reveal()
    return value


def test_of_one_name_the_caller_counts_before_the_environment_and_that_before_the_folder(tmp_path: Path) -> None:
    environment = {"REMIT_SECRET_B": VALUES["variable"], "REMIT_SECRET_C": VALUES["variable"], "OTHER": "x"}
    settings = settings_of(environment, home=written(tmp_path, "A", "B", "C"))
    vault = vault_for(settings, {"C": VALUES["caller"]})
    assert [lent(vault, name) for name in "ABC"] == [VALUES["file"], VALUES["variable"], VALUES["caller"]]
    assert list(vault.expiries) == ["A", "B", "C"]


def test_settings_do_not_show_the_secrets_of_the_environment(tmp_path: Path) -> None:
    settings = settings_of({"REMIT_SECRET_A": VALUES["variable"], "REMIT_SECRET_EMPTY": ""}, home=tmp_path)
    assert list(settings.secrets) == ["A"]
    assert VALUES["variable"] not in repr(settings)


def test_a_variable_without_a_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestRejected) as refused:
        vault_for(settings_of({"REMIT_SECRET_": VALUES["variable"]}, home=tmp_path))
    assert refused.value.code == SECRET_INVALID


def test_processes_of_tools_inherit_the_environment_without_its_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMIT_SECRET_A", VALUES["variable"])
    monkeypatch.setenv("NO_SECRET", "seen")
    inherited = vault_for(settings_of(home=tmp_path)).inherited
    assert inherited is not None
    assert "REMIT_SECRET_A" not in inherited()
    assert inherited()["NO_SECRET"] == "seen"
    assert vault_for(settings_of({}, home=tmp_path)).inherited is None


def test_a_check_up_tells_secrets_by_name_and_a_file_that_is_not_private(tmp_path: Path) -> None:
    settings = settings_of({"REMIT_SECRET_A": VALUES["variable"]}, home=tmp_path)
    assert [check.seen for check in asyncio.run(examine(settings)) if check.name == "secrets"] == ["1: A"]
    written(tmp_path, "B", mode=0o644)
    (found,) = (check for check in asyncio.run(examine(settings)) if check.name == "secrets")
    assert found.seen.startswith(SECRETS_NOT_PRIVATE)


def test_a_system_is_given_the_secrets_of_the_caller() -> None:
    async def play() -> list[str]:
        system = system_in_memory({"A": VALUES["caller"]})
        dispatch = system._hub.dispatch
        assert isinstance(dispatch, InProcessDispatch)
        vaults = [system._performers.resources.vault, dispatch.vault]
        await system.close()
        return [vault.masker.masked(VALUES["caller"]) for vault in vaults]

    assert asyncio.run(play()) == ["[secret A]", "[secret A]"]
