"""Rules of a run: what follows from a rule set, and the file of one, found again."""

from hashlib import sha256
from pathlib import Path

import pytest

from remit.core.failure import RemitError, RequestRejected
from remit.core.record import replace
from remit.core.run.inference import ModelInfo
from remit.core.run.manifest import Source
from remit.core.schema.strict_yaml import YAML_BYTES_MAX
from remit.core.work.goal import Criterion, Goal
from remit.inference.scripted.engine import ScriptedEngine
from remit.orchestrate.setup.answer_rules import JUDGE_NAME_TAKEN, judging_of, load_rules_again, ruled
from remit.orchestrate.setup.kit import Kit, Terms, engine_kit
from remit.validate.check import RULES_INVALID, compile_rules
from remit.validate.rule_set import RetryPolicy, RuleSet

HEARD = "name: desk\nrules: [{name: polite, check: must_mention, words: [please]}]\n"
ASKED = "semantic: [{name: kind, question: Is it kind?, severity: warn}]\n"
AGENT = ScriptedEngine([{"text": "Hi."}])


class Judge(ScriptedEngine):
    """A judge with a name of its own."""

    def model_info(self) -> ModelInfo:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        return replace(super().model_info(), name="judge")


JUDGE = Judge([{"text": "{}"}])


def under(folder: Path, text: str, judge: ScriptedEngine | None = None) -> tuple[Kit, Terms]:
    path = folder / "rules.yaml"
    path.write_text(text)
    return ruled(engine_kit(AGENT), Terms(), path, judge)


def test_rules_of_a_file_become_code_with_a_source_and_a_criterion(tmp_path: Path) -> None:
    kit, terms = under(tmp_path, HEARD)
    digest = sha256(HEARD.encode()).hexdigest()
    assert kit.sources == (Source("rules:desk", str(tmp_path / "rules.yaml"), digest=digest),)
    assert kit.code["rules:desk"]("Wait.").is_passed is False
    assert terms.goal == Goal("the answer keeps its rules", (Criterion("rules:desk", validator="rules:desk"),))
    assert list(kit.engines) == [AGENT.model_info().name]


def test_questions_are_pinned_with_the_goal_and_rely_on_no_file(tmp_path: Path) -> None:
    kit, terms = under(tmp_path, f"name: desk\n{ASKED}retry: {{reasks_max: 1}}\n", JUDGE)
    assert (kit.sources, dict(kit.code), list(kit.engines)) == ((), {}, [AGENT.model_info().name, "judge"])
    assert terms.goal is not None
    assert terms.goal.criteria == (Criterion("kind", judge="Is it kind?", only_warns=True),)
    assert (terms.goal.judge_model, terms.reasks_max) == ("judge", 1)


def test_a_rule_set_without_rules_leaves_the_terms_as_they_are(tmp_path: Path) -> None:
    assert under(tmp_path, "name: desk\n")[1] == Terms()


def test_a_judge_who_is_asked_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestRejected, match="no questions of meaning") as refused:
        under(tmp_path, HEARD, JUDGE)
    assert refused.value.code == RULES_INVALID


def test_a_judge_of_the_same_name_who_is_another_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestRejected) as refused:
        under(tmp_path, f"name: desk\n{ASKED}", ScriptedEngine([{"text": "{}"}]))
    assert refused.value.code == JUDGE_NAME_TAKEN
    assert under(tmp_path, f"name: desk\n{ASKED}", AGENT)[0].engines == {AGENT.model_info().name: AGENT}


def test_more_attempts_than_a_run_has_are_refused() -> None:
    with pytest.raises(RequestRejected, match="reasks_max=1000") as refused:
        judging_of(compile_rules(RuleSet("desk", retry=RetryPolicy(reasks_max=1000))), None, AGENT)
    assert refused.value.code == RULES_INVALID


@pytest.mark.parametrize(
    ("text", "code"), [(None, "FILE_UNREADABLE"), ("#" * (YAML_BYTES_MAX + 1), "FILE_TOO_LARGE")], ids=["none", "large"]
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, text: str | None, code: str) -> None:
    path = tmp_path / "rules.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(RequestRejected) as refused:
        ruled(engine_kit(AGENT), Terms(), path, None)
    assert refused.value.code == code


def test_a_file_is_found_again_unless_it_changed_or_is_gone(tmp_path: Path) -> None:
    (source,) = under(tmp_path, HEARD)[0].sources
    assert load_rules_again(source)("Wait, please.").is_passed
    for text in (HEARD.replace("please", "thanks"), ""):
        (tmp_path / "rules.yaml").write_text(text)
        with pytest.raises(RemitError) as changed:
            load_rules_again(source)
        assert changed.value.code == "RULES_SOURCE_CHANGED"
    (tmp_path / "rules.yaml").unlink()
    with pytest.raises(RemitError) as gone:
        load_rules_again(source)
    assert gone.value.code == "RULES_SOURCE_MISSING"
