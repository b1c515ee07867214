"""A check-up of engines: which of their packages are here, which models, and how fast the local one answers.

Rule 1: what is optional and not there is missing, and no failure.
Rule 2: a key of a vendor is never shown, only whether there is one.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from remit.core.failure import RemitError
from remit.core.installing import install_command
from remit.core.run.inference import ModelRequest
from remit.core.run.messages import user_message
from remit.inference.specs import EngineSettings, open_engine
from remit.observe.checkup import VENDOR_KEY, VENDORS, Check, CheckState, check_package

if TYPE_CHECKING:
    from remit.inference.local.models import KnownModel

# The engine that runs a model on this machine, and how much of an answer shows how fast it is.
_LOCAL = "local"
_MEASURED_TOKENS = 16
# A check-up names so many models; `remit models list` names all.
_MODELS_NAMED_MAX = 3


def check_models(engines: EngineSettings, models: "Sequence[KnownModel]") -> list[Check]:
    """How the engines are: packages, weights on this machine, and keys of vendors; a key itself is never shown."""
    local, keys = install_command("local"), {"openai": engines.openai_api_key, "anthropic": engines.anthropic_api_key}
    kept = [f"{model.name}, {model.size_bytes / 1e6:.0f} MB, at {model.path}" for model in models]
    weighed = Check("local.model", CheckState.MISSING, "no weights on this machine", "remit models add smollm2")
    if kept:
        weighed = Check("local.model", CheckState.OK, "; ".join(kept[:_MODELS_NAMED_MAX]))
    return [
        check_package("local.engine", "xllamacpp", needed_for="it runs models on this machine", way_out=local),
        weighed,
        check_package("local.grammar", "llguidance", needed_for="it holds models to a schema", way_out=local),
        check_package("local.router", "wordllama", needed_for="it finds evidence and tools by meaning", way_out=local),
        *(check for name in VENDORS for check in _check_vendor(name, keys[name])),
    ]


def _check_vendor(name: str, key: str) -> list[Check]:
    """Whether the package is there that asks a vendor, and a key; the key itself is never shown."""
    way_out, variable, checked = install_command(name), VENDORS[name], f"{name}{VENDOR_KEY}"
    keyed = Check(checked, CheckState.OK, f"{variable} is set")
    if not key:
        keyed = Check(checked, CheckState.MISSING, f"{variable} is not set", f"set {variable} to use that vendor")
    return [check_package(name, "httpx2", needed_for="it asks models of that vendor", way_out=way_out), keyed]


async def measure_local(engines: EngineSettings) -> Check:
    """How long the local model takes until it can answer, and how fast it then does."""
    asked = ModelRequest((user_message("Count from one to twenty."),), max_tokens=_MEASURED_TOKENS)
    began_s = time.perf_counter()
    try:
        usage = (await open_engine(_LOCAL, base=Path.cwd(), settings=engines).infer(asked)).usage
    except RemitError as error:
        return Check("local.speed", CheckState.MISSING, f"{error.code}: {error.message}", "remit models add smollm2")
    took_ms = round((time.perf_counter() - began_s) * 1000)
    rate = f"{usage.tokens_per_second:.0f} tokens/s over {usage.completion_tokens} tokens"
    return Check("local.speed", CheckState.OK, f"answers after {took_ms - usage.duration_ms} ms, then {rate}")
