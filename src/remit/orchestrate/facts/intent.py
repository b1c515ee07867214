"""Intent: which class of task the user's words look like, where neither the caller nor the boundary says it.

Rule 1: it is a table of English patterns, tried in order; no model has a say, and the same words always give the same class.
Rule 2: an inferred class never decides how a run ends. It only warns, so a miss costs nothing and a false hit one line.
Rule 3: words that carry material along (a document to work on, a page of log) are not classified: what stands in them is
        no question.
"""

import re
from typing import NamedTuple

from remit.core.regex import regex
from remit.core.secrets.secret_names import means_a_secret
from remit.core.secrets.secret_search import secrets_in
from remit.core.work.goal import TaskClass

# A question is short; what is longer is mostly material.
PROMPT_CHARS_MAX = 1_000
WHY_CHARS_MAX = 80

_ASKS = r"(?:what|what's|whats|where|when|which|who|how|is|are|was|were|has|have|had|did|does|do|can|could|check|tell|show|give|look|find|get)"
_OWNED = (
    r"(?:account|balance|order|orders|invoice|invoices|subscription|payment|refund|ticket|shipment|package|parcel|delivery"
    r"|booking|reservation|claim|credit limit|membership|transaction|transfer)"
)


class Intent(NamedTuple):
    """A class, and the words that it was taken from."""

    task_class: TaskClass
    words: str


def _pattern(text: str) -> re.Pattern[str]:
    return regex(text, re.IGNORECASE)


