"""The report: every scenario in plain sentences, and which file shows which row of which table.

Rule 1: it says what the journal says, in the order in which it happened, and nothing that a terminal would obey.
Rule 2: each place has its files; a place that no file shows is named, never left out.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from textwrap import wrap
from types import MappingProxyType
from typing import Any

from remit.core.journal import arrivals, commands, rulings
from remit.core.journal.codec import arguments_in
from remit.core.journal.commands import AskHuman
from remit.core.journal.proposed_call import ProposedCall
from remit.core.journal.rulings import Answer, Rung
from remit.core.journal.turn import Turn
from remit.core.limits.budget import FIELDS, Charges
from remit.core.limits.escalation import Escalation
from remit.core.record import Text
from remit.observe.plain import printable_line
from tests.scenarios.places import PLACES, TABLES, PlaceKind, ValuePath
from tests.scenarios.scenario import Scenario
from tests.scenarios.stage import RUN, Played

COLUMNS = 110
# Most characters of a statement that a sentence quotes.
QUOTE_CHARS_MAX = 160
# A reason is read in full, unless a person wrote a page into it.
REASON_CHARS_MAX = 500
_MINUTE_MS, _HOUR_MS = 60_000, 3_600_000


def story_lines(played: Played, complaints: Sequence[str]) -> list[str]:
    """One scenario: its title, its story, what happened, and whether that is what the file says."""
    scenario = played.scenario
    lines = [scenario.title, f"  file: {scenario.name}.yaml", *_wrapped(scenario.story, "  ")]
    lines += [line for sentence in happened(played) for line in _wrapped(sentence, "  - ", "    ")]
    lines.append(f"  shows: {', '.join(str(place) for place in scenario.shows)}")
    if complaints:
        lines += [line for one in complaints for line in _wrapped(f"NOT SO: {printable_line(one)}", "  ! ", "    ")]
    return lines


def happened(played: Played) -> list[str]:
    """What happened, one sentence after the other."""
    if played.turned_away is not None:
        return [_sentence(f"The request was turned away{_because(played.turned_away.message)}")]
    sentences: list[str] = []
    for run_id, turns in played.runs.items():
        before = "" if run_id == RUN else "In a run beneath it: "
        late = ""
        for turn in turns:
            told, later = _told(turn), _later(turn.at_ms - turns[0].at_ms)
            if told and later != late:
                late, told[0] = later, f"{later}: {told[0]}"
            sentences += [f"{before}{one}" for one in told]
    sentences = _counted(sentences)
    response = played.response
    if response is not None and response.waiting_for is not None:
        sentences.append(f"It now waits, as {response.waiting_for.ending}.")
    return sentences


def _counted(sentences: Iterable[str]) -> list[str]:
    """The sentences, one that is said several times in a row only once."""
    counted = ((sentence, sum(1 for _ in same)) for sentence, same in groupby(sentences))
    return [sentence if times == 1 else f"{sentence} ({times} times)" for sentence, times in counted]


def _told(turn: Turn) -> list[str]:
    """What a turn comes to."""
    records = ((_TELLS.get(type(one)), one) for one in (turn.arrival, *turn.decisions))
    return [_sentence(said) for tell, one in records if tell is not None and (said := tell(one))]


def _later(passed_ms: int) -> str:
    if passed_ms >= 2 * _HOUR_MS:
        return f"After {passed_ms // _HOUR_MS} hours"
    return f"After {passed_ms // _MINUTE_MS} minutes" if passed_ms >= 2 * _MINUTE_MS else ""


def _sentence(said: str) -> str:
    """A text with a capital at its head and a stop at its end, where it has none yet."""
    stop = "" if said.rstrip('"').endswith((".", "?", "!")) else "."
    return f"{said[:1].upper()}{said[1:]}{stop}"


def _quoted(text: Text) -> str:
    return (
        f'"{printable_line(text, QUOTE_CHARS_MAX)}"' if isinstance(text, str) else f"a text of {text.size_bytes} bytes"
    )


def _because(reason: str) -> str:
    return f": {printable_line(reason, REASON_CHARS_MAX)}" if reason else ""


def _call(call: ProposedCall) -> str:
    """A call by its tool and what was to be done with it."""
    if not isinstance(call.arguments, str):
        return printable_line(call.tool)
    arguments = arguments_in(call.arguments)
    said = ", ".join(f"{printable_line(name)} {_value(value)}" for name, value in arguments.items())
    return f"{printable_line(call.tool)} ({said})" if said else printable_line(call.tool)


def _value(value: Any) -> str:
    if isinstance(value, list):
        return " and ".join(map(_value, value))
    return _quoted(value) if isinstance(value, str) else printable_line(str(value), QUOTE_CHARS_MAX)


def _started(one: arrivals.RunStarted) -> str:
    request, boundary = one.manifest.request, one.manifest.boundary
    who = printable_line(request.user_id) or "A user"
    return f"{who} asked, under the boundary {printable_line(boundary.name)}: {_quoted(request.messages[-1].content)}"


def _answered(one: arrivals.ModelAnswered) -> str:
    if one.calls:
        return f"The model proposed {', '.join(map(_call, one.calls))}"
    return f"The model said {_quoted(one.text)}" if one.text else "The model said nothing"


def _asked(one: AskHuman) -> str:
    to = f"{_to(one.escalation)}, as {one.ending}"
    if one.packet is not None:
        return f"A person was asked about {_call(one.packet.call)}{to}{_because('; '.join(one.packet.reasons))}"
    who = f"The tool {printable_line(one.tool)} asked a person" if one.tool else "A person was asked"
    return f"{who}{to}{_because(one.question)}"


def _to(escalation: Escalation | None) -> str:
    if escalation is None:
        return ""
    return f" (queue {printable_line(escalation.queue)}, severity {escalation.severity}, by {escalation.route})"


def _approved(one: arrivals.ApprovalGiven) -> str:
    """What a person changed; a plain yes is told when it has been judged."""
    return "" if one.modified is None else f"{printable_line(one.by)} changed the call to {_call(one.modified)}"


def _settled(one: rulings.QuestionSettled) -> str:
    released = f", which released {_amounts(one.releases)}" if one.releases else ""
    said = {
        Answer.APPROVED: f"{printable_line(one.by)} approved it{released}",
        Answer.REJECTED: f"{printable_line(one.by)} said no",
        Answer.EXPIRED: "Nobody answered in time, which is a no",
        Answer.ESCALATED: "Nobody answered in time, so the next queue was asked",
        # Then the words themselves are told.
        Answer.ANSWERED: "",
        Answer.WITHDRAWN: "The question was withdrawn",
    }
    return said[one.answer]


def _amounts(charges: Charges) -> str:
    return ", ".join(f"{amount} of {FIELDS[index]}" for index, amount in charges)


def _called(one: commands.CallTool) -> str:
    by = f", as {printable_line(one.approved_by)} had approved" if one.approved_by else ""
    return f"The tool {printable_line(one.tool)} was called{by}"


def _outcome(one: rulings.CallSettled) -> str:
    """What is wrong with an outcome; one that was verified counts, and its result was told."""
    return "" if one.rung is Rung.COMMITTED else f"It came to nothing that counts ({one.code or one.rung})"


def _ended(one: rulings.RunEnded) -> str:
    handed = f". Authority went on{_to(one.escalation)}" if one.escalation is not None else ""
    return f"The run ended as {one.ending}{_because(one.message)}{handed}"


_TELLS: Mapping[type, Callable[[Any], str]] = MappingProxyType(
    {
        arrivals.RunStarted: _started,
        arrivals.ModelAnswered: _answered,
        arrivals.ModelFailed: lambda one: f"The model failed: {one.code}",
        arrivals.ToolReturned: lambda one: f"The tool returned {_quoted(one.content)}",
        arrivals.ToolFailed: lambda one: f"The tool failed: {one.code}",
        arrivals.CancelRequested: lambda one: f"{printable_line(one.by)} cancelled the run",
        arrivals.ApprovalGiven: _approved,
        arrivals.QuestionAnswered: lambda one: f"{printable_line(one.by)} answered {_quoted(one.text)}",
        arrivals.OutcomeJudged: lambda one: f"{printable_line(one.by)} said whether it happened: {one.happened}",
        commands.CallTool: _called,
        commands.StartChild: lambda one: "A run was started beneath it",
        AskHuman: _asked,
        rulings.QuestionSettled: _settled,
        rulings.ApprovalCounted: lambda one: f"{printable_line(one.by)} approved it; another person must, too",
        rulings.CallSettled: _outcome,
        rulings.ToolCallRefused: lambda one: (
            f"The tool {printable_line(one.tool)} was refused as {one.code}{_because(one.reason)}"
        ),
        rulings.FallbackChosen: lambda one: f"The tool {printable_line(one.tool)} was called in its place",
        rulings.RetryPlanned: lambda one: f"Attempt {one.attempt} was planned, after a pause",
        rulings.ContextCompressed: lambda one: f"Earlier results were shortened, which saved {one.tokens_saved} tokens",
        rulings.WrapUpBegun: lambda one: f"{FIELDS[one.dimension]} was spent; the model was asked for its last words",
        rulings.ModelDowngraded: lambda one: f"{FIELDS[one.dimension]} was spent; {printable_line(one.model)} went on",
        rulings.StoppedEarly: lambda one: f"{FIELDS[one.dimension]} could not suffice, so it stopped early",
        rulings.CheckFailed: lambda one: f"The answer did not pass{_because('; '.join(one.problems))}",
        rulings.VoteCounted: lambda one: f"{one.votes} of {one.answered} answers agreed",
        rulings.RunEnded: _ended,
    }
)


def coverage_lines(scenarios: Iterable[Scenario]) -> list[str]:
    """Each table, its rows, and the files that show each."""
    files: dict[ValuePath, list[str]] = {}
    for scenario in scenarios:
        for place in scenario.shows:
            files.setdefault(place, []).append(scenario.name)
    lines: list[str] = []
    for kind in PlaceKind:
        rows = [place for place in PLACES if place.kind is kind]
        shown = sum(place in files for place in rows)
        lines += ["", f"{TABLES[kind]}: {shown} of {len(rows)} shown"]
        width = max(len(place.name) for place in rows)
        for place in rows:
            where = ", ".join(files.get(place, ())) or "NO FILE SHOWS THIS"
            lines += _wrapped(where, f"  {place.name:<{width}}  ", " " * (width + 4))
    return lines


def _wrapped(text: str, first: str, rest: str = "") -> list[str]:
    return wrap(text, COLUMNS, initial_indent=first, subsequent_indent=rest or first, break_long_words=False)
