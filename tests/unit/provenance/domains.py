"""Domains for generated families: tools, arguments and values of many trades, and calls that are what was ordered or not."""

from dataclasses import dataclass
from typing import Any

from remit.core.record import JsonObject
from remit.provenance.gate import start
from remit.provenance.gate_verdict import GateVerdict
from tests.unit.provenance.office import declared, parameters


@dataclass(frozen=True)
class Domain:
    """One tool of a trade: its verb and thing, its target, a second verb, a number, a choice and a switch."""

    verb: str
    thing: str
    argument: str
    value: str
    # A verb of another tool of the trade, and a thing of the trade that is not this tool's.
    other_verb: str
    other_thing: str
    number: str
    unit: str
    choice: str
    choices: tuple[str, str]
    switch: str

    @property
    def name(self) -> str:
        return "_".join((self.verb, *self.thing.split()))

    @property
    def kind(self) -> str:
        return f"id:{self.thing.replace(' ', '_')}"

    def tool(self, *more: str, **declared_too: Any) -> JsonObject:
        """The tool, with its target and what else of `number`, `choice` and `switch` it shall take."""
        schemas: dict[str, JsonObject] = {self.argument: {"type": "string"}}
        if "number" in more:
            schemas[self.number] = {"type": "number", "default": 0}
        if "choice" in more:
            schemas[self.choice] = {"type": "string", "enum": list(self.choices), "default": "unset"}
        if "switch" in more:
            schemas[self.switch] = {"type": "boolean", "default": False}
        about = f"{self.verb.capitalize()}s a {self.thing} after somebody could {self.other_verb} it."
        kinds = {self.argument: self.kind}
        return declared(
            self.name,
            about,
            parameters(**schemas),
            effect="external",
            control_args=kinds,
            stakes="none",
            **declared_too,
        )


DOMAINS = (
    Domain(
        "merge",
        "pull request",
        "number",
        "12",
        "review",
        "branch",
        "retries",
        "retries",
        "role",
        ("admin", "read"),
        "force",
    ),
    Domain(
        "cancel",
        "appointment",
        "appointment_id",
        "4711",
        "confirm",
        "patient",
        "dose_mg",
        "mg",
        "urgency",
        ("urgent", "routine"),
        "notify",
    ),
    Domain(
        "freeze",
        "wallet",
        "wallet_id",
        "w-81",
        "audit",
        "transaction",
        "days",
        "days",
        "network",
        ("mainnet", "testnet"),
        "permanent",
    ),
    Domain(
        "delete",
        "file",
        "file_id",
        "31",
        "inspect",
        "folder",
        "versions",
        "versions",
        "mode",
        ("shallow", "deep"),
        "recursive",
    ),
    Domain(
        "refund",
        "order",
        "order_id",
        "5512",
        "check",
        "invoice",
        "items",
        "items",
        "method",
        ("card", "voucher"),
        "express",
    ),
    Domain(
        "archive",
        "message",
        "message_id",
        "m-77",
        "read",
        "thread",
        "months",
        "months",
        "label",
        ("private", "shared"),
        "silent",
    ),
    Domain(
        "terminate",
        "instance",
        "instance_id",
        "i-0ab4",
        "restart",
        "cluster",
        "hours",
        "hours",
        "region",
        ("east", "west"),
        "drain",
    ),
    Domain(
        "close",
        "ticket",
        "ticket_id",
        "7741",
        "assign",
        "customer",
        "points",
        "points",
        "status",
        ("solved", "rejected"),
        "public",
    ),
    Domain(
        "drop",
        "table",
        "table_id",
        "t-9",
        "describe",
        "schema",
        "rows",
        "rows",
        "level",
        ("strict", "loose"),
        "cascade",
    ),
    Domain(
        "cancel",
        "booking",
        "booking_id",
        "B-7003",
        "show",
        "traveller",
        "nights",
        "nights",
        "cabin",
        ("economy", "business"),
        "insured",
    ),
    Domain(
        "remove",
        "member",
        "member_id",
        "u-19",
        "greet",
        "channel",
        "weeks",
        "weeks",
        "rank",
        ("owner", "guest"),
        "quiet",
    ),
    Domain(
        "move",
        "event",
        "event_id",
        "e-31",
        "print",
        "calendar",
        "minutes",
        "minutes",
        "visibility",
        ("open", "hidden"),
        "invite",
    ),
)


def judged(prompt: str, domain: Domain, *more: str, **arguments: Any) -> GateVerdict:
    """The verdict on a call of a domain's tool on its own target, where a reading tool stands beside it."""
    reads = declared(
        f"{domain.other_verb}_{domain.other_thing}",
        "Looks.",
        parameters(),
        effect="read",
        network=False,
        reads="public",
    )
    gate = start(prompt, [domain.tool(*more), reads])
    return gate.verdict_on("c", domain.name, {domain.argument: domain.value, **arguments})
