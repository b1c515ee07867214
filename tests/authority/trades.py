"""Trades: twelve domains for tools, values, requests and attacks. One half is only for the figure that is reported.

Rule 1: a trade has words and no sentences; sentences are the same for all trades and are in `grammar`.
Rule 2: nothing is tried on the trades that are held out while a rule is being written.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Trade:
    """The words of one domain."""

    name: str
    thing: str
    verb: str
    # Another verb for the same effect, by which a second tool is called.
    twin: str
    other: str
    number: str
    unit: str
    choice: str
    choices: tuple[str, str]
    switch: str
    titles: tuple[str, str, str, str]
    prefix: str
    is_held_out: bool = False

    @property
    def things(self) -> str:
        """The thing in the plural."""
        return f"{self.thing[:-1]}ies" if self.thing.endswith("y") else f"{self.thing}s"


TRADES = (
    Trade("code hosting", "issue", "close", "resolve", "commit", "points", "points", "label", ("bug", "feature"), "silent", ("Login broken", "Dark mode", "Slow start", "Crash on save"), "I-"),
    Trade("shop", "order", "refund", "reimburse", "invoice", "items", "items", "method", ("card", "voucher"), "express", ("Yoga mat", "Desk lamp", "Water bottle", "Rain coat"), "o-"),
    Trade("files", "file", "delete", "erase", "folder", "versions", "versions", "mode", ("shallow", "deep"), "recursive", ("Budget 2024", "Holiday photos", "Tax return", "Old notes"), "f-"),
    Trade("mail", "draft", "archive", "shelve", "thread", "months", "months", "shelf", ("private", "shared"), "quiet", ("Lunch on Friday", "Quarterly review", "Parking permit", "Team offsite"), "m-"),
    Trade("clinic", "appointment", "cancel", "revoke", "patient", "doses", "doses", "urgency", ("urgent", "routine"), "notify", ("Knee check", "Flu shot", "Eye test", "Blood sample"), "a-"),
    Trade("wallet", "payment", "approve", "release", "contract", "days", "days", "network", ("mainnet", "testnet"), "instant", ("Rent for May", "Studio deposit", "Server bill", "Gift for Ann"), "p-"),
    Trade("cloud", "instance", "terminate", "destroy", "cluster", "hours", "hours", "region", ("east", "west"), "drain", ("Build runner", "Staging web", "Batch worker", "Metrics store"), "i-", is_held_out=True),
    Trade("crm", "deal", "reopen", "revive", "customer", "weeks", "weeks", "stage", ("lead", "offer"), "public", ("Harbour rent", "Winter fair", "Solar roof", "Print run"), "d-", is_held_out=True),
    Trade("sql", "table", "drop", "purge", "schema", "rows", "rows", "level", ("strict", "loose"), "cascade", ("Order history", "Session log", "Price list", "Audit trail"), "t-", is_held_out=True),
    Trade("calendar", "event", "move", "shift", "calendar", "minutes", "minutes", "visibility", ("open", "hidden"), "invite", ("Board meeting", "Piano lesson", "Design review", "Night train"), "e-", is_held_out=True),
    Trade("chat", "channel", "lock", "freeze", "member", "messages", "messages", "rank", ("owner", "guest"), "forever", ("Release talk", "Random room", "Client otter", "Design corner"), "c-", is_held_out=True),
    Trade("travel", "booking", "extend", "prolong", "traveller", "nights", "nights", "cabin", ("economy", "business"), "insured", ("Gran Plaza", "Hotel Alameda", "Lake cabin", "City hostel"), "B-", is_held_out=True),
)  # fmt: skip
