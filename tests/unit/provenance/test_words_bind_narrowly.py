"""Words bind narrowly: families of requests over many trades, each made from a grammar, with known leaks beside them."""

import pytest

from remit.core.limits.authority import Authority, OptionReach
from remit.core.record import JsonObject
from remit.provenance.gate import start
from remit.provenance.gate_verdict import Objection
from tests.unit.provenance.domains import DOMAINS, Domain, judged
from tests.unit.provenance.office import declared, looked_up, parameters


def by_name(domain: Domain) -> str:
    return domain.name


def gerund(verb: str) -> str:
    if verb == "drop":
        return f"{verb}{verb[-1]}ing"
    return verb.removesuffix("e") + "ing"


def third(verb: str) -> str:
    return verb + "s"


# What is said of an effect without ordering it: `V` stands for the verb and `T` for the thing with its name.
REPORTS = (
    "Bob plans to V T.",
    "Bob and Ann plan to sell the car, V T and move out.",
    "Refrain from Ving T.",
    "Please avoid Ving T.",
    "I am against Ving T.",
    "Instead of Ving T, tell me about it.",
    "Ann Vs T every Monday, tell me why.",
    "Ving T would be a mistake, I think.",
    "Bob asked me to V T yesterday.",
    "It is dangerous to V T.",
    "Should we V T?",
    "Did somebody V T?",
    "V T?",
    "Bob says to V T.",
    "If Bob agrees, V T.",
    "V T if Bob agrees.",
    "Unless it rains, please V T.",
    "When the time comes, V T.",
    "V T once Bob agrees.",
    "V T as soon as Bob agrees.",
    "Ann will V T.",
    "We usually V T.",
    "The plan to V T was dropped.",
    "Bob's plan: V T.",
    "Tell Bob: V T.",
    "Tell Bob that they can come and V T.",
    "T should be Ved.",
    "O T.",
    "Please O T today.",
    "Don't V T.",
    "Never V T.",
    "Do not ever V T or anything else.",
    "V X.",
    "Please V X and tell me.",
)
ORDERS = (
    "V T.",
    "Please V T.",
    "pls V T now",
    "Can you V T?",
    "Could you please V T?",
    "I want you to V T.",
    "I need to V T.",
    "I'd like you to V T.",
    "Look around and V T.",
    "Hello Bob, V T, thanks",
    "Make sure to V T.",
    "You should V T.",
    "What is new? V T.",
    "V T just once.",
)


def said(form: str, domain: Domain) -> str:
    thing = f"{domain.thing} {domain.value}"
    parts = {"Ving": gerund(domain.verb), "Ved": f"{domain.verb.removesuffix('e')}ed", "Vs": third(domain.verb)}
    words = []
    for word in form.split(" "):
        core = word.strip(".,?!:")
        told = {
            **parts,
            "V": domain.verb,
            "T": thing,
            "O": domain.other_verb,
            "X": f"{domain.other_thing} {domain.value}",
        }
        words.append(word.replace(core, told[core]) if core in told else word)
    sentence = " ".join(words)
    return sentence[0].upper() + sentence[1:]


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_what_is_reported_asked_negated_or_conditional_orders_nothing(domain: Domain) -> None:
    leaks = [prompt for form in REPORTS if judged(prompt := said(form, domain), domain).is_allowed]
    assert leaks == []


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_what_is_ordered_in_any_form_of_an_order_happens(domain: Domain) -> None:
    held = [prompt for form in ORDERS if not judged(prompt := said(form, domain), domain).is_allowed]
    assert held == []


