"""Grounds: all that a decision may rest on: the user's words, the index of results, and what the words pick from it.

Rule 1: they only grow, by the user's words and by results; nothing a model says enters them.
Rule 2: picks are computed when a result arrives, so that a decision is a few look-ups.
Rule 3: the day of a run comes from a trusted date that a lookup without arguments returned alone.
Rule 4: only this exchange asks: the last message of the user, and what they say while the run is open. Messages of
        earlier exchanges may supply values; `earlier` says which.
Rule 5: what was read in earlier exchanges counts as read unasked: it is not asked for now.
"""

from collections.abc import Iterable, Iterator
from itertools import islice

from remit.core.limits.authority import Authority, Stakes
from remit.core.limits.tool_trust import Reads
from remit.core.limits.tools import Effect
from remit.core.record import replace
from remit.provenance.declarations import Declaration
from remit.provenance.kinds import CODE, NUMBERS, base_of, day_of, supplies
from remit.provenance.origins.computed import OPERANDS_MAX, Figures, operands_of
from remit.provenance.origins.labels import Group, Observation, OriginIndex, OriginPlace
from remit.provenance.origins.relations import is_meant
from remit.provenance.origins.selection import (
    OrderedEnd,
    Pick,
    fits_argument,
    is_covered,
    is_named,
    is_related,
    orders_in,
    picks_of,
)
from remit.provenance.words.asked_effects import Plan, plan_with
from remit.provenance.words.earlier import forgotten, supplying
from remit.provenance.words.money import Meant, meant_for
from remit.provenance.words.references import bare_link, is_link, references_in, spellings_of
from remit.provenance.words.said_values import SaidClause, clauses_of
from remit.provenance.words.tool_clauses import ToolClauses
from remit.provenance.words.tool_words import ToolWords
from remit.provenance.words.understood_clauses import ClauseRead, Reader
from remit.provenance.words.user_words import Words, words_of_user
from remit.provenance.words.vocabulary import FUNCTION_WORDS, stem

# What mail is called.
_MAILS = frozenset(map(stem, ("mail", "mails", "email", "inbox", "message", "sms", "letter")))
# What a run has read, as its labels say it.
UNTRUSTED = "untrusted"
LABELS = frozenset({UNTRUSTED, Reads.PRIVATE.value, Reads.SECRET.value})


