"""What a step of a plan may say, seen with the handler that is to do it.

Rule 1: whatever a step says is either followed or refused; nothing of it is passed over.
Rule 2: a mutating tool that is not idempotent is never tried again because its step failed.
"""

from remit.core.failure import ErrorCode, RequestRejected
from remit.core.record import JsonObject, replace
from remit.core.schema.schema_source import SCHEMA_SOURCE_INVALID, schema_of
from remit.core.work.graph import PROMPT_CHARS_MAX
from remit.core.work.plan import PLAN_STEP_INVALID, Step
from remit.orchestrate.facts.texts import clean
from remit.orchestrate.patterns.handlers import (
    Handler,
    InferHandler,
    RerankHandler,
    RetrieveHandler,
    ToolHandler,
    ValidateHandler,
    is_lacking,
)
from remit.tool.registry import Registry


def followed(step: Step, handler: Handler) -> Step:
    """The step as it is carried out; raises RequestRejected for what its handler could not follow."""
    if step.tool and not isinstance(handler, ToolHandler):
        raise invalid(step, f"names tool {step.tool[:80]!r} and is no tool step; leave it out")
    if step.schema is not None and not isinstance(handler, InferHandler):
        raise invalid(step, "has a schema and is no infer step; a loop has its own, and code needs none")
    if step.instruction and isinstance(handler, ToolHandler | RetrieveHandler | RerankHandler | ValidateHandler):
        raise invalid(step, "has an instruction, and nobody there who could follow it; leave it out")
    if step.schema is not None:
        step = replace(step, schema=_object_schema(step))
    # Whoever lacks what it works with will not find it by being tried again.
    return replace(step, retries=0) if is_lacking(handler) else step


def _object_schema(step: Step) -> JsonObject:
    schema = schema_of(step.schema)
    if isinstance(schema, bool):
        message = f"step {step.name!r} has the schema {schema!r}, which says nothing about an output; pass an object"
        raise RequestRejected(SCHEMA_SOURCE_INVALID, message, {"step": step.name})
    return schema


def instruction_of(step: Step, before: str = "") -> str:
    """What whoever does the step is told: what its handler says, then what the step says."""
    told = "\n\n".join(text for text in (before, step.instruction) if text)
    if len(told) > PROMPT_CHARS_MAX:
        reason = f"is told {len(told)} characters, instruction_chars_max={PROMPT_CHARS_MAX}"
        raise invalid(step, f"{reason}; put what holds for the whole plan into its system prompt")
    return clean(told)


def check_call(step: Step, tools: Registry) -> None:
    """Refuse a call of a tool that is not there, or that may not be made as often as the step would."""
    tool = tools.get(step.tool)
    if tool is None:
        known = ", ".join(one.name for one in tools) or "none"
        called = f"calls tool {step.tool[:80]!r}" if step.tool else "does not say which tool it calls; set tool"
        message = f"step {step.name!r} {called}; its handler has {known}"
        raise RequestRejected(ErrorCode.TOOL_NOT_FOUND, message, {"step": step.name, "tool": step.tool[:80]})
    if step.retries and tool.definition.effect.is_mutating and not tool.definition.idempotent:
        reason = f"has retries={step.retries} and its tool {tool.name!r} changes something and is not idempotent"
        raise invalid(step, f"{reason}; leave the retries out, or declare the tool idempotent if it is")


def invalid(step: Step, reason: str) -> RequestRejected:
    """What is raised for a step that cannot be carried out as it is written."""
    return RequestRejected(PLAN_STEP_INVALID, f"step {step.name!r} {reason}", {"step": step.name})
