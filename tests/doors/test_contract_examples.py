"""The examples of the contracts run as they stand, and print what they promise."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "contracts"

SHOWN = {
    "core_types": ["160 tokens, 40 of them generated, 80 a second"],
    "engine": [
        "loaded: unsloth/gemma-4-E4B-it",
        "unloaded: unsloth/gemma-4-E4B-it",
        "content: Hello, world.",
        "streamed: ['Hello', ', ', 'world.']",
        "warning: the price of model 'gemma' is unknown",
    ],
    "context_provider": ["answer: [1] (tea.md): Green tea takes 70 degrees.", "remembered: ['user', 'assistant']"],
    "prompt_provider": ["You answer for the tea shop.", "- Be brief."],
    "runner": ["Tea is ready.", "Tea is ready."],
    "observer": ["counted: {'infer': 4, 'lifecycle': 4, 'tool': 2}"],
    "system_request": [
        'chat: {"mood":"good"}',
        "structured: {'mood': 'good'}",
        "plan: {'look': {'mood': 'good'}}",
        "redundant: {'mood': 'good'}, 100% by voting",
    ],
    "agent_loop": [
        "  [search] sunny",
        "Paris is sunny.",
        "  [search] rain",
        "London has rain.",
        "['system', 'user', 'assistant', 'user', 'assistant']",
        "tool calls: [('search', 'rain')]",
    ],
    "chat_structured": [
        'content: {"sentiment":"positive","confidence":0.95}',
        "value: {'sentiment': 'positive', 'confidence': 0.95}",
        "repairs: 1, checks passed: 1",
    ],
    "specialized_loop": [
        '{"sentiment":"positive"}',
        "phase 1: ['web_search', 'calculator']",
        "phase 2: It moves on. ['qubits.example']",
    ],
    "planner": [
        "keywords: 2 words were said; ['GOOD', 'MORNING']",
        "IMPOSSIBLE: PLAN_TOO_LONG",
        "model: shouting is enough; GOOD EVENING",
    ],
    "plan_executor": [
        "retrieved: ['go.md', 'rust.md']",
        "reranked: ['go.md', 'rust.md']",
        "inferred: A type that has the methods satisfies the interface [1].",
        "validated: SUCCESS",
        "summarized: A type that has the methods satisfies th...",
        "failed: step validate: output too short: 3 chars; finished: ['infer']",
    ],
    "voting": [
        "majority: positive 0.667",
        "tie: a 0.4",
        "unanimity: ('positive', 1.0)",
        "no unanimity: unanimity voting: candidate 1 differs from candidate 0",
        'own: {"word":"tea"} 100%',
    ],
    "redundant_loop": ['Winner: {"sentiment":"positive"}', "Confidence: 100%", "Total tokens: 18"],
    "composition": [
        "wrapped: {'research': 'Orders grew.', 'classify': '{\"trend\":\"up\"}'}",
        "as they are: {'research': 'Orders grew.', 'classify': {'trend': 'up'}}",
        "confidence: 100% by voting",
        "calls: ['market']",
    ],
}


def test_every_example_of_a_contract_is_run_and_listed() -> None:
    scripts = {path.stem for path in EXAMPLES.glob("*.py")} - {"__init__"}
    assert scripts == set(SHOWN)
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [name for name in scripts if f"| `{name}.py` |" not in listed] == []


@pytest.mark.req("2.18", "2.25", "2.29")
@pytest.mark.parametrize("name", sorted(SHOWN))
def test_an_example_of_a_contract_shows_what_it_promises(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REMIT_HOME", str(tmp_path / "store"))
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    printed = capsys.readouterr()
    shown = [line for line in printed.out.splitlines() if line in SHOWN[name]]
    assert (shown, printed.err) == (SHOWN[name], "")
