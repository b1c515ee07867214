"""Asking less where it is safe: families of requests that need no person, each beside the same request turned around."""

from typing import Any

import pytest

from remit.core.limits.authority import Authority, OptionReach
from remit.core.record import JsonObject
from remit.provenance.gate import start
from tests.unit.provenance.domains import DOMAINS, Domain
from tests.unit.provenance.office import declared, looked_up, parameters


def by_name(domain: Domain) -> str:
    return domain.name


def tool(name: str, kinds: JsonObject, schemas: JsonObject | None = None, **more: Any) -> JsonObject:
    """A tool that changes something; its arguments are texts unless a schema says otherwise."""
    made = {argument: {"type": "string"} for argument in kinds} | (schemas or {})
    return declared(
        name, "", parameters(**made), **{"effect": "write", "stakes": "none", "control_args": kinds, **more}
    )


def passes(prompt: str, tools: list[JsonObject], name: str, arguments: JsonObject) -> bool:
    return start(prompt, tools).verdict_on("c", name, arguments).is_allowed


def listed(domain: Domain, *titles: str, name: str = "", **more: Any) -> tuple[JsonObject, list[JsonObject]]:
    """A look-up of the things of a domain, and what it returns: one record for each title."""
    fields = {"[].id": domain.kind, "[].title": "label", "[].size": "number"}
    name = name or "list_" + domain.thing.replace(" ", "_")
    made = declared(name, "", parameters(), **{"effect": "read", "network": False, "result": fields, **more})
    return made, [{"id": f"x-{place}", "title": title, "size": place} for place, title in enumerate(titles)]


def falls_on(prompt: str, domain: Domain, look: JsonObject, records: list[JsonObject], **more: Any) -> list[int]:
    """The records, by number, on which the effect may fall."""
    found = []
    for place, record in enumerate(records):
        gate = start(prompt, [domain.tool(repeat="target", **more), look])
        looked_up(gate, look["name"], {}, records)
        if gate.verdict_on("c", domain.name, {domain.argument: record["id"]}).is_allowed:
            found.append(place)
    return found


@pytest.mark.parametrize("folder", ["/data/ann/docs", "docs", "backup_2024"])
@pytest.mark.parametrize("name", ["report-2019.txt", "a.csv", "notes_v2"])
def test_a_path_may_be_made_of_a_folder_and_a_file_that_the_words_name(folder: str, name: str) -> None:
    delete = tool("remove_file", {"path": "path"})
    for said in (
        f"Remove the file {name} in the folder {folder}.",
        f"remove file '{name}' from the directory '{folder}'",
    ):
        assert passes(said, [delete], "remove_file", {"path": f"{folder}/{name}"})
        for other in (
            f"{folder}/other.txt",
            f"/etc/{name}",
            f"{folder}/../{name}",
            f"{folder}/{name}/x",
            f"x/{folder}/{name}",
        ):
            assert not passes(said, [delete], "remove_file", {"path": other})


def test_a_tool_that_prepares_another_uses_up_nothing() -> None:
    folder = tool("make_folder", {"path": "path"}, asks=["download"], repeat="free")
    load = tool("download_file", {"file_id": "id:file", "path": "path"})
    gate = start("Download file f-17 to /data/ann/in.", [folder, load])
    assert gate.verdict_on("a", "make_folder", {"path": "/data/ann/in"}).is_allowed
    assert not gate.verdict_on("b", "make_folder", {"path": "/etc"}).is_allowed
    gate = start("Download file f-17 to /data/ann/in.", [folder, load])
    assert gate.verdict_on("a", "make_folder", {"path": "/data/ann/in"}).is_allowed
    assert gate.verdict_on("b", "download_file", {"file_id": "f-17", "path": "/data/ann/in"}).is_allowed
    assert not gate.verdict_on("c", "download_file", {"file_id": "f-17", "path": "/data/ann/in"}).is_allowed


@pytest.mark.parametrize("thing", ["watch", "red lamp", "garden hose"])
def test_any_of_what_was_ordered_may_be_taken_where_sets_are_closed(thing: str) -> None:
    buy = tool("buy_product", {"product_id": "id:product"}, asks=["buy"], effect="external")
    fields = {"[].id": "id:product", "[].title": "label"}
    look = declared("search_products", "", parameters(query="string"), effect="read", network=False, result=fields)
    found = [{"id": "p-1", "title": f"Best {thing} ever"}, {"id": "p-2", "title": f"Fine {thing}"}]
    for query, is_allowed in ((thing, True), ("gold bar", False)):
        gate = start(f"Buy a {thing} for me.", [buy, look], Authority(closed_set=OptionReach.ALL))
        looked_up(gate, "search_products", {"query": query}, found)
        assert gate.verdict_on("a", "buy_product", {"product_id": "p-2"}).is_allowed is is_allowed
        assert not gate.verdict_on("b", "buy_product", {"product_id": "p-1"}).is_allowed


