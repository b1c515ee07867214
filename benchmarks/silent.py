"""What a whole run is measured with: a model that wants its calls and then is done, and tools that do nothing.

The model finds its place by counting the messages it is shown, so one engine serves any number of runs at once.
"""

from typing import Literal

from benchmarks.stage import GENEROUS, PLENTY
from remit.core.failure import Ending
from remit.core.limits.boundary import Boundary
from remit.core.limits.tools import ToolCall
from remit.core.run.contract import ExecutionHints, SystemRequest, SystemResponse
from remit.core.run.inference import ModelInfo, ModelRequest, ModelResult, Price
from remit.core.run.messages import user_message
from remit.core.run.request_checks import ITERATIONS_MAX
from remit.core.run.usage import TokenUsage
from remit.inference.engine import StreamHandler
from remit.orchestrate.setup.kit import Kit, Terms, engine_kit
from remit.tool.declare.decorator import tool
from remit.tool.registry import Registry

TERMS = Terms(Boundary(name="bench", budget=GENEROUS))
REQUEST = SystemRequest((user_message("Look some numbers up."),), hints=ExecutionHints(max_iterations=ITERATIONS_MAX))

_USAGE = TokenUsage(prompt_tokens=10, output_tokens=5)


@tool(effect="read", network=False)
async def look(n: int) -> str:
    """Look a number up."""
    return "42"


@tool(effect="write")
async def keep(n: int) -> Literal["kept"]:
    """Keep a number."""
    return "kept"


class SilentModel:
    """Asks for one call of a tool in each of so many loops, then answers."""

    def __init__(self, loops: int, tool_name: str = "look") -> None:
        self._loops = loops
        self._tool_name = tool_name
        self._info = ModelInfo("silent", context_window=PLENTY, price=Price(0, 0))

    def model_info(self) -> ModelInfo:
        """A window and a price that stop no run."""
        return self._info

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """The next call, or the answer."""
        # After the request, each loop adds the model's answer and the tool's.
        done = len(request.messages) // 2
        if done >= self._loops:
            return ModelResult("done", usage=_USAGE)
        call = ToolCall(f"call-{done}", self._tool_name, {"n": done})
        return ModelResult("", tool_calls=(call,), usage=_USAGE)


def reading_kit(loops: int) -> Kit:
    """Runs of so many loops, each with one call that reads."""
    return engine_kit(SilentModel(loops), Registry([look]))


def writing_kit(loops: int) -> Kit:
    """Runs of so many loops, each with one call that changes something, which a person has to allow."""
    return engine_kit(SilentModel(loops, "keep"), Registry([keep]))


def expect_success(response: SystemResponse) -> None:
    """A run that failed measures nothing."""
    assert response.terminal_code is Ending.SUCCESS, f"{response.terminal_code}: {response.error}"