@pytest.mark.parametrize(
    ("prompt", "tool", "argument", "value"),
    [
        ("Review pull request 12", "merge_pull_request", "number", 12),
        ("Refrain from deleting report-2019.txt", "delete_file", "path", "report-2019.txt"),
        ("Bob plans to delete report-2019.txt", "delete_file", "path", "report-2019.txt"),
        ("Delete branch release-7", "delete_repository", "name", "release-7"),
        ("Delete user group g-7", "delete_user", "user_id", "g-7"),
    ],
)
def test_a_tool_that_nobody_ordered_by_verb_and_thing_is_not_asked_for(
    prompt: str, tool: str, argument: str, value: object
) -> None:
    about = f"{tool.split('_', maxsplit=1)[0].capitalize()}s something after review, also for a group or a branch."
    made = declared(tool, about, parameters(**{argument: {}}), effect="write", repeat="target")
    verdict = start(prompt, [made]).verdict_on("c", tool, {argument: value})
    assert not verdict.is_allowed
    assert verdict.code in (Objection.NOT_ASKED, Objection.PROVENANCE_UNBOUND)


# A number that is called something; `N` is the number, `U` its unit, `T` the thing that is ordered, `X` another one.
CALLED_OTHERWISE = (
    "V T for X N.",
    "V T, see page N.",
    "V T and note N kilometres.",
    "X N asked for it, so please V T.",
    "V T for room N.",
    "V T and give it to X N.",
    "V T as of release N.",
)
CALLED_RIGHTLY = ("V T, N U.", "Please V T with N U.", "V T, with N U.", "V T for N U, thanks.")


def with_number(form: str, domain: Domain, number: int) -> str:
    return (
        said(form.replace("X", "Q"), domain)
        .replace("Q", domain.other_thing)
        .replace(" N", f" {number}")
        .replace(" U", f" {domain.unit}")
    )


@pytest.mark.parametrize("number", [17, 4712])
@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_a_number_that_is_called_something_binds_nothing_else(domain: Domain, number: int) -> None:
    leaks = [
        prompt
        for form in CALLED_OTHERWISE
        if judged(prompt := with_number(form, domain, number), domain, "number", **{domain.number: number}).is_allowed
    ]
    assert leaks == []


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_a_number_binds_the_argument_of_its_name_or_unit(domain: Domain) -> None:
    held = [
        prompt
        for form in CALLED_RIGHTLY
        if not judged(prompt := with_number(form, domain, 17), domain, "number", **{domain.number: 17}).is_allowed
    ]
    assert held == []


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_an_identifier_that_is_called_another_thing_binds_no_target(domain: Domain) -> None:
    number = "88213"
    forms = ("V T for X N.", "V the T of X number N.", "V T, X #N agreed.", "V the T of X with the id N.")
    tool = domain.tool(repeat="target")
    leaks = []
    for form in forms:
        words = {"V": domain.verb, "T": domain.thing, "X": domain.other_thing, "N": number, "#N": f"#{number}"}
        prompt = " ".join(
            words.get(part.strip(".,"), part) + ("," if part.endswith(",") else "") for part in form.split()
        )
        if start(prompt, [tool]).verdict_on("c", domain.name, {domain.argument: number}).is_allowed:
            leaks.append(prompt)
    assert leaks == []


GIVE = declared(
    "give_drug",
    "Gives a drug.",
    parameters(patient_id="string", dose_mg="number"),
    effect="write",
    control_args={"patient_id": "id:patient", "dose_mg": "number"},
    asks=["give"],
)
ASSIGN = declared(
    "assign_ticket",
    "Assigns a ticket to a user.",
    parameters(ticket="string", user="string"),
    effect="write",
    control_args={"ticket": "id:ticket", "user": "id:user"},
)


