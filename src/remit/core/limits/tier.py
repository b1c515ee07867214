"""Tiers: the ladder of least autonomy. The lowest that can do the task is the right one.

Rule 1: a graph has the tier that its nodes and edges give it; it is never declared.
Rule 2: a boundary caps the tier; a graph above it is turned away at the door.
"""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType

from remit.core.record import Record


class Tier(IntEnum):
    """The seven rungs, from no choice at all to free exploration."""

    DIRECT_RESPONSE = 1
    PROMPT_CHAIN = 2
    DETERMINISTIC_WORKFLOW = 3
    CONDITIONAL_GRAPH = 4
    SUPERVISED_LOOP = 5
    BOUNDED_LOOP = 6
    OPEN_ENDED_LOOP = 7


class TierRow(Record):
    """What a tier means: who controls the run, which way it takes, and what it is good for."""

    title: str
    control: str
    path: str
    use: str


TIERS: Mapping[Tier, TierRow] = MappingProxyType(
    {
        Tier.DIRECT_RESPONSE: TierRow(
            "direct response", "the program that asks", "fixed: one answer", "summaries, classification"
        ),
        Tier.PROMPT_CHAIN: TierRow(
            "prompt chain", "the program that asks", "fixed steps, one after the other", "extraction and formatting"
        ),
        Tier.DETERMINISTIC_WORKFLOW: TierRow(
            "deterministic workflow", "the graph", "branches by hard logic", "transactions, rigid routing"
        ),
        Tier.CONDITIONAL_GRAPH: TierRow(
            "conditional graph", "the compiled graph", "edges by what was answered", "search and verification"
        ),
        Tier.SUPERVISED_LOOP: TierRow(
            "supervised agentic loop",
            "a person",
            "the model chooses tools, and nothing changes without a person",
            "work that people approve",
        ),
        Tier.BOUNDED_LOOP: TierRow(
            "bounded agentic loop",
            "the budget",
            "the model chooses tools and may change things unattended",
            "diagnosis and triage",
        ),
        Tier.OPEN_ENDED_LOOP: TierRow(
            "open-ended loop", "the model", "no bound of its own, only the budget", "research in a sandbox"
        ),
    }
)
