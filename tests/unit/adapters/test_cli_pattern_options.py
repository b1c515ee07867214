"""Plans and votes from the command line: what they answer, what they tell, what is refused."""

import json
from pathlib import Path

import pytest

from remit.core.run.contract import ConfidenceSource, Mode
from tests.unit.adapters.desk import Desk

# Many, or each with a whole command; the quick check has others of its kind.
pytestmark = pytest.mark.slow

HOSTILE = "\x1b[2J\u202e\u200b"
HANDLERS = '''
def shout(step):
    """In capitals."""
    return step.input.upper()


def stumble(step):
    """Never works."""
    raise ValueError("\\x1b[2Jno")


def offer(step):
    """The arguments of a call."""
    return {"text": step.input}
'''
PLAN = """
handlers: handlers.py
steps:
  - {name: loud, type: shout}
  - {name: say, type: infer}
"""
SCHEMA = {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}


def plan(desk: Desk, text: str = PLAN) -> tuple[object, ...]:
    """The words that run a plan."""
    desk.file("handlers.py", HANDLERS)
    return ("--mode", Mode.PLAN.value, "--plan", desk.file("plan.yaml", text))


def vote(desk: Desk, *replies: object) -> tuple[object, ...]:
    """The words that hold a vote."""
    schema = desk.file("schema.json", json.dumps(SCHEMA))
    engine = desk.script(*(replies or ('{"answer": 4}',)))
    return ("--mode", Mode.REDUNDANT.value, "--schema", schema, "--engine", engine)


def test_a_plan_tells_its_steps_and_answers_with_the_last_one(desk: Desk) -> None:
    code, out, err = desk.say("run", "hi", *plan(desk), "--engine", desk.script("Hello."))
    assert (code, out) == (0, "Hello.\n")
    assert [line.split()[:2] for line in err.splitlines()] == [
        ["->", "loud"],
        ["<-", "loud"],
        ["->", "say"],
        ["<-", "say"],
    ]
    assert "(shout, 1 of 2)" in err
    assert err.splitlines()[1].endswith("HI")


def test_programs_get_what_each_step_gave_and_nothing_is_told(desk: Desk) -> None:
    said = desk.say("run", "hi", *plan(desk), "--engine", desk.script("Hello."), "--json")
    assert (said.code, said.err) == (0, "")
    assert said.values["structured_output"] == {"loud": "HI", "say": "Hello."}


def test_a_plan_that_says_everything_itself_needs_no_prompt_and_no_engine(desk: Desk) -> None:
    words = plan(desk, "handlers: handlers.py\nsteps: [{name: loud, type: shout, input: hi}]")
    said = desk.say("run", *words, "--engine", "no_such:thing")
    assert (said.code, said.out) == (0, "HI\n")


def test_a_plan_that_fails_tells_which_steps_were_finished(desk: Desk) -> None:
    text = "handlers: handlers.py\nsteps: [{name: loud, type: shout}, {name: fall, type: stumble}]"
    code, out, err = desk.say("run", "hi", *plan(desk, text))
    assert (code, out) == (1, "")
    assert "!! fall failed (TOOL_EXECUTION_FAILED)" in err
    run_id = desk.say("runs", "--json").values["run_id"]
    assert err.splitlines()[-1] == f"1 of 2 steps were finished: loud; what they gave: remit show {run_id}"
    values = desk.say("show", run_id, "--json").values
    assert values["response"]["structured_output"] == {"loud": "HI"}


def test_a_plan_whose_first_step_fails_has_finished_nothing(desk: Desk) -> None:
    text = "handlers: handlers.py\nsteps: [{name: fall, type: stumble}]"
    assert "0 of 1 steps were finished: none;" in desk.say("run", "hi", *plan(desk, text)).err


def test_a_plan_that_waits_for_a_person_goes_on_with_the_answer(desk: Desk) -> None:
    text = """
handlers: handlers.py
steps: [{name: make, type: offer}, {name: keep, type: tool, tool: write}]
"""
    waiting = desk.say("run", "hi", *plan(desk, text), "--tools", desk.tools())
    assert waiting.code == 3
    desk.file("handlers.py", f"{HANDLERS}\n# changed\n")
    assert desk.say("resume", "last", "--json").error == "PLAN_SOURCE_CHANGED"
    assert desk.say("resume", "last", "--accept-tools").code == 3
    approved = desk.say("approve", "last", "--json")
    assert approved.values["structured_output"] == {"make": {"text": "hi"}, "keep": "hi"}
    assert desk.notes == ["hi"]