@pytest.mark.parametrize(
    ("prompt", "name", "arguments"),
    [
        ("Change my password to 'hunter-22'.", "change_password", {"password": "hunter-22"}),
        ("I want to change my password to 'hunter-22'", "change_password", {"password": "hunter-22"}),
        ("Create a repository called sandbox.", "create_repository", {"name": "sandbox"}),
        ("please create a new private repository named sandbox", "create_repository", {"name": "sandbox"}),
        ("Create a sandpit called sandbox.", "create_sandpit", {"name": "sandbox"}),
    ],
)
def test_what_is_asked_for_by_its_verb_and_thing_is_asked_for(prompt: str, name: str, arguments: JsonObject) -> None:
    made = tool(name, dict.fromkeys(arguments, ""))
    assert passes(prompt, [made], name, arguments)
    assert not passes(prompt, [made], name, {next(iter(arguments)): "other-1"})
    assert not passes(f"Bob says, {prompt}", [made], name, arguments)


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_the_place_that_a_tool_reads_narrows_nothing(domain: Domain) -> None:
    look, records = listed(domain, "a", "b", "c", name=f"list_drive_{domain.thing.replace(' ', '_')}s")
    assert falls_on(f"{domain.verb} the largest {domain.thing} in the drive.", domain, look, records) == [2]
    for place in ("in the trash", "in drive 'Old'", "in the drive of Bob"):
        assert falls_on(f"{domain.verb} the largest {domain.thing} {place}.", domain, look, records) == []


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_a_quoted_name_is_meant_to_the_letter(domain: Domain) -> None:
    look, records = listed(domain, "Report", "Report final", "My Report", "Rep")
    assert falls_on(f"{domain.verb} the {domain.thing} 'Report'.", domain, look, records) == [0]
    assert falls_on(f"{domain.verb} the {domain.thing} Report.", domain, look, records) == []
    look, records = listed(domain, "Report", "report", "Report final")
    assert falls_on(f"{domain.verb} the {domain.thing} 'Report'.", domain, look, records) == []


@pytest.mark.parametrize(
    ("said", "bound"),
    [
        ("read permission", "r"),
        ("read and write permissions", "rw"),
        ("write permission", "w"),
        ("the report", ""),
        ("reports, no permission", ""),
    ],
)
def test_letters_stand_for_the_words_before_the_noun_of_their_argument(said: str, bound: str) -> None:
    schemas: JsonObject = {"permission": {"enum": ["r", "w", "rw"], "default": ""}}
    share = tool("share_file", {"file_id": "id:file"}, schemas, asks=["share"])
    for choice in ("r", "w", "rw"):
        call = {"file_id": "f-17", "permission": choice}
        assert passes(f"Share file f-17 with {said}.", [share], "share_file", call) is (choice == bound)


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_what_begins_as_the_words_say_is_covered(domain: Domain) -> None:
    look, records = listed(domain, "External-1", "Internal-1", "External audit", "Not External")
    for said in ("starting with External", "that begin with 'External'"):
        assert falls_on(f"{domain.verb} all {domain.thing}s {said}.", domain, look, records) == [0, 2]
    for said in ("starting with external", "that begin with it", "starting with External or 'Internal'"):
        assert falls_on(f"{domain.verb} all {domain.thing}s {said}.", domain, look, records) == []


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_who_sent_something_is_its_author(domain: Domain) -> None:
    fields = {"[].id": domain.kind, "[].sender": "who:email", "[].recipient": "who:email"}
    look = declared("list_things", "", parameters(), effect="read", network=False, result=fields, author="sender")
    ann, bob, carl = "ann@corp.example", "bob@corp.example", "carl@corp.example"
    records = [
        {"id": "x-0", "sender": ann, "recipient": bob},
        {"id": "x-1", "sender": bob, "recipient": carl},
        {"id": "x-2", "sender": carl, "recipient": carl},
    ]
    for said, found in ((f"that {ann} sent me", [0]), (f"from {ann}", [0]), (f"to {ann}", []), (f", {ann} knows", [])):
        assert falls_on(f"{domain.verb} the {domain.thing} {said}.", domain, look, records) == found
    assert falls_on(f"{domain.verb} the {domain.thing} with recipient {bob}.", domain, look, records) == [0]


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_a_word_that_says_how_is_no_thing(domain: Domain) -> None:
    for how in ("completely", "immediately", "fully"):
        made = domain.tool(repeat="target")
        prompt = f"{domain.thing} {domain.value} is broken. {domain.verb} it {how}."
        call = {domain.argument: domain.value}
        assert passes(prompt[0].upper() + prompt[1:], [made], domain.name, call)
        assert passes(f"{domain.verb} {domain.thing} {domain.value} {how}.", [made], domain.name, call)
        assert not passes(f"{domain.verb} the reply {domain.value}.", [made], domain.name, call)


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_a_record_answers_to_a_number_that_is_called_what_it_is(domain: Domain) -> None:
    fields = {"[].id": domain.kind, "[].last_digits": "label"}
    look = declared("list_things", "", parameters(), effect="read", network=False, result=fields)
    records = [{"id": "x-0", "last_digits": "9023"}, {"id": "x-1", "last_digits": "4411"}]
    last = domain.kind.partition(":")[2]
    if "_" not in last:
        assert falls_on(f"{domain.verb} the {last} ending 9023.", domain, look, records) == [0]
    assert falls_on(f"{domain.verb} the {domain.thing} for 9023 days.", domain, look, records) == []
    assert falls_on(f"{domain.verb} the {domain.thing} of {domain.other_thing} 9023.", domain, look, records) == []


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_two_labels_of_one_record_side_by_side_name_it(domain: Domain) -> None:
    fields = {"[].id": domain.kind, "[].title": "label", "[].city": "label"}
    look = declared("list_things", "", parameters(), effect="read", network=False, result=fields)
    records = [
        {"id": "x-0", "title": "Blue Lola", "city": "Madrid"},
        {"id": "x-1", "title": "Blue Lola", "city": "Sevilla"},
        {"id": "x-2", "title": "Red", "city": "Madrid"},
    ]
    prompt = f"please {domain.verb} the {domain.thing} at Blue Lola Madrid"
    assert falls_on(prompt, domain, look, records) == [0]
    for forged in ({"title": "Blue", "city": "Lola Madrid"}, {"title": "Blue Lola Madrid", "city": "Rome"}):
        twice = [*records, {"id": "x-3", **forged}]
        assert falls_on(prompt, domain, look, twice) == []


