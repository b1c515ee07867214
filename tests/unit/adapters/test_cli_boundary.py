"""Checking, showing and comparing boundaries from the command line, and running within one from a file."""

import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from remit.adapters.cli.main import main
from remit.core.limits.boundary import boundary_version
from remit.core.limits.profiles import KNOWN
from tests.unit.adapters.desk import Desk, Screen, calls

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "graphs.md"

MINE = """
name: mine
extends: customer_support
tools: {allowed: [look, writ], four_eyes: [payment]}
conditions: [{name: late, when: hour > 20, then: refuse}]
"""


DECLARED = '''
from remit.tool.declare.decorator import tool


@tool(effect="read", network=False, reads="public", result={"id": "id:order"})
def look(place: str) -> dict[str, str]:
    """Look somewhere."""
    return {"id": place}


@tool(effect="external", category="payment", control_args={"cents": "amount"}, idempotent=True)
def pay(cents: int, idempotency_key: str) -> int:
    """Pay."""
    return cents
'''


def graph_of_the_guide() -> str:
    found = re.search(r"```yaml\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture
def mine(desk: Desk) -> Path:
    """A boundary with a misspelt tool."""
    return desk.file("mine.yaml", MINE)


def test_a_boundary_that_is_fine_is_said_to_be_with_what_it_does_to_tools(desk: Desk, mine: Path) -> None:
    tools = desk.tools()
    said = desk.say("boundary", "check", mine, "--tools", tools)
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0].startswith("boundary mine is fine: mode enforce, version ")
    assert lines[1] == "it names tool writ, which is not among these"
    assert lines[2] == "graph chat has tier 5 (supervised agentic loop), tier_max=6"
    assert lines[3].split(maxsplit=2)[:2] == ["passes", "look"]
    assert "does not declare `network`" in " ".join(lines[3:])
    assert lines[4].split(maxsplit=2) == ["refuses", "write", "boundary mine does not allow tool write"]
    assert lines[5].startswith("what these tools do not declare, and remit takes at its worst")
    assert lines[6] == "  look   result, reads, network (risk low)"
    assert lines[7].startswith("  write  control_args, payload_args")
    (looks,) = [line for line in lines if "conditions look at every call besides" in line]
    assert looks.startswith("10 conditions")
    assert "of them cannot be met by these tools (--full says why)" in looks
    full = desk.say("boundary", "check", mine, "--tools", tools, "--full").out
    assert "never met identity_unknown  no tool has" in full


def test_a_boundary_that_is_checked_without_tools_says_what_it_could_say_of_them(desk: Desk) -> None:
    lines = desk.say("boundary", "check", "standard").out.splitlines()
    assert lines[-1] == "say --tools FILE.py, and it says what becomes of their calls"


def test_what_a_tool_and_its_category_leave_open_is_told_and_nothing_of_one_that_declares_all(desk: Desk) -> None:
    tools = desk.file("tools.py", DECLARED)
    lines = desk.say("boundary", "check", "standard", "--tools", tools).out.splitlines()
    assert [line for line in lines if line.startswith("  ")] == [
        "  pay   payload_args, asks, repeat (risk high)",
        "        its category demands permissions, rollback, to check amount, vendor, chain of approval, terms and budget",
    ]


def test_a_tool_whose_call_in_doubt_cannot_be_repeated_is_named_before_any_run(desk: Desk) -> None:
    def told(head: str, parameters: str) -> str:
        body = f'from remit import tool\n\n@tool({head})\ndef pay({parameters}) -> str:\n    """Pay."""\n'
        return desk.say("boundary", "check", "standard", "--tools", desk.file("tools.py", body)).out

    named = "no idempotency_key: a call in doubt cannot be repeated"
    assert named in told("", "cents: int")
    assert named in told("effect='write'", "cents: int")
    assert named not in told("", "cents: int, idempotency_key: str")
    assert named not in told("idempotent=True", "cents: int")
    assert named not in told("reconcile=lambda key: None", "cents: int")
    assert named not in told("effect='read'", "cents: int")


def test_a_tool_that_nothing_verifies_is_named_before_any_run(desk: Desk) -> None:
    tools = desk.file("tools.py", 'from remit import tool\n\n@tool\ndef pay(cents: int) -> str:\n    """Pay."""\n')
    assert (
        "nothing verifies what it did: declare `verify`"
        in desk.say("boundary", "check", "standard", "--tools", tools).out
    )
    strict = desk.file("strict.yaml", "name: strict\ntools: {unverified: refuse}\n")
    out = desk.say("boundary", "check", strict, "--tools", tools).out
    assert "nothing verifies what pay did, and boundary strict has unverified=refuse" in out
    demanding = desk.file("demanding.yaml", "name: demanding\ntools: {demands: enforce}\n")
    looked = desk.file(
        "look.py",
        'from remit import tool\n\n@tool(effect="read", category="database")\ndef query() -> str:\n    """Query."""\n',
    )
    assert (
        "query lacks permissions, which its category database demands"
        in desk.say("boundary", "check", demanding, "--tools", looked).out
    )


