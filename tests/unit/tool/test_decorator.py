"""The decorator makes a tool that is still its function, and whatever is not declared counts as the worst."""

import inspect
from typing import Any

import pytest

from remit.core.failure import Ending, RequestRejected
from remit.core.limits.authority import Stakes
from remit.core.limits.tool_trust import Reads, Repeat
from remit.core.limits.tools import TOOL_INVALID, TOOL_TIMEOUT_MS_DEFAULT, Effect, ToolCategory, tool_version
from remit.tool.declare.decorator import Tool, tool

REACHES = [ToolCategory]


@tool
def bare(a: int, b: int = 2) -> int:
    """Add two numbers.

    Nobody should see this.
    """
    return a + b


def confirm(arguments: dict[str, Any], result: Any) -> bool:
    return True


@tool(
    effect="write",
    category="database",
    network=True,
    idempotent=True,
    destructive=True,
    untrusted_output=False,
    isolate=True,
    timeout_ms=5,
    cost_microusd=7,
    permissions=["ledger"],
    verify=confirm,
    reconcile=lambda key: None,
    available=lambda: True,
    may_stop_loop=True,
    control_args={"a": "email"},
    name="full-name",
    description="Given.",
)
async def full(a: str) -> str:
    """Ignored."""
    return a


def refusal(**options: Any) -> str:
    def f(a: int) -> None: ...

    with pytest.raises(RequestRejected) as caught:
        tool(**options)(f)
    assert caught.value.code == TOOL_INVALID
    return caught.value.message


def test_a_bare_tool_has_the_worst_effect_and_the_defaults() -> None:
    definition = bare.definition
    assert definition.effect is Effect.EXTERNAL
    assert (definition.idempotent, definition.untrusted_output, definition.category) == (False, True, None)
    assert (definition.timeout_ms, definition.verifier) == (TOOL_TIMEOUT_MS_DEFAULT, "schema")
    assert not definition.reconcilable
    assert (definition.name, definition.description) == ("bare", "Add two numbers.")
    assert definition.result == {"type": "integer"}


def test_a_tool_is_still_its_function() -> None:
    assert isinstance(bare, Tool)
    assert bare(1) == 3
    assert bare(a=1, b=1) == 2
    assert callable(bare)
    assert inspect.signature(bare) == inspect.signature(bare.function)
    assert repr(bare) == f"Tool('bare', effect='external', place={__name__!r})"


def test_everything_that_is_declared_stands_in_the_definition() -> None:
    definition = full.definition
    assert (definition.effect, definition.category) == (Effect.WRITE, ToolCategory.DATABASE)
    assert (definition.network, definition.idempotent, definition.destructive) == (True, True, True)
    assert (definition.untrusted_output, definition.reconcilable, definition.may_stop_loop) == (False, True, True)
    assert (definition.timeout_ms, definition.cost_microusd, definition.permissions) == (5, 7, ("ledger",))
    assert (definition.verifier, definition.control_args) == ("confirm", (("a", "email"),))
    assert (definition.name, definition.description) == ("full-name", "Given.")
    assert (full.isolate, full.is_async, bare.is_async) == (True, True, False)
    assert full.source.name == "full-name"
    assert full.source.attribute == "full"


def test_the_version_is_the_hash_of_the_definition() -> None:
    assert bare.definition.version == tool_version(bare.definition)
    assert bare.definition.version != full.definition.version


@pytest.mark.parametrize("effect", list(Effect))
@pytest.mark.parametrize("category", list(ToolCategory))
def test_effect_and_category_are_taken_as_text_or_member(effect: Effect, category: ToolCategory) -> None:
    def f() -> None: ...

    by_member = tool(effect=effect, category=category)(f).definition
    assert by_member == tool(effect=effect.value, category=category.value)(f).definition
    assert (by_member.effect, by_member.category) == (effect, category)


def test_a_single_permission_and_pairs_of_control_arguments_are_understood() -> None:
    @tool(permissions="ledger", control_args=[("a", "email")])
    def f(a: str) -> None: ...

    assert f.definition.permissions == ("ledger",)
    assert f.definition.control_args == (("a", "email"),)


def test_an_unknown_effect_or_category_is_refused_with_the_choices() -> None:
    assert "effect='reed' is unknown; use one of none, read, write, external" in refusal(effect="reed")
    assert "category='bank' is unknown; use one of read_only_lookup" in refusal(category="bank")


