"""What the checks of an answer came to: counts, what remains, what was repaired, and the details of a failure.

Rule 1: what is counted is the answer as it stands; what was said of answers that went back stands in the journal.
Rule 2: a schema is one check, a rule or a judge that was heard is one each; a goal without either is one as a whole.
"""

from remit.core.failure import ANSWERED, Ending
from remit.core.journal.arrivals import ModelAnswered
from remit.core.journal.codec import plain
from remit.core.record import JsonObject
from remit.core.run.contract import Mode, ValidationResult
from remit.kernel.state import RunState, pinned

# Modes whose output contract is about the answer itself.
_CONTRACTED = (Mode.CHAT, Mode.STRUCTURED)
# As many repairs as a warning names.
_REPAIRS_SHOWN_MAX = 3


def validation_of(state: RunState) -> ValidationResult | None:
    """What the checks came to; None where nothing judged the answer of this run, or there was none to judge."""
    manifest = pinned(state)
    has_contract = manifest.request.output.schema is not None and manifest.request.mode in _CONTRACTED
    counted = state.result.checks_passed + state.result.checks_failed
    if not has_contract and manifest.goal is None and not counted:
        return None
    passed, failed = state.result.checks_passed, state.result.checks_failed
    if has_contract and (state.result.answer or state.result.violations):
        fits = not state.result.violations
        passed, failed = passed + fits, failed + (not fits)
    elif not counted:
        passed, failed = int(state.end.ending in ANSWERED), int(state.end.ending is Ending.VALIDATION_FAIL)
    repairs, remaining = state.counts.repairs + len(_mended(state)), _remaining(state)
    if not (passed or failed or repairs or remaining):
        return None
    return ValidationResult(passed, failed, repairs, remaining)


def details_of(state: RunState) -> JsonObject:
    """What a program is told about an answer that did not pass: each violation with its path, and every objection."""
    if state.end.ending is not Ending.VALIDATION_FAIL:
        return {}
    violations = plain(state.result.violations)
    objections = [*state.result.problems, *state.result.objections]
    return {
        **({"violations": violations} if violations else {}),
        **({"problems": objections} if objections else {}),
    }


def repaired(state: RunState) -> tuple[str, ...]:
    """A warning that the answer had to be repaired to have its shape, with what was changed."""
    mended = _mended(state)
    if not mended or mended[-1].text != state.result.answer:
        return ()
    repairs = mended[-1].repairs
    more = f" and {len(repairs) - _REPAIRS_SHOWN_MAX} more" if len(repairs) > _REPAIRS_SHOWN_MAX else ""
    return (f"the output was repaired: {'; '.join(repairs[:_REPAIRS_SHOWN_MAX])}{more}",)


def _mended(state: RunState) -> list[ModelAnswered]:
    return [entry for entry in state.talk.context if isinstance(entry, ModelAnswered) and entry.repairs]


def _remaining(state: RunState) -> tuple[str, ...]:
    unfit = tuple(f"{violation.path or '/'}: {violation.message}" for violation in state.result.violations)
    return (*unfit, *state.result.problems, *state.result.objections)
