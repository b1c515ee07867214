"""How a model is named where it is not opened: its name, or a spec as it is typed behind `--engine`.

Rule 1: a spec means the model that it would run: paths start from the same folder, and of its options only the url counts,
        for the others change what is asked of the model, not where it is.
Rule 2: without options a spec of a served model names that model wherever it is served.
Rule 3: whatever opens nothing here is a name, and stays as it was said.
"""

from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote

from remit.core.failure import RequestRejected
from remit.inference.scripted.script import SCRIPTED
from remit.inference.specs import BAR, NO_SETTINGS, EngineSettings

_LOCAL, _ANTHROPIC = "local", "anthropic"
_SERVED = frozenset({"openai", _ANTHROPIC, "ollama", "vllm"})


def model_named(said: str, *, base: Path, settings: EngineSettings = NO_SETTINGS) -> str:
    """What `model_names` gives, among others, of the model that is meant; raises RequestRejected for unknown options."""
    kind, _, rest = said.partition(":")
    if kind == SCRIPTED and rest and (base / rest).is_file():
        return f"{SCRIPTED}:{(base / rest).resolve()}"
    if kind == _LOCAL:
        return _local_named(said, rest, base, settings)
    if BAR in said:
        return BAR.join(model_named(one.strip(), base=base, settings=settings) for one in said.split(BAR))
    if kind not in _SERVED or not rest:
        return said
    return _served_named(kind, rest, settings) if "?" in rest else f"{kind}:{unquote(rest)}"


def model_names(name: str, spec: str) -> Iterable[str]:
    """Every way in which a model is named: by name and spec, each with and without what may be left out, and by member."""
    names, specs = name.split(BAR), spec.split(BAR)
    places = [one.partition("&")[0] for one in specs]
    every = [name, spec, BAR.join(places), *names, *specs, *places, *(one.partition(":")[2] for one in names)]
    return dict.fromkeys(one for one in every if one)


def _local_named(said: str, rest: str, base: Path, settings: EngineSettings) -> str:
    # Only those who name one pay for looking for models.
    from remit.inference.local.models import find_model

    try:
        found = find_model(rest, base=base, folder=settings.models)
    except RequestRejected:
        return said
    return said if rest == found.stem else f"{_LOCAL}:{found}"


def _served_named(kind: str, rest: str, settings: EngineSettings) -> str:
    # Only those who name one pay for reading its address.
    from remit.inference.anthropic.spec import read_place
    from remit.inference.endpoint.limits import take_limits
    from remit.inference.openai.presets import URLS
    from remit.inference.openai.spec import OPENAI, read_endpoint

    bare, _ = take_limits(rest)
    if kind == _ANTHROPIC:
        place = read_place(bare, url_default=settings.anthropic_base_url)
    else:
        place = read_endpoint(bare, url_default=URLS.get(kind) or settings.openai_base_url)
    # The url is the first of the options as they are written back.
    return f"{kind}:{place.spec.removeprefix(f'{OPENAI}:').partition('&')[0]}"
