"""Tests are sentences of behaviour, never sleep, and never step aside without saying why.

A rule looks into the text first: parsing every test takes longer than all rules.
"""

import ast
import re
from collections.abc import Callable

import pytest

from tests.tidy.source import Source, dotted, expect_none, functions, imported, source, sources

WORDS_MIN = 4
ASIDE = {"pytest.skip", "pytest.xfail"}
ASIDE_MARKS = {"pytest.mark.skip", "pytest.mark.skipif", "pytest.mark.xfail"}
TEST = re.compile(r"def (test_\w*)")
PRAGMA = re.compile(r"#\s*pragma:\s*no (cover|branch)(?P<reason>.*)")


def names_that_are_no_sentence(file: Source) -> list[str]:
    if not any(is_short(name) for name in TEST.findall(file.text)):
        return []
    return [
        file.at(function, f"{function.name} is no sentence of at least {WORDS_MIN} words")
        for function in functions(file.nodes)
        if function.name.startswith("test_") and is_short(function.name)
    ]


def is_short(name: str) -> bool:
    return len(name.split("_")) - 1 < WORDS_MIN


def sleeps(file: Source) -> list[str]:
    if "sleep" not in file.text:
        return []
    complaints = [
        file.at(node, "a test waits for something, not for some time")
        for node in file.nodes
        if isinstance(node, ast.Attribute) and dotted(node) == "time.sleep"
    ]
    for node, module in imported(file.nodes):
        if module == "time" and isinstance(node, ast.ImportFrom) and any(alias.name == "sleep" for alias in node.names):
            complaints.append(file.at(node, "a test waits for something, not for some time"))
    return complaints


def silent_steps_aside(file: Source) -> list[str]:
    """Skips and expected failures without a reason; a mark that is not even called has none."""
    if "skip" not in file.text and "xfail" not in file.text:
        return []
    called = {id(node.func): node for node in file.nodes if isinstance(node, ast.Call)}
    complaints = []
    for node in file.nodes:
        name = dotted(node) if isinstance(node, ast.Attribute) else ""
        call = called.get(id(node))
        if name in ASIDE_MARKS:
            spoken = call is not None and any(is_reason(keyword) for keyword in call.keywords)
        elif name in ASIDE:
            spoken = call is not None and bool(call.args or any(is_reason(keyword) for keyword in call.keywords))
        else:
            continue
        if not spoken and isinstance(node, ast.Attribute):
            complaints.append(file.at(node, f"{name} gives no reason"))
    return complaints


def is_reason(keyword: ast.keyword) -> bool:
    return keyword.arg == "reason" and not (isinstance(keyword.value, ast.Constant) and not keyword.value.value)


def silent_exclusions(file: Source) -> list[str]:
    """Lines taken out of the coverage without a word of explanation."""
    return [
        f"{file.path}:{number}: an exclusion says why"
        for number, line in enumerate(file.text.splitlines(), start=1)
        if (found := PRAGMA.search(line)) and not re.search(r"\w{3}", found["reason"])
    ]


@pytest.mark.parametrize("rule", [names_that_are_no_sentence, sleeps, silent_steps_aside])
def test_every_test_keeps_the_habits(rule: Callable[[Source], list[str]]) -> None:
    expect_none(complaint for file in sources("tests") for complaint in rule(file))


def test_every_exclusion_from_coverage_says_why() -> None:
    expect_none(complaint for file in sources("src") for complaint in silent_exclusions(file))


def test_a_name_of_three_words_is_found_and_one_of_four_passes() -> None:
    assert names_that_are_no_sentence(source("tests/a.py", "class A:\n    def test_it_works_now(self): pass\n")) != []
    assert names_that_are_no_sentence(source("tests/a.py", "async def test_it_works_this_time(): pass\n")) == []


@pytest.mark.parametrize("text", ["import time\ntime.sleep(1)\n", "from time import sleep\n"])
def test_a_sleep_is_found_however_imported(text: str) -> None:
    assert sleeps(source("tests/a.py", text)) != []


@pytest.mark.parametrize(
    "text",
    [
        "import pytest\n@pytest.mark.skip\ndef test_a(): pass\n",
        "import pytest\n@pytest.mark.xfail()\ndef test_a(): pass\n",
        "import pytest\n@pytest.mark.skipif(True)\ndef test_a(): pass\n",
        "import pytest\n@pytest.mark.skip(reason='')\ndef test_a(): pass\n",
        "import pytest\ndef test_a():\n    pytest.skip()\n",
    ],
)
def test_stepping_aside_in_silence_is_found(text: str) -> None:
    assert silent_steps_aside(source("tests/a.py", text)) != []


def test_stepping_aside_with_a_reason_passes() -> None:
    text = "import pytest\n@pytest.mark.skipif(x, reason='no server')\ndef test_a():\n    pytest.skip('no server')\n"
    assert silent_steps_aside(source("tests/a.py", text)) == []


def test_an_exclusion_in_silence_is_found_and_one_with_a_reason_passes() -> None:
    silent, spoken = "x = 1  # pragma: no " + "cover\n", "x = 1  # pragma: no " + "branch: proved by the type checker\n"
    assert silent_exclusions(source("src/remit/a.py", silent)) != []
    assert silent_exclusions(source("src/remit/a.py", spoken)) == []