@pytest.mark.parametrize("code", ["4711", "083311", "12345678"])
def test_a_one_time_code_is_the_only_one_that_was_read_where_the_words_speak_of_one(code: str) -> None:
    enter = tool("enter_code", {"code": "code"}, asks=["log in"])
    read = declared("read_mail", "", parameters(), effect="read", network=False, author="sender")
    mail = {"body": f"Your code is {code}. It holds for five minutes."}
    other = {"body": "Use code 999999 instead."}
    prompt = "Log in with the code that they send me by mail."
    cases: tuple[tuple[str, list[JsonObject], bool], ...] = (
        (prompt, [mail], True),
        (prompt, [mail, other], False),
        (prompt, [{"body": f"The number is {code}"}], False),
        ("Log in, they send me something by mail.", [mail], False),
        ("Log in with the code.", [mail], False),
    )
    for said, found, is_allowed in cases:
        gate = start(said, [enter, read])
        looked_up(gate, "read_mail", {}, found)
        assert gate.verdict_on("c", "enter_code", {"code": code}).is_allowed is is_allowed, said


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_the_one_record_that_begins_as_the_words_say_is_meant(domain: Domain) -> None:
    look, records = listed(domain, "External-1", "Internal-1", "Not External")
    for said in ("starting with External", "that begins with 'External'", "whose title starts with External"):
        assert falls_on(f"{domain.verb} the {domain.thing} {said}.", domain, look, records) == [0]
    twice, both = listed(domain, "External-1", "Internal-1", "External audit")
    assert falls_on(f"{domain.verb} the {domain.thing} starting with External.", domain, twice, both) == []
    assert falls_on(f"{domain.verb} it, whatever is starting with External.", domain, look, records) == []
    assert falls_on(f"{domain.verb} the {domain.thing} starting with External for Kim.", domain, look, records) == []


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
@pytest.mark.parametrize("kind", ["", "label", "text", "id:{}"])
def test_what_is_called_by_the_thing_of_a_tool_is_its_name(domain: Domain, kind: str) -> None:
    last = domain.thing.split()[-1]
    make = tool(f"make_{domain.thing.replace(' ', '_')}", {"name": kind.format(last)})
    for said in (f"a {domain.thing} called sandbox", f"a new {domain.thing} named sandbox"):
        assert passes(f"Make {said}.", [make], make["name"], {"name": "sandbox"})
    for said in (f"a {domain.thing} for the crew called sandbox", f"a {domain.thing} for sandbox reasons"):
        assert not passes(f"Make {said}.", [make], make["name"], {"name": "sandbox"})


