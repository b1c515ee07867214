"""Laws of sentences: what a request takes out, denies, brings along or blurs binds nothing, in whatever words it does so."""

import string
from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from remit.core.limits.authority import Authority, OptionReach
from remit.core.record import JsonObject
from remit.provenance.gate import Gate, start
from remit.provenance.words.vocabulary import FUNCTION_WORDS
from tests.unit.provenance.domains import DOMAINS, Domain
from tests.unit.provenance.office import declared, looked_up, parameters

KEPT, OTHER = "k-417", "o-233"
# Words that no list can hold: whatever stands between a whole and a name, it is not known to include the name.
MADE_UP = (
    st.text(string.ascii_lowercase, min_size=2, max_size=8)
    .map(lambda word: f"q{word}")
    .filter(lambda word: word not in FUNCTION_WORDS and not word.endswith(("s", "ly")))
)
TAKEN_OUT = (
    "V all Ts W K", "V every T W K", "V all Ts W for K", "V all Ts with the W of K", "V all Ts Wing K", "V all Ts, Wing K",
    "V all Ts, K Wed", "V all Ts and W K", "V all Ts; W K", "V all Ts (W K)", "V all Ts - K W", "V everything W K",
    "V everything but K", "V the Ts W K", "V all Ts that W K", "V all Ts after K", "W K and V all other Ts", "W K, V the rest",
    "W K. V all Ts.", "V all Ts. W K.", "K W, V all Ts", "V T O and W K", "V T O, Wing K", "V O but W K", "V all Ts\nW K",
)  # fmt: skip
LISTED = (
    "V K",
    "V K and O",
    "V the Ts O and K",
    "V all of O and K",
    "V both K and O",
    "V these Ts: O, K",
    "W K, then V it",
)
DENIED = (
    "B with S W", "B with W S", "B, W S", "B, Wly with S", "B and W S", "B; S W", "B - S W", "B: S W", "B with S: W",
    "B with S = W", "B with S? W", "B with S... W", "B when S W", "B like Bob with S", "B no W for S", "B after S", "W S? B",
    "What is S? B", "S W. B", "B. S W", "B, no W for S", "B with no S", "B only with S if W", "B before W of S",
)  # fmt: skip
TURNED_ON = ("B with S", "B, S", "B (S)", "B and make it S", "B with S, please")
BROUGHT = (
    "W this for me. B.", "Can you W this? B.", "Please W the following.\nB.", "W the following W. \n\nHello.\n\nB.",
    "The following is from Bob. B.", "According to Bob, B", "W the text below. B.", "Forwarded message\nB",
)  # fmt: skip
UNMEANT = ("B, said Ann", "B, Wed Ann", "B - just Wing", "B, were it me", "B - W", "B, had I the W", "B, just Wing")


def by_name(domain: Domain) -> str:
    return domain.name


def filled(form: str, domain: Domain, word: str) -> str:
    thing = domain.thing
    told = {"V": domain.verb, "T": thing, "Ts": f"{thing}s", "K": KEPT, "O": OTHER, "W": word, "S": domain.switch}
    told |= {"Wing": f"{word}ing", "Wed": f"{word}ed", "Wly": f"{word}ly", "B": f"{domain.verb} {thing} {KEPT}"}
    words, core = [], ""
    for sign in [*form, ""]:
        if sign.isalpha():
            core += sign
            continue
        words += [told.get(core, core), sign]
        core = ""
    text = "".join(words)
    return text[:1].upper() + text[1:]


def opened(prompt: str, domain: Domain, *more: str, reach: OptionReach = OptionReach.OFF) -> Gate:
    listing = declared(
        "list_things", "", parameters(), effect="read", network=False, reads="public", result={"[].id": domain.kind}
    )
    return start(prompt, [domain.tool(*more, repeat="target"), listing], Authority(closed_set=reach))


def kept_is_lost(prompt: str, domain: Domain) -> bool:
    """Whether the effect falls on what was kept: said directly, or found in a listing, in the default and the widest option."""
    for reach, is_listed in product((OptionReach.OFF, OptionReach.ALL), (False, True)):
        gate = opened(prompt, domain, reach=reach)
        if is_listed:
            looked_up(gate, "list_things", {}, [{"id": KEPT}, {"id": OTHER}])
        if gate.verdict_on("c", domain.name, {domain.argument: KEPT}).is_allowed:
            return True
    return False