WAITING = """
handlers: handlers.py
steps: [{name: make, type: offer}, {name: keep, type: tool, tool: write}, {name: loud, type: shout}]
"""


def test_a_person_who_answers_a_plan_is_told_the_steps_that_are_left(desk: Desk) -> None:
    desk.say("run", "hi", *plan(desk, WAITING), "--tools", desk.tools())
    approved = desk.say("approve", "last")
    assert (approved.code, approved.out) == (0, "HI\n")
    assert [line.split()[:2] for line in approved.err.splitlines()] == [["<-", "keep"], ["->", "loud"], ["<-", "loud"]]
    assert "(shout, 3 of 3)" in approved.err


def test_a_plan_that_is_told_no_says_which_steps_were_finished(desk: Desk) -> None:
    desk.say("run", "hi", *plan(desk, WAITING), "--tools", desk.tools())
    rejected = desk.say("reject", "last", "--reason", "not today")
    assert rejected.code != 0
    assert "1 of 3 steps were finished: make; what they gave: remit show " in rejected.err.splitlines()[-1]


def test_a_plan_that_is_released_and_still_waits_asks_again(desk: Desk) -> None:
    desk.say("run", "hi", *plan(desk, WAITING), "--tools", desk.tools())
    assert desk.say("signal", "last", "pause").code == 0
    released = desk.say("signal", "last", "resume")
    assert (released.code, released.out) == (3, "")
    assert "remit approve " in released.err
    assert desk.say("approve", "last").out == "HI\n"


def test_a_plan_that_is_tried_again_in_vain_says_which_steps_were_finished(desk: Desk) -> None:
    text = "handlers: handlers.py\nsteps: [{name: loud, type: shout}, {name: fall, type: stumble}]"
    desk.say("run", "hi", *plan(desk, text))
    retried = desk.say("signal", "last", "retry")
    assert retried.code == 1
    assert retried.err.splitlines()[-1].startswith("1 of 2 steps were finished: loud; what they gave: remit show ")


def test_names_and_outputs_of_steps_are_escaped(desk: Desk) -> None:
    steps = [{"name": f"a{HOSTILE}", "type": "shout"}, {"name": "fall", "type": "stumble"}]
    words = plan(desk, json.dumps({"handlers": "handlers.py", "steps": steps}))
    code, out, err = desk.say("run", HOSTILE, *words)
    assert code == 1
    for text in (out, err):
        assert not set(HOSTILE) & set(text) - set("[2J")
    assert "a\\x1b[2J\\u202e\\u200b" in err


def test_a_vote_answers_with_the_winner_and_says_how_many_agree(desk: Desk) -> None:
    code, out, err = desk.say("run", "2+2?", *vote(desk))
    assert (code, out) == (0, '{"answer": 4}\n')
    assert err.splitlines()[0] == "  -> replica 1 of 3"
    assert err.splitlines()[1] == '  <- replica 1 of 3 {"answer": 4}'
    assert err.splitlines()[-1] == "3 of 3 agree, confidence 100 %"


def test_an_outvoted_replica_lowers_the_confidence(desk: Desk) -> None:
    replies = ({"text": '{"answer": 5}', "replica": 2}, {"text": '{"answer": 4}'})
    code, out, err = desk.say("run", "2+2?", *vote(desk, *replies))
    assert (code, out) == (0, '{"answer": 4}\n')
    assert err.splitlines()[-1] == "2 of 3 agree, confidence 67 %"


def test_programs_get_the_confidence_of_a_vote(desk: Desk) -> None:
    values = desk.say("run", "2+2?", *vote(desk), "--n", "2", "--voting", "unanimity", "--json").values
    assert (values["confidence"], values["confidence_source"]) == (1.0, ConfidenceSource.VOTING)


