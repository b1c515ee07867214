"""The judge is pure: no I/O, clock, chance, logging, async, environment, or order that was not promised."""

import ast
from collections.abc import Iterator

import pytest

from tests.tidy.source import FUNCTION, PACKAGE, Source, expect_none, functions, imported, source, sources

KERNEL = f"{PACKAGE}/kernel"

OUR_ROOMS = ("remit.core", "remit.kernel")
OTHERS = {
    "__future__",
    "bisect",
    "cel_expr_python",
    "collections",
    "collections.abc",
    "dataclasses",
    "difflib",
    "enum",
    "functools",
    "hashlib",
    "heapq",
    "itertools",
    "math",
    "msgspec",
    "operator",
    "re",
    "types",
    "typing",
}

# They touch the world, run text as code, or answer differently from process to process.
IMPURE_BUILTINS = {
    "__import__",
    "breakpoint",
    "eval",
    "exec",
    "globals",
    "hash",
    "id",
    "input",
    "locals",
    "open",
    "print",
    "vars",
}

MUTATORS = {
    "add",
    "append",
    "clear",
    "discard",
    "extend",
    "insert",
    "pop",
    "popitem",
    "remove",
    "reverse",
    "setdefault",
    "sort",
    "update",
}

# Calls whose answer does not depend on the order of what they are given.
ORDER_BLIND = {"all", "any", "bool", "frozenset", "len", "max", "min", "set", "sorted", "sum"}


def impure_imports(file: Source) -> list[str]:
    return [
        file.at(node, f"the kernel may not import {module}")
        for node, module in imported(file.nodes)
        if module not in OTHERS
        and module.partition(".")[0] != "cel_expr_python"
        and not any(module == room or module.startswith(f"{room}.") for room in OUR_ROOMS)
    ]


def impure_calls(file: Source) -> list[str]:
    """Uses of an impure builtin, called or passed on, unless the file gives the name a meaning of its own."""
    own = bound_names(file.tree)
    return [
        file.at(node, f"the kernel may not use {node.id}")
        for node in file.nodes
        if isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Load)
        and node.id in IMPURE_BUILTINS
        and node.id not in own
    ]


def asynchrony(file: Source) -> list[str]:
    kinds = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
    return [file.at(node, "the kernel never waits") for node in file.nodes if isinstance(node, kinds)]


def module_state(file: Source) -> list[str]:
    """Functions that change what outlives their call."""
    shared = module_names(file.tree)
    complaints = [
        file.at(node, "the kernel keeps no state in scopes")
        for node in file.nodes
        if isinstance(node, ast.Global | ast.Nonlocal)
    ]
    for function in functions(file.nodes):
        reachable = shared - bound_names(function)
        complaints.extend(
            file.at(node, f"{name} belongs to the module and may not change")
            for node, name in changes(function)
            if name in reachable
        )
    return complaints


def changes(function: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """Names whose value a function changes in place."""
    for node in ast.walk(function):
        match node:
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
                yield node, name
            case ast.Attribute(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
                yield node, name
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)) if attr in MUTATORS:
                yield node, name


def unordered_iterations(file: Source) -> list[str]:
    """Places where the order of a set would show."""
    complaints: list[str] = []
    for node in file.nodes:
        match node:
            case ast.For(iter=walked) | ast.comprehension(iter=walked) | ast.Starred(value=walked):
                suspects = [walked]
            case ast.Call(func=ast.Name(id=name), args=suspects) if name not in ORDER_BLIND:
                pass
            case ast.Call(func=ast.Attribute(attr="join" | "extend" | "fromkeys"), args=suspects):
                pass
            case _:
                continue
        complaints.extend(file.at(suspect, "a set has no order; sort it") for suspect in suspects if is_set(suspect))
    return complaints


def is_set(node: ast.expr) -> bool:
    match node:
        case ast.Set() | ast.SetComp():
            return True
        case ast.Call(func=ast.Name(id="set" | "frozenset")):
            return True
        case ast.BinOp(left=left, op=ast.BitOr() | ast.BitAnd() | ast.Sub() | ast.BitXor(), right=right):
            return is_set(left) or is_set(right)
    return False


