"""Prepositions: the role that each gives to what stands behind it, and the one table of which may stand before what.

Rule 1: a value binds only behind a preposition that the table has for its sort, or behind none. Any other preposition, and
        what picks or counts out ("any", "every", "no"), asks.
Rule 2: where the noun of the argument stands beside the value, more prepositions may stand before it; none that draws a
        line, and nothing that picks.
"""

OBJECT, FROM, TO, FOR, IN, WITH, BY, AS = "", "from", "to", "for", "in", "with", "by", "as"
# What an order is good for: nothing in it is meant.
AIM = "aim"
# The role for each preposition that is understood.
ROLES = {
    **dict.fromkeys(("from",), FROM),
    **dict.fromkeys(("to", "into", "onto", "towards", "toward"), TO),
    "for": FOR,
    "with": WITH,
    **dict.fromkeys(("in", "inside", "under", "within", "of", "on", "at"), IN),
    **dict.fromkeys(("by", "via", "using", "through"), BY),
    "as": AS,
}
# These draw a line: a moment or a number follows, and nothing else.
BOUNDS = frozenset({"until", "till", "since", "before", "after"})
# These pick some of several, add to something, or deny.
PICKING = frozenset({"any", "some", "another", "each", "every", "no"})
# These correct what stands before them, right behind a value: "A-1, now A-2", "A-1 just A-2".
CORRECTING = frozenset({"just", "now", "again", "instead"})
# What "of" makes no place of: "all of A and B".
WHOLES = frozenset({"all", "each", "every", "both"})
LEADS = ROLES.keys() | BOUNDS

# What may stand before an amount of money, any other number, a choice, and a choice beside its noun.
BEFORE_MONEY = frozenset({"", ",", "of", "for", "to", "at", "with"})
BEFORE_NUMBERS = BEFORE_MONEY | {"by"}
# What may stand before a number beside its noun: "in row 5".
BEFORE_NUMBERED = BEFORE_NUMBERS | {"in", "on", "into"}
BEFORE_CHOICES = frozenset({"", "to", "into", "as"})
BEFORE_NAMED_CHOICES = BEFORE_CHOICES | {",", "with", "in", "of", "for", "at", "on", "using"}
# Prepositions behind which a target stands only beside its noun.
FAR = frozenset({"under", "within", "toward", "towards", "through", "inside"})
# What may stand before "10:00-11:00".
BEFORE_RANGES = frozenset({"", ",", "on", "at", "for", "from"})
# Of the prepositions of a place, those behind which a file has its folder.
BEFORE_FOLDERS = frozenset({"", ",", "in", "inside", "within", "under", "on", "at", "from", "to", "into", "onto"})
