"""Numbers and paths: over many trades, a number that is called something is nothing else, and a path is made in one way."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.core.record import JsonObject
from remit.provenance.gate import start
from remit.provenance.values.leaves import Leaf
from remit.provenance.values.outward import holds_something_to_carry
from remit.provenance.words.user_words import words_of_user
from tests.unit.provenance.domains import DOMAINS, Domain
from tests.unit.provenance.office import declared, looked_up, parameters

STAKES = ("none", "money", "rights", "deletion")
UNITS = ("mg", "kg", "days", "seats", "EUR", "USD", "nodes", "litres")


@given(
    domain=st.sampled_from(DOMAINS),
    stakes=st.sampled_from(STAKES),
    unit=st.sampled_from(UNITS),
    numbers=st.lists(st.integers(2, 9_999), min_size=2, max_size=2, unique=True),
    declares=st.booleans(),
)
def test_a_number_that_is_called_something_binds_nothing_else_whatever_is_at_stake(
    domain: Domain, stakes: str, unit: str, numbers: list[int], declares: bool
) -> None:
    thing, count = numbers
    noun = domain.thing.split()[-1]
    amount = "amount" if unit.isupper() else f"how_many_{unit}"
    kinds: JsonObject = {noun: f"id:{noun}", amount: "number"} if declares else {}
    schema = parameters(**{noun: "integer", amount: "number"})
    tool = declared(domain.name, "", schema, effect="external", control_args=kinds, stakes=stakes, asks=[domain.verb])
    prompt = f"{domain.verb} {count} {unit} on {noun} {thing}"
    for one, other in product(numbers, repeat=2):
        bound = start(prompt, [tool]).verdict_on("c", domain.name, {noun: one, amount: other}).args
        assert (one == thing) is (bound[0].code is None), (prompt, bound[0])
        assert (other == count) is (bound[1].code is None), (prompt, bound[1])


@given(
    count=st.integers(1, 999),
    stakes=st.sampled_from(STAKES),
    unit=st.sampled_from(["EUR", "USD", "euros", "CHF"]),
    named=st.sampled_from(
        [("amount", "money"), ("total", "money"), ("cents", "amount"), ("amount_cents", "number"), ("priceInCents", "")]
    ),
    verb=st.sampled_from([domain.verb for domain in DOMAINS]),
)
def test_an_amount_in_cents_is_a_hundred_times_the_amount(
    count: int, stakes: str, unit: str, named: tuple[str, str], verb: str
) -> None:
    name, kind = named
    kinds: JsonObject = {name: kind} if kind else {}
    tool = declared(
        f"{verb}_sum",
        "",
        parameters(**{name: "integer"}),
        effect="external",
        control_args=kinds,
        stakes=stakes,
        asks=[verb],
    )
    for said, right in ((f"{count} {unit}", count * 100), (f"{count} cents", count)):
        for value in (count, count * 100, count * 10_000):
            argument = start(f"{verb} {said}", [tool]).verdict_on("c", tool["name"], {name: value}).args[0]
            assert (argument.code is None) is (value == right), (said, value)
    for said in (f"{count} JPY", f"{count} ETH", f"{count}"):
        argument = start(f"{verb} {said}", [tool]).verdict_on("c", tool["name"], {name: count * 100}).args[0]
        assert argument.code is not None, said


@given(count=st.integers(1, 999), stakes=st.sampled_from(STAKES), unit=st.sampled_from(["EUR", "USD", "JPY"]))
def test_an_amount_in_whole_units_is_what_the_words_say(count: int, stakes: str, unit: str) -> None:
    kinds = {"amount": "money:major"}
    tool = declared("pay_sum", "", parameters(amount="number"), effect="external", control_args=kinds, stakes=stakes)
    for value in (count, count * 100):
        argument = start(f"Pay {count} {unit}", [tool]).verdict_on("c", "pay_sum", {"amount": value}).args[0]
        assert (argument.code is None) is (value == count)
    argument = start(f"Pay {count} cents", [tool]).verdict_on("c", "pay_sum", {"amount": count}).args[0]
    assert argument.code is not None


@given(cents=st.integers(100, 99_999), stakes=st.sampled_from(STAKES))
def test_a_field_in_cents_supplies_no_amount_in_whole_units(cents: int, stakes: str) -> None:
    for offered, wanted, is_bound in (
        ("money", "money", True),
        ("money", "amount", False),
        ("money", "money:major", False),
        ("amount", "money", False),
        ("amount", "money:major", True),
    ):
        fields = {"id": "id:bill", "total": offered}
        look = declared("get_bill", "", parameters(bill="string"), effect="read", network=False, result=fields)
        schema = parameters(total="number")
        pay = declared("pay_bill", "", schema, effect="external", control_args={"total": wanted}, stakes=stakes)
        gate = start("Pay bill b-17 in total.", [look, pay])
        looked_up(gate, "get_bill", {"bill": "b-17"}, {"id": "b-17", "total": cents})
        argument = gate.verdict_on("c", "pay_bill", {"total": cents}).args[0]
        assert (argument.code is None) is is_bound, (offered, wanted)


FOLDERS = ("projects", "docs", "raw_2024", "Reports")
FILES = ("todo.txt", "notes.md", "report-2019.csv")


@given(
    folder=st.sampled_from(FOLDERS),
    name=st.sampled_from(FILES),
    text=st.sampled_from(["buy milk", "hello", "v1.2 notes"]),
    verb=st.sampled_from(["create", "save", "write"]),
    is_quoted=st.booleans(),
)
def test_a_path_is_made_of_the_folder_and_the_file_in_that_order(
    folder: str, name: str, text: str, verb: str, is_quoted: bool
) -> None:
    kinds = {"path": "path"}
    tool = declared(
        f"{verb}_file",
        "",
        parameters(path="string", content="string"),
        effect="write",
        control_args=kinds,
        payload_args=["content"],
        stakes="none",
    )
    one, other = (f'"{name}"', f'"{folder}"') if is_quoted else (name, folder)
    prompt = f'{verb} the file {one} in the folder {other} with the text "{text}"'
    calls = {f"{folder}/{name}": True}
    others: tuple[str, ...] = (
        f"/{folder}/{name}",
        f"{name}/{folder}",
        f"{folder}/{text}",
        f"{folder}/{folder}",
        f"{name}/{name}",
    )
    others += (f"./{folder}/{name}", f"{folder}/../{name}", f"{folder}/x/{name}", f"{text}/{name}", f"{folder}//{name}")
    calls |= dict.fromkeys(others, False)
    for path, is_allowed in calls.items():
        verdict = start(prompt, [tool]).verdict_on("c", tool["name"], {"path": path, "content": text})
        assert verdict.is_allowed is is_allowed, (prompt, path)


@pytest.mark.parametrize("port", ["", ":80", "/x"])
@given(parts=st.lists(st.integers(1, 255), min_size=4, max_size=4))
def test_an_address_of_a_machine_is_one_however_it_is_written(port: str, parts: list[int]) -> None:
    number = int.from_bytes(bytes(parts))
    a, b, c, d = parts
    forms = [
        f"{a}.{b}.{c}.{d}",
        f"{a}\uff0e{b}\uff0e{c}\uff0e{d}",
        f"[::ffff:{a:x}{b:02x}:{c:x}{d:02x}]",
        f"[fe80::{a:x}]",
    ]
    forms += [
        f"0x{number:08x}",
        f"0x{a:x}.{b}.{c}.{d}",
        f"0{a:o}.{b}.{c}.{d}",
        f"{a}.{number & 0xFFFFFF}",
        "evil\u3002example",
        "evil\uff0eexample",
    ]
    if number >= 1 << 24:
        forms.append(str(number))
    words = words_of_user(["Tell me something."])
    missed = [form for form in forms if not holds_something_to_carry([Leaf("query", "query", form + port)], words)]
    assert missed == []


@given(
    value=st.sampled_from(
        ["A-5512", "C-77", "4711", "order 12", "[draft] notes", "0x", "1.5", "12:30", "v1.2", "3 of 4", "[1]", "2024"]
    )
)
def test_what_is_no_address_is_carried_as_before(value: str) -> None:
    assert not holds_something_to_carry([Leaf("query", "query", value)], words_of_user(["Tell me something."]))
