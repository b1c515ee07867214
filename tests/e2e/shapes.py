"""Shapes that a small model is asked for: schemas of many kinds and grammars, each with a prompt.

Every shape is bounded, so that a model that is held to it comes to an end within TOKENS.
"""

from typing import Any, NamedTuple

from remit.core.record import JsonObject

# More than the longest value of any shape here takes.
TOKENS = 700


class Shaped(NamedTuple):
    """A schema, what is asked with it, and a value that fits and answers something else."""

    name: str
    prompt: str
    schema: JsonObject
    example: Any


class Spelled(NamedTuple):
    """A grammar, what is asked with it, a regular expression for the same texts, and one of them."""

    name: str
    prompt: str
    grammar: str
    expression: str
    example: str


def of(*, optional: tuple[str, ...] = (), **properties: JsonObject) -> JsonObject:
    """An object of these properties and no others."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def text(length: int) -> JsonObject:
    """A text of at most so many characters."""
    return {"type": "string", "maxLength": length}


def whole(least: int, most: int) -> JsonObject:
    """An integer between two."""
    return {"type": "integer", "minimum": least, "maximum": most}


def some(items: JsonObject, least: int, most: int) -> JsonObject:
    """An array of between so many items."""
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


SCHEMAS = (
    Shaped(
        "person",
        "Ada Lovelace was born in 1815 and wrote about the Analytical Engine.",
        of(name=text(40), born=whole(1000, 2100)),
        {"name": "Alan Turing", "born": 1912},
    ),
    Shaped(
        "verdict",
        "Is the sky blue on a clear day?",
        of(answer={"enum": ["yes", "no", "unsure"]}),
        {"answer": "no"},
    ),
    Shaped(
        "colours",
        "Name three colours.",
        of(colours=some(text(12), 3, 3)),
        {"colours": ["teal", "pink", "grey"]},
    ),
    Shaped(
        "price",
        "A cup of coffee costs three euros and twenty cents.",
        of(amount={"type": "number", "minimum": 0, "maximum": 1000}, currency={"enum": ["EUR", "USD", "GBP"]}),
        {"amount": 7.5, "currency": "GBP"},
    ),
    Shaped(
        "ticket",
        "The printer on the second floor is out of paper and people are waiting.",
        of(title=text(40), urgent={"type": "boolean"}, tags=some({"enum": ["hardware", "paper", "network"]}, 1, 3)),
        {"title": "No light in room 4", "urgent": False, "tags": ["hardware"]},
    ),
    Shaped(
        "address",
        "Write to Jane Miller, 12 Oak Street, Springfield, 62704.",
        of(name=text(30), place=of(street=text(30), city=text(30), zip={"type": "string", "pattern": "^[0-9]{5}$"})),
        {"name": "Tom Reed", "place": {"street": "3 Elm Road", "city": "Salem", "zip": "97301"}},
    ),
    Shaped(
        "date",
        "The meeting is on the fourth of July 2026.",
        of(day={"type": "string", "format": "date"}),
        {"day": "2025-12-24"},
    ),
    Shaped(
        "moment",
        "The train left at nine in the morning of the second of March 2026.",
        of(at={"type": "string", "format": "date-time"}, place={"anyOf": [text(20), {"type": "null"}]}),
        {"at": "2025-01-31T18:30:00Z", "place": "Leeds"},
    ),
    Shaped(
        "nullable",
        "Nobody knows the middle name of this person.",
        of(middle_name={"type": ["string", "null"]}),
        {"middle_name": "Marie"},
    ),
    Shaped(
        "either",
        "The answer may be a number or a word. How many legs has a spider?",
        of(answer={"anyOf": [whole(0, 100), text(10), {"type": "boolean"}]}),
        {"answer": 12},
    ),
    Shaped(
        "tagged",
        "Draw a circle with a radius of five.",
        {
            "oneOf": [
                of(shape={"const": "circle"}, radius=whole(1, 100)),
                of(shape={"const": "square"}, side=whole(1, 100)),
            ]
        },
        {"shape": "square", "side": 3},
    ),
    Shaped(
        "referred",
        "Anna and Ben play chess; Anna is 31 and Ben is 27.",
        {
            **of(white={"$ref": "#/$defs/player"}, black={"$ref": "#/$defs/player"}),
            "$defs": {"player": of(name=text(15), age=whole(0, 120))},
        },
        {"white": {"name": "Eve", "age": 44}, "black": {"name": "Max", "age": 52}},
    ),
    Shaped(
        "optional",
        "Sam sells apples. There is no discount.",
        of(optional=("discount", "note"), seller=text(20), discount=whole(0, 100), note=text(30)),
        {"seller": "Kim", "discount": 10},
    ),
    Shaped(
        "code",
        "Make up a product code.",
        of(code={"type": "string", "pattern": "^[A-Z]{3}-[0-9]{2,4}$"}),
        {"code": "QRS-2044"},
    ),
    Shaped(
        "list",
        "List two cities with their population in millions.",
        some(of(city=text(20), millions=whole(0, 50)), 1, 2),
        [{"city": "Lima", "millions": 10}],
    ),
    Shaped(
        "pair",
        "Give a point as a label and two coordinates.",
        of(
            point={
                "type": "array",
                "prefixItems": [text(8), whole(-90, 90), whole(-180, 180)],
                "items": False,
                "minItems": 3,
            }
        ),
        {"point": ["home", 12, -77]},
    ),
    Shaped(
        "merged",
        "A red car with four doors.",
        {
            "allOf": [
                {
                    "type": "object",
                    "properties": {"colour": {"enum": ["red", "green", "blue"]}},
                    "required": ["colour"],
                },
                {"type": "object", "properties": {"doors": whole(1, 6)}, "required": ["doors"]},
            ]
        },
        {"colour": "blue", "doors": 2},
    ),
    Shaped(
        "survey",
        "I liked the food very much, the service less, and the music not at all.",
        of(
            food=whole(1, 5),
            service=whole(1, 5),
            music=whole(1, 5),
            again={"type": "boolean"},
            words=some(text(15), 0, 4),
        ),
        {"food": 2, "service": 5, "music": 3, "again": True, "words": ["loud"]},
    ),
    Shaped(
        "nested",
        "A library has a shelf of history with two books and an empty one of art.",
        of(library=of(shelves=some(of(topic=text(15), books=some(of(title=text(20)), 0, 2)), 1, 2))),
        {"library": {"shelves": [{"topic": "maps", "books": [{"title": "Atlas"}]}]}},
    ),
    Shaped(
        "constant",
        "Acknowledge this message.",
        of(
            version={"const": 1},
            kind={"const": "ack"},
            id={"type": "string", "format": "uuid"},
            ratio={"type": "number", "minimum": 0, "maximum": 1},
        ),
        {"version": 1, "kind": "ack", "id": "3f2b8c1e-9a4d-4e7f-8b6a-0c5d1e2f3a4b", "ratio": 0.5},
    ),
)

GRAMMARS = (
    Spelled(
        "verdict",
        "Is water wet? Give a verdict and a short reason.",
        'root ::= verdict ": " [a-zA-Z ]{3,40} "."\nverdict ::= "yes" | "no" | "unsure"\n',
        r"(yes|no|unsure): [a-zA-Z ]{3,40}\.",
        "no: stones do not float.",
    ),
    Spelled(
        "list",
        "List things to buy for breakfast.",
        'root ::= item{2,4}\nitem ::= "- " [a-z]{2,12} (" " [a-z]{2,12})? "\\n"\n',
        r"(- [a-z]{2,12}( [a-z]{2,12})?\n){2,4}",
        "- red pencils\n- paper\n",
    ),
    Spelled(
        "sum",
        "Write twelve plus seven times three as an expression.",
        'root ::= term (op term){1,4}\nterm ::= [0-9]{1,3} | "(" [0-9]{1,3} op [0-9]{1,3} ")"\nop ::= " " [-+*/] " "\n',
        r"T( [-+*/] T){1,4}".replace("T", r"([0-9]{1,3}|\([0-9]{1,3} [-+*/] [0-9]{1,3}\))"),
        "4 * (9 - 2)",
    ),
    Spelled(
        "table",
        "Name two animals and how many legs they have.",
        'root ::= "animal;legs\\n" row{2}\nrow ::= [A-Z] [a-z]{2,10} ";" [0-9]{1,2} "\\n"\n',
        r"animal;legs\n([A-Z][a-z]{2,10};[0-9]{1,2}\n){2}",
        "animal;legs\nAnt;6\nCrab;10\n",
    ),
    Spelled(
        "moves",
        "Open with a chess move and answer it.",
        'root ::= "1. " move " " move\nmove ::= [NBRQK]? [a-h] [1-8] | "O-O"\n',
        r"1\. M M".replace("M", "([NBRQK]?[a-h][1-8]|O-O)"),
        "1. c4 Nf6",
    ),
)
