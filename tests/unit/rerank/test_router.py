"""Routers are named, and one that cannot be had is refused with the way to get it."""

import pytest

from remit.core.failure import RequestRejected
from remit.core.run.inference import Routing
from remit.rerank import router
from remit.rerank.router import ROUTER_MISSING, ROUTER_UNKNOWN, check_routing, has_embeddings, routing_named


@pytest.mark.parametrize("routing", list(Routing))
def test_every_routing_has_a_name(routing: Routing) -> None:
    assert routing_named(routing.value) is routing


def test_a_name_that_nobody_knows_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(RequestRejected) as raised:
        routing_named("oracle")
    assert raised.value.code == ROUTER_UNKNOWN
    assert "'oracle'" in raised.value.message
    assert "auto, embedding, none" in raised.value.message


def test_embeddings_that_are_not_installed_are_missed_only_by_a_user_who_demands_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(router, "EMBEDDING_PACKAGE", "no_such_package_anywhere")
    assert not has_embeddings()
    check_routing(Routing.AUTO)
    check_routing(Routing.NONE)
    with pytest.raises(RequestRejected) as raised:
        check_routing(Routing.EMBEDDING)
    assert (raised.value.code, "pip install 'remit[local]'" in raised.value.message) == (ROUTER_MISSING, True)


def test_embeddings_are_installed_here() -> None:
    assert has_embeddings()
