"""Readiness: what can be known of a request before a store is opened for it."""

from remit.core.run.contract import SystemRequest
from remit.orchestrate.exchange.shaping import check_shapes
from remit.orchestrate.patterns.choosing import check_room, graph_for
from remit.orchestrate.setup.kit import Kit, Terms


def check_ready(request: SystemRequest, kit: Kit, terms: Terms) -> None:
    """Refuse what the facade would refuse of a request with this kit and these terms."""
    graph = terms.graph or graph_for(request, kit, terms, terms.plan)
    check_room(graph, terms)
    check_shapes(request.output.grammar or "", graph)
