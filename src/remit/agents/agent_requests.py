"""What an agent asks for: its instructions, the user's words, and the shape that the answer must have."""

from dataclasses import replace as replace_parts
from typing import Any

from remit.agents.structured import SchemaSource
from remit.constraint.grammar.notation import check_grammar
from remit.core.clipped import clipped
from remit.core.failure import ErrorCode, RequestRejected
from remit.core.journal.canonical import NotCanonical, canonical_json
from remit.core.limits.boundary import Boundary
from remit.core.limits.tool_trust import Reads
from remit.core.record import JsonObject, replace
from remit.core.run.contract import ExecutionHints, OutputContract, SystemRequest
from remit.core.run.messages import Message, system_message, user_message
from remit.core.run.request_checks import OUTPUT_TOKENS_MAX, REQUEST_HINT_INVALID, REQUEST_OUTPUT_INVALID, check_request
from remit.core.schema.json_schema import compile_schema
from remit.core.schema.schema_source import SCHEMA_SOURCE_INVALID, schema_of
from remit.orchestrate.exchange.loop_config import LoopConfig
from remit.orchestrate.setup.kit import PromptProvider, check_context, prompt_text

# Lets a context provider read anything, so that only what is none is refused.
_READS_ALL = Boundary(reads_max=Reads.SECRET)


def request_of(config: LoopConfig, text: str, *, session_id: str = "", user_id: str = "") -> SystemRequest:
    """A user's words to an agent with these settings; the mode is chat until the caller says otherwise."""
    return SystemRequest(
        messages=(*instructions(config), user_message(text)),
        session_id=session_id,
        user_id=user_id,
        hints=replace(config.hints, max_tokens=config.max_tokens, max_iterations=config.max_tool_iterations),
    )


def instructions(config: LoopConfig) -> tuple[Message, ...]:
    """What stands before every conversation of an agent: its system prompt, if it has one."""
    said = prompt_text(config.system_prompt)
    return (system_message(said),) if said else ()


def hints_of(temperature: float | None, top_p: float, timeout_ms: int, options: JsonObject | None) -> ExecutionHints:
    """How an agent's models are sampled, and how long each of its runs may take."""
    return ExecutionHints(temperature=temperature, top_p=top_p, timeout_ms=timeout_ms, options=options or {})


def output_of(schema: JsonObject, *, grammar: str, repair: bool, strict: bool) -> OutputContract:
    """The shape that an answer must have; an empty grammar is none."""
    return OutputContract(schema, grammar or None, repair, strict)


def object_schema(source: SchemaSource[Any] | None) -> JsonObject:
    """The JSON Schema that a source stands for; raises RequestRejected for one that would allow or forbid everything."""
    if source is None:
        message = "the schema is None and says nothing about an output; pass a JSON Schema, a model or a dataclass"
        raise RequestRejected(ErrorCode.CONFIG_SCHEMA_REQUIRED, message)
    schema = schema_of(source)
    if isinstance(schema, bool):
        message = f"the schema {schema!r} says nothing about an output; pass an object"
        raise RequestRejected(SCHEMA_SOURCE_INVALID, message)
    try:
        canonical_json(schema)
    except NotCanonical as error:
        raise RequestRejected(
            SCHEMA_SOURCE_INVALID, f"the schema {clipped(schema)} is no JSON: {error.message}"
        ) from error
    return schema


def checked_schema(source: SchemaSource[Any] | None) -> JsonObject:
    """The JSON Schema of a source, refused where no output could be checked with it."""
    schema = object_schema(source)
    compile_schema(schema)
    return schema


def check_settings(config: LoopConfig, *, session_id: str = "", user_id: str = "") -> None:
    """Raise RequestRejected when no words at all could be asked with these settings."""
    first = "a first word, to see that everything else may enter"
    if not isinstance(config.system_prompt, str) and isinstance(config.system_prompt, PromptProvider):
        # It is asked when a run begins.
        config = replace_parts(config, system_prompt="")
    check_request(request_of(config, first, session_id=session_id, user_id=user_id))
    grammar: object = config.grammar
    if not isinstance(grammar, str):
        message = f"grammar={clipped(grammar)} is no grammar; give its text, or leave it out"
        raise RequestRejected(REQUEST_OUTPUT_INVALID, message)
    if grammar:
        check_grammar(grammar)
    # What it reads is compared with the boundary of each run.
    check_context(config.context_provider, _READS_ALL)
    if config.max_tokens < 1:
        message = f"max_tokens={config.max_tokens} is outside 1 to {OUTPUT_TOKENS_MAX}"
        raise RequestRejected(REQUEST_HINT_INVALID, message, {"field": "max_tokens", "limit": OUTPUT_TOKENS_MAX})
