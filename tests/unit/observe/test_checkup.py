"""A check-up says how a thing is, and the way out where it is not fine."""

from importlib.metadata import distribution, version

from remit.observe.checkup.checkup import CheckState, check_house, check_install, check_package, check_python

REACHES = [CheckState]


def test_this_python_and_this_package_are_fine() -> None:
    python, package = check_house()
    assert (python.state, package.state) == (CheckState.OK, CheckState.OK)
    assert package.seen.startswith(version("remit"))


def test_an_old_python_is_a_problem_with_a_way_out() -> None:
    found = check_python((3, 10, 9))
    assert (found.state, found.seen) == (CheckState.PROBLEM, "3.10.9")
    assert "3.11" in found.way_out


def test_a_package_is_told_from_a_folder_that_is_worked_on() -> None:
    assert check_install(distribution("remit")).seen.endswith("editable, from a folder")
    assert check_install(distribution("msgspec")).seen.endswith("a package")


def test_an_optional_package_is_there_or_missing_and_never_loaded() -> None:
    there = check_package("it", "msgspec", needed_for="records", way_out="pip install it")
    assert (there.state, there.seen, there.way_out) == (CheckState.OK, f"msgspec {version('msgspec')}", "")
    gone = check_package("it", "nothing_of_this_name", needed_for="nothing", way_out="pip install it")
    assert (gone.state, gone.way_out) == (CheckState.MISSING, "pip install it")
    own = check_package("it", "tests", needed_for="proofs", way_out="")
    assert (own.state, own.seen) == (CheckState.OK, "tests")