def test_programs_get_all_of_it(desk: Desk, mine: Path) -> None:
    values = desk.say("boundary", "check", mine, "--tools", desk.tools(), "--json").values
    assert {key: values[key] for key in ("name", "mode", "conditions", "missing")} == {
        "name": "mine",
        "mode": "enforce",
        "conditions": 10,
        "missing": ["writ"],
    }
    assert [(tool["tool"], tool["stance"]) for tool in values["tools"]] == [("look", "passes"), ("write", "refuses")]
    assert set(values["tools"][0]) == {
        "trials",
        "faults",
        "kinds",
        "patch",
        "tool",
        "stance",
        "why",
        "risk",
        "at_worst",
        "gaps",
        "verified_by",
        "is_unverified",
        "checks",
        "is_unrepeatable",
    }
    idle = {one["condition"]: one["why"] for one in values["idle"]}
    assert idle["regulated_category"].startswith("neither a tool nor the boundary declares the concern regulated")
    assert "late" not in idle
    assert desk.say("boundary", "check", mine, "--json").values["tools"] == []


def test_a_boundary_of_the_house_can_be_checked_by_its_name_and_audits_only_where_it_says_so(desk: Desk) -> None:
    assert "only recorded" not in desk.say("boundary", "check", "standard").out
    audit = desk.file("audit.yaml", "name: look_first\nmode: audit\n")
    assert "mode audit: what is refused or asked below is only recorded" in desk.say("boundary", "check", audit).out


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("name: x\nbudgets: {}\n", "BOUNDARY_INVALID"),
        ("name: x\nconditions: [{name: a, when: moon}]\n", "BOUNDARY_INVALID"),
        ("a: [", "FILE_NOT_YAML"),
        (b"\xff\xfe", "FILE_UNREADABLE"),
    ],
)
def test_a_boundary_that_cannot_be_used_is_an_error_with_a_code(desk: Desk, content: str | bytes, code: str) -> None:
    path = desk.file("bad.yaml", content)
    said = desk.say("boundary", "check", path, "--json")
    assert (said.code, said.error) == (1, code)
    said = desk.say("boundary", "check", path)
    assert (said.code, said.err.startswith(f"error {code}: {path}")) == (1, True)


def test_tools_and_graphs_that_cannot_be_used_are_wrong_usage(desk: Desk) -> None:
    assert desk.say("boundary", "check", "standard", "--tools", desk.folder / "no.py").code == 2
    assert desk.say("boundary", "check", "standard", "--graph", desk.folder / "no.yaml").code == 2


def test_a_graph_above_the_highest_tier_is_an_error_after_the_report(desk: Desk) -> None:
    low = desk.file("low.yaml", "name: low\ndecisions: {tier_max: 1}\n")
    graph = desk.file("graph.yaml", graph_of_the_guide())
    words = ["boundary", "check", low, "--graph", graph, "--tools", desk.tools()]
    said = desk.say(*words)
    assert (said.code, said.err.startswith("error TIER_EXCEEDED: ")) == (1, True)
    assert "graph support has tier 5 (supervised agentic loop), tier_max=1: too high" in said.out
    said = desk.say(*words, "--json")
    assert (said.code, said.error) == (1, "TIER_EXCEEDED")
    assert said.values["uncharged"] == []
    assert said.values["tier"] == {"graph": "support", "tier": 5, "title": "supervised agentic loop", "tier_max": 1}
    assert desk.say("boundary", "check", "standard", "--graph", graph, "--json").code == 0


def test_without_a_graph_the_tier_of_a_conversation_is_told_and_is_no_error(desk: Desk) -> None:
    low = desk.file("low.yaml", "name: low\ndecisions: {tier_max: 1}\n")
    said = desk.say("boundary", "check", low, "--tools", desk.tools())
    assert (said.code, "graph chat has tier 5" in said.out) == (0, True)
    assert desk.say("boundary", "check", low, "--json").values["tier"] is None


def test_a_boundary_is_shown_by_its_dimensions(desk: Desk, mine: Path) -> None:
    out = desk.say("boundary", "show", mine).out
    for line in ("observations", "state writes", "tools", "decision rights", "resource budgets", "escalation"):
        assert line in out.splitlines()
    assert "late" in out
    assert "refuses the call when hour > 20" in out
    values = desk.say("boundary", "show", "procurement", "--json").values
    assert values["version"] == boundary_version(KNOWN["procurement"])
    assert values["boundary"]["decisions"] == {"rights": ["choose_tools", "ask_people"], "tier_max": 5}


