"""Exhaustion: what the boundary says shall happen when a dimension is spent, before the run stops.

Rule 1: nothing happens silently: each way out is a ruling or a question, and none spends what was not reserved.
Rule 2: compressing shows earlier results by their digest; call and result stay a pair, and words of people stay as they
        are. Where that saves too little, the run stops.
Rule 3: last words are asked for once, from what was kept back for them, with no tools at hand.
Rule 4: a person who releases budget releases what the question says, and no more.
Rule 5: a run that has no step or no time left and may ask for more stands still: what comes back is recorded, where it
        would have gone is kept, and nothing is issued until a person has released more.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from remit.core.failure import Ending, RequestRejected
from remit.core.journal.commands import AskPurpose, CallTool
from remit.core.journal.rulings import ContextCompressed, ModelDowngraded, QuestionSettled, WrapUpBegun
from remit.core.limits.boundary import Boundary, Exhaustion
from remit.core.limits.budget import FIELDS, Dimension
from remit.core.limits.escalation import Trigger
from remit.core.record import size_bytes
from remit.core.run.messages import Message, Role
from remit.kernel.budget.spend import end_exhausted, lacking
from remit.kernel.budget.wall_clock import deadline_at_ms, is_past_deadline
from remit.kernel.people.questions import REVIEW, open_question
from remit.kernel.results.notices import SHORTENED_BYTES_MAX, WRAP_UP, shortened_bound, tokens_bound, whole_bound
from remit.kernel.tally import Tally

EXHAUSTION_INVALID = "EXHAUSTION_INVALID"

# The doctrine's threshold: beyond four fifths of what a context may hold, pressure is relieved.
PRESSURE_NUMERATOR, PRESSURE_DENOMINATOR = 4, 5
# The latest results are what the model works on; those before them are what it has used.
RESULTS_KEPT = 2

_STOP, _ASK, _WRAP_UP = Exhaustion.STOP, Exhaustion.ASK, Exhaustion.WRAP_UP
_COMPRESS, _DOWNGRADE = Exhaustion.COMPRESS, Exhaustion.DOWNGRADE

# What each dimension can do but stop: compress where texts are what is spent, downgrade where money is, and so on.
WAYS_OUT: Mapping[Dimension, tuple[Exhaustion, ...]] = MappingProxyType(
    {
        Dimension.INPUT_TOKENS: (_STOP, _COMPRESS, _WRAP_UP, _ASK),
        Dimension.OUTPUT_TOKENS: (_STOP, _WRAP_UP, _ASK),
        Dimension.CONTEXT_TOKENS: (_STOP, _COMPRESS, _ASK),
        Dimension.INFERENCE_COST_MICROUSD: (_STOP, _DOWNGRADE, _WRAP_UP, _ASK),
        Dimension.TOOL_CALLS: (_STOP, _WRAP_UP, _ASK),
        Dimension.EXTERNAL_API_CALLS: (_STOP, _ASK),
        Dimension.SIDE_EFFECTS: (_STOP, _ASK),
        Dimension.STEPS: (_STOP, _ASK),
        Dimension.WALL_CLOCK_MS: (_STOP, _ASK),
    }
)

_SIDE_EFFECTS = int(Dimension.SIDE_EFFECTS)
_ASKED_ALWAYS = frozenset({_SIDE_EFFECTS})

Again = Callable[[], str | None]


def check_exhaustion(boundary: Boundary) -> None:
    """Refuse a boundary that wants a way out which its dimension does not have."""
    for name, policy in boundary.exhaustion:
        if name not in FIELDS:
            message = f"boundary {boundary.name}: exhaustion names {name[:80]!r}, no dimension; use {', '.join(FIELDS)}"
            raise RequestRejected(EXHAUSTION_INVALID, message)
        ways = WAYS_OUT.get(Dimension(FIELDS.index(name)), (_STOP,))
        if policy not in ways:
            message = f"boundary {boundary.name}: {name} cannot {policy} when it is spent; it can {', '.join(ways)}"
            raise RequestRejected(EXHAUSTION_INVALID, message)


def policy_of(boundary: Boundary, dimension: int) -> Exhaustion:
    """What happens when this dimension is spent. Side effects are a person's to let through unless the boundary stops."""
    name = FIELDS[dimension]
    otherwise = _ASK if dimension == _SIDE_EFFECTS else _STOP
    return next((policy for spent, policy in boundary.exhaustion if spent == name), otherwise)


def asked_when_spent(boundary: Boundary) -> frozenset[int]:
    """The dimensions of which a person is asked for more once they are spent."""
    if not boundary.exhaustion:
        return _ASKED_ALWAYS
    # A name that is none is refused when the run starts, which is after this.
    asking = [FIELDS.index(name) for name, policy in boundary.exhaustion if policy is _ASK and name in FIELDS]
    return frozenset((*asking, _SIDE_EFFECTS) if policy_of(boundary, _SIDE_EFFECTS) is _ASK else asking)


def is_kept_back(boundary: Boundary) -> bool:
    """Whether something of the budget is kept back for last words."""
    return any(policy is _WRAP_UP for _, policy in boundary.exhaustion)


