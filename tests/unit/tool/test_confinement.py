"""What a process of a tool may take and is given."""

import pytest

from remit.core.failure import RequestRejected
from remit.observe.checkup import CheckState, check_isolation, check_sandbox
from remit.tool.declare.decorator import tool
from remit.tool.process.confinement import LIMITS, declared_limits, environment_for, variables_of
from remit.tool.process.warden import has_own_numbers


def test_limits_that_are_not_named_keep_their_defaults() -> None:
    assert declared_limits("t", None) is LIMITS
    found = declared_limits("t", {"processes_max": 3})
    assert found == LIMITS._replace(processes_max=3)


@pytest.mark.parametrize(
    ("limits", "complaint"),
    [
        ({"memory": 5}, "'memory', which is unknown; use memory_bytes_max"),
        ({"memory_bytes_max": 5}, "memory_bytes_max=5, which is not from 268435456"),
        ({"processes_max": 0}, "processes_max=0"),
        ({"processes_max": True}, "processes_max=True"),
        ({"output_bytes_max": "9000"}, "output_bytes_max=9000"),
        ([5], "limits is a list"),
    ],
)
def test_what_is_no_limit_is_refused(limits: object, complaint: str) -> None:
    with pytest.raises(RequestRejected, match=complaint):
        declared_limits("t", limits)  # type: ignore[arg-type]


@pytest.mark.parametrize("names", [["A B"], ["A=1"], [""], [5]])
def test_what_names_no_variable_is_refused(names: list[str]) -> None:
    with pytest.raises(RequestRejected, match="no name of a variable"):
        variables_of("t", names)
    assert variables_of("t", "ONE") == ("ONE",)


def test_an_environment_is_cut_to_what_is_needed_and_asked_for() -> None:
    every = {"PATH": "p", "LC_TIME": "C", "HTTPS_PROXY": "x", "AWS_SECRET_ACCESS_KEY": "k", "MINE": "m", "OTHER": "o"}
    assert environment_for(["MINE"], every) == {"PATH": "p", "LC_TIME": "C", "HTTPS_PROXY": "x", "MINE": "m"}


def test_limits_of_a_tool_without_a_process_of_its_own_are_refused() -> None:
    with pytest.raises(RequestRejected, match="need isolate=True or sandbox=True"):
        tool(limits={"processes_max": 3})(test_limits_that_are_not_named_keep_their_defaults)
    with pytest.raises(RequestRejected, match="sandbox=True needs a function at the top level"):
        tool(sandbox=True, name="t")(lambda: None)


@pytest.mark.parametrize(("release", "has"), [("6.14.0", True), ("7.0-rc1", True), ("6.8.0-45", False), ("odd", False)])
def test_only_a_kernel_that_counts_by_namespace_is_told_a_highest_number(release: str, *, has: bool) -> None:
    assert has_own_numbers(release) is has


def test_the_doctor_never_calls_an_isolated_process_a_sandbox() -> None:
    for is_walled, state in ((True, CheckState.OK), (False, CheckState.DOUBTFUL)):
        check = check_isolation(is_walled=is_walled)
        assert (check.state, "no sandbox" in check.seen) == (state, True)
    assert check_sandbox("").state is CheckState.OK
    missing = check_sandbox("there is no bwrap on this machine")
    assert (missing.state, "unavailable" in missing.seen) == (CheckState.MISSING, True)
