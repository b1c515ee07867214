"""Rules from the command line: heard by the run, with a judge for questions of meaning, and found again by a resuming process."""

import json

import pytest

from tests.unit.adapters.desk import Desk, calls

RULES = """
name: desk
rules:
  - {name: polite, check: must_mention, words: [please]}
  - {name: brief, check: length, chars_max: 30, severity: warn}
"""
ASKS = """
name: meaning
semantic: [{name: kind, question: Is the answer kind?}]
"""
HOLDS, OBJECTS = '{"holds": true, "problems": []}', '{"holds": false, "problems": ["it is curt"]}'
LONG = "Wait, please, for it will take a good while yet."


def test_an_answer_that_breaks_a_rule_is_asked_for_again(desk: Desk) -> None:
    engine = desk.script("Wait.", "Wait, please.")
    said = desk.say("run", "How long?", "--engine", engine, "--rules", desk.file("rules.yaml", RULES), "--json")
    assert (said.code, said.values["content"]) == (0, "Wait, please.")
    assert said.values["validation"]["repair_attempts"] == 1
    (source,) = desk.say("trace", "last", "--json").rows[0]["arrival"]["manifest"]["sources"][-1:]
    assert (source["name"], source["place"]) == ("rules:desk", str(desk.folder / "rules.yaml"))


def test_an_answer_that_never_keeps_its_rules_is_none(desk: Desk) -> None:
    said = desk.say("run", "Hi", "--engine", desk.script("No."), "--rules", desk.file("rules.yaml", RULES))
    assert (said.code, said.out) == (1, "")
    assert "VALIDATION_RULE_FAILED" in said.err
    assert "polite" in said.err


def test_a_broken_rule_that_only_warns_is_printed_as_a_warning_beside_the_answer(desk: Desk) -> None:
    said = desk.say("run", "Hi", "--engine", desk.script(LONG), "--rules", desk.file("rules.yaml", RULES))
    assert (said.code, said.out) == (0, f"{LONG}\n")
    assert "ended as SUCCESS: warning: rule 'brief'" in said.err


def test_rules_are_heard_of_structured_answers_too(desk: Desk) -> None:
    schema = desk.file("schema.json", json.dumps({"type": "object", "properties": {"mood": {"type": "string"}}}))
    rules = desk.file(
        "rules.yaml", "name: moods\nrules: [{name: known, check: allowed_values, at: /mood, values: [good, bad]}]"
    )
    engine = desk.script('{"mood": "odd"}', '{"mood": "good"}')
    words = ("--mode", "structured", "--schema", schema, "--rules", rules)
    assert desk.say("run", "Hi", "--engine", engine, *words, "--json").values["structured_output"] == {"mood": "good"}


def test_questions_of_meaning_go_to_the_judge_that_is_named(desk: Desk) -> None:
    rules, judge = desk.file("rules.yaml", ASKS), desk.script({"when": "Wait, dear", "text": HOLDS}, OBJECTS)
    words = ("--engine", desk.script("Wait.", "Wait, dear."), "--rules", rules, "--judge", judge)
    said = desk.say("run", "Hi", *words, "--json")
    assert (said.code, said.values["content"]) == (0, "Wait, dear.")
    manifest = desk.say("trace", "last", "--json").rows[0]["arrival"]["manifest"]
    assert manifest["goal"]["judge_model"] == "scripted:script1"
    # Nothing of the file is read again.
    assert [source["name"] for source in manifest["sources"]] == ["engine:scripted:script2", "engine:scripted:script1"]


def test_without_a_judge_the_model_itself_is_asked(desk: Desk) -> None:
    engine = desk.script({"when": "Is the answer kind?", "text": HOLDS}, "Wait.")
    said = desk.say("run", "Hi", "--engine", engine, "--rules", desk.file("rules.yaml", ASKS))
    assert said == (0, "Wait.\n", "")


@pytest.mark.parametrize(
    ("text", "words", "code", "named"),
    [
        ("name: [", (), "FILE_NOT_YAML", "rules.yaml"),
        ("name: a\nrulez: []", (), "FILE_KEY_UNKNOWN", "did you mean 'rules'?"),
        ("name: a\nretry: {reasks_max: 1000}", (), "RULES_INVALID", "reasks_max=1000"),
        (RULES, ("--judge", "JUDGE"), "RULES_INVALID", "no questions of meaning"),
        (ASKS, ("--judge", "no_such:thing"), "CONFIG_NO_ENGINE", "no_such:thing"),
    ],
)
def test_rules_that_cannot_be_used_are_wrong_usage_and_no_store_is_made(
    desk: Desk, text: str, words: tuple[str, ...], code: str, named: str
) -> None:
    rules, judge = desk.file("rules.yaml", text), desk.script(HOLDS)
    more = (judge if word == "JUDGE" else word for word in words)
    said = desk.say("run", "Hi", "--engine", desk.script("x"), "--rules", rules, *more, "--json")
    assert (said.code, said.error) == (2, code)
    assert named in said.values["error"]["message"]
    assert not desk.home.exists()


def test_a_user_who_goes_on_with_a_run_finds_its_rules_and_its_judge_again(desk: Desk) -> None:
    rules = desk.file("rules.yaml", RULES + ASKS.partition("\n")[2].partition("\n")[2])
    engine = desk.script(calls("write", text="hello"), "Written.", "Written, please.")
    words = ("--engine", engine, "--judge", desk.script(HOLDS), "--rules", rules, "--tools", desk.tools())
    assert desk.say("run", "Write hello", *words).code == 3
    rules.rename(desk.folder / "elsewhere.yaml")
    assert desk.say("approve", "last", "--json").error == "RULES_SOURCE_MISSING"
    assert desk.say("resume", "last", "--accept-tools", "--json").error == "RULES_SOURCE_MISSING"
    desk.file("rules.yaml", (desk.folder / "elsewhere.yaml").read_text().replace("please", "Written"))
    changed = desk.say("approve", "last", "--json")
    assert (changed.code, changed.error, desk.notes) == (1, "RULES_SOURCE_CHANGED", [])
    assert "remit resume RUN --accept-tools" in changed.err
    assert desk.say("resume", "last", "--accept-tools", "--by", "ann").code == 3
    approved = desk.say("approve", "last", "--json").values
    # By the rules as they were, it would have been asked for again.
    assert (approved["terminal_code"], approved["content"]) == ("SUCCESS", "Written.")
    assert approved["validation"]["checks_passed"] > 2
    assert desk.say("replay", "last").code == 0


def test_rules_that_did_not_change_are_heard_by_the_resumed_run(desk: Desk) -> None:
    engine = desk.script(calls("write", text="hello"), "Written.", "Written, please.")
    rules = desk.file("rules.yaml", RULES)
    assert desk.say("run", "Write hello", "--engine", engine, "--rules", rules, "--tools", desk.tools()).code == 3
    assert desk.say("approve", "last").out == "Written, please.\n"