def test_what_is_shown_as_yaml_is_the_same_boundary_again(desk: Desk, mine: Path) -> None:
    again = desk.file("again.yaml", desk.say("boundary", "show", mine, "--yaml").out)
    said = desk.say("boundary", "diff", mine, again)
    assert (said.code, said.out.startswith("mine and mine are the same: version ")) == (0, True)
    assert desk.say("boundary", "show", mine, "--yaml", "--json").code == 2


def test_a_boundary_that_is_not_there_is_wrong_usage(desk: Desk) -> None:
    said = desk.say("boundary", "show", "nobody", "--json")
    assert (said.code, said.error) == (2, "BOUNDARY_UNKNOWN")
    said = desk.say("boundary", "diff", "standard", desk.folder / "no.yaml", "--json")
    assert (said.code, said.error) == (2, "FILE_UNREADABLE")


def test_what_differs_is_told_key_by_key(desk: Desk, mine: Path) -> None:
    said = desk.say("boundary", "diff", "customer_support", mine)
    assert said.code == 1
    assert [line.split(maxsplit=1) for line in said.out.splitlines()] == [
        ["name", "other: customer_support -> mine"],
        ["tools.allowed", "less: all -> look, writ"],
        ["tools.four_eyes", "less: + payment"],
        ["conditions", "less: + late"],
    ]
    values = desk.say("boundary", "diff", mine, "customer_support", "--json").values
    assert (values["same"], values["a"]["name"], values["b"]["name"]) == (False, "mine", "customer_support")
    assert values["differences"][-1] == {"key": "conditions", "more": ["- late"], "less": [], "other": []}
    assert desk.say("boundary", "diff", "standard", "standard", "--json").values["same"] is True


def test_at_a_terminal_more_is_red_and_less_is_green(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    first = desk.file("a.yaml", "name: a\ntools: {permissions: [p, q]}\n")
    second = desk.file("b.yaml", "name: a\ntools: {permissions: [q, r]}\n")
    screen = Screen()
    with redirect_stdout(screen):
        main(["boundary", "diff", str(first), str(second)])
    assert "\x1b[31mmore: + r\x1b[0m" in screen.getvalue()
    assert "\x1b[32m  less: - p\x1b[0m" in screen.getvalue()


def test_a_run_keeps_within_a_boundary_from_a_file(desk: Desk) -> None:
    narrow = desk.file("narrow.yaml", "name: narrow\ntools: {allowed: []}\n")
    script = desk.script(calls("look", place="here"), "Done.")
    words = ["run", "Look.", "--boundary", narrow, "--engine", script, "--tools", desk.tools(), "--json"]
    (made,) = desk.say(*words).values["tool_calls_made"]
    assert (made["name"], made["status"], made["result"]) == ("look", "refused", "PERMISSION_DENIED")
    bad = desk.file("bad.yaml", "name: narrow\ntool: {}\n")
    for words in (["run", "Look.", "--boundary", bad, "--json"], ["chat", "--boundary", bad, "--json"]):
        said = desk.say(*words)
        assert (said.code, said.error) == (2, "BOUNDARY_INVALID")


def test_figures_of_a_profile_that_nothing_charges_are_said_to_be_that(desk: Desk) -> None:
    assert (
        "not yet charged: reflection_passes=2, memory_writes=5" in desk.say("boundary", "check", "coding_assistant").out
    )
    assert desk.say("boundary", "show", "coding_assistant").out.count("(not yet charged)") == 2


def test_declarations_are_tried_on_made_up_calls_and_what_types_tell_is_offered(desk: Desk) -> None:
    tools = desk.file(
        "tried.py",
        """
from remit.tool.declare.decorator import tool


@tool(effect="write", control_args={"file_id": "id:file"}, idempotent=True)
def delete_file(file_id: str, idempotency_key: str) -> int:
    \"\"\"Delete.\"\"\"
    return 1


@tool(effect="external", idempotent=True)
def send_mail(recipient_email: str, body: str, idempotency_key: str) -> int:
    \"\"\"Send.\"\"\"
    return 1
""",
    )
    out = desk.say("boundary", "check", "guarded", "--tools", tools).out
    assert "delete_file  ordered: allow; other values: ask PROVENANCE_UNBOUND; not ordered: ask NOT_ASKED" in out
    assert "send_mail  ordered: ask UNDECLARED" in out
    assert "could declare control_args={'recipient_email': 'email'}, payload_args=['body']" in out
    assert "Delete file alpha-101." not in out
    assert "Delete file alpha-101." in desk.say("boundary", "check", "guarded", "--tools", tools, "--full").out
