"""Rules for what a run answers: how a rule set becomes its goal, its code and its terms, and how a file of one is found again.

Rule 1: rules are heard where every answer is checked; what breaks one goes back to the model, as often as the set says.
Rule 2: a question of meaning is put to a judge in a run of its own: the engine that is given for it, or the run's own.
Rule 3: questions and the number of attempts are pinned with the run. The rules of a file are read again by a process that takes
        the run up, from a file that is still what it was.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from dataclasses import replace as replace_parts
from hashlib import sha256
from pathlib import Path

from remit.core.failure import RequestRejected
from remit.core.record import replace
from remit.core.run.manifest import Source
from remit.core.schema.strict_yaml import bytes_in, decoded_text
from remit.core.work.goal import Criterion, Goal
from remit.inference.engine import AnyEngine
from remit.inference.specs import engine_spec
from remit.orchestrate.patterns.chat_graph import REPAIRS_MAX
from remit.orchestrate.setup.kit import Code, Kit, Terms
from remit.orchestrate.setup.relied_on import RULES_CODES, RULES_MARK, expect, fault
from remit.validate.check import RULES_INVALID, Rules
from remit.validate.rule_file import parse_rules
from remit.validate.rule_set import Severity

JUDGE_NAME_TAKEN = "JUDGE_NAME_TAKEN"


@dataclass(frozen=True, slots=True)
class Judging:
    """The parts that rules come to: criteria of the goal, named code, the engine of a judge, and how often to ask again."""

    criteria: tuple[Criterion, ...] = ()
    code: Mapping[str, Code] = field(default_factory=dict)
    judge: AnyEngine | None = None
    reasks_max: int | None = None

    def applied(self, terms: Terms) -> Terms:
        """The terms with these criteria in their goal."""
        if not self.criteria:
            return terms
        goal = terms.goal or Goal("the answer keeps its rules")
        model = "" if self.judge is None else self.judge.model_info().name
        judged = replace(goal, criteria=(*goal.criteria, *self.criteria), judge_model=goal.judge_model or model)
        return replace_parts(terms, goal=judged, reasks_max=self.reasks_max)


def judging_of(rules: Rules, judge: AnyEngine | None, agent: AnyEngine) -> Judging:
    """What rules and a judge come to for a model that answers; raises RequestRejected where no judge could apply them."""
    rule_set = rules.rule_set
    if rule_set.retry.reasks_max > REPAIRS_MAX:
        message = f"rule set {rule_set.name!r} has reasks_max={rule_set.retry.reasks_max}, reasks_max_max={REPAIRS_MAX}"
        raise RequestRejected(RULES_INVALID, message)
    if judge is not None:
        _check_told_apart(agent, judge)
    code = {f"{RULES_MARK}{rule_set.name}": rules.validator()} if rule_set.rules else {}
    by_code = tuple(Criterion(name, validator=name) for name in code)
    asked = tuple(
        Criterion(check.name, judge=check.question, only_warns=check.severity is Severity.WARN)
        for check in rule_set.semantic
    )
    return Judging((*by_code, *asked), code, judge, rule_set.retry.reasks_max)


def _check_told_apart(agent: AnyEngine, judge: AnyEngine) -> None:
    """A run must be able to tell its judge from its agent: engines are found by the names of their models."""
    name = judge.model_info().name
    is_same = judge is agent or (engine_spec(judge) != "" and engine_spec(judge) == engine_spec(agent))
    if name == agent.model_info().name and not is_same:
        message = (
            f"the judge and the agent are two engines of a model called {name[:80]!r}; give one of them another name"
        )
        raise RequestRejected(JUDGE_NAME_TAKEN, message, {"model": name[:80]})


def ruled(kit: Kit, terms: Terms, path: Path, judge: AnyEngine | None) -> tuple[Kit, Terms]:
    """A kit and terms under the rule set in a file, whose source the kit then names."""
    path = path.absolute()
    data = bytes_in(path)
    rules = parse_rules(decoded_text(data, str(path)), str(path))
    if judge is not None and not rules.rule_set.semantic:
        message = f"rule set {rules.rule_set.name[:80]!r} has no questions of meaning for a judge; leave the judge out"
        raise RequestRejected(RULES_INVALID, message, {"rules": str(path)})
    judging = judging_of(rules, judge, next(iter(kit.engines.values())))
    digest = sha256(data).hexdigest()
    # Questions alone are pinned with the goal, and nothing of the file is read again.
    sources = tuple(Source(name, str(path), digest=digest) for name in judging.code)
    engines = {**kit.engines, **({} if judge is None else {judge.model_info().name: judge})}
    code = {**kit.code, **judging.code}
    kit = replace_parts(kit, engines=engines, code=code, sources=(*kit.sources, *sources))
    return kit, judging.applied(terms)


def load_rules_again(source: Source) -> Code:
    """The rules that a source names, as named code of a run; raises SourceFault where its file is no longer what it was."""
    try:
        data = bytes_in(Path(source.place))
    except RequestRejected as error:
        raise fault(RULES_CODES.missing, source, error.message) from error
    expect(source, sha256(data).hexdigest(), RULES_CODES)
    return parse_rules(decoded_text(data, source.place), source.place).validator()
