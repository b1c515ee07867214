"""The scripted engine does what every engine must, whether it plays a file or values."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from remit.inference.engine import Engine
from remit.inference.scripted.engine import ScriptedEngine
from remit.inference.specs import open_engine
from remit.testing.conformance.engine import CALLERS, ENGINE_CHECKS, EngineCheck, Situation

WORDS = ["hello", "never mind", *(f"word{number}" for number in range(CALLERS))]

SCRIPTS: dict[Situation, list[dict[str, Any]]] = {
    Situation.ANSWERS: [{"text": "first", "reasoning": "hm", "chunks": 3}, {"text": "second"}],
    # Waiting between the pieces lets those who ask at the same time meet.
    Situation.REPEATS: [{"when": f"^{word}$", "text": word, "chunks": 4, "delay_ms": 4} for word in WORDS],
    Situation.PROPOSES: [{"tool_calls": [{"name": "look_up", "arguments": {"word": w}} for w in ("a", "b")]}],
    Situation.FAILS: [{"error": "INFERENCE_MODEL_UNAVAILABLE"}],
    Situation.HANGS: [{"text": "late", "delay_ms": 60_000, "chunks": ["l", "ate"]}],
    Situation.DRAWLS: [{"text": "so " * 4000, "delay_ms": 600_000, "chunks": 10_000}],
    Situation.BREAKS: [{"error": "INFERENCE_ENGINE_ERROR"}],
    Situation.OVERFLOWS: [{"error": "INFERENCE_CONTEXT_EXCEEDED"}],
    Situation.GARBLES: [{"error": "INFERENCE_MALFORMED_RESPONSE", "usage": {"prompt_tokens": 5, "output_tokens": 2}}],
    Situation.DROPS: [{"error": "INFERENCE_ENGINE_ERROR", "chunks": ["half an ", "ans"]}],
    Situation.BREAKS_OFF: [
        {"error": "INFERENCE_MALFORMED_RESPONSE", "chunks": ["half an ans"], "usage": {"prompt_tokens": 5}}
    ],
    Situation.UNCOUNTED: [{"text": "first"}],
    Situation.THINKS: [{"text": "hello", "reasoning": "hm"}],
}


@asynccontextmanager
async def from_values(situation: Situation) -> AsyncIterator[Engine]:
    yield ScriptedEngine(replies=SCRIPTS[situation])


@pytest.mark.req("1.11")
@pytest.mark.parametrize("check", ENGINE_CHECKS, ids=lambda check: check.__name__)
def test_an_engine_made_from_values_does_what_every_engine_must(check: EngineCheck) -> None:
    asyncio.run(check(from_values))


@pytest.mark.req("1.11")
@pytest.mark.parametrize("check", ENGINE_CHECKS, ids=lambda check: check.__name__)
def test_an_engine_opened_by_its_spec_does_what_every_engine_must(check: EngineCheck, tmp_path: Path) -> None:
    @asynccontextmanager
    async def from_file(situation: Situation) -> AsyncIterator[Engine]:
        (tmp_path / "script.json").write_text(json.dumps({"replies": SCRIPTS[situation]}))
        yield open_engine("scripted:script.json", base=tmp_path)

    asyncio.run(check(from_file))
