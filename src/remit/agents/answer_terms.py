"""Rules for what an agent answers, as its maker gives them: a rule set or compiled rules, and perhaps a judge."""

from typing import TypeAlias

from remit.agents.terms import engine_of
from remit.core.failure import RequestRejected
from remit.inference.engine import Engine
from remit.orchestrate.setup.answer_rules import Judging, judging_of
from remit.validate.check import RULES_INVALID, Rules, compile_rules
from remit.validate.rule_set import RuleSet

RuleSource: TypeAlias = Rules | RuleSet


def judging_by(rules: RuleSource | None, judge: Engine | str | None, agent: Engine) -> Judging:
    """What an agent's rules and its judge come to; raises RequestRejected where there is nothing to judge by."""
    engine = None if judge is None else engine_of(judge)
    if rules is None:
        if engine is not None:
            message = "the agent has a judge and no rules; give rules with questions of meaning, or leave the judge out"
            raise RequestRejected(RULES_INVALID, message)
        return Judging()
    handed: object = rules
    if not isinstance(handed, Rules | RuleSet):
        message = f"rules={handed!r:.80} are no rules; give a RuleSet, or what load_rules() makes of a file"
        raise RequestRejected(RULES_INVALID, message)
    return judging_of(compile_rules(rules) if isinstance(rules, RuleSet) else rules, engine, agent)
