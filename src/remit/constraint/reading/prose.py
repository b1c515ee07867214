"""Prose: the words around a value, and whether they can be left out without losing what they say of it.

Rule 1: words are left out where every phrase of them is known to say nothing but that the value comes, or that it came:
        "Here is the JSON you asked for:", "as requested", "Let me know if you need anything else." What a phrase that is
        not known says is unknown ("Do not use", "For example", "Correction: 2"), and then nothing is taken.
Rule 2: what announces a value stands before one. Behind the last one it announces another, which is missing.
Rule 3: a sign that is no punctuation, a digit and a question may change what is meant as words do.
"""

import re
from collections.abc import Callable, Collection

from remit.core.regex import regex

# Longer phrases than any below are known to be none of them; reading one takes time that grows faster than its length.
PHRASE_CHARS_MAX = 200

# What the line of a fence may say: any other word there may be said of the value ("example", "before").
LANGUAGE = r"(?:json(?:c|5|l|-?ld)?|ndjson|geojson|js|javascript|ts|typescript|ya?ml|py|python3?|te?xt|plain(?:text)?)(?![\w+-])"
# An answer with any other words is asked for again, which costs one call. Of other languages only what announces is known.
_NOUN = (
    r"(?:json|objects?|arrays?|lists?|data|results?|answers?|response|output|values?|information|info|details|records?"
    r"|items?|entry|entries|code|solution|extraction|instances?|version)"
)
_ASKED = r"(?:requested|extracted|structured|formatted|generated|resulting|parsed)"
_ADJECTIVE = (
    rf"(?:{_ASKED}|following|final|complete|completed|full|valid|corrected|correct|fixed|updated|revised|single)"
)
_NOUNS = rf"(?:{_ADJECTIVE} )*{_NOUN}(?: (?:of )?{_NOUN})*"
# "A valid answer is" gives an example and "Your answer is" may quote one; behind "Here is" they do not.
_NAMED = rf"(?:(?:the|my|this) )?{_NOUNS}"
_SHOWN = rf"(?:{_NAMED}|(?:an?|your) {_NOUNS})"
_SOURCE = r"(?:text|input|information|request|data|description|prompt|document|message|details|context|instructions|schema|format|structure|results?|output)"
_GIVEN = rf"(?:the|your) (?:(?:{_ASKED}|required|given|provided|json|above|tool|search) )*{_SOURCE}(?: (?:you (?:gave|provided)|provided|above))?"
_WANTED = r"you(?: have|'ve| had)? (?:asked for|asked|requested|wanted|want|need|needed)"
_BESIDE = (
    rf"(?:for you|(?:that |which )?{_WANTED}|as (?:{_WANTED}|requested|asked|required|specified)"
    rf"|in json|in (?:the )?(?:{_ASKED} |required |json )*(?:format|structure)|as (?:an? )?{_NOUNS}"
    rf"|(?:based on|from|for|according to|using) {_GIVEN}"
    rf"|(?:that |which )?(?:represents|representing|contains|containing|with) the {_NOUNS}"
    rf"|(?:that |which )?(?:matches|matching|fits|fitting|follows|conforms to|conforming to) {_GIVEN})"
)
_WITH = rf"(?: {_BESIDE})*"
_MISHAP = r"(?:confusion|mistake|error|oversight|inconvenience|misunderstanding|format|formatting)"
_GREETING = (
    r"(?:sure|sure thing|sorry about that|certainly|of course|absolutely|definitely|okay|ok|alright|all right|great|perfect|got it|understood"
    r"|no problem|yes|hello|hi|thanks|thank you|my apologies|(?:(?:i am|i'm) )?sorry|you(?: are|'re)(?: absolutely)? right"
    r"|(?:thanks|thank you) for (?:the|your) (?:clarification|information|details|question)"
    r"|(?:i can|i will|i'll|i would be happy to|i'd be happy to|happy to|glad to) (?:help|assist)(?: you)?(?: with (?:that|this))?"
    rf"|i apologi[sz]e|(?:i apologi[sz]e|apologies|(?:(?:i am|i'm) )?sorry) for (?:the|my|any) (?:previous )?{_MISHAP})"
)
_MADE = r"(?:extracted|generated|created|formatted|prepared|parsed|converted|structured|made)"
_THEN = r"(?:so|therefore|thus|hence|then|now|finally)"
_GERMAN = (
    r"(?:hier (?:ist|sind|kommt) (?:das|die|der|ihr|ihre|dein|deine)|(?:das|die))"
    r"(?: (?:gewünschten?|angeforderten?|extrahierten?|korrigierten?))*"
    r" (?:json(?:-(?:objekt|array|liste|daten|ausgabe|antwort))?|objekt|ergebnis|antwort|liste|daten|informationen|ausgabe)"
    r"(?: (?:im|als) json(?:-format)?)?(?: (?:ist|sind|lautet))?"
)
_FRENCH = (
    r"(?:voici|voilà) (?:le |la |les |l'|votre )(?:json|objet(?: json)?|tableau(?: json)?|résultat|réponse|liste|données|informations)"
    r"(?: (?:demandée?s?|extraite?s?|corrigée?s?))?(?: (?:au format|en) json)?"
)
_SPANISH = (
    r"aqu[ií] (?:est[aá]n?|tienes?|va) (?:el|la|los|las|su|tu) (?:json|objeto(?: json)?|resultado|respuesta|lista|datos|información)"
    r"(?: (?:solicitad[oa]s?|extraíd[oa]s?|corregid[oa]s?))?(?: en(?: formato)? json)?"
)
_POLITE = r"(?:natürlich|klar|gerne?|selbstverständlich|bien sûr|d'accord|¡?claro(?: que sí)?|¡?por supuesto)"
_lead = regex(
    rf"(?:{_GREETING}|{_THEN}|{_POLITE}|assistant|{_GERMAN}|{_FRENCH}|{_SPANISH}|as (?:an? )?{_NOUNS}|(?:based on|according to|using) {_GIVEN}|as (?:{_WANTED}|requested|asked|required|specified)|in json(?: format)?"
    rf"|(?:{_GREETING} )?here(?:'s| is| are)?(?: it is| they are| you go| you are)?(?: {_SHOWN})?{_WITH}"
    rf"|(?:below|the following|this|that|these|it|what follows) (?:is|are)(?: {_SHOWN})?{_WITH}"
    rf"|(?:{_THEN} )?{_NAMED}{_WITH}(?: (?:is|are))?(?: below| as follows)?{_WITH}"
    # Without an article "valid JSON would be" gives an example.
    rf"|(?:{_THEN} )?(?:the|my|this) {_NOUNS}{_WITH} (?:would|will) be{_WITH}"
    rf"|(?:i|we)(?:'ve| have)? {_MADE} (?:{_SHOWN}{_WITH}(?: below| as follows)?|the following(?: {_NOUNS})?{_WITH}"
    rf"|(?:it|this|{_GIVEN}) (?:in)?to {_NOUNS}{_WITH})|(?:const|let|var|return|print|and)(?: {_NAMED})?)"
)
# Between values of which the earlier ones are the same, or were broken off.
_again = regex(
    r"(?:(?:sorry|oh|oh wait|oops|again|once more|once again|one more time|and whole|continuing|starting over)"
    r"|(?:that|it|this) was cut(?: off| short)?|i made a mistake"
    r"|(?:sorry |and )?let me (?:try|do|start|write|say|give)(?: it| that| this)?(?: again| over| once more)|here it is again)"
)
_MORE = (
    r"(?:any|anything|something|else|further|more|other|additional|help|assistance|questions?|changes?|adjustments?|information"
    r"|modifications?|clarifications?|details|to|with|me|this|that|it|and|or|from|about|make|modify|change|adjust|add|ask|explain)"
)
_IF = rf"(?:(?:and|or) )?(?:if|should) (?:you(?: need| want| have| require| would like|'d like)(?: {_MORE})*|(?:this|that|it) (?:helps|works)(?: for you)?)"
_OFFER = (
    r"(?:and |so )?(?:please |just )?(?:let me know|feel free to (?:ask|reach out)(?: again)?|(?:do not|don't) hesitate to (?:ask|reach out)"
    r"|i am happy to (?:help|assist)|i'm happy to (?:help|assist)|happy to help)"
)
_closing = regex(
    rf"(?:{_OFFER}(?: {_IF})?|{_IF}(?: {_OFFER})?|(?:i )?hope (?:that )?(?:this|that|it) (?:helps|works)(?: you)?"
    r"|(?:is there )?anything else(?: (?:that )?i can (?:help|do|assist)(?: you)?(?: with| for you)?)?\??"
    r"|(?:many )?thanks|thank you|you(?: are|'re) welcome|done|cheers|enjoy|have a (?:good|great|nice) (?:day|one)|(?:that is|that's) all|i am sure|i'm sure"
    rf"|is (?:this|that|it) (?:ok|okay|all right|alright)(?: for you| with you)?\??|{_BESIDE}{_WITH}"
    rf"|(?:(?:this|that|these|those|it) )?(?:is|are) {_SHOWN}{_WITH})"
)
# A condition in the sentence of the value: "{...} if you have any".
_conditional = regex(r"[ \t`*_\"',]*+(?:(?:and|or)[ \t]+)?(?:if|should)\b", re.IGNORECASE)

