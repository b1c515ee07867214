"""What every contender does: the tool's work, the calls of a scripted model, and a schema with a good and a bad text.

Adapters know it as the module `common`, as the harness calls it that they were first written for.
"""

import json
from typing import Any

PROMPT, FINAL = "look everything up", "done"
TOOL_RESULT = ("result " * 29)[:200]
# What stands behind "@" in the name of a contender: one adapter, several ways through it.
FLAVOR = ""
# How often the tool was called in this process, so that no peer wins by leaving out work.
calls = 0


def args_for(turn: int) -> dict[str, Any]:
    """The arguments of a call."""
    return {"q": f"item-{turn}", "n": turn}


def args_json(turn: int) -> str:
    """The same as a vendor sends them."""
    return json.dumps(args_for(turn))


def do_lookup(q: str, n: int) -> str:
    """The work of the tool."""
    global calls  # noqa: PLW0603  # the worker counts by it
    calls += 1
    return TOOL_RESULT


GOOD_ANSWER: dict[str, Any] = {
    "title": "Quarterly plan",
    "owner": {"name": "Ada", "email": "ada@example.com"},
    "priority": 2,
    "tasks": [
        {"id": i, "name": f"task {i}", "tags": ["a", "b"], "estimate": {"hours": 1.5 * i, "confidence": 0.5}}
        for i in range(5)
    ],
}
GOOD_JSON = json.dumps(GOOD_ANSWER)
# One number, three levels deep, is a word.
BAD_JSON = GOOD_JSON.replace('"hours": 4.5', '"hours": "plenty"')


def schema() -> Any:
    """The answer as pydantic models, which every contender takes."""
    from pydantic import create_model

    owner = create_model("Owner", name=(str, ...), email=(str, ...))
    estimate = create_model("Estimate", hours=(float, ...), confidence=(float, ...))
    task = create_model("Task", id=(int, ...), name=(str, ...), tags=(list[str], ...), estimate=(estimate, ...))
    return create_model("Plan", title=(str, ...), owner=(owner, ...), priority=(int, ...), tasks=(list[task], ...))  # type: ignore[valid-type]