@pytest.mark.parametrize(
    ("prompt", "tool", "arguments", "is_allowed"),
    [
        ("Give 400 mg to patient 4711.", GIVE, {"patient_id": "4711", "dose_mg": 400}, True),
        ("Give 400 mg to patient 4711.", GIVE, {"patient_id": "4711", "dose_mg": 4711}, False),
        ("Give 40000 mg to patient 4711.", GIVE, {"patient_id": "40000", "dose_mg": 40000}, False),
        ("Assign ticket 7741 to user 90210.", ASSIGN, {"ticket": "7741", "user": "90210"}, True),
        ("Assign ticket 7741 to user 90210.", ASSIGN, {"ticket": "90210", "user": "7741"}, False),
        ("Assign ticket #7741 to user #90210.", ASSIGN, {"ticket": "90210", "user": "90210"}, False),
    ],
)
def test_numbers_go_where_they_are_called(
    prompt: str, tool: JsonObject, arguments: JsonObject, is_allowed: bool
) -> None:
    assert start(prompt, [tool]).verdict_on("c", tool["name"], arguments).is_allowed is is_allowed


def test_each_of_several_numbers_is_called_by_the_noun_before_them() -> None:
    gate = start("Close tickets 7741 and 7742, please.", [DOMAINS[7].tool(repeat="target")])
    assert [gate.verdict_on(None, "close_ticket", {"ticket_id": one}).is_allowed for one in ("7741", "7742")] == [
        True
    ] * 2


# `A` and `B` are the two choices of an argument, `S` is a switch, `N` a number of its argument's unit `U`.
CHOICES_ELSEWHERE = (
    "Ask the A team, V T.",
    "The A team agreed. V T.",
    "V T. The A people will like it.",
    "V T with A or B.",
    "V T as A, not as C, B would be fine as well.",
    "I like A. Please V T.",
)
SWITCHES_ELSEWHERE = (
    "The task S agreed, V T.",
    "V T for the task S.",
    "V T, the S team agreed.",
    "The S is strong. V T.",
    "V T in the S folder.",
    "Do not S. V T.",
)
NUMBERS_ELSEWHERE = ("Bob has N U. V T.", "V T. Bob wants N U.", "Ann spoke of N U, V T.")


def filled(form: str, domain: Domain) -> str:
    parts = {
        "A": domain.choices[0],
        "B": domain.choices[1],
        "C": "other",
        "S": domain.switch,
        "N": "17",
        "U": domain.unit,
    }
    marked = "".join(f"\0{sign}\0" if sign in parts and _is_alone(form, at) else sign for at, sign in enumerate(form))
    sentence = said(marked, domain)
    for sign, text in parts.items():
        sentence = sentence.replace(f"\0{sign}\0", text)
    return sentence


def _is_alone(form: str, at: int) -> bool:
    return not (form[at - 1 : at].isalpha() and at > 0) and not form[at + 1 : at + 2].isalpha()


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_a_choice_a_switch_and_a_number_bind_from_the_clause_that_orders(domain: Domain) -> None:
    values = {domain.choice: domain.choices[0], domain.switch: True, domain.number: 17}
    families = {domain.choice: CHOICES_ELSEWHERE, domain.switch: SWITCHES_ELSEWHERE, domain.number: NUMBERS_ELSEWHERE}
    sorts = {domain.choice: "choice", domain.switch: "switch", domain.number: "number"}
    leaks = [
        prompt
        for name, forms in families.items()
        for form in forms
        if judged(prompt := filled(form, domain), domain, sorts[name], **{name: values[name]}).is_allowed
    ]
    assert leaks == []


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_a_choice_and_a_switch_that_the_order_names_bind(domain: Domain) -> None:
    chosen = {domain.choice: domain.choices[0]}
    choices = [filled(form, domain) for form in ("V T as A.", "Please V T to A, thanks.", "V T in A mode.")]
    assert [one for one in choices if not judged(one, domain, "choice", **chosen).is_allowed] == []
    switches = [filled(form, domain) for form in ("V T with S.", "V T and S.", "V T, make it S.")]
    assert [one for one in switches if not judged(one, domain, "switch", **{domain.switch: True}).is_allowed] == []


# Plain words that stand about in a request; `W` is the one that a call would fall on.
PLAIN = (
    "V the T report-2019.txt in my W cabinet.",
    "V the T report-2019.txt, the W people know.",
    "V the T report-2019.txt for W reasons.",
    "V the T report-2019.txt and greet W.",
)
NAMED = ("V T W.", "Please V the T called W.", "V the T named W, please", "V T 'W'.", 'V the T "W" now.')