_TAGGED = r"(?:answer|json|output|result|response|data)>"
_BULLET = r"[ \t]*+(?:[-*+\u2022]|[0-9]{1,3}[.)])[ \t]++"
# Behind a value, what begins another one: a tag, an entry of a list, or at the end a quote that is not closed, or a comma.
_begun = regex(
    rf"<{_TAGGED}|^{_BULLET}|(?:(?:\A|(?<=\s))(?:([\"'\u2018\u201c\u201e])(?:(?!\1).)*+|`{{1,2}}(?!`)[^`]*+)|,\s*+|[\"\u201c\u201d][^\w\n]*+)\Z",
    re.DOTALL | re.MULTILINE,
)
# A line that ends with a text in quotes, or an entry of a list that is words.
_entry_line = regex(rf"[\"'`\u2018\u201c][^\"'`\n]++[\"'`\u2019\u201d][^\w\n:]*+$|^{_BULLET}\w", re.MULTILINE)

# What renders or names a value, and what a line may begin with.
_MARKS = (
    regex(rf"(?:`{{3,}}|~{{3,}}){LANGUAGE}?", re.IGNORECASE),
    regex(rf"</?{_TAGGED}"),
    regex(r"^[ \t]*(?:(?:[-*+\u2022]|[0-9]{1,3}[.)])[ \t]+|#{1,6}[ \t]+(?=\w))", re.MULTILINE),
    regex(r"<\|(?:im_end|eot_id|endoftext|end)\|>|</s>"),
)
_emphasis = regex(r"[*_`\"'\u201c\u201d]{1,3}(?=\W|\Z)|(?:(?<=\W)|\A)[*_`\"'\u201c\u201d]{1,3}")
# Dots that stand for what was left out; behind a word they only end it.
_left_out = regex(r"(?<![\w.])\.(?:[ \t]*\.)+")
_pictures = regex("[\U0001f600-\U0001f60a\U0001f642\U0001f389\U0001f44d\u2705\u263a\ufe0f\u200b]")
_ends = regex(r"(?<=[\w)])\s*(?:[.,:;!]+|=(?=\s*\Z)|\((?=\s*\Z))|\n|\s[\u2013\u2014-](?=\s)|\A\s*[.,:;)]+|---+")
_words = regex(r"[a-z']+")
_parts = regex(r"[a-z]+|[A-Z]+(?![a-z])|[A-Z][a-z]+")


