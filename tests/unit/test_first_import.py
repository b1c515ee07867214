"""What a program loads that asks for its first class: counted, since times say little on a busy machine."""

import subprocess
import sys

# As it stands, with little room: who needs more modules for a first class says so here.
MODULES_MAX = 360
# What a file, a store, a schema from a class or a tool of ours needs, and an agent without them does not.
NOT_YET = ("cryptography", "ctypes", "jsonschema_rs", "pydantic", "shutil", "sqlite3", "tomllib", "yaml")

COUNT = "import sys; from remit import AgentLoop; print(*sorted(sys.modules))"
REFUSE_TO_COMPILE = """
import types
from remit.core import regex
regex.re = types.SimpleNamespace(compile=None, Pattern=regex.re.Pattern)
from remit import AgentLoop
"""


def output_of(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout


def test_the_first_class_loads_few_modules_and_no_package_that_it_does_not_need() -> None:
    loaded = output_of(COUNT).split()
    assert len([name for name in loaded if name.startswith("remit")]) <= MODULES_MAX
    assert [name for name in NOT_YET if name in loaded] == []


def test_the_collector_works_on_after_the_first_class_was_loaded_unless_it_was_told_to_rest() -> None:
    assert output_of("import gc; from remit import AgentLoop; print(gc.isenabled())") == "True\n"
    assert output_of("import gc; gc.disable(); from remit import AgentLoop; print(gc.isenabled())") == "False\n"


def test_no_pattern_of_ours_is_compiled_for_the_first_class() -> None:
    output_of(REFUSE_TO_COMPILE)
