"""Evidence: all that a decision may rest on: the user's words, the index of results, and what the words pick from it.

Rule 1: evidence only grows, by the user's words and by results; nothing a model says enters it.
Rule 2: picks are computed when a result arrives, so that a decision is a few look-ups.
Rule 3: the day of a run comes from a trusted date that a lookup without arguments returned alone.
"""

from itertools import islice

from remit.core.authority import Authority
from remit.core.record import replace
from remit.core.tools import Effect
from remit.core.trust import Reads
from remit.provenance.declarations import Declaration
from remit.provenance.derived import OPERANDS_MAX, Figures, operands_of
from remit.provenance.kinds import NUMBERS, base_of, day_of, supplies
from remit.provenance.labels import Group, Index, Observation, Origin
from remit.provenance.planning import Plan, plan_with
from remit.provenance.selection import Order, Pick, fits_argument, is_covered, is_related, orders_in, picks_of
from remit.provenance.tool_words import ToolWords
from remit.provenance.vocabulary import FUNCTION_WORDS, stem
from remit.provenance.words import Words, words_of


class Evidence:
    """What is known in one run."""

    def __init__(
        self, prompts: list[str], tools: dict[str, Declaration], tool_words: ToolWords, authority: Authority
    ) -> None:
        self.prompts = list(prompts)
        self.tools = tools
        self.tool_words = tool_words
        self.authority = authority
        self.index = Index()
        self.today = ""
        self.years: set[int] = set()
        self.sole: set[str] = set()
        self.approved: set[tuple[str, str, str]] = set()
        self.words: Words = _read(self.prompts, tool_words)
        self.orders: tuple[Order, ...] = orders_in(self.words)
        self.plan: Plan = plan_with(self.words, tool_words)
        self.figures = Figures(self.words)
        # What was read without being asked for, and who could have read all of it anyway; None: nobody is known to.
        self.holds_back = False
        self.labels: tuple[str, ...] = ()
        self.may_know: frozenset[str] | None = None
        self._picks: dict[tuple[int, str], dict[int, Pick]] = {}

    def hear(self, prompt: str) -> None:
        """Take in a further message of the user; what earlier results mean is picked anew."""
        self.prompts.append(prompt)
        self.words = _read(self.prompts, self.tool_words)
        self.orders = orders_in(self.words)
        self.plan = plan_with(self.words, self.tool_words)
        self.figures.read(self.words)
        for number in range(len(self.index.observations)):
            self._pick(number)

    def add(self, observation: Observation) -> int:
        """Take in a result and give its number."""
        number = self.index.add(observation)
        self._pick(number)
        self.figures.add(observation)
        self._tell_time(observation)
        self._hold_back(observation)
        if observation.untrusted and "untrusted" not in self.labels:
            self.labels = tuple(sorted((*self.labels, "untrusted")))
        if observation.located:
            kinds = [kind for kind, _ in observation.references]
            self.sole.update(value for kind, value in observation.references if kinds.count(kind) == 1)
        return number

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
            picks = picks_of(observation, name, self.words, self.orders)
            self._picks[number, name] = picks
            # One more than are ever used is enough to know that there are too many.
            operands = self.figures.operands
            if len(operands) <= OPERANDS_MAX:
                operands += islice(operands_of(self.words, number, name, group, picks), OPERANDS_MAX + 1)

    def _hold_back(self, observation: Observation) -> None:
        declaration = self.tools.get(observation.tool)
        if declaration is None or declaration.effect is not Effect.READ or declaration.reads is Reads.PUBLIC:
            return
        if declaration.directory and declaration.reads is Reads.PRIVATE and observation.chosen:
            return  # Who somebody is was looked up in order to reach them.
        if declaration.reads is not Reads.SECRET and (observation.asked or _only_names(observation)):
            return
        readers = frozenset(observation.readers or ())
        self.may_know = readers if not self.holds_back or self.may_know is None else self.may_know & readers
        self.holds_back = True
        if declaration.reads.value not in self.labels:
            self.labels = tuple(sorted((*self.labels, declaration.reads.value)))

    def _tell_time(self, observation: Observation) -> None:
        for group in observation.groups.values():
            dated = [field for field, kind in group.kinds.items() if base_of(kind) in ("date", "datetime")]
            if len(group.records) != 1 or len(dated) != 1 or observation.arguments or not observation.chosen:
                continue
            value = group.records[0].get(dated[0])
            if isinstance(value, str) and (day := day_of(value)) is not None:
                self.today = day.isoformat()
                self.years.add(day.year)

    def group_of(self, origin: Origin) -> Group:
        """The group of records that an origin points into."""
        return self.index.observations[origin.observation].groups[origin.group]

    def picked(self, origin: Origin, argument: str, tool: str) -> Pick | None:
        """Why this record may supply this value to this argument of a tool, or nothing when it may not."""
        observation = self.index.observations[origin.observation]
        group = observation.groups[origin.group]
        if not fits_argument(self.words, origin, group, argument):
            return None
        pick = self._picks[origin.observation, origin.group].get(origin.record)
        if pick is not None and is_related(self.words, origin, pick, observation, self.tools.get(observation.tool)):
            return pick
        places = self.plan.universals_of(tool)
        declaration = self.tools.get(observation.tool)
        covered = is_covered(self.words, origin, observation, declaration, places, is_picked=pick is not None)
        return Pick("each") if covered else None


def _read(prompts: list[str], tools: ToolWords) -> Words:
    """The words, of which a quotation that is introduced as payload (`subject "June"`) names nothing."""
    words = words_of(prompts)
    spoken = {name for name in words.names if words.word_before_quote(name) in tools.introducing}
    return replace(words, names=words.names - spoken) if spoken else words


def _only_names(observation: Observation) -> bool:
    """Whether a result holds nothing but identifiers and dates: no text, no label, no amount."""
    kinds = [kind for group in observation.groups.values() for kind in group.kinds.values()]
    return not observation.untrusted and all(supplies(kind) and base_of(kind) not in NUMBERS for kind in kinds)
