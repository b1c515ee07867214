"""What is shipped to deploy a cluster is understood by the programs that it is for, as far as they are here."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from remit.adapters.cli.table import command_entries
from remit.backend.cluster.server.nats_server import binary
from remit.core.journal.signing import Signer
from remit.orchestrate.gateway.key_room import account_text

DEPLOY = Path(__file__).parents[2] / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
ACTION = re.compile(r"{{-?\s*(.*?)\s*-?}}")


def test_three_nodes_with_tls_and_accounts_are_a_configuration_that_the_server_takes(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not here, and a server looks at its certificates")
    tls, accounts = tmp_path / "tls", tmp_path / "accounts"
    tls.mkdir()
    accounts.mkdir()
    subject = ["-subj", "/CN=nats-1", "-addext", "subjectAltName=DNS:nats-1"]
    files = ["-keyout", str(tls / "tls.key"), "-out", str(tls / "tls.crt")]
    made = ["openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", *files]
    subprocess.run([*made, *subject], check=True, capture_output=True)
    shutil.copy(tls / "tls.crt", tls / "ca.crt")
    (accounts / "default.conf").write_text(account_text("default", Signer.generate().did, []))
    shutil.copy(DEPLOY / "nats" / "accounts.conf", tmp_path)
    text = (DEPLOY / "nats" / "node.conf").read_text()
    assert "sync_interval: always" in text
    (tmp_path / "node.conf").write_text(
        text.replace("/etc/nats", str(tmp_path)).replace("/var/lib/nats", str(tmp_path / "data"))
    )
    command = [str(binary()), "-t", "-c", str(tmp_path / "node.conf")]
    said = subprocess.run(command, env={**os.environ, "NODE": "nats-1"}, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_is_one_that_systemd_takes_and_names_a_command_that_there_is(unit: Path, tmp_path: Path) -> None:
    (line,) = re.findall(r"^ExecStart=(\S+) (.*)$", unit.read_text(), re.MULTILINE)
    program, words = line
    if program.endswith("remit"):
        assert any(words.startswith(entry.words) for entry in command_entries()), words
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not here")
    there = tmp_path / unit.name
    # The program is installed where it is deployed, and not here.
    there.write_text(
        unit.read_text().replace(program, "/bin/true").replace("User=remit\n", "").replace("User=nats\n", "")
    )
    said = subprocess.run(["systemd-analyze", "verify", str(there)], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    assert unit.name not in said.stderr, said.stderr


def test_the_image_installs_what_there_is_and_starts_a_command_that_there_is() -> None:
    lines = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    steps = [line.split(None, 1) for line in lines if line and not line.startswith("#")]
    known = {"FROM", "COPY", "RUN", "USER", "ENV", "VOLUME", "STOPSIGNAL", "ENTRYPOINT", "CMD"}
    assert {step[0] for step in steps} <= known
    assert steps[0][0] == "FROM"
    project = (DEPLOY.parent / "pyproject.toml").read_text()
    (extras,) = re.findall(r"/src\[(.*?)\]", (DEPLOY / "Dockerfile").read_text())
    assert all(re.search(rf"^{extra} = ", project, re.MULTILINE) for extra in extras.split(","))
    assert any(step[0] == "USER" and step[1] not in ("root", "0") for step in steps)


def _value(values: dict[str, Any], path: str) -> Any:
    for part in path.split("."):
        values = values[part]
    return values


@pytest.mark.parametrize("name", ["nats", "workers"])
def test_a_template_of_the_chart_uses_values_that_there_are_and_makes_yaml(name: str) -> None:
    chart = DEPLOY / "helm" / "remit"
    values = yaml.safe_load((chart / "values.yaml").read_text())
    assert yaml.safe_load((chart / "Chart.yaml").read_text())["apiVersion"] == "v2"
    text = (chart / "templates" / f"{name}.yaml").read_text()
    depth = 0
    for action in ACTION.findall(text):
        for path in re.findall(r"\.Values\.([A-Za-z.]+)", action):
            _value(values, path)
        depth += action.startswith(("range", "if")) - (action == "end")
        assert depth >= 0
    assert depth == 0
    plain = "\n".join(line for line in text.splitlines() if not line.strip().startswith("{{-"))
    plain = re.sub(r"^{{.*}}$", "    x", plain, flags=re.MULTILINE)
    documents = [found for found in yaml.safe_load_all(ACTION.sub("x", plain)) if found]
    kinds = [found["kind"] for found in documents]
    assert kinds == (
        ["ConfigMap", "Service", "PodDisruptionBudget", "StatefulSet"]
        if name == "nats"
        else ["ConfigMap", "Deployment"]
    )
    if name == "workers":
        for worker in values["workers"].values():
            assert any(" ".join(worker["args"]).startswith(entry.words) for entry in command_entries()), worker
            assert {"kind", "keySecret", "secret", "replicas", "args"} == set(worker)
        keys = [worker["keySecret"] for worker in values["workers"].values()]
        assert len(set(keys)) == len(keys), "who has the key of one part is not another"
        assert "$worker.keySecret" in text
        assert "--channels" in text