class Grounds:
    """What is known in one run. `asking` are the words of this exchange, `words` those that may supply values."""

    def __init__(
        self,
        prompts: list[str],
        tools: dict[str, Declaration],
        tool_words: ToolWords,
        authority: Authority,
        *,
        earlier: int = 0,
        read: tuple[str, ...] = (),
    ) -> None:
        dropped = forgotten(prompts[:earlier])
        self.prompts = prompts[dropped:]
        # So many of the prompts are of earlier exchanges, in which these labels were read.
        self.earlier = earlier - dropped
        self.read = read
        self.tools = tools
        self.tool_words = tool_words
        self.authority = authority
        self.index = OriginIndex()
        self.today = ""
        self.years: set[int] = set()
        self.sole: set[str] = set()
        # The one-time codes that were read, and whether the words asked for what told them.
        self.codes: dict[str, bool] = {}
        self.approved: set[tuple[str, str, str]] = set()
        self._listen()
        self.figures = Figures(self.asking)
        # What was read without being asked for, and who could have read all of it anyway; None: no reader is known.
        self.holds_back = not {Reads.PRIVATE.value, Reads.SECRET.value}.isdisjoint(read)
        self.labels: tuple[str, ...] = tuple(sorted(read))
        self.may_know: frozenset[str] | None = frozenset() if self.holds_back else None
        # Everything that was read, asked for or not: what the next exchange of a session has to be told.
        self.has_read: tuple[str, ...] = self.labels
        # Whether anything private was read at all, by whatever call: from then on reads are watched for what they carry.
        self.has_private = self.holds_back
        self._picks: dict[tuple[int, str], dict[int, Pick]] = {}

    def hear(self, prompt: str) -> None:
        """Take in a further message of the user; what earlier results mean is picked anew."""
        self.prompts.append(prompt)
        self._listen()
        self.figures.read(self.asking)
        for number in range(len(self.index.observations)):
            self._pick(number)

    def _listen(self) -> None:
        """Read the messages: what they ask for, what they may supply, and which amounts may move."""
        past, tools = frozenset(range(self.earlier)), self.tool_words
        self.asking: Words = _read(self.prompts, tools, past)
        self.orders: tuple[OrderedEnd, ...] = orders_in(self.asking)
        self.plan: Plan = plan_with(self.asking, tools)
        self.ordering = ToolClauses(self.asking, self.plan)
        self._clauses: dict[str, tuple[SaidClause, ...]] = {}
        self.reader = Reader(self.asking, self.plan, tools.known)
        self._readings: dict[str, tuple[ClauseRead, ...]] = {}
        # Read now, so that a decision finds it read.
        for tool in filter(self.ordering.is_ordered, tools.lexicons):
            self.clauses_of(tool)
            self.readings_of(tool)
            _ = self.reader.others
        heard = supplying(self.prompts[: self.earlier], self.asking, self.plan, tools)
        self.words: Words = _read(self.prompts, tools, past - heard) if heard else self.asking
        # Each name in lower case, between blanks, as a part of it is looked for.
        self.spaced_names = [f" {name.lower()} " for name in self.words.names]
        self._turns_to = bool(heard) and any(map(self.asking.addresses, self.asking.names))
        asking = self.asking
        # The numbers that are given to each thing: those of "invoice" for "invoices 77 and 78".
        self.numbered: dict[str, set[str]] = {}
        for key, uses in asking.numbers.items():
            for said in uses:
                self.numbered.setdefault(said.caller, set()).add(key)
        self.amounts: dict[str, Meant] = {
            name: meant_for(asking.amounts, asking.tokens, self.plan.of(name).places)
            for name, tool in self.tools.items()
            if tool.stakes is Stakes.MONEY
        }

    def add(self, observation: Observation) -> int:
        """Take in a result and give its number."""
        number = self.index.add(observation)
        self._pick(number)
        self.figures.add(observation)
        self._tell_time(observation)
        self._hold_back(observation, number)
        declaration = self.tools.get(observation.tool)
        if declaration is not None and declaration.effect is not Effect.NONE:
            self.has_private = self.has_private or declaration.reads is not Reads.PUBLIC
        if observation.untrusted:
            self.labels = _with_label(self.labels, UNTRUSTED)
            self.has_read = _with_label(self.has_read, UNTRUSTED)
        self.codes |= dict.fromkeys(_codes_in(observation), observation.asked or self._is_mail(observation))
        if observation.located:
            kinds = [kind for kind, _ in observation.references]
            self.sole.update(value for kind, value in observation.references if kinds.count(kind) == 1)
        return number

    def unseen_links(self, text: str, told: Iterable[str] = ()) -> tuple[str, ...]:
        """The links in a text that stand neither in the user's words, nor in what was told, nor in anything that was read."""
        found = [reference for reference in references_in(text) if is_link(reference)]
        if not found:
            return ()
        known = {bare_link(reference.compact) for words in told for reference in references_in(words)}
        return tuple(
            dict.fromkeys(
                one.compact for one in found if bare_link(one.compact) not in known and not self._has_link(one.compact)
            )
        )

    def _has_link(self, link: str) -> bool:
        """Whether a link stands in the user's words or was read, however its scheme and its last slash are spelt."""
        words, index = self.words, self.index
        return any(
            one in words.references or one in words.strings or index.seen_in(one) is not None or index.origins_of(one)
            for one in (link, *spellings_of(link))
        )

    def clauses_of(self, tool: str) -> tuple[SaidClause, ...]:
        """The clauses of this exchange that order a tool, with the values that they give."""
        found = self._clauses.get(tool)
        if found is None:
            found = self._clauses[tool] = clauses_of(tool, self.asking, self.plan, self.ordering)
        return found

    def readings_of(self, tool: str) -> tuple[ClauseRead, ...]:
        """The clauses of this exchange that order a tool, read word by word."""
        found = self._readings.get(tool)
        if found is None:
            lexicon = self.tool_words.lexicons[tool]
            found = tuple([self.reader.read(clause, lexicon) for clause in self.ordering.clauses(tool)])
            self._readings[tool] = found
        return found

    def pick_of(self, origin: OriginPlace) -> Pick | None:
        """Why the words pick the record that an origin points into, if they do."""
        return self._picks[origin.observation, origin.group].get(origin.record)

    def says_nothing(self, text: str) -> bool:
        """Whether a text is made of verbs of the orders, of superlatives and of what tools are called by alone."""
        words, called = self.words, self.tool_words.called
        if text in words.names:
            return False
        for part in text.split():
            lowered = part.lower()
            if not (part in words.orders or lowered in FUNCTION_WORDS or lowered in called or stem(part) in called):
                return False
        return True

    def _pick(self, number: int) -> None:
        observation = self.index.observations[number]
        for name, group in observation.groups.items():
            declaration = self.tools.get(observation.tool)
            author = "" if declaration is None else declaration.author.rpartition(".")[2]
            about = self.tool_words.about.get(observation.tool, frozenset())
            picks = picks_of(observation, name, self.asking, self.orders, self.words, author=author, about=about)
            self._picks[number, name] = picks
            # One more than are ever used is enough to know that there are too many.
            operands = self.figures.operands
            if len(operands) <= OPERANDS_MAX:
                operands += islice(operands_of(self.asking, number, name, group, picks), OPERANDS_MAX + 1)

    def _hold_back(self, observation: Observation, number: int) -> None:
        declaration = self.tools.get(observation.tool)
        if declaration is None or declaration.effect is not Effect.READ or declaration.reads is Reads.PUBLIC:
            return
        if declaration.directory and declaration.reads is Reads.PRIVATE and observation.chosen:
            return  # Who a person is was looked up in order to reach them.
        if declaration.reads is not Reads.SECRET and _only_names(observation):
            return
        self.has_read = _with_label(self.has_read, declaration.reads.value)
        if declaration.reads is not Reads.SECRET and (observation.asked or self._holds_named(number)):
            return
        readers = frozenset(observation.readers or ())
        self.may_know = readers if not self.holds_back or self.may_know is None else self.may_know & readers
        self.holds_back = True
        self.labels = _with_label(self.labels, declaration.reads.value)

    def _is_mail(self, observation: Observation) -> bool:
        """Whether a result is mail, by whatever name its tool calls it, where the words speak of mail."""
        about = self.tool_words.about.get(observation.tool, frozenset())
        return not (_MAILS.isdisjoint(about) or _MAILS.isdisjoint(self.asking.stems))

    def _holds_named(self, number: int) -> bool:
        """Whether a lookup by the user's words found nothing but records that the words name."""
        observation = self.index.observations[number]
        for name, group in observation.groups.items() if observation.chosen else ():
            named = [pick for pick in self._picks[number, name].values() if pick.reason == "named"]
            if len(named) == len(group.records) and any(map(supplies, group.kinds.values())):
                return True
        return False

    def _tell_time(self, observation: Observation) -> None:
        for group in observation.groups.values():
            dated = [field for field, kind in group.kinds.items() if base_of(kind) in ("date", "datetime")]
            if len(group.records) != 1 or len(dated) != 1 or observation.arguments or not observation.chosen:
                continue
            value = group.records[0].get(dated[0])
            if isinstance(value, str) and (day := day_of(value)) is not None:
                self.today = day.isoformat()
                self.years.add(day.year)

    def group_of(self, origin: OriginPlace) -> Group:
        """The group of records that an origin points into."""
        return self.index.observations[origin.observation].groups[origin.group]

    def picked(self, origin: OriginPlace, value: object, argument: str, tool: str) -> Pick | None:
        """Why this record may supply this value to this argument of a tool, or nothing when it may not."""
        observation = self.index.observations[origin.observation]
        group = observation.groups[origin.group]
        if not fits_argument(self.asking, origin, group, argument, self.words):
            return None
        declaration = self.tools.get(observation.tool)
        pick = self._picks[origin.observation, origin.group].get(origin.record)
        if pick is not None and pick.is_earlier and self._has_stakes(tool):
            return None
        if (
            pick is not None
            and (is_named(value, origin.kind, self.asking) or is_meant(origin, observation, self.asking))
            and is_related(self.asking, origin, pick, observation, declaration, self._addresses)
        ):
            return pick
        places = self.plan.universals_of(tool)
        covered = is_covered(self.asking, origin, observation, declaration, places, is_picked=pick is not None)
        return Pick("each") if covered else None

    def _has_stakes(self, tool: str) -> bool:
        """Whether a tool moves money or rights, deletes, or does not say: then only what is said now names anything."""
        declaration = self.tools[tool]
        return declaration.effect.is_mutating and declaration.stakes is not Stakes.NONE

    def _addresses(self, name: str) -> bool:
        """Whether the words turn to a person of this name; earlier ones only where this exchange turns to none."""
        if self._turns_to or self.words is self.asking:
            return self.asking.addresses(name, self.plan.heads)
        return self.words.addresses(name)