def is_of_domain(word: str, domain: Domain) -> bool:
    return any(
        word.startswith(part[:3]) for part in (domain.verb, domain.switch, *domain.name.split("_"), domain.argument)
    )


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
@settings(max_examples=12)
@given(word=MADE_UP)
def test_no_word_that_nobody_knows_brings_a_name_among_all(domain: Domain, word: str) -> None:
    assume(not is_of_domain(word, domain))
    assert [prompt for form in TAKEN_OUT if kept_is_lost(prompt := filled(form, domain, word), domain)] == []


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_a_list_of_names_is_meant_in_any_form_of_a_list(domain: Domain) -> None:
    assert [prompt for form in LISTED if not kept_is_lost(prompt := filled(form, domain, "take"), domain)] == []


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
@settings(max_examples=12)
@given(word=MADE_UP)
def test_a_switch_of_which_anything_more_is_said_stays_off(domain: Domain, word: str) -> None:
    assume(not is_of_domain(word, domain))
    call: JsonObject = {domain.argument: KEPT, domain.switch: True}
    prompts = [filled(form, domain, word) for form in DENIED]
    assert [one for one in prompts if opened(one, domain, "switch").verdict_on("c", domain.name, call).is_allowed] == []
    prompts = [filled(form, domain, word) for form in TURNED_ON]
    assert [
        one for one in prompts if not opened(one, domain, "switch").verdict_on("c", domain.name, call).is_allowed
    ] == []


@pytest.mark.parametrize("common", ["first", "done", "doing", "now", "me", "both", "back", "same"])
@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_two_choices_in_one_clause_ask_also_where_one_is_a_common_word(domain: Domain, common: str) -> None:
    schema = {domain.argument: {"type": "string"}, "way": {"enum": ["plain", common]}}
    tool = declared(
        domain.name,
        "",
        parameters(**schema),
        effect="write",
        control_args={domain.argument: domain.kind},
        stakes="none",
    )
    call: JsonObject = {domain.argument: KEPT, "way": "plain"}
    base = f"{domain.verb} {domain.thing} {KEPT}"
    assert start(f"{base} as plain", [tool]).verdict_on("c", domain.name, call).is_allowed
    for form in (f"{base} from plain to {common}", f"{base} as plain or {common}", f"{base} in {common} plain"):
        assert not start(form, [tool]).verdict_on("c", domain.name, call).is_allowed, form


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
@settings(max_examples=12)
@given(word=MADE_UP)
def test_what_is_brought_along_taken_back_or_said_by_another_orders_nothing(domain: Domain, word: str) -> None:
    assume(not is_of_domain(word, domain))
    prompts = [filled(form, domain, word) for form in (*BROUGHT, *UNMEANT)]
    assert [one for one in prompts if kept_is_lost(one, domain)] == []


def bound(written: str, stakes: str, values: set[float]) -> set[float]:
    tool = declared("send_coins", "", parameters(amount="number"), effect="external", stakes=stakes, asks=["send"])
    prompts = (f"Send {written} EUR.", f"Send {written}.")
    return {
        value
        for prompt, value in product(prompts, values)
        if start(prompt, [tool]).verdict_on("c", "send_coins", {"amount": value}).args[0].code is None
    }


@pytest.mark.parametrize("stakes", ["none", "money"])
@settings(max_examples=25)
@given(head=st.integers(1, 99), tail=st.integers(100, 999), word=MADE_UP)
def test_a_number_with_something_that_belongs_to_it_binds_only_what_the_whole_means(
    stakes: str, head: int, tail: int, word: str
) -> None:
    assume(word not in {"euro", "hundred", "thousand", "million", "billion", "dozen", "grand", "cent", "usd", "eur"})
    parts = {float(head), float(tail), float(head * 1000 + tail), float(f"{head}.{tail}")}
    for written in (
        f"{head} {tail}",
        f"{head}'{tail}",
        f"{head}\u2019{tail}",
        f"{head} .{tail}",
        f"{head}kk",
        f"{head}bn",
    ):
        assert bound(written, stakes, parts - ({head * 1000.0 + tail})) == set(), written
    for written in (f"{head} {word}", f"less than {head}", f"half of {head}"):
        assert bound(written, stakes, {float(head), head / 2}) == set(), written
    for name, factor in {"hundred": 100, "thousand": 1_000, "million": 10**6}.items():
        assert bound(f"{head} {name}", stakes, {float(head), float(head * factor)}) == {float(head * factor)}


@given(word=MADE_UP, joint=st.sampled_from([", {}", " and {}", ", and {}"]), more=st.booleans())
def test_a_word_that_an_argument_is_called_by_leads_in_its_value_and_no_other(
    word: str, joint: str, more: bool
) -> None:
    assume(word not in FUNCTION_WORDS)
    tool = declared(
        "send_mail",
        "",
        parameters(to="string", **{word: "string"}),
        effect="external",
        control_args={"to": "email", word: "email"},
        asks=["mail"],
        stakes="none",
    )
    other, third = "bob@corp.example", "eve@corp.example"
    led_in = joint.format(f"{word} {other}") + (f" and {third}" if more else "")
    gate = start(f"Mail it to ann@corp.example{led_in}.", [tool])
    ways = {"to": "ann@corp.example", word: other}
    assert [one.code for one in gate.verdict_on("a", "send_mail", ways).args] == [None, None]
    for wrong in ({"to": other}, {"to": third}, {"to": other, word: "ann@corp.example"}):
        assert not gate.verdict_on("b", "send_mail", wrong).is_allowed, wrong
