"""Who asked for a run does not approve it, and is never one of several who must."""

import pytest

from remit.core.failure import ArrivalFault, Ending
from remit.core.journal import arrivals
from remit.core.journal.commands import CallTool
from remit.core.limits.boundary import Boundary
from remit.core.limits.tools import ToolCategory
from remit.core.record import replace
from remit.core.run.contract import SystemRequest
from remit.core.run.manifest import Manifest, Origin
from remit.core.run.messages import user_message
from tests.unit.kernel.builders import Run, known, manifest_of, wants

PAY = known("pay", category=ToolCategory.PAYMENT)
FOUR_EYES = (ToolCategory.PAYMENT,)


def asked_by(user: str = "", owner: str = "root", **says: object) -> Manifest:
    """A manifest of a run that a person asked for."""
    request = SystemRequest((user_message("please"),), user_id=user)
    manifest = manifest_of(boundary=replace(Boundary("b"), **says), request=request, tools=(PAY,))
    return replace(manifest, started_by=user or owner, owner=owner)


def held(manifest: Manifest) -> Run:
    run = Run(manifest)
    run.proposes(wants("pay"))
    return run


def fault(run: Run, by: str) -> ArrivalFault:
    return run.fault_of(arrivals.ApprovalGiven(run.question().id, by))


@pytest.mark.parametrize("by", ["c7", "C7", "\uff437"])
def test_a_user_whom_the_request_names_does_not_approve_their_own_run(by: str) -> None:
    run = held(asked_by("c7"))
    assert fault(run, by) is ArrivalFault.SELF_APPROVAL
    run.approves(by="ann")
    assert run.now(CallTool)[0].approved_by == "ann"


def test_the_owner_of_the_store_approves_what_they_asked_for_unless_the_boundary_says_no() -> None:
    for manifest in (asked_by(), asked_by("root"), asked_by("c7", self_approval=True)):
        run = held(manifest)
        run.approves(by=manifest.started_by)
        assert len(run.now(CallTool)) == 1
    assert fault(held(asked_by(self_approval=False)), "root") is ArrivalFault.SELF_APPROVAL


@pytest.mark.parametrize("manifest", [asked_by(), asked_by("c7", self_approval=True), asked_by("c7")])
def test_who_asked_is_never_one_of_four_eyes(manifest: Manifest) -> None:
    run = held(replace(manifest, boundary=replace(manifest.boundary, four_eyes=FOUR_EYES)))
    assert fault(run, manifest.started_by) is ArrivalFault.SELF_APPROVAL
    run.approves(by="ann")
    assert fault(run, manifest.started_by) is ArrivalFault.SELF_APPROVAL
    run.approves(by="bob")
    assert run.now(CallTool)[0].approved_by == "ann, bob"


def test_who_wanted_a_fork_has_asked_for_it_too() -> None:
    manifest = replace(asked_by("c7"), forked_from=Origin("other", seq=0, by="dan"))
    run = held(manifest)
    assert fault(run, "dan") is ArrivalFault.SELF_APPROVAL
    assert fault(run, "c7") is ArrivalFault.SELF_APPROVAL


def test_where_nobody_is_known_to_have_asked_anybody_approves() -> None:
    run = held(manifest_of(tools=(PAY,)))
    run.approves(by="c7")
    assert len(run.now(CallTool)) == 1


def test_a_name_that_is_read_for_who_asked_or_approved_is_refused() -> None:
    run = held(asked_by("alice", four_eyes=FOUR_EYES))
    assert fault(run, "a1ice") is ArrivalFault.NAME_CONFUSABLE
    run.approves(by="bob")
    assert fault(run, "b0b") is ArrivalFault.NAME_CONFUSABLE
    assert fault(run, "BOB") is ArrivalFault.ALREADY_APPROVED


def test_who_asked_may_still_say_no() -> None:
    run = held(asked_by("c7"))
    run.take(arrivals.ApprovalRefused(run.question().id, "c7"))
    assert run.open(CallTool) == []
    run.says("Nothing was paid.")
    assert run.state.end.ending is Ending.PERMISSION_DENIED


def test_of_four_eyes_on_a_call_beyond_the_budget_one_must_be_of_those_who_release() -> None:
    run = held(asked_by("c7", four_eyes=FOUR_EYES, release_by=("carla",)))
    run.approves(by="ann")
    assert fault(run, "bob") is ArrivalFault.NOT_RELEASING
    run.approves(by="carla")
    assert run.now(CallTool)[0].approved_by == "ann, carla"
    first = held(asked_by("c7", four_eyes=FOUR_EYES, release_by=("carla",)))
    first.approves(by="carla")
    first.approves(by="bob")
    assert len(first.now(CallTool)) == 1