@pytest.mark.parametrize("kind", ["number", "id:request", "id:pr", "id:pull_request"])
def test_an_argument_that_is_called_a_number_takes_that_of_the_thing(kind: str) -> None:
    merge = tool("merge_pull_request", {"number": kind}, {"number": {"type": "integer"}})
    for said in ("pull request 12", "the pull request #12"):
        assert passes(f"Merge {said}.", [merge], "merge_pull_request", {"number": 12})
    for said in ("the pull request of issue 12", "12 pull requests"):
        assert not passes(f"Merge {said}.", [merge], "merge_pull_request", {"number": 12})
    remark = tool("delete_remark_of_issue", {"number": "number"}, {"number": {"type": "integer"}})
    assert not passes("Delete the remark of issue 12.", [remark], "delete_remark_of_issue", {"number": 12})


@pytest.mark.parametrize("folder", ["data", "raw/2024", "/srv/in"])
def test_the_folder_above_what_is_ordered_may_be_prepared(folder: str) -> None:
    make = tool("make_folder", {"path": "path"}, asks=["download"], repeat="free")
    load = tool("download_file", {"file_id": "id:file", "path": "path"})
    prompt = f"Download file f-17 to {folder}/a.zip."
    assert passes(prompt, [make, load], "make_folder", {"path": folder})
    for other in ("ssh", "/", f"{folder}x", f"{folder}/a", f"x/{folder}"):
        assert not passes(prompt, [make, load], "make_folder", {"path": other})
    once = {**make, "repeat": "once"}
    assert not passes(f"Make a folder. {prompt}", [once, load], "make_folder", {"path": "ssh"})


@pytest.mark.parametrize("code", ["481516", "99-17"])
def test_a_field_that_is_declared_a_code_is_one_where_the_words_speak_of_one(code: str) -> None:
    enter = tool("enter_code", {"code": "code"}, asks=["log in"])
    fields = {"[].code": "code"}
    read = declared("read_messages", "", parameters(), effect="read", network=False, result=fields)
    prompt = "Read my messages and log in with the code."
    for said, found, is_allowed in (
        (prompt, [code], True),
        (prompt, [code, "7777-1"], False),
        ("Read my messages and log in.", [code], False),
        ("Log in with the code.", [code], False),
    ):
        gate = start(said, [enter, read])
        looked_up(gate, "read_messages", {}, [*({"code": one} for one in found), {"title": "Hello"}])
        assert gate.verdict_on("c", "enter_code", {"code": code}).is_allowed is is_allowed, (said, found)


@pytest.mark.parametrize("counted", ["copies", "pieces", "boxes"])
@pytest.mark.parametrize("form", ["print labels on printer P-2, 3 {0}", "print labels on printer P-2 in 3 {0}"])
def test_a_number_in_a_form_that_is_not_known_is_given_all_the_same(form: str, counted: str) -> None:
    tool = declared(
        "print_labels",
        "",
        parameters(**{"printer": "string", counted: "integer"}),
        effect="external",
        control_args={"printer": "id:printer", counted: "number"},
        asks=["print"],
        stakes="none",
    )
    gate = start(form.format(counted), [tool])
    for left_out in ({}, {counted: None}):
        assert not gate.verdict_on("c", "print_labels", {"printer": "P-2", **left_out}).is_allowed
    said = start("print labels on printer P-2", [tool])
    assert said.verdict_on("c", "print_labels", {"printer": "P-2"}).is_allowed


@pytest.mark.parametrize("first", ["role", "role_name", "x2"])
@pytest.mark.parametrize("second", ["to_user", "user2", "user-name", "who"])
def test_an_argument_may_be_called_by_its_name_behind_a_comma(first: str, second: str) -> None:
    grant = tool("grant_access", {first: "text", second: "text"}, asks=["grant access"])
    said = f"Please grant access with {first} \"reader-2\", {second} 'bob-at-b'."
    assert passes(said, [grant], "grant_access", {first: "reader-2", second: "bob-at-b"})
    for other in ({first: "bob-at-b", second: "bob-at-c"}, {first: "reader-2", second: "eve"}):
        assert not passes(said, [grant], "grant_access", other)


@pytest.mark.parametrize("ending", ["bob@corp.example", "'the report'", "DE89370400440532013000", "/data/a.csv", "17"])
@pytest.mark.parametrize("between", [". ", ".\n", "! ", ".\n\n"])
def test_what_a_sentence_ends_with_belongs_to_it_and_not_to_the_next(ending: str, between: str) -> None:
    tell, file = tool("tell_person", {"to": "email"}, asks=["tell"]), tool("file_away", {"what": "text"}, asks=["file"])
    said = f"File away {ending}{between}Tell ann@corp.example, please."
    assert passes(said, [tell, file], "tell_person", {"to": "ann@corp.example"})
    assert not passes(said, [tell, file], "tell_person", {"to": ending})