def relieve(tally: Tally, dimension: Dimension, wanted: int, again: Again, kept: int = 0) -> str | None:
    """Do what the boundary says when the model cannot be asked for want of a dimension; `again` asks it anew.

    What is kept back for last words is wanted beside what the call itself takes.
    """
    policy = policy_of(tally.manifest.boundary, dimension)
    if policy is _COMPRESS and compress(tally):
        return again()
    if policy is _DOWNGRADE and _downgrade(tally, dimension):
        return again()
    if policy is _ASK and lacking(tally, REVIEW) is None:
        _ask_for_more(tally, dimension, wanted, kept)
        return None
    # The call would fit if nothing were kept back for last words: the time for them has come.
    is_kept = is_kept_back(tally.manifest.boundary) and wanted <= tally.left[dimension]
    if (policy is _WRAP_UP or is_kept) and begin_wrap_up(tally, dimension):
        return again()
    return end_exhausted(tally, dimension, wanted)


def may_freeze(tally: Tally, dimension: Dimension) -> bool:
    """Whether a run that has none of its steps or its time left stands still and asks for more. A cap of 0 forbids."""
    if policy_of(tally.manifest.boundary, dimension) is not _ASK or tally.manifest.caps[dimension] <= 0:
        return False
    return not tally.is_frozen and tally.ending is None and lacking(tally, REVIEW) is None


def freeze(tally: Tally, dimension: Dimension, wanted: int) -> None:
    """Stand still until a person has released more."""
    _ask_for_more(tally, dimension, wanted)
    tally.is_freezing = True


def is_out_of_time(tally: Tally) -> bool:
    """Whether the time of a run is up and a person may give it more."""
    return is_past_deadline(tally) and may_freeze(tally, Dimension.WALL_CLOCK_MS)


def freeze_for_time(tally: Tally) -> None:
    """Stand still because the time is up; what it took too long is asked for as well."""
    late_ms = tally.at_ms - deadline_at_ms(tally)
    freeze(tally, Dimension.WALL_CLOCK_MS, tally.left[Dimension.WALL_CLOCK_MS] + late_ms + 1)


def is_under_pressure(tally: Tally, input_tokens: int) -> bool:
    """Whether the context fills so much of what it may that it should be compressed now."""
    cap = tally.left[Dimension.CONTEXT_TOKENS]
    if input_tokens * PRESSURE_DENOMINATOR <= cap * PRESSURE_NUMERATOR:
        return False
    return policy_of(tally.manifest.boundary, Dimension.CONTEXT_TOKENS) is _COMPRESS


def compress(tally: Tally) -> bool:
    """Show earlier results by their digest from here on; whether that saved anything. Once a turn is enough."""
    if tally.is_compressed:
        return False
    tally.is_compressed = True
    results = [place for place, entry in enumerate(tally.state.talk.context) if _is_result(tally, entry)]
    places, saved = [], 0
    # A result that has just come is not in the context yet, and is the latest of them.
    is_arriving = isinstance(tally.state.commands.open.get(tally.answering), CallTool)
    for place in results[: len(results) - RESULTS_KEPT + is_arriving]:
        entry = tally.state.talk.context[place]
        assert isinstance(entry, Message)
        if size_bytes(entry.content) > SHORTENED_BYTES_MAX:
            places.append(place)
            saved += whole_bound(entry.content) - shortened_bound(entry.content)
    if not places:
        return False
    tally.context_tokens -= saved
    tally.rule(ContextCompressed(tuple(places), saved))
    return True


def _is_result(tally: Tally, entry: object) -> bool:
    """Whether an entry is what a tool returned; what a person answered to a question of the model is no tool's."""
    if not isinstance(entry, Message) or entry.role is not Role.TOOL:
        return False
    tool = tally.state.derived.tools.get(entry.name)
    return tool is None or tool.asks_under is None


def _downgrade(tally: Tally, dimension: Dimension) -> bool:
    place = tally.state.talk.model_index + tally.downgrades + 1
    if place > tally.manifest.cheaper:
        return False
    tally.downgrades += 1
    tally.rule(ModelDowngraded(int(dimension), tally.manifest.models[place].name))
    return True


def _ask_for_more(tally: Tally, dimension: Dimension, wanted: int, kept: int = 0) -> None:
    """Ask a person for half of what the run was given, or for what the next call lacks, whichever is more."""
    left = tally.left[dimension]
    lacks, half = wanted + kept - left, tally.manifest.caps[dimension] // 2
    # Of time, what was overrun is gone already: the half comes after it.
    amount = lacks + half if dimension is Dimension.WALL_CLOCK_MS else max(lacks, half, 1)
    name, given = FIELDS[dimension], tally.state.spending.caps[dimension] + _released_now(tally, dimension)
    told = f"{name} is spent: {given} were given"
    if left > 0 and dimension is not Dimension.WALL_CLOCK_MS:
        last_words = f", {kept} of them for last words" if kept else ""
        told = f"{name} is short: {given} were given, {left} are left and {wanted + kept} are needed{last_words}"
    question = f"{told}. Release {amount} more?"
    open_question(
        tally,
        AskPurpose.RELEASE,
        Ending.CONFIRM_REQUIRED,
        question=question,
        releases=((int(dimension), amount),),
        trigger=Trigger.BUDGET_LIMIT,
    )


def _released_now(tally: Tally, dimension: int) -> int:
    """What was released of a dimension in this turn, which its cap does not yet hold."""
    settled = [ruling for ruling in tally.decisions if isinstance(ruling, QuestionSettled)]
    return sum(dict(ruling.releases).get(dimension, 0) for ruling in settled)


def begin_wrap_up(tally: Tally, dimension: int) -> bool:
    """Tell the model that these are its last words; whether it was not told before."""
    if tally.is_wrapping:
        return False
    bound = tokens_bound(WRAP_UP)
    tally.is_wrapping = True
    tally.rule(WrapUpBegun(int(dimension), bound))
    tally.say(bound)
    return True
