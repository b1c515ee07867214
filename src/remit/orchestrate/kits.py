"""Making a run's kit again from what its manifest says, for a process that did not start it.

Rule 1: what was loaded from a file or a module is loaded from there again; what was made on the spot cannot be.
Rule 2: code that is missing or has changed is refused with a code and the run stays open, until a person accepts it.
Rule 3: an accepted change may change what a tool does, never what it declares: that was judged and approved.
"""

from pathlib import Path

from remit.core.failure import RequestRejected
from remit.inference.specs import open_engine
from remit.kernel.state import RunState, pinned
from remit.orchestrate.kit import Kit
from remit.tool.loading import reload

ENGINE_NOT_REOPENABLE = "ENGINE_NOT_REOPENABLE"


async def kit_again(state: RunState) -> Kit:
    """What a run works with, loaded anew."""
    manifest = pinned(state)
    engines = {}
    for info, spec in zip(manifest.models, manifest.engines, strict=True):
        if not spec:
            raise RequestRejected(
                ENGINE_NOT_REOPENABLE,
                f"the engine of model {info.name!r} was passed to run {state.run_id} as an object; "
                "resume the run from the program that started it",
                {"run_id": state.run_id, "model": info.name},
            )
        # Specs were made absolute when the engine was first opened.
        engines[info.name] = open_engine(spec, base=Path("/"))
    return Kit(engines, reload(tuple(state.sources.values()), pinned=manifest.tools))
