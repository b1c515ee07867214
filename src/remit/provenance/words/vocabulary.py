"""Vocabulary: the words of general English that the rules rest on. No tool, task or trade has a word in here.

Rule 1: function words are never a value, never name a record and never ask for a tool.
Rule 2: a word list may make the gate ask; it makes it allow only where a rule recomputes what the word claims.
Rule 3: stems join the forms of one word; they are used to find what is asked for, never to match a value.
Rule 4: stems and words of names are remembered, within limits: the same few tools, fields and words come up again.
"""

from functools import lru_cache

from remit.core.regex import regex

_PLAIN = """
    a about above across after again against all almost also although always am among an and another any anybody
    anyone anything are around as at away back be because been before being below between both but by can could did
    do does doing done down during each either else ever every everybody everyone everything few first for from
    further had has have having he hello her here hers herself hey hi him himself his how however i if in instead
    into is it its itself just know last least less let like ll me might mine more most much must my myself need
    neither never next no nobody none nor not nothing now of off on once one only onto or other our ours ourselves
    out over own per please rather re really same shall she should since so some somebody someone something such
    sure tell than thank thanks that the their theirs them themselves then there these they this those through to
    together too toward towards under until up upon us very via want was we were what when where whether which while
    who whole whom whose why will with within without would yes yet you your yours yourself yourselves
"""
FUNCTION_WORDS = frozenset(_PLAIN.split())

# Words that say of how many: all of them, or a number of times.
UNIVERSALS = frozenset({"all", "each", "every", "everyone", "everybody", "everything"})
PAIRS = frozenset({"both"})
TIMES = {"once": 1, "twice": 2, "thrice": 3}
COUNTS = {
    word: count
    for count, word in enumerate(
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"], 1
    )
}

# A superlative names an end of an order: the least or the greatest number, the earliest or the latest date.
LEAST = frozenset({"cheapest", "lowest", "least", "smallest", "shortest", "fewest", "minimum", "lightest"})
GREATEST = frozenset(
    {"best", "top", "highest", "largest", "biggest", "greatest", "longest", "maximum", "priciest", "heaviest"}
)
LATEST = frozenset({"latest", "newest", "last"})
EARLIEST = frozenset({"earliest", "oldest", "first"})
SUPERLATIVES = LEAST | GREATEST | LATEST | EARLIEST
MOST = "most"
RECENT = "recent"

# The codes and names of currencies.
_CODE_WORDS = """
    aed ars aud bgn brl cad chf clp cny cop czk dkk egp eur gbp hkd huf idr ils inr isk jpy kes krw kwd mad mxn myr ngn
    nok nzd pen php pkr pln qar ron rsd rub sar sek sgd thb try twd uah usd vnd zar btc eth usdc usdt
"""
CODES = frozenset(_CODE_WORDS.upper().split())
_CURRENCY_WORDS = """
    euro euros dollar dollars buck bucks pound pounds quid sterling yen yuan renminbi rupee rupees franc francs franken
    krona kronor krone kroner koruna forint zloty zlotys lira peso pesos real reais rand won ruble rubles rouble roubles
    shekel shekels baht dirham dirhams riyal riyals ringgit kr
"""
CURRENCIES = frozenset(_CODE_WORDS.split()) | frozenset(_CURRENCY_WORDS.split())

SUMS = frozenset({"sum", "total", "altogether", "combined"})
DIFFERENCES = frozenset({"difference", "rest", "remaining", "remainder", "balance"})
PERCENTS = frozenset({"percent", "percentage", "%"})

# States of a thing, each with its opposite.
STATES = {"on": "off", "off": "on", "open": "shut", "shut": "open", "closed": "open"}