def test_replicas_that_failed_are_counted_among_the_warnings(desk: Desk) -> None:
    words = vote(desk, {"error": "INFERENCE_CONTEXT_EXCEEDED", "replica": 2}, '{"answer": 4}')
    values = desk.say("run", "How many?", *words, "--json").values
    assert (values["terminal_code"], values["warnings"]) == ("SUCCESS", ["1 of 3 replicas failed"])
    told = desk.say("run", "How many?", *words).err.splitlines()
    assert told[-2].endswith(" ended as SUCCESS: 1 of 3 replicas failed")
    assert told[-1] == "2 of 2 agree, confidence 100 %"


def test_a_vote_in_which_nobody_answers_tells_each_failure(desk: Desk) -> None:
    code, out, err = desk.say("run", "2+2?", *vote(desk, "I do not know."), "--n", "2")
    assert (code, out) == (1, "")
    assert err.count("!! replica") == 2
    assert "agree" not in err


def test_a_vote_that_is_shown_again_tells_its_confidence(desk: Desk) -> None:
    desk.say("run", "2+2?", *vote(desk), "--early-stop", "--voting", "similarity")
    assert desk.say("resume", "last").err.splitlines()[-1].startswith("3 of 3 agree, confidence 100 %")


@pytest.mark.parametrize(
    ("words", "code", "named"),
    [
        (("--n", "3"), "USAGE", "--n is about votes and needs --mode redundant, not chat"),
        (("--voting", "majority", "--mode", "structured"), "USAGE", "--voting is about votes"),
        (("--early-stop",), "USAGE", "--early-stop is about votes"),
        (("--parallel",), "USAGE", "--parallel is about votes"),
        (("--mode", "plan"), "USAGE", "belong together"),
        (("--plan", "PLAN"), "USAGE", "belong together"),
        (("--mode", "plan", "--plan", "none.yaml"), "FILE_UNREADABLE", "none.yaml"),
        (("--mode", "plan", "--plan", "PLAN", "--schema", "SCHEMA"), "USAGE", "--schema is nothing a plan reads"),
        (("--mode", "plan", "--plan", "PLAN", "--graph", "PLAN"), "USAGE", "--graph is nothing a plan reads"),
        (("--mode", "redundant", "--early-stop", "--parallel"), "USAGE", "say one of them"),
        (("--mode", "redundant", "--schema", "SCHEMA", "--graph", "PLAN"), "USAGE", "leave out one of"),
        (("--mode", "redundant", "--schema", "SCHEMA", "--tools", "builtin:clock"), "USAGE", "offered no tools"),
        (("--mode", "redundant", "--schema", "SCHEMA", "--router", "none"), "USAGE", "--router is nothing a vote"),
        (("--mode", "redundant", "--schema", "SCHEMA", "--rules", "PLAN"), "USAGE", "--rules is nothing a vote"),
        (("--mode", "redundant", "--schema", "SCHEMA", "--judge", "local"), "USAGE", "--judge is nothing a vote"),
        (("--mode", "plan", "--plan", "PLAN", "--router", "auto"), "USAGE", "--router is nothing a plan reads"),
        (("--mode", "plan", "--plan", "PLAN", "--rules", "PLAN"), "USAGE", "--rules is nothing a plan reads"),
        (("--judge", "local"), "USAGE", "--judge answers questions of --rules"),
        (("--rules", "PLAN", "--graph", "PLAN"), "USAGE", "leave out one of --rules and --graph"),
        (("--mode", "redundant"), "CONFIG_SCHEMA_REQUIRED", "--mode redundant needs --schema, which is missing"),
        (("--mode", "structured"), "CONFIG_SCHEMA_REQUIRED", "--mode structured needs --schema"),
        (("--mode", "redundant", "--schema", "SCHEMA", "--n", "0"), "REPLICAS_INVALID", "1 to 100"),
        (("--mode", "redundant", "--schema", "SCHEMA", "--n", "x"), "USAGE", "--n"),
        (("--mode", "redundant", "--schema", "SCHEMA", "--voting", "who"), "VOTING_UNKNOWN", "'who'"),
        (("--mode", "redundant", "--schema", "SCHEMA", "--voting", "a.py:b"), "CODE_FILE_NOT_FOUND", "a.py"),
    ],
)
def test_what_cannot_be_used_is_wrong_usage_and_no_store_is_made(
    desk: Desk, words: tuple[str, ...], code: str, named: str
) -> None:
    files = {"PLAN": plan(desk)[-1], "SCHEMA": desk.file("schema.json", json.dumps(SCHEMA))}
    said = desk.say("run", "hi", "--engine", desk.script("x"), *(files.get(word, word) for word in words), "--json")
    assert (said.code, said.error) == (2, code)
    assert named in said.values["error"]["message"]
    assert not desk.home.exists()


