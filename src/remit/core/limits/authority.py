"""Authority: the options of a boundary that say how far the gate may go without a person.

Rule 1: every default is the safe one; what widens the gate has to be written down by the operator.
Rule 2: `on` leaves out tools whose stakes are money, rights or deletion, or whose stakes are undeclared; only `all`
        takes them in.
Rule 3: an option that does not exist, or a value it cannot have, is refused by name.
"""

from enum import StrEnum
from typing import Any, TypeVar

from remit.core.clipped import SHOWN_CHARS_MAX
from remit.core.failure import RequestRejected
from remit.core.record import JsonObject, MadeByHand, Record
from remit.core.work.orders import OrderUsed

AUTHORITY_INVALID = "AUTHORITY_INVALID"


_Option = TypeVar("_Option", bound=StrEnum)


class Inference(StrEnum):
    """Which undeclared fields of a result may supply values: none, typed ones, or identities by their key too."""

    OFF = "off"
    TYPED = "typed"
    IDENTITY = "identity"


class OptionReach(StrEnum):
    """For which tools an option holds: none, those of low stakes, or all."""

    OFF = "off"
    ON = "on"
    ALL = "all"


class PlanSource(StrEnum):
    """Where the plan comes from: the user's words, a model that saw nothing else, or nowhere."""

    WORDS = "words"
    MODEL = "model"
    OFF = "off"


class Maker(StrEnum):
    """Who says which effects are wanted, where the caller gives no orders: the user's words, or a model that sees only them.

    `off` reads the words for values alone: every tool counts as asked for once.
    """

    WORDS = "words"
    MODEL = "model"
    OFF = "off"


class Confirm(StrEnum):
    """When a person is shown the orders that a model made: after their look-ups, with what was found, or before them."""

    AFTER = "after"
    BEFORE = "before"


class StandsFor(StrEnum):
    """Which approvals of a call the confirmation of its order stands for: none, what one person approves, or four eyes too."""

    NOTHING = "nothing"
    APPROVAL = "approval"
    FOUR_EYES = "four_eyes"


class Beyond(StrEnum):
    """What becomes of an effect that none of a run's orders names: a person is asked, or it is refused."""

    ASK = "ask"
    REFUSE = "refuse"


class Stakes(StrEnum):
    """What can be lost by a call; what is undeclared counts as all of it."""

    NONE = "none"
    MONEY = "money"
    RIGHTS = "rights"
    DELETION = "deletion"
    UNKNOWN = "unknown"


class Authority(MadeByHand):
    """How far the gate may go without a person."""

    infer_fields: Inference = Inference.OFF
    closed_set: OptionReach = OptionReach.OFF
    named_source: OptionReach = OptionReach.OFF
    derive: OptionReach = OptionReach.ON
    tripwire: bool = True
    plan: PlanSource = PlanSource.WORDS
    orders: Maker = Maker.WORDS
    beyond: Beyond = Beyond.ASK
    confirm: Confirm = Confirm.AFTER
    stands_for: StandsFor = StandsFor.NOTHING


def reaches(option: OptionReach, stakes: Stakes) -> bool:
    """Whether an option holds for a tool of these stakes."""
    return option is OptionReach.ALL or (option is OptionReach.ON and stakes is Stakes.NONE)


def authority_of(options: JsonObject | None) -> Authority:
    """The options of a boundary's `authority` object; true and false stand for the usual ends of each.

    `plan` is what `orders` was called before: boundaries that have it still mean what they meant.
    """
    if options is None:
        return Authority()
    if not isinstance(options, dict):
        raise _rejected("authority", options, "a JSON object")
    unknown = [key for key in options if key not in Authority.__struct_fields__]
    if unknown:
        raise _rejected("authority", unknown[0], f"one of {', '.join(Authority.__struct_fields__)}")
    fallback = Authority()
    orders = _one_of("orders", Maker, options.get("orders", fallback.orders))
    plan = _plan(options.get("plan", fallback.plan))
    return Authority(
        infer_fields=_inference(options.get("infer_fields", fallback.infer_fields)),
        closed_set=_reach("closed_set", options.get("closed_set", fallback.closed_set)),
        named_source=_reach("named_source", options.get("named_source", fallback.named_source)),
        derive=_reach("derive", options.get("derive", fallback.derive)),
        tripwire=_flag("tripwire", options.get("tripwire", fallback.tripwire)),
        plan=PlanSource.OFF if orders is Maker.OFF else plan,
        orders=orders,
        beyond=_one_of("beyond", Beyond, options.get("beyond", fallback.beyond)),
        confirm=_one_of("confirm", Confirm, options.get("confirm", fallback.confirm)),
        stands_for=_one_of("stands_for", StandsFor, options.get("stands_for", fallback.stands_for)),
    )


def authority_json(authority: Authority) -> JsonObject:
    """The options as plain JSON values; those of orders are left out where they are as usual."""
    usual = Authority()
    of_orders = {name: getattr(authority, name) for name in ("orders", "beyond", "confirm", "stands_for")}
    unusual = {name: value.value for name, value in of_orders.items() if value is not getattr(usual, name)}
    return unusual | {
        "infer_fields": authority.infer_fields.value,
        "closed_set": authority.closed_set.value,
        "named_source": authority.named_source.value,
        "derive": authority.derive.value,
        "tripwire": authority.tripwire,
        "plan": authority.plan.value,
    }


def _inference(value: Any) -> Inference:
    if isinstance(value, bool):
        return Inference.IDENTITY if value else Inference.OFF
    if isinstance(value, str) and value in list(Inference):
        return Inference(value)
    raise _rejected("infer_fields", value, f"true, false or one of {', '.join(Inference)}")


def _reach(key: str, value: Any) -> OptionReach:
    if isinstance(value, bool):
        return OptionReach.ON if value else OptionReach.OFF
    if isinstance(value, str) and value in list(OptionReach):
        return OptionReach(value)
    raise _rejected(key, value, f"true, false or one of {', '.join(OptionReach)}")


def _plan(value: Any) -> PlanSource:
    if value is False:
        return PlanSource.OFF
    if isinstance(value, str) and value in list(PlanSource):
        return PlanSource(value)
    raise _rejected("plan", value, f"one of {', '.join(PlanSource)}")


def _one_of(key: str, options: type[_Option], value: Any) -> _Option:
    if isinstance(value, str) and value in list(options):
        return options(value)
    raise _rejected(key, value, f"one of {', '.join(options)}")


def _flag(key: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise _rejected(key, value, "true or false")


def _rejected(key: str, value: Any, way_out: str) -> RequestRejected:
    shown = repr(value)[:SHOWN_CHARS_MAX]
    return RequestRejected(AUTHORITY_INVALID, f"authority: {key}={shown} is unknown; use {way_out}", {"key": key})


class ValueOrigin(Record):
    """Where one value of a call was found to come from, for the person asked about it. Values are shown shortened."""

    path: str
    value: str
    # The user's words, a field of a result, a person; empty where nothing supplies it.
    bound_by: str = ""
    where: str = ""
    code: str = ""
    # The confirmed order that the call equals; it stands at the first value alone.
    order: OrderUsed | None = None