# The first that is found decides. What is asked for in so many words comes before what a topic suggests.
PATTERNS: tuple[tuple[TaskClass, re.Pattern[str]], ...] = (
    (
        TaskClass.CREATIVE,
        _pattern(
            r"\A(?:please |can you |could you |now )*(?:write|draft|compose|rewrite|rephrase|paraphrase|summari[sz]e|translate"
            r"|brainstorm|invent|outline|proofread)\b"
        ),
    ),
    (
        TaskClass.ESTIMATE,
        _pattern(
            r"\b(?:roughly|approximately|approx|ballpark|estimate|guess|more or less|order of magnitude)\b"
            r"|\babout how (?:many|much|long|far)\b"
        ),
    ),
    (
        TaskClass.CODE_RESULT,
        _pattern(
            r"\b(?:do|does|did|are|will) (?:the |all |my |our |these |those )*(?:unit |integration )?tests? (?:still )?(?:pass|fail|run)"
            r"|\brun (?:the |all |my |our )*(?:unit |integration )?(?:tests?|test suite|script|code|program)\b"
            r"|\bwhat (?:does|will|would) (?:this|the|that|my) (?:code|script|function|program|snippet) (?:print|output|return|do)"
            r"|\b(?:does|did|will) (?:it|this|the code|the build|the project) (?:compile|build)\b"
        ),
    ),
    (
        TaskClass.HIGH_STAKES,
        _pattern(
            r"\b(?:should (?:i|we|he|she|they|my \w+)|(?:can|may|could) (?:i|we) (?:safely )?(?:take|give|mix|combine|stop|sue|sign)"
            r"|would you recommend|do you recommend|what do you recommend|advise|is it (?:safe|ok|okay|dangerous) (?:to|if|for))\b"
            r"[^.?!]{0,120}"
            r"\b(?:invest|buy (?:shares|stock|stocks|a house)|sell (?:my|our|the) (?:shares|stock|stocks|house)|mortgage|lawsuit|sue"
            r"|sign (?:this|the) contract|dose|dosage|medication|medicine|surgery|treatment|symptoms?|diagnos\w+|pension"
            r"|\d+ ?(?:mg|mcg|milligrams?|ml|iu)|pills?|tablets?|overdose|insulin|antibiotics?|painkillers?|ibuprofen|aspirin"
            r"|paracetamol|acetaminophen|warfarin|vaccin\w+|antidepressants?|pregnan\w+|chest pain)\b"
        ),
    ),
    (
        TaskClass.TOOL_RESULT,
        _pattern(
            r"\b(?:did|has|have|was|were) (?:the |my |our |that |this )*(?:e?mail|message|request|call|upload|download|deploy|deployment|job"
            r"|backup|import|export|webhook|api call)s? (?:been )?(?:succeed\w*|go through|gone through|went through|fail\w*|sent|work\w*"
            r"|finish\w*|complete\w*|arrive\w*)"
            r"|\bis (?:the |our |my |your )*(?:\w+ )?(?:api|service|server|site|website|endpoint|database|tool) (?:up|down|online|offline"
            r"|available|reachable|working)\b"
        ),
    ),
    (
        TaskClass.ACCOUNT_STATUS,
        _pattern(
            rf"\b{_ASKS}\b[^.?!]{{0,60}}\b(?:my|our|his|her|their|customer|customer's|account|the status of)\b[^.?!]{{0,30}}\b{_OWNED}\b"
            r"|\b(?:account|order|payment|subscription|delivery|shipping|invoice) (?:status|balance)\b"
            rf"|\b(?:status|balance|state) of (?:the |my |our )?{_OWNED}\b"
            rf"|\b{_ASKS}\b[^.?!]{{0,40}}\b{_OWNED} #?[a-z]*-?\d{{2,}}"
            r"|\bhow much (?:do|does|did) (?:i|we|he|she|they|the customer) (?:still )?owe\b"
        ),
    ),
    (
        TaskClass.EXACT_CALCULATION,
        _pattern(
            r"\b(?:calculate|compute|work out|how much exactly|exactly how (?:much|many))\b[^.?!]{0,80}\d"
            r"|\d[\d,.]* ?% of [$\u20ac\u00a3]?\d"
            r"|(?<![\w/.-])\d[\d,.]*(?: ?[*\u00d7\u00f7^+] ?| [-/] | (?:plus|minus|times|multiplied by|divided by) )\d[\d,.]*(?![\w/-])"
            r"|(?:\A|\b(?:what is|what's|whats|how much is) )\d[\d,.]* ?[x/-] ?\d[\d,.]*(?: ?=)?\s*(?:\?|\Z)"
            r"|\b(?:sum|product|total|average|mean|difference|quotient) (?:of|between) \d[\d,.]*(?:,| and) ?[^.?!]{0,40}\d"
            r"|\bsquare root of \d|\b\d[\d,.]* (?:squared|cubed)\b|\b\d+ (?:percent|per cent) of \d"
        ),
    ),
    (
        TaskClass.CURRENT_FACT,
        _pattern(
            r"\bwhat(?:'s| is)? (?:the )?(?:time|date|day)(?: is it)?(?: now| today)?\s*\?"
            r"|\b(?:weather|forecast|temperature)\b[^.?!]{0,40}\b(?:in|at|for|today|tomorrow|now)\b"
            r"|\b(?:current|latest|today's|up-to-date|most recent)\b[^.?!]{0,40}\b(?:price|rate|version|release|news|score|population"
            r"|president|ceo|minister|status|value|exchange rate|stock|weather|figures?)\b"
            r"|\b(?:exchange rate|stock price|share price)\b"
            r"|\bwho is (?:the )?(?:current )?(?:president|prime minister|chancellor|ceo|king|queen|pope|mayor)\b"
        ),
    ),
)


def intent_of(words: str) -> Intent | None:
    """The class that a user's words look like; None where they look like none, or are too long to be a question."""
    said = " ".join(words.split())
    if len(said) > PROMPT_CHARS_MAX:
        return None
    for task_class, pattern in PATTERNS:
        if (found := pattern.search(said)) is not None:
            return Intent(task_class, found[0][:WHY_CHARS_MAX])
    return None


def compile_for_requests() -> None:
    """Load and compile now what the first request of a process is read by, so that it holds up no loop; it takes milliseconds."""
    intent_of("")
    means_a_secret("")
    secrets_in("what every text is searched for")
