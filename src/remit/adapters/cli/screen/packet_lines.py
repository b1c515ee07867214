"""Packets as people see them at a terminal: every held call, where its values come from, what a yes allows.

A packet is four lines: the call, where its values come from, why it is asked, how to answer. The rest is shown on demand.

Rule 1: what is shown is what will run. Where a value is too long for a list it is cut, its size is told, and so is the
        command that shows all of it.
Rule 2: a value is marked + where the user's words, a trusted field or a person supplies it, and ! where nothing does;
        the colour only repeats that.
Rule 3: text of models, tools and people is data: it is written as JSON, or escaped where it is printed.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import zip_longest

from remit.adapters.cli.screen.colours import Ink, InkedText, Line
from remit.adapters.cli.screen.response_lines import LINE_CHARS_MAX, time_text
from remit.adapters.cli.screen.terminal import json_line
from remit.core.limits.authority import ValueOrigin
from remit.core.limits.tools import Effect
from remit.core.record import JsonObject
from remit.core.regex import regex
from remit.core.run.approval import Approval, What
from remit.core.run.halt import HELD_BACK
from remit.core.secrets.secret_names import secret_of_named
from remit.core.secrets.secret_search import covered
from remit.observe.figures import measured
from remit.observe.people.packets import (
    VERSION_SHOWN_CHARS,
    asked_because,
    asked_version,
    changes,
    group_of,
    origins_of,
)
from remit.observe.plain import printable_line

# Of one value in the four lines of a packet; `--full` and `remit approvals ID` show all of it.
VALUE_CHARS_MAX = 80
# How many values of a call have their origin shown in the four lines of a packet; the lines then say how many there are.
ORIGINS_MAX = 12
# Of one line of a list of orders.
ORDER_CHARS_MAX = 10_000
# As much of a name, a reason or an origin as one line of a packet holds.
NOTE_CHARS_MAX = 500
# What a packet says of the budget: the dimensions of which least is left stand in a packet, the others in `remit show`.
LEFT_MAX = 6
# What the gate says of free text that holds no pointer: the model made it up; it was not supplied.
PROSE = "prose"
SOURCES = {"words": "the user's words", "default": "its default", "person": "a person"}

EFFECTS = {
    Effect.NONE: "changes nothing",
    Effect.READ: "only reads",
    Effect.WRITE: "changes something that can be seen from here",
    Effect.EXTERNAL: "acts on the world outside, and cannot be taken back from here",
}
# How to answer, by what was asked: a question in words is answered in words, one about a lost call by what became of it.
WAYS_TO_ANSWER = {
    What.APPROVAL: "answer with: remit approve {id}  or: remit reject {id}",
    What.OUTCOME: "if it happened: remit approve {id}  if it did not: remit reject {id}",
    What.QUESTION: "answer with: remit approve {id} --text WORDS  or: remit reject {id}",
    What.RELEASE: "answer with: remit approve {id}  or: remit reject {id}",
    What.REVIEW: "if it may stand: remit approve {id}  if it may not: remit reject {id}",
}
OF_ORDERS = (
    "answer with: remit approve {id}  or: remit reject {id}  to change order 1: remit approve {id} --edit 1=JSON"
)
# Under a boundary that traces no values, each may come from anywhere: from what was read, or from nowhere.
UNTRACED = "its boundary traces no values, so the model alone says where they come from"
_COMMAND = regex(r"(remit (?:approve|reject) \S+(?: --(?:text|only) \S+)?)")
OUTSIDE = "it waits outside the queue, which is full"
_INDENT = "     "
_WITHIN = f"{_INDENT}  "


def asked_lines(
    packet: Sequence[Approval], *, value_chars_max: int = VALUE_CHARS_MAX, is_full: bool = False
) -> Iterator[Line]:
    """The questions of a packet, with how to answer them; values up to so many characters, 0 for all, as in full."""
    lines = packet_lines if is_full else partial(short_lines, value_chars_max=value_chars_max)
    if len(packet) > 1:
        yield (
            (group_of(packet[0]), Ink.NAME),
            (f"  {len(packet)} calls were held together; packet {_short(asked_version(packet))}", Ink.BOLD),
        )
    for asked in packet:
        yield from lines(asked)
        yield _way_pieces(way_to_answer(asked)) if is_full else _way(asked)
    if len(packet) > 1:
        group = group_of(packet[0])
        only = packet[0].id.rpartition("/")[2]
        yield _way_pieces(f"all of them: remit approve {group}  or: remit reject {group}")
        yield _way_pieces(f"some, and no to the rest: remit approve {group} --only {only}")


def way_lines(packet: Sequence[Approval]) -> Iterator[Line]:
    """How to answer questions that were shown before."""
    yield from map(_way, packet)


def _way(asked: Approval) -> Line:
    return (*_way_pieces(way_to_answer(asked)), (f"  (until {time_text(asked.expires_at_ms)})", Ink.FAINT))


def _way_pieces(way: str) -> Line:
    """Words with each command in a piece of its own, which no line end breaks: it is there to be copied."""
    return ((_INDENT, Ink.FAINT), *((piece, Ink.FAINT) for piece in _COMMAND.split(way) if piece))


def way_to_answer(asked: Approval) -> str:
    """What to type in order to answer."""
    return (OF_ORDERS if orders_asked(asked) else WAYS_TO_ANSWER[asked.purpose]).format(id=asked.id)


def orders_asked(asked: Approval) -> list[JsonObject]:
    """The orders that a person is asked to confirm; none where the question is another one."""
    return list(asked.arguments.get("orders", ())) if asked.purpose is What.REVIEW else []


def ticked_lines(packet: Sequence[Approval], ticked: Sequence[Approval], *, is_full: bool = False) -> Iterator[Line]:
    """The questions of a packet that are answered together, each with the answer it gets."""
    lines = packet_lines if is_full else partial(short_lines, value_chars_max=VALUE_CHARS_MAX)
    for asked in packet:
        first, *rest = lines(asked)
        yield ((f"{'[x]' if asked in ticked else '[ ]'} ", Ink.BOLD), *first)
        yield from rest


def place_lines(asked: Approval, open_now: Sequence[Approval]) -> Iterator[Line]:
    """Which of the calls that were held together and are still open is asked about; nothing where it is alone."""
    together = [one.id for one in open_now if group_of(one) == group_of(asked)]
    if len(together) > 1:
        yield ((f"call {together.index(asked.id) + 1} of {len(together)} that were held together", Ink.BOLD),)


def short_lines(asked: Approval, *, value_chars_max: int = 0) -> Iterator[Line]:
    """The call, where its values come from, and why a person is asked; values up to so many characters, 0 for all."""
    is_call = bool(asked.tool) and asked.purpose is not What.QUESTION
    yield from _call(asked, value_chars_max) if is_call else _head(asked, value_chars_max)
    yield from _answer(asked, value_chars_max)
    if asked.options:
        yield _fact("options", " | ".join(asked.options))
    if asked.origins:
        yield _values(asked, value_chars_max)
    elif is_call and asked.arguments and not asked.about:
        yield _fact("values", f"! {', '.join(map(_key, asked.arguments))}: {UNTRACED}")
    if why := _why(asked):
        yield ((f"{_INDENT}why: ", Ink.FAINT), ("; ".join(map(_noted, why)), Ink.PLAIN))


def _why(asked: Approval) -> list[str]:
    """Why a person is asked, what a yes allows, and who may say it."""
    ordered = [f"it is {asked.order}"] if asked.order else []
    why = [*ordered, *asked_because(asked), *(f"a yes allows {_released(*one)}" for one in asked.releases)]
    if asked.approvals_needed > 1:
        why.append(f"approved by {_pair(asked)}")
    if people := asked.answered_by or asked.released_by:
        why.append(f"only {' or '.join(people)} may answer")
    if asked.is_outside:
        why.append(OUTSIDE)
    return why


def _call(asked: Approval, value_chars_max: int) -> Iterator[Line]:
    """The exact call on as many lines as it takes, and what it does to the world."""
    said = [f"{_key(name)}={_cut(json_line(value), value_chars_max)}" for name, value in asked.arguments.items()]
    first, *more = _folded(f"({', '.join(said)})")
    does = f"; it {EFFECTS[Effect(asked.effect)].partition(',')[0]}" if asked.effect and not asked.about else ""
    verb: Line = ((f" {_verb(asked)}{does}", Ink.BOLD), *_rest(asked, value_chars_max))
    yield ((f"{asked.id}  ", Ink.WAITS), (_noted(asked.tool), Ink.NAME), (first, Ink.PLAIN), *(() if more else verb))
    for line in more:
        yield ((_WITHIN, Ink.FAINT), (line, Ink.PLAIN), *(verb if line is more[-1] else ()))


def _key(name: str) -> str:
    """The name of an argument; one that could be taken for something else stands in quotes."""
    return name if name.isidentifier() and name.isascii() else _noted(json_line(name))


def _values(asked: Approval, value_chars_max: int) -> Line:
    """Where each value comes from, what nothing supplies first."""
    origins = sorted(asked.origins, key=_is_supplied)
    shown = origins[:ORIGINS_MAX] if value_chars_max else origins
    pieces: list[InkedText] = [(f"{_INDENT}values: ", Ink.FAINT)]
    for place, origin in enumerate(shown):
        pieces += [("; " if place else "", Ink.FAINT), *_origin(origin, asked.objection)]
    if len(shown) < len(origins):
        pieces.append((f"; … {len(origins)} in all", Ink.FAINT))
    return pieces


def _is_supplied(origin: ValueOrigin) -> bool:
    return bool(origin.bound_by)


def packet_lines(asked: Approval) -> Iterator[Line]:
    """A question in full, with nothing cut."""
    yield from _head(asked)
    yield from _answer(asked)
    yield from _arguments(asked)
    if asked.effect:
        yield _fact("effect", f"{asked.effect}, it {EFFECTS[Effect(asked.effect)]}")
    if asked.objection and not any(reason.startswith(asked.objection) for reason in asked.reasons):
        yield _fact("objection", asked.objection, Ink.BAD)
    for reason in asked.reasons:
        yield _fact("why", reason)
    for name, text in (("reaches", asked.blast_radius), ("way back", asked.rollback)):
        if text:
            yield _fact(name, text)
    if asked.order:
        yield _fact("ordered", asked.order)
    if asked.gaps:
        yield _fact("not declared", ", ".join(asked.gaps), Ink.WAITS)
    if asked.labels:
        yield _fact("has read", ", ".join(asked.labels))
    for dimension, amount in asked.releases:
        yield _fact("a yes allows", _released(dimension, amount), Ink.WAITS)
    if asked.source:
        yield _fact("code", _short(asked.source))
    if asked.left:
        yield _fact("left of the budget", _left(asked.left))
    yield from _people(asked)


def _head(asked: Approval, value_chars_max: int = 0) -> Iterator[Line]:
    name: Line = ((f"{asked.id}  ", Ink.WAITS),)
    if asked.tool and asked.purpose is not What.QUESTION:
        yield (*name, (_noted(asked.tool), Ink.NAME), (f" {_verb(asked)}", Ink.BOLD))
        return
    if asked.tool:
        name = (*name, (f"{_noted(asked.tool)} asks: ", Ink.NAME))
    asked_in_words = asked.question or "may it spend more than it was given?"
    first, *more = _folded(_cut(asked_in_words, NOTE_CHARS_MAX if value_chars_max else 0))
    yield (*name, (first, Ink.BOLD), *_rest(asked, value_chars_max))
    yield from (((_INDENT, Ink.FAINT), (line, Ink.BOLD)) for line in more)


def _verb(asked: Approval) -> str:
    """What is the matter with the call that a person is asked about."""
    if not asked.about:
        return "wants to be called"
    if asked.reasons and asked.reasons[0].startswith(HELD_BACK):
        return "was held back by a halt before this run was copied, and was not sent"
    return "was called, and this run does not know whether it happened"


def _cut(text: str, chars_max: int) -> str:
    """A text as a list has room for it."""
    return text if not 0 < chars_max < len(text) else f"{text[:chars_max]} … {len(text)} characters"


def _rest(asked: Approval, chars_max: int) -> Line:
    """The command that shows a question in full, where its text was cut."""
    texts = [json_line(value) for value in (*([asked.answer] if asked.answer else []), *asked.arguments.values())]
    is_cut = chars_max > 0 and (len(asked.question) > NOTE_CHARS_MAX or any(len(text) > chars_max for text in texts))
    return ((f"  all of it: remit approvals {asked.id}", Ink.FAINT),) if is_cut else ()


def _answer(asked: Approval, value_chars_max: int = 0) -> Iterator[Line]:
    """The answer that is to stand, and the version that a yes is bound to."""
    if orders_asked(asked):
        yield from listed_lines(asked.answer)
    elif asked.answer:
        yield from _argument("answer", asked.answer, value_chars_max)


def listed_lines(listed: str) -> Iterator[Line]:
    """A list of orders. Each line is a line of the list: a person reads it whole before it is confirmed."""
    if not listed:
        listed = "(no order is left: every effect will ask)"
    lines = [part for line in listed.split("\n") for part in _folded(printable_line(line, ORDER_CHARS_MAX))]
    yield from (((_INDENT, Ink.FAINT), (line, Ink.PLAIN)) for line in lines)


def _arguments(asked: Approval) -> Iterator[Line]:
    for name, value in asked.arguments.items():
        yield from _argument(_noted(name), value)
        yield from (((_WITHIN, Ink.FAINT), *_origin(origin)) for origin in origins_of(name, asked.origins))


def _argument(name: str, value: object, value_chars_max: int = 0) -> Iterator[Line]:
    first, *more = _folded(_cut(json_line(value), value_chars_max))
    yield ((f"{_INDENT}{name} = ", Ink.FAINT), (first, Ink.PLAIN))
    for line in more:
        yield ((_WITHIN, Ink.FAINT), (line, Ink.PLAIN))


def _folded(text: str) -> list[str]:
    return [text[start : start + LINE_CHARS_MAX] for start in range(0, len(text), LINE_CHARS_MAX)] or [""]


def _origin(origin: ValueOrigin, told: str = "") -> Line:
    """Where one value comes from; what nothing supplies is told as such, with its objection unless that is told."""
    what = f" {_noted(origin.path)} {printable_line(origin.value, VALUE_CHARS_MAX)} "
    if not origin.bound_by:
        code = f" ({origin.code})" if origin.code not in ("", told) else ""
        return ((f"!{what}", Ink.PLAIN), (_noted(f"nothing that can be trusted supplies it{code}"), Ink.BAD))
    where = f", {origin.where}" if origin.where else ""
    if origin.bound_by == PROSE:
        return ((f"~{what}", Ink.PLAIN), ("words of the model, which point nowhere", Ink.FAINT))
    source = SOURCES.get(origin.bound_by, origin.bound_by)
    return ((f"+{what}", Ink.PLAIN), (_noted(f"from {source}{where}"), Ink.GOOD))


def _pair(asked: Approval) -> str:
    who = f": {', '.join(asked.approved_by)}" if asked.approved_by else ""
    return f"{len(asked.approved_by)} of {asked.approvals_needed} different people{who}"


def _people(asked: Approval) -> Iterator[Line]:
    if asked.options:
        yield _fact("options", " | ".join(asked.options))
    if asked.approvals_needed > 1:
        yield _fact("approvals", _pair(asked), Ink.WAITS)
    before = f", after {asked.silences} who kept silent" if asked.silences else ""
    if asked.queue:
        outside = f"; {OUTSIDE}" if asked.is_outside else ""
        yield _fact("asked of", f"{asked.queue}, {asked.severity}{before}{outside}")
    for name, people in (("answered by", asked.answered_by), ("released by", asked.released_by)):
        if people:
            yield _fact(name, f"{' or '.join(people)}, and no other person", Ink.WAITS)
    version = f", packet {_short(asked.packet)}" if asked.packet else ""
    yield _fact("open until", f"{time_text(asked.expires_at_ms)}{version}")


def _left(left: Sequence[tuple[str, int]]) -> str:
    shown = [_amount(*one) for one in sorted(left, key=lambda one: one[1])[:LEFT_MAX]]
    return ", ".join(shown) + ("" if len(left) <= LEFT_MAX else ", …")


def _amount(name: str, amount: int) -> str:
    """An amount behind the name of its dimension, for people."""
    what, said = measured(name, amount)
    return f"{what} {said}"


def _released(name: str, amount: int) -> str:
    what, said = measured(name, amount)
    return f"{said} of {what} beyond its cap"


def change_lines(asked: Approval, arguments: JsonObject, cover: Callable[[str], str] = covered) -> Iterator[Line]:
    """What other arguments would change, key by key: old -> new, without secrets."""
    found = list(changes(asked.arguments, arguments))
    if not found:
        yield ((f"{_INDENT}the arguments are those that were proposed", Ink.FAINT),)
    for change in found:
        before = "(not there)" if change.is_added else _shortened(json_line(change.before))
        after = "(not there)" if change.is_removed else _shortened(_covered(change.key, change.after, cover))
        name = ((f"{_INDENT}{_noted(change.key)}: ", Ink.FAINT),)
        yield (*name, (before, Ink.BAD), (" -> ", Ink.FAINT), (after, Ink.GOOD))


def order_change_lines(
    before: Sequence[JsonObject], after: Sequence[JsonObject], cover: Callable[[str], str] = covered
) -> Iterator[Line]:
    """What a person changes in a list of orders: the old one -> the new one, without secrets."""
    gone = [json_line(order) for order in before if order not in after]
    new = [json_line(order) for order in after if order not in before]
    for was, now in zip_longest(gone, new, fillvalue="(not there)"):
        pieces: Line = ((f"{_INDENT}order: ", Ink.FAINT), (cover(was), Ink.BAD))
        yield (*pieces, (" -> ", Ink.FAINT), (cover(now), Ink.GOOD))


def _covered(key: str, value: object, cover: Callable[[str], str]) -> str:
    """A value as it may be shown: a secret is told by its look, or by the name of its field alone."""
    if isinstance(value, str) and (named := secret_of_named(key, value)) is not None:
        return f"[secret:{named.kind}]"
    return cover(json_line(value))


def _shortened(text: str) -> str:
    return text if len(text) <= LINE_CHARS_MAX // 2 else f"{text[: LINE_CHARS_MAX // 2]} … {len(text)} characters"


def _fact(name: str, text: str, ink: Ink = Ink.PLAIN) -> Line:
    return ((f"{_INDENT}{name}: ", Ink.FAINT), (_noted(text), ink))


def _noted(text: str) -> str:
    return printable_line(text, NOTE_CHARS_MAX)


def _short(version: str) -> str:
    return version[:VERSION_SHOWN_CHARS]