def _read(prompts: list[str], tools: ToolWords, silent: frozenset[int]) -> Words:
    """The words, of which a quotation that is introduced as payload (`subject "June"`) names nothing."""
    words = words_of_user(prompts, silent=silent, verbs=tools.known, effects=tools.effects)
    spoken = {name for name in words.names if words.word_before_quote(name) in tools.introducing}
    return replace(words, names=words.names - spoken) if spoken else words


def _codes_in(observation: Observation) -> Iterator[str]:
    """The one-time codes of a result: those that its texts tell, and its fields that are declared as such."""
    yield from (code for kind, code in observation.references if kind == CODE)
    for group in observation.groups.values():
        fields = [field for field, kind in group.kinds.items() if kind == CODE]
        yield from (str(record[field]) for record in group.records for field in fields if field in record)


def _with_label(labels: tuple[str, ...], label: str) -> tuple[str, ...]:
    return labels if label in labels else tuple(sorted((*labels, label)))


def _only_names(observation: Observation) -> bool:
    """Whether a result holds nothing but identifiers and dates: no text, no label, no amount."""
    kinds = [kind for group in observation.groups.values() for kind in group.kinds.values()]
    return not observation.untrusted and all(supplies(kind) and base_of(kind) not in NUMBERS for kind in kinds)