def says_nothing_before(words: str, names: Collection[str] = ()) -> bool:
    """Whether words before a value say that it comes, and nothing of it; `names` are further nouns for it."""
    return all(_is_one_of(phrase, _lead) for phrase in _phrases(words, names))


def says_nothing_between(words: str, names: Collection[str] = ()) -> bool:
    """Whether words between values that are meant alike say nothing of them."""
    return all(_is_one_of(phrase, _lead, _again, _closing) for phrase in _phrases(words, names))


def says_nothing_behind(words: str, names: Collection[str] = ()) -> bool:
    """Whether words behind a value end the answer, and say nothing of it."""
    if words.rstrip().endswith((":", "=")) or _conditional.match(words):
        return False
    return all(_is_one_of(phrase, _closing) for phrase in _phrases(words, names))


def begins_a_value(words: str) -> bool:
    """Whether words behind a value hold what begins another one."""
    return _begun.search(words) is not None


def names_a_value(words: str, is_choice: Callable[[str], bool]) -> bool:
    """Whether a line of words is an entry as in a list, or a phrase is, or begins with, a word that may be the value."""
    if _entry_line.search(words):
        return True
    return any(is_choice(phrase) or is_choice(phrase.split()[0]) for phrase in _phrases(words, ()))


def _is_one_of(phrase: str, *known: re.Pattern[str]) -> bool:
    return len(phrase) <= PHRASE_CHARS_MAX and any(each.fullmatch(phrase) for each in known)


def names_of(title: str) -> frozenset[str]:
    """The nouns for a value that a schema's title gives: LineItem is called line item, and LineItem."""
    parts = [part.lower() for part in _parts.findall(title)]
    return frozenset({*parts, "".join(parts)})


def _phrases(words: str, names: Collection[str]) -> list[str]:
    """The phrases of a piece of text, in small letters, without what only renders it."""
    said = words.replace("\u2019", "'").replace("\r", "")
    said = _left_out.sub("\u2026", said)
    for mark in _MARKS:
        said = mark.sub("", said)
    said = _ends.sub("\n", _pictures.sub("", _emphasis.sub("", said))).lower()
    if names:
        said = _words.sub(lambda found: "value" if found[0] in names else found[0], said)
    return [" ".join(phrase.split()) for phrase in said.split("\n") if phrase.strip()]
