"""Dialects: what servers that speak like OpenAI call a grammar, and how each is kept from thinking.

Rule 1: a grammar is sent under the name that its server knows. A server that knows none gets none: the answer is read by
        the grammar afterwards in any case, and asked for again with what is wrong.
Rule 2: a model that has to keep a shape does not think first, where its server can be told so. That holds for the call
        alone, and whatever its options say.
Rule 3: what a spec says comes before what is known of a kind of server.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from remit.core.record import JsonObject


class Schemas(StrEnum):
    """What a server wants of a schema, beside what all take: strict mode."""

    STRICT = "strict"


class Grammars(StrEnum):
    """Where a server looks for a grammar: in a field of llama.cpp, of vLLM, of vLLM before version 0.12, or nowhere."""

    GRAMMAR = "grammar"
    STRUCTURED_OUTPUTS = "structured_outputs"
    GUIDED_GRAMMAR = "guided_grammar"
    NONE = "none"


class Thinking(StrEnum):
    """What keeps a model from thinking: a variable of its template, an effort of none, or nothing that we may send."""

    TEMPLATE = "chat_template_kwargs"
    EFFORT = "reasoning_effort"
    LEFT = "left"


class Dialect(NamedTuple):
    """How a server is told of grammars, and not to think where only a schema is to be kept."""

    grammars: Grammars = Grammars.GRAMMAR
    thinking: Thinking = Thinking.LEFT
    # A server that takes grammars is of the family of llama.cpp or vLLM, and those take variables of a template.
    thinking_by_grammar: Thinking = Thinking.TEMPLATE


# A server of which nothing is known, and the vendor's, which refuses every field that it does not know.
ANY = Dialect()
VENDOR = Dialect(Grammars.NONE, Thinking.LEFT, Thinking.LEFT)

# What is known of servers that go by a name of their own.
NAMED: Mapping[str, Dialect] = MappingProxyType(
    {
        "ollama": Dialect(Grammars.NONE, Thinking.EFFORT, Thinking.EFFORT),
        "vllm": Dialect(Grammars.STRUCTURED_OUTPUTS, Thinking.TEMPLATE),
    }
)


def dialect_with(known: Dialect, grammars: Grammars | None, thinking: Thinking | None) -> Dialect:
    """What is known of a server, with what a spec says instead."""
    if grammars is not None:
        known = known._replace(grammars=grammars)
    return known if thinking is None else known._replace(thinking=thinking, thinking_by_grammar=thinking)


def grammar_fields(grammar: str, dialect: Dialect) -> JsonObject:
    """What a body says of a grammar; nothing where there is none, or where its server takes none."""
    if not grammar or dialect.grammars is Grammars.NONE:
        return {}
    is_nested = dialect.grammars is Grammars.STRUCTURED_OUTPUTS
    return {dialect.grammars.value: {"grammar": grammar} if is_nested else grammar}


def hush(body: JsonObject, thinking: Thinking) -> None:
    """Make the body of a call ask for an answer without a thought before it."""
    if thinking is Thinking.TEMPLATE:
        variables = body.get("chat_template_kwargs")
        kept = variables if isinstance(variables, dict) else {}
        body["chat_template_kwargs"] = {**kept, "enable_thinking": False}
    elif thinking is Thinking.EFFORT:
        # The same wish in another form would win.
        body.pop("reasoning", None)
        body["reasoning_effort"] = "none"