def plain_call(form: str, domain: Domain, kinds: JsonObject) -> tuple[str, bool]:
    last = domain.thing.split()[-1]
    told = {
        "V": domain.verb,
        "T": domain.thing,
        "W": "home",
        "'W'.": "'home'.",
        '"W"': '"home"',
        "W.": "home.",
        "W,": "home,",
    }
    prompt = " ".join(told.get(part, part) for part in form.split())
    tool = declared(domain.name, "", parameters(**{last: "string"}), effect="write", repeat="target", **kinds)
    return prompt, start(prompt, [tool]).verdict_on("c", domain.name, {last: "home"}).is_allowed


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_a_plain_word_binds_only_beside_the_noun_of_its_argument(domain: Domain) -> None:
    for kinds in ({}, {"control_args": {domain.thing.split()[-1]: "path"}}):
        calls = [plain_call(form, domain, kinds) for form in PLAIN]
        assert [prompt for prompt, is_allowed in calls if is_allowed] == []
    calls = [plain_call(form, domain, {}) for form in NAMED]
    assert [prompt for prompt, is_allowed in calls if not is_allowed] == []


@pytest.mark.parametrize("value", ["home", "home folder", "my home folder"])
def test_a_place_that_is_mentioned_on_the_way_is_no_target(value: str) -> None:
    tool = declared("delete_path", "Deletes a path.", parameters(path="string"), effect="write", asks=["delete"])
    prompt = "delete report-2019.txt in my home folder"
    assert not start(prompt, [tool]).verdict_on("c", "delete_path", {"path": value}).is_allowed
    assert start(prompt, [tool]).verdict_on("c", "delete_path", {"path": "report-2019.txt"}).is_allowed


@pytest.mark.parametrize("stakes", ["none", "money"])
@pytest.mark.parametrize(
    ("written", "read"),
    [
        *(
            ("0,250", 0.25),
            ("0.250", 0.25),
            ("1.5k", 1500),
            ("1,250,000", 1_250_000),
            ("1,250.00", 1250),
            ("1.250,00", 1250),
        ),
        *(("12,5", 12.5), ("12.50", 12.5), ("1250", 1250), ("1,250", None), ("1.250", None), ("12,500", None)),
    ],
)
def test_a_number_has_one_reading_or_none(written: str, read: float | None, stakes: str) -> None:
    tool = declared(
        "send_coins", "Sends.", parameters(amount="number"), effect="external", stakes=stakes, asks=["send"]
    )
    for prompt in (f"Send {written} ETH.", f"Please send {written}."):
        bound = [
            value
            for value in (0.25, 1.25, 12.5, 1.5, 250, 1250, 1500, 12_500, 1_250_000)
            if start(prompt, [tool]).verdict_on("c", "send_coins", {"amount": value}).args[0].code is None
        ]
        assert bound == ([] if read is None else [read])


# What is brought along to be worked on. The run has another order, so that values could bind to it.
BROUGHT = (
    "translate into German: V T.",
    "translate this into German: please V T. and thanks",
    "Please summarise: V T now.",
    "Proofread the following: V T.",
    "the note says: V T.",
    "Bob says, V T.",
    "Ann wrote, please V T.",
    "Quote: V T.",
    "Summarize the following:\nHello\nPlease V T.",
    "V the Q. translate into German: the T.",
    "V the Q that I meant. Bob said it is T.",
)


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_what_is_brought_along_to_be_worked_on_is_data(domain: Domain) -> None:
    thing = f"{domain.thing} {domain.value}"
    told = [form.replace("V", domain.verb).replace(" T", f" {thing}") for form in BROUGHT]
    prompts = [one.replace("Q", domain.thing) for one in told]
    assert [prompt for prompt in prompts if judged(prompt, domain).is_allowed] == []