def bound_names(tree: ast.AST) -> set[str]:
    """Names that a tree gives a meaning of its own: parameters, assignments, definitions, imports."""
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) if node is not tree:
                names.add(name)
            case ast.alias(name=name, asname=asname):
                names.add(asname or name)
    return names


def module_names(tree: ast.Module) -> set[str]:
    """Names that the module itself assigns."""
    outer = [node for node in tree.body if not isinstance(node, (*FUNCTION, ast.ClassDef))]
    return {
        node.id
        for statement in outer
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


RULES = (impure_imports, impure_calls, asynchrony, module_state, unordered_iterations)


def test_the_kernel_is_pure() -> None:
    expect_none(complaint for file in sources(KERNEL) for rule in RULES for complaint in rule(file))


@pytest.mark.parametrize(
    "text",
    [
        "import time\n",
        "import random as r\n",
        "from os import environ\n",
        "import asyncio\n",
        "import logging\n",
        "from remit.orchestrate import runner\n",
        "import remit\n",
        "from remit.corelike import a\n",
        "def f():\n    import json\n",
        "from collections.anything import a\n",
    ],
)
def test_an_import_that_is_not_allowed_is_found(text: str) -> None:
    assert impure_imports(source("src/remit/kernel/a.py", text)) != []


def test_the_allowed_imports_pass() -> None:
    text = (
        "from collections.abc import Mapping\nfrom remit.core.limits.budget import Budget\nimport remit.kernel.state\n"
        "from cel_expr_python import cel\nimport math\n"
    )
    assert impure_imports(source("src/remit/kernel/a.py", text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "open('x')\n",
        "print(1)\n",
        "eval('1')\n",
        "x = sorted(y, key=id)\n",
        "def f(x): return hash(x)\n",
        "globals()\n",
    ],
)
def test_an_impure_builtin_is_found_called_or_passed_on(text: str) -> None:
    assert impure_calls(source("src/remit/kernel/a.py", text)) != []


def test_a_method_or_a_parameter_of_the_same_name_passes() -> None:
    text = "def f(program, id):\n    return program.eval(id)\n"
    assert impure_calls(source("src/remit/kernel/a.py", text)) == []


@pytest.mark.parametrize("text", ["async def f(): pass\n", "async def f():\n    await g()\n"])
def test_waiting_is_found_in_the_kernel(text: str) -> None:
    assert asynchrony(source("src/remit/kernel/a.py", text)) != []


@pytest.mark.parametrize(
    "text",
    [
        "COUNT = 0\ndef f():\n    global COUNT\n    COUNT += 1\n",
        "def f():\n    x = 0\n    def g():\n        nonlocal x\n        x = 1\n",
        "SEEN = {}\ndef f(k):\n    SEEN[k] = 1\n",
        "SEEN: list[int] = []\ndef f(k):\n    SEEN.append(k)\n",
        "SEEN = {}\ndef f(k):\n    del SEEN[k]\n",
        "SEEN = set()\nclass A:\n    def f(self):\n        SEEN.add(1)\n",
    ],
)
def test_state_that_outlives_a_call_is_found(text: str) -> None:
    assert module_state(source("src/remit/kernel/a.py", text)) != []


def test_tables_that_are_only_read_and_locals_pass() -> None:
    text = "RULES = {1: 2}\nseen = 0\ndef f(k, seen):\n    seen[k] = RULES[k]\n    found = []\n    found.append(k)\n"
    assert module_state(source("src/remit/kernel/a.py", text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "for x in {1, 2}: pass\n",
        "y = [x for x in set(z)]\n",
        "y = tuple({x for x in z})\n",
        "y = list(frozenset(z) | w)\n",
        "y = [*{1, 2}]\n",
        "y = ','.join({a, b})\n",
        "y = next(iter(set(z)))\n",
    ],
)
def test_an_order_nobody_promised_is_found(text: str) -> None:
    assert unordered_iterations(source("src/remit/kernel/a.py", text)) != []


def test_a_sorted_set_or_a_question_without_order_passes() -> None:
    text = "for x in sorted({1, 2}): pass\ny = len(set(z))\nw = 1 in {1, 2}\nv = any(frozenset(z))\n"
    assert unordered_iterations(source("src/remit/kernel/a.py", text)) == []