def test_a_step_that_cannot_run_is_refused_with_its_line(desk: Desk) -> None:
    said = desk.say("run", "hi", *plan(desk, "steps:\n  - {name: a, type: dance}\n"), "--json")
    assert (said.code, said.error) == (2, "PLAN_STEP_TYPE_REFUSED")
    assert said.values["error"]["details"]["line"] == 2


def test_a_first_step_without_an_input_needs_a_prompt(desk: Desk) -> None:
    said = desk.say("run", *plan(desk), "--json")
    assert (said.code, said.error) == (2, "USAGE")
    assert "step 'loud' of the plan has no input" in said.values["error"]["message"]
    assert desk.say("run", *plan(desk, "steps: []"), "--json").error == "PLAN_EMPTY"


@pytest.mark.parametrize(
    ("more", "needed", "allows", "way_out"),
    [
        (("--n", "40"), 40, "boundary 'standard' allows 32", "ask for fewer answers with --n"),
        (
            ("--n", "4", "--budget", "child_runs=2"),
            4,
            "--budget allows 2",
            "ask for fewer answers with --n, or allow child_runs=4 with --budget",
        ),
    ],
)
def test_a_vote_that_its_boundary_cannot_pay_for_is_wrong_usage_with_a_way_out_that_can_be_typed(
    desk: Desk, more: tuple[str, ...], needed: int, allows: str, way_out: str
) -> None:
    refused = desk.say("run", "2+2?", *vote(desk), *more, "--json")
    assert (refused.code, refused.error) == (2, "CHILD_RUNS_TOO_FEW")
    said = f"this takes at least {needed} child runs, and {allows}; {way_out}"
    assert refused.values["error"]["message"] == said
    assert not desk.home.exists()


def test_a_grammar_that_is_none_is_wrong_usage_and_no_store_is_made(desk: Desk) -> None:
    grammar = desk.file("broken.gbnf", 'root ::= "a')
    refused = desk.say("run", "Hi", "--engine", desk.script("a"), "--grammar", grammar, "--json")
    assert (refused.code, refused.error) == (2, "GRAMMAR_INVALID")
    assert not desk.home.exists()


def test_where_another_boundary_allows_what_a_vote_takes_it_is_named(desk: Desk) -> None:
    refused = desk.say("run", "2+2?", *vote(desk), "--n", "9", "--boundary", "incident_sre", "--json")
    assert (refused.code, refused.error) == (2, "STEPS_TOO_FEW")
    assert (
        "; ask for fewer answers with --n, or name a boundary that allows more: standard"
        in refused.values["error"]["message"]
    )


def test_a_plan_that_its_boundary_cannot_pay_for_is_wrong_usage(desk: Desk) -> None:
    steps = "".join(f"  - {{name: s{n}, type: infer}}\n" for n in range(33))
    refused = desk.say("run", "hi", *plan(desk, f"steps:\n{steps}"), "--engine", desk.script("x"), "--json")
    assert (refused.code, refused.error) == (2, "CHILD_RUNS_TOO_FEW")
    assert refused.values["error"]["message"].endswith("; plan fewer steps")
    assert not desk.home.exists()


def test_a_plan_with_a_policy_that_judges_nothing_is_refused_at_its_line(desk: Desk) -> None:
    refused = desk.say("run", "hi", *plan(desk, f"policy: {{max_steps: 100000}}{PLAN}"), "--json")
    assert (refused.code, refused.error) == (2, "PLAN_POLICY_INVALID")
    assert refused.values["error"]["details"]["line"] == 1


def test_a_plan_may_have_its_prompt_in_a_file(desk: Desk) -> None:
    prompt: Path = desk.file("prompt.txt", "from a file")
    words = plan(desk, "handlers: handlers.py\nsteps: [{name: loud, type: shout}]")
    assert desk.say("run", "--file", prompt, *words).out == "FROM A FILE\n"