# What stands before a noun that already exists, so the word after it is a thing and not something to be done.
DEFINITE = frozenset(
    {"the", "this", "that", "these", "those", "my", "your", "his", "her", "its", "our", "their", "last", "latest", "of"}
)
# What may stand before a verb that is asked for.
_LEADS_SAID = """
    please pls plz and then to you also or but can could should would will must now
"""
LEADS = frozenset(_LEADS_SAID.split())
# What may stand before a person or a thing that is addressed by a plain word.
PREPOSITIONS = frozenset({"to", "with", "for", "from", "by", "in", "on", "at", "and", "or", "as"})
# What may stand before a person to whom the words turn.
TURNING = frozenset({"to", "with", "for", "and", "or", "cc"})
# What narrows a noun: "all files from March", "the latest message that Ann wrote". "to" mostly says where to.
NARROWING = frozenset(
    {"from", "by", "with", "about", "in", "on", "of", "at", "that", "which", "who", "whose", "where", "between"}
    | {"before", "after", "since", "under", "over", "above", "below", "within", "during", "without", "for"}
)
# Where a sentence turns from what is to be done to what that is about.
ASIDES = frozenset({"of", "about", "from", "that", "which", "where", "who", "saying", "because", "if", "when"})
# What a question is about, also inside of a sentence: "tell me which one to send".
INQUIRING = frozenset({"what", "who", "whom", "whose", "when", "where", "why", "how", "which", "whether"})
# What says that something is so, before a thing or a participle: "I have mail", "is it paid".
HAVING = frozenset({"has", "have", "had", "is", "are", "was", "were", "am"})
QUESTIONS = INQUIRING | HAVING | {"did", "does"}
# Modal verbs. Addressed to the assistant they make a request ("can you"); said of anything else they do not.
MODALS = frozenset({"can", "could", "should", "would", "will", "must", "may", "might", "shall"})
STATING = frozenset({"is", "was", "are", "were", "has", "have", "had", "will", "would"})
# What stands before a colon that leads to an order.
_ANNOUNCING_SAID = "task request job order today now please i need want have just one two thing things next is this the my do following"
ANNOUNCING = frozenset(_ANNOUNCING_SAID.split())
# How people are polite, and nothing else.
_COURTESY_SAID = """
    please pls plz thanks thank you thx cheers hi hello hey dear good morning afternoon evening day regards kind best
    warm wishes sincerely yours very much so many a lot bye welcome ok okay great in advance
"""
COURTESIES = frozenset(_COURTESY_SAID.split())
# These say how or how soon, and change nothing.
_IDLE_SAID = """
    please pls plz kindly thanks now today immediately completely fully entirely promptly quickly directly
    also too then just again asap me us make use straight and & here new mode permission permissions right rights
    access
"""
IDLE = frozenset(_IDLE_SAID.split())
_OPENING_SAID = "ok okay yes so hi hello hey finally next first go it's instead afterwards find look search locate take get see open alright"
OPENING = frozenset(_OPENING_SAID.split())
_ARTICLES_SAID = "the a an this these those my our its all each every both any some"
ARTICLES = frozenset(_ARTICLES_SAID.split()) | PAIRS | UNIVERSALS
BACK = frozenset({"it", "them", "him", "there"})
_NAMING_SAID = "called named titled labelled id ids number ending ends starting starts begin begins beginning whose is"
NAMING = frozenset(_NAMING_SAID.split())
STARTING = frozenset({"start", "starts", "starting", "begin", "begins", "beginning"})
CENTS = frozenset({"cent", "cents", "ct", "pence", "pennies"})
PARTICLES = frozenset({"over", "back", "down"})
# What is paid is called so.
_PAYMENTS_SAID = "fee fine charge payment amount sum price cost deposit rent toll tip bonus salary refund"
PAYMENTS = frozenset(_PAYMENTS_SAID.split())
WISHING = frozenset({"want", "need", "like", "wish", "have"})
# Who tells something of the thing that an order points back to: the user, or the thing itself.
TELLING = frozenset({"i", "we", "there", "it", "this", "that"})
# What leads to what is to be said.
LEADING_ON = frozenset({"that", "about", "saying", "how", "whether", "why", "what", "asking"})
GREETING = frozenset({"hi", "hello", "hey", "dear", "ok", "thanks"})
SUBJECTS = frozenset({"i", "he", "she", "we", "they", "you", "this", "that", "there", "it"})
# Words that say something of others, and may well be said to a person: "the icons are great".
SAYABLE = (
    HAVING
    | MODALS
    | STATING
    | SUBJECTS
    | {"be", "been", "my", "your", "do", "did", "does", "am", "i'm", "it's", "done", "doing"}
)
_REQUEST_SAID = """
    can could would will should must you u i we i'd we'd want need like have to help be sure that remember ahead let's wish
    let
"""
REQUESTING = frozenset(_REQUEST_SAID.split()) | IDLE | OPENING
# The user is told of it: "and tell me when it is done".
REPORTING = frozenset({"tell", "let", "summarise", "summarize", "report", "confirm", "notify", "inform", "show"})
REGARDING = frozenset({"regarding", "concerning", "about", "re"})
NUMBERING = frozenset({"id", "number", "no", "nr"})
SELF = frozenset({"me", "my", "myself", "mine"})

