"""GBNF is read as llama.cpp reads it, and whatever is wrong is told with its place."""

import pytest

from remit.constraint.grammar.gbnf import GRAMMAR_CHARS_MAX, GRAMMAR_INVALID, REPEATED_MAX, read_gbnf
from remit.constraint.grammar.grammar_rules import Chars
from remit.core.failure import RequestRejected

# Each was given to llama.cpp, which takes them.
GOOD = [
    'root ::= "a" root2\nroot2 ::= "b"',
    'root ::= "\\u0041" [\\x41-\\x43]{2} .',
    'root ::= ("a"\n | "b")',
    "root ::= [a-]+",
    'root::="a"',
    'root ::= "é" [é-ü]',
    'root ::= a\na ::= "x"\na ::= "y"',
    'root ::= [\\-a] "\\t"',
    'root ::= ""',
    'root ::= "a" | ',
    'root ::= ("a"*)* "b"',
    'root ::= "\\U0001F600"',
    'root ::= "a" {2}',
    '  root ::= "a"  # c\n\n# d\n',
    'root ::=\n "a" |\n "b"',
    'root ::= "a"{ 1 , 2 }',
    'root ::= ()"a"',
    'root ::= (\n"a"\n*\n)',
    'root ::= "ab"{2,}',
]

# Each is refused by llama.cpp, or does worse to it; with line, column and a word of the message.
BAD = [
    ("", 1, 1, "no rule 'root'"),
    ('root ::= a_b\na_b ::= "yes"', 1, 11, "no part of GBNF"),
    ('root ::= root "a" | "b"', 1, 1, "begin with itself"),
    ('root ::= a "b"\na ::= "x"? a "y" | "z"', 2, 1, "'a' can begin with itself"),
    ('root ::= a\na ::= b\nb ::= ("" | c)+ a\nc ::= "c"', 2, 1, "begin with itself"),
    ('root ::= "x" a\n  a ::= "y" | b\nb ::= b "z"', 3, 1, "'b' can begin with itself"),
    ("root ::= x", 1, 10, "no rule 'x'"),
    ('root ::= "a"\n | "b"', 2, 2, "expected the name"),
    ("root ::= [^]]", 1, 13, "no part of GBNF"),
    ('root ::= "a"{3000}', 1, 13, "repeats_max=2000"),
    ('root ::= "a"{2,1}', 1, 13, "ends before it begins"),
    ('root ::= "a"{,2}', 1, 13, "no part of GBNF"),
    ('root ::= "\\/"', 1, 10, "no part of GBNF"),
    ('root ::= "\\U00110000"', 1, 10, "no part of GBNF"),
    ("root ::= [a-z", 1, 10, "not closed"),
    ("root ::= [z-a]", 1, 10, "ends before it begins"),
    ("root ::= []", 1, 10, "name some"),
    ('root ::= "a', 1, 10, "not closed"),
    ('root ::= ("a"', 1, 14, "add ')'"),
    ('root ::= "a")', 1, 13, "ends with its line"),
    ("root ::= *", 1, 10, "cannot stand here"),
    ('root ::= "" *', 1, 13, "nothing here to repeat"),
    ('root ::= "a"**', 1, 14, "repeated twice"),
    ('a.b ::= "x"', 1, 2, "expected '::='"),
    ('root ::= "a" root3 root ::= "b"', 1, 25, "ends with its line"),
    ("root ::= " + "(" * 200 + ")" * 200, 1, 111, "nesting_max=100"),
]


@pytest.mark.parametrize("grammar", GOOD)
def test_a_grammar_that_llama_takes_is_read(grammar: str) -> None:
    assert "root" in read_gbnf(grammar)


@pytest.mark.parametrize(("grammar", "line", "column", "told"), BAD)
def test_a_grammar_that_is_none_is_refused_with_its_place(grammar: str, line: int, column: int, told: str) -> None:
    with pytest.raises(RequestRejected) as raised:
        read_gbnf(grammar)
    assert raised.value.code == GRAMMAR_INVALID
    assert told in raised.value.message
    assert (raised.value.details["line"], raised.value.details["column"]) == (line, column)


def test_a_grammar_too_long_to_read_is_refused() -> None:
    with pytest.raises(RequestRejected, match=f"grammar_chars_max={GRAMMAR_CHARS_MAX}"):
        read_gbnf(f'root ::= "{"a" * GRAMMAR_CHARS_MAX}"')


def test_a_rule_is_alternatives_of_characters_and_names() -> None:
    rules = read_gbnf('root ::= [^a-c] item | .\nitem ::= "xy"')
    assert rules["root"] == ((Chars(((97, 99),), is_negated=True), "item"), (Chars((), is_negated=True),))
    assert rules["item"] == ((Chars(((120, 120),)), Chars(((121, 121),))),)


def test_long_chains_of_rules_are_read_in_no_time() -> None:
    chain = "\n".join(f"r{n} ::= r{n + 1}" for n in range(4000))
    assert len(read_gbnf(f'root ::= r0\n{chain}\nr4000 ::= ""')) == 4002
    with pytest.raises(RequestRejected, match="begin with itself"):
        read_gbnf(f"root ::= r0\n{chain}\nr4000 ::= r0")


@pytest.mark.parametrize(
    ("grammar", "told"),
    [
        ('root ::= "a\0b"', "line 1, column 12"),
        ('root ::= "\\ud800"', "line 1, column 11"),
        ("root ::= [\\uD800-\\uDFFF]", "half of one"),
        ("root ::= " + " ".join(["[a-z]{0,2000}"] * 26), f"repeated_max={REPEATED_MAX}"),
    ],
)
def test_what_no_engine_could_use_is_refused(grammar: str, told: str) -> None:
    with pytest.raises(RequestRejected) as raised:
        read_gbnf(grammar)
    assert told in raised.value.message
