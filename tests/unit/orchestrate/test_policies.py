"""Which boundary a principal's run has, and what becomes of it when that cannot be told."""

import asyncio

import pytest

import remit
from remit.backend.memory.store import MemoryStore
from remit.core.failure import RequestRejected
from remit.core.limits.boundary import Boundary
from remit.core.run.principal import Principal, Scope
from remit.orchestrate.facade import System
from remit.orchestrate.setup.kit import Kit
from remit.orchestrate.tenants.policies import POLICY_INVALID, POLICY_UNREADABLE, FindBoundary, Policies
from tests.unit.orchestrate.house import request, scripted

ADA = Principal("acme", "ada", (Scope.START, Scope.READ))
FOUND, OPEN = Boundary(name="found"), Boundary(name="open")


class Noon:
    """A clock that stands still."""

    def now_ms(self) -> int:
        """Noon."""
        return 1_700_000_000_000


async def found(principal: Principal) -> Boundary:
    return FOUND


async def gone(principal: Principal) -> Boundary:
    raise ConnectionError("503, password=hunter2")


async def silent(principal: Principal) -> Boundary:
    await asyncio.Event().wait()
    return FOUND


async def odd(principal: Principal) -> Boundary:
    return "allow"  # type: ignore[return-value]


UNREADABLE = {
    "gone": (gone, "it raised ConnectionError, of which the log of the program tells more"),
    "silent": (silent, "no answer within 5 ms"),
    "odd": (odd, "str was"),
}


async def began(policies: Policies, principal: Principal | None = ADA) -> tuple[str, str]:
    """The boundary and the fault that a run began with."""

    async def no_kit(state: object) -> Kit:
        raise AssertionError

    ids = iter(range(9))
    system = System(
        MemoryStore(),
        clock=Noon(),
        find_kit=no_kit,
        new_id=lambda: f"r{next(ids)}",
        policies=policies,
    )
    try:
        acting = system if principal is None else system.acting_for(principal)
        run_id = await acting.submit(request(), scripted({"text": "done"}))
        manifest = (await system.state_of(run_id)).manifest
        assert manifest is not None
        return manifest.boundary.name, manifest.policy_fault
    finally:
        await system.close()


def test_a_run_has_the_boundary_that_is_found_for_its_principal() -> None:
    assert asyncio.run(began(Policies(found))) == ("found", "")


def test_the_local_principal_brings_its_own() -> None:
    assert asyncio.run(began(Policies(gone), None)) == ("standard", "")


@pytest.mark.parametrize("how", UNREADABLE)
def test_a_policy_that_cannot_be_read_lets_nothing_begin(how: str) -> None:
    find, why = UNREADABLE[how]
    with pytest.raises(RequestRejected) as refused:
        asyncio.run(began(Policies(find, wait_ms_max=5)))
    assert refused.value.code == POLICY_UNREADABLE
    assert why in refused.value.message
    assert "'ada' of tenant 'acme'" in refused.value.message


@pytest.mark.parametrize("how", UNREADABLE)
def test_a_boundary_that_stands_in_is_told_of_in_the_first_turn(how: str) -> None:
    find: FindBoundary
    find, why = UNREADABLE[how]
    name, fault = asyncio.run(began(Policies(find, otherwise=lambda principal: OPEN, wait_ms_max=5)))
    assert name == "open"
    assert why in fault


@pytest.mark.parametrize("otherwise", [OPEN, lambda principal: OPEN])
def test_a_boundary_stands_in_by_itself_or_by_a_function(otherwise: Boundary) -> None:
    assert asyncio.run(began(Policies(gone, otherwise=otherwise))) == ("open", UNREADABLE["gone"][1])


async def awaited(principal: Principal) -> Boundary:
    return OPEN


class Awaited:
    """A callable that is awaited."""

    async def __call__(self, principal: Principal) -> Boundary:
        return OPEN


def broken(principal: Principal) -> Boundary:
    raise RuntimeError("token=hunter3")


def ending(principal: Principal) -> Boundary:
    raise SystemExit(3)


def _begun(principal: Principal) -> object:
    """What has yet to be awaited, of a function that is called."""
    return awaited(principal)


STAND_INS = {
    "broken": (broken, "what stands in for it raised RuntimeError"),
    "ending": (ending, "what stands in for it raised SystemExit"),
    "odd": (lambda principal: 5, "int was to stand in, which is no boundary"),
    "bent": (lambda principal: Boundary("b", approval_effects=7), "what stands in for it raised"),  # type: ignore[arg-type]
    "awaited": (_begun, "coroutine was to stand in"),
    "none": (lambda principal: None, "it raised ConnectionError"),
}


@pytest.mark.parametrize("how", STAND_INS)
def test_a_stand_in_that_cannot_be_had_lets_nothing_begin(how: str) -> None:
    stand_in, why = STAND_INS[how]
    with pytest.raises(RequestRejected) as refused:
        asyncio.run(began(Policies(gone, otherwise=stand_in)))  # type: ignore[arg-type]
    assert refused.value.code == POLICY_UNREADABLE
    assert why in refused.value.message


def test_what_the_functions_of_the_operator_raise_is_read_in_the_log_alone(caplog: pytest.LogCaptureFixture) -> None:
    async def leave(principal: Principal) -> Boundary:
        raise SystemExit("token=hunter4")

    async def guarded(policies: Policies) -> str:
        async with remit.open(memory=True, policies=policies) as system:
            start = {"op": "start", "run": "r", "prompt": "x", "tools": []}
            return str(await system.acting_for(ADA).guard().answer(start))

    said = [asyncio.run(began(Policies(gone, otherwise=OPEN)))[1], asyncio.run(guarded(Policies(gone)))]
    for policies in (Policies(leave), Policies(gone, otherwise=broken)):
        with pytest.raises(RequestRejected) as refused:
            asyncio.run(began(policies))
        said.append(refused.value.message + str(refused.value.details))
    assert "hunter" not in "".join(said)
    assert all(f"hunter{number}" in caplog.text for number in (2, 3, 4))


@pytest.mark.parametrize(
    "wrong",
    [
        {"find": 7},
        {"find": None},
        {"find": found, "otherwise": "open"},
        {"find": found, "otherwise": awaited},
        {"find": found, "otherwise": Awaited()},
        {"find": found, "wait_ms_max": 0},
    ],
)
def test_policies_that_could_never_be_read_are_refused_when_they_are_made(wrong: dict[str, object]) -> None:
    with pytest.raises(RequestRejected) as refused:
        Policies(**wrong)  # type: ignore[arg-type]
    assert refused.value.code == POLICY_INVALID


def test_the_opener_of_a_system_says_which_policies_hold_on_it() -> None:
    async def whole() -> None:
        async with remit.open(memory=True, policies=Policies(found)) as system:
            ada = system.acting_for(ADA)
            run = await ada.run(request(), scripted({"text": "ok"}))
            began = (await ada.archive.history(run.run_id)).turns[0].arrival
            assert began.manifest.boundary.name == "found"  # type: ignore[union-attr]
            assert await ada.guard().answer({"op": "start", "run": "r", "prompt": "x", "tools": []}) == {"ok": True}
            guarded = next(entry for entry in await ada.archive.runs() if entry.listing.name == "r")
            judged = (await ada.archive.history(guarded.run_id)).turns[0].arrival
            assert judged.manifest.boundary.name == "found"  # type: ignore[union-attr]
        with pytest.raises(RequestRejected) as refused:
            async with remit.open(memory=True, policies=FOUND):  # type: ignore[arg-type]
                raise AssertionError
        assert refused.value.code == POLICY_INVALID

    asyncio.run(whole())