_DOUBLED = regex(r"([b-df-hj-np-rtv-xz])\1$")
_PARTS = regex(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# Long enough that what is left of a word still tells it from others.
_ROOT_CHARS_MIN = 4


# The words of some dozens of tools and of a request, several times over.
_STEMS_KEPT_MAX = 8_192
_NAMES_KEPT_MAX = 4_096
# Names and words that people choose are shorter; what is longer is not kept, so that what is kept stays small.
_KEPT_CHARS_MAX = 80


def stem(word: str) -> str:
    """The form that a word shares with its inflections: transfers, transferring and transfer have one."""
    return _kept_stem(word) if len(word) <= _KEPT_CHARS_MAX else _stem(word)


def _stem(word: str) -> str:
    word = word.lower()
    if word.endswith(("ings", "ments", "ations")):
        word = word[:-1]
    if word.endswith("ation"):
        word = word[:-5] if len(word) - 5 >= _ROOT_CHARS_MIN else word[:-3]
    elif word.endswith("ment") and len(word) > 6:
        word = word[:-4]
    elif word.endswith("ing") and len(word) > 5:
        word = word[:-3]
    elif (word.endswith("ed") and len(word) > _ROOT_CHARS_MIN) or (
        word.endswith("es") and len(word) > _ROOT_CHARS_MIN and word[-3] in "sxzh"
    ):
        word = word[:-2]
    elif word.endswith("ies") and len(word) > _ROOT_CHARS_MIN:
        word = word[:-3] + "y"
    elif word.endswith("ly") and len(word) > 5:
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss") and len(word) > 3:
        word = word[:-1]
    word = _DOUBLED.sub(r"\1", word).removesuffix("e")
    return word[:-1] + "i" if word.endswith("y") else word


def name_words(name: str) -> tuple[str, ...]:
    """The words of an identifier, lower case: `sendMail`, `send_mail` and `send-mail` have the same two."""
    return _kept_words(name) if len(name) <= _KEPT_CHARS_MAX else _words(name)


def _words(name: str) -> tuple[str, ...]:
    return tuple([part.lower() for part in _PARTS.findall(name)])


def word_stems(name: str) -> frozenset[str]:
    """The stems of all words of an identifier."""
    return _kept_all_stems(name) if len(name) <= _KEPT_CHARS_MAX else _all_stems(name)


def _all_stems(name: str) -> frozenset[str]:
    return frozenset([stem(word) for word in name_words(name)])


def is_plain_word(text: str) -> bool:
    """Whether this is a word in small letters that is more than a function word."""
    return text.isalpha() and text.islower() and text not in FUNCTION_WORDS


def name_stems(name: str) -> frozenset[str]:
    """The stems of the words of an identifier, function words left out."""
    return _kept_stems(name) if len(name) <= _KEPT_CHARS_MAX else _stems(name)


def _stems(name: str) -> frozenset[str]:
    return frozenset([stem(word) for word in name_words(name) if word not in FUNCTION_WORDS])


_kept_stem = lru_cache(maxsize=_STEMS_KEPT_MAX)(_stem)
_kept_words = lru_cache(maxsize=_NAMES_KEPT_MAX)(_words)
_kept_all_stems = lru_cache(maxsize=_NAMES_KEPT_MAX)(_all_stems)
_kept_stems = lru_cache(maxsize=_NAMES_KEPT_MAX)(_stems)