@pytest.mark.req("4.36")
def test_every_option_that_names_a_member_takes_it_as_a_text() -> None:
    @tool(
        effect="none",
        category="review_queue",
        asks_under="MISSING_INFO",
        repeat="target",
        reads="public",
        stakes="money",
    )
    def ask(question: str) -> str:
        return question

    definition = ask.definition
    assert (definition.asks_under, definition.trust.repeat, definition.trust.reads) == (
        Ending.MISSING_INFO,
        Repeat.TARGET,
        Reads.PUBLIC,
    )
    assert (definition.category, definition.trust.stakes) == (ToolCategory.REVIEW_QUEUE, Stakes.MONEY)
    assert "asks_under='LATER' is unknown; use one of SUCCESS" in refusal(effect="none", asks_under="LATER")
    assert "makes no run wait" in refusal(effect="none", asks_under="SUCCESS")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("destructive", "no"),
        ("isolate", "no"),
        ("idempotent", 1),
        ("timeout_ms", "3"),
        ("cost_microusd", True),
        ("rate", "5/min"),
        ("rate", (1,)),
        ("rollback", 4),
        ("author", 3),
        ("concerns", 5),
        ("permissions", [1]),
        ("environment", 3),
        ("flags", ["a"]),
        ("control_args", "to"),
    ],
)
def test_a_value_of_another_kind_than_its_option_takes_is_refused(option: str, value: object) -> None:
    assert f"{option}=" in refusal(**{option: value})


def test_a_contradictory_definition_is_refused() -> None:
    assert "destructive" in refusal(effect="read", destructive=True)
    assert "timeout_ms=0" in refusal(timeout_ms=0)
    assert "control_args name ['b']" in refusal(control_args={"b": "x"})
    assert "a name is 1 to 128" in refusal(name="no <name>")


def test_companions_that_cannot_be_asked_are_refused() -> None:
    assert "verify is a int" in refusal(verify=3)
    assert "available must take nothing" in refusal(available=lambda a: True)
    assert "verify must take the arguments and the result" in refusal(verify=lambda a: True)
    assert "reconcile must take the key" in refusal(reconcile=lambda: None)


def test_a_lambda_has_no_name_a_model_could_call() -> None:
    with pytest.raises(RequestRejected, match="a name is 1 to 128"):
        tool(lambda: None)


def test_a_method_is_a_tool_that_cannot_be_found_again() -> None:
    class Desk:
        def greet(self, name: str) -> str:
            return f"hello {name}"

    greet = tool(Desk().greet)
    assert greet("you") == "hello you"
    assert greet.source.place == ""


def test_an_isolated_tool_must_be_found_again() -> None:
    assert "isolate=True needs a function at the top level" in refusal(isolate=True)


def test_a_companion_without_a_name_is_called_by_its_type() -> None:
    class Check:
        def __call__(self, arguments: dict[str, Any], result: Any) -> None: ...

    @tool(verify=Check())
    def f() -> None: ...

    assert f.definition.verifier == "Check"


def test_a_declaration_pins_which_secrets_a_tool_is_given() -> None:
    @tool(effect="read", secrets={"token": "GITHUB_TOKEN"})
    def issues(repository: str, token: str) -> str:
        return f"{repository} {token}"

    @tool(effect="read", secrets=iter([("token", "OTHER_TOKEN")]), name="issues")
    def others(repository: str, token: str) -> str:
        return f"{repository} {token}"

    assert issues.definition.secrets == (("token", "GITHUB_TOKEN"),)
    assert others.definition.secrets == (("token", "OTHER_TOKEN"),)
    assert list(issues.definition.parameters["properties"]) == ["repository"]
    assert issues.definition.version == tool_version(issues.definition) != others.definition.version
    assert issues("a", token="b") == "a b"


@pytest.mark.parametrize("is_bare", [True, False])
def test_a_tool_says_of_itself_what_its_function_says(*, is_bare: bool) -> None:
    def count(word: str) -> int:
        """Count the letters of a word."""
        return len(word)

    made = tool(count) if is_bare else tool(effect="read", network=False)(count)
    for name in ("__name__", "__qualname__", "__doc__", "__module__", "__annotations__"):
        assert getattr(made, name) == getattr(count, name)
    assert made.__wrapped__ is count