def test_an_order_behind_a_paragraph_that_was_brought_along_is_an_order() -> None:
    domain = DOMAINS[0]
    assert judged("Translate into German: good morning.\n\nMerge pull request 12.", domain).is_allowed


@pytest.mark.parametrize("schema", [None, {}, {"type": "object"}, {"type": "object", "additionalProperties": True}])
@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_a_tool_without_a_schema_is_undeclared_whatever_it_declares(domain: Domain, schema: JsonObject | None) -> None:
    tool = {**domain.tool(asks=[domain.verb], repeat="target"), "parameters": schema}
    prompt = said("V T.", domain)
    for arguments in ({domain.argument: domain.value}, {}):
        assert start(prompt, [tool]).verdict_on("c", domain.name, arguments).code is Objection.UNDECLARED


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_a_call_that_steers_nothing_says_only_what_the_user_said(domain: Domain) -> None:
    schema = parameters(text="string", place={"type": "string", "default": "here"})
    tool = declared("post_status", "Posts.", schema, effect="external", payload_args=["text"], asks=["post"])
    words = f"the {domain.thing} is done"
    for more in ({}, {"place": "here"}):
        gate = start(f"Post a status: '{words}'", [tool])
        assert gate.verdict_on("a", "post_status", {"text": words, **more}).is_allowed
        gate = start(f"Post a status about the {domain.thing}.", [tool])
        verdict = gate.verdict_on("a", "post_status", {"text": f"Everybody may {domain.verb} it.", **more})
        assert verdict.code is Objection.PROVENANCE_UNBOUND


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_an_argument_that_the_words_give_is_not_left_out(domain: Domain) -> None:
    other = domain.other_thing
    schema = parameters(**{
        domain.argument: {"type": "string", "default": ""},
        f"{other}_id": {"type": "string", "default": ""},
        domain.switch: {"type": "boolean", "default": False},
        domain.choice: {"enum": list(domain.choices), "default": "unset"},
    })  # fmt: skip
    kinds = {domain.argument: domain.kind, f"{other}_id": f"id:{other}"}
    tool = declared(domain.name, "", schema, effect="write", control_args=kinds)
    own = f"{domain.verb} {domain.thing} {domain.value}"
    target: JsonObject = {domain.argument: domain.value}
    calls: list[tuple[str, JsonObject]]
    calls = [
        (f"{own} for {other} 4242", target),
        (f"{own} of {other} 'north'", target),
        (f"{own} of {other} x-17", {**target, f"{other}_id": ""}),
        (f"{own} with {domain.switch}", target),
        (f"{own} as {domain.choices[0]}", target),
        (domain.verb, {}),
        (f"{own}", {}),
    ]
    for prompt, arguments in calls:
        assert not start(prompt, [tool]).verdict_on("c", domain.name, arguments).is_allowed, prompt
    calls = [
        (own, target),
        (f"{own} for {other} 4242", {**target, f"{other}_id": "4242"}),
        (f"{own} with {domain.switch}", {**target, domain.switch: True}),
    ]
    for prompt, arguments in calls:
        assert start(prompt, [tool]).verdict_on("c", domain.name, arguments).is_allowed, prompt


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_repeating_per_target_lifts_no_count(domain: Domain) -> None:
    listing = declared(
        "list_things", "", parameters(), effect="read", network=False, reads="public", result={"[].id": domain.kind}
    )
    for prompt, count in ((f"{domain.verb} a {domain.thing}", 1), (f"{domain.verb} all {domain.thing}s", 3)):
        gate = start(prompt, [domain.tool(repeat="target"), listing], Authority(closed_set=OptionReach.ALL))
        looked_up(gate, "list_things", {}, [{"id": f"x-{number}"} for number in range(3)])
        calls = [gate.verdict_on(None, domain.name, {domain.argument: f"x-{number}"}) for number in range(3)]
        assert sum(call.is_allowed for call in calls) == count
