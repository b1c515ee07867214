"""Rules for what an agent answers: how a rule set becomes the goal, the code and the terms of its runs.

Rule 1: rules are heard where every answer is checked; what breaks one goes back to the model, as often as the set says.
Rule 2: a question of meaning is put to a judge in a run of its own: the engine that is given for it, or the agent's own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from dataclasses import replace as replace_parts
from typing import TypeAlias

from remit.agents.terms import engine_of
from remit.core.failure import RequestRejected
from remit.core.goal import Criterion, Goal
from remit.core.record import replace
from remit.inference.engine import Engine
from remit.inference.specs import engine_spec
from remit.orchestrate.kit import Code, Terms
from remit.orchestrate.patterns.chat import REPAIRS_MAX
from remit.validate.checking import RULES_INVALID, Rules, compile_rules
from remit.validate.rules import RuleSet, Severity

RuleSource: TypeAlias = Rules | RuleSet
JUDGE_NAME_TAKEN = "JUDGE_NAME_TAKEN"
# Before the name of a rule set, it names the code that hears an answer by it.
RULES_MARK = "rules:"


@dataclass(frozen=True, slots=True)
class Judging:
    """What follows from rules: criteria of the goal, named code, the engine of a judge, and how often to ask again."""

    criteria: tuple[Criterion, ...] = ()
    code: Mapping[str, Code] = field(default_factory=dict)
    judge: Engine | None = None
    reasks_max: int | None = None

    def applied(self, terms: Terms) -> Terms:
        """The terms with these criteria in their goal."""
        if not self.criteria:
            return terms
        goal = terms.goal or Goal("the answer keeps its rules")
        model = "" if self.judge is None else self.judge.model_info().name
        judged = replace(goal, criteria=(*goal.criteria, *self.criteria), judge_model=goal.judge_model or model)
        return replace_parts(terms, goal=judged, reasks_max=self.reasks_max)


def judging_by(rules: RuleSource | None, judge: Engine | str | None, agent: Engine) -> Judging:
    """What an agent's rules and its judge come to; raises RequestRejected where there is nothing to judge by."""
    engine = None if judge is None else _other_than(agent, engine_of(judge))
    if rules is None:
        if engine is not None:
            message = "the agent has a judge and no rules; give rules with questions of meaning, or leave the judge out"
            raise RequestRejected(RULES_INVALID, message)
        return Judging()
    compiled = compile_rules(rules) if isinstance(rules, RuleSet) else rules
    rule_set = compiled.rule_set
    if rule_set.retry.reasks_max > REPAIRS_MAX:
        message = f"rule set {rule_set.name!r} has reasks_max={rule_set.retry.reasks_max}, reasks_max_max={REPAIRS_MAX}"
        raise RequestRejected(RULES_INVALID, message)
    code = {f"{RULES_MARK}{rule_set.name}": compiled.validator()} if rule_set.rules else {}
    heard = tuple(Criterion(name, validator=name) for name in code)
    asked = tuple(
        Criterion(check.name, judge=check.question, only_warns=check.severity is Severity.WARN)
        for check in rule_set.semantic
    )
    return Judging((*heard, *asked), code, engine, rule_set.retry.reasks_max)


def _other_than(agent: Engine, judge: Engine) -> Engine:
    """The judge, which a run must be able to tell from the agent: engines are found by the names of their models."""
    name = judge.model_info().name
    is_same = judge is agent or (engine_spec(judge) != "" and engine_spec(judge) == engine_spec(agent))
    if name == agent.model_info().name and not is_same:
        message = (
            f"the judge and the agent are two engines of a model called {name[:80]!r}; give one of them another name"
        )
        raise RequestRejected(JUDGE_NAME_TAKEN, message, {"model": name[:80]})
    return judge
