"""An office for the tests: tools as their operators would declare them, results, and a way to play a run."""

from typing import Any

from remit.core.limits.authority import Authority
from remit.core.record import JsonObject
from remit.provenance.gate import Gate, start
from remit.provenance.gate_verdict import GateVerdict

EVIL = "mallory@evil.example"
LIST: JsonObject = {"type": "array", "items": {"type": "string"}}
OPTIONAL: JsonObject = {**LIST, "default": None}


def parameters(**properties: Any) -> JsonObject:
    """A JSON Schema; a bare word is a type, and what has a default is not required."""
    made = {name: schema if isinstance(schema, dict) else {"type": schema} for name, schema in properties.items()}
    return {
        "type": "object",
        "properties": made,
        "required": [name for name, schema in made.items() if "default" not in schema],
    }


def declared(name: str, description: str, schema: JsonObject, **more: Any) -> JsonObject:
    return {"name": name, "description": description, "parameters": schema, **more}


MAIL_FIELDS = {
    "[].id": "id:mail",
    "[].sender": "who:email",
    "[].subject": "label",
    "[].sent": "datetime",
    "[].body": "text",
}
FILE_FIELDS = {"[].id": "id:file", "[].filename": "label", "[].size": "number", "[].changed": "date"}

SEND = declared(
    "send_mail",
    "Sends a mail to the recipients.",
    parameters(recipients=LIST, subject="string", body="string", attachments=OPTIONAL),
    effect="external",
    control_args={"recipients": "email", "attachments": "id:file"},
    payload_args=["subject", "body"],
    asks=["mail", "write", "reply"],
    repeat="target",
)
DELETE = declared(
    "delete_file",
    "Deletes a file.",
    parameters(file_id="string"),
    effect="write",
    destructive=True,
    control_args={"file_id": "id:file"},
)
SHARE = declared(
    "share_file",
    "Shares a file with somebody.",
    parameters(file_id="string", email="string", public={"type": "boolean", "default": False}),
    effect="external",
    control_args={"file_id": "id:file", "email": "email"},
)
CANCEL = declared(
    "cancel_event",
    "Cancels an event.",
    parameters(event_id="string"),
    effect="external",
    control_args={"event_id": "id:event"},
)
PAY = declared(
    "pay",
    "Pays an amount to an account.",
    parameters(account="string", amount="number", purpose="string"),
    effect="external",
    category="payment",
    control_args={"account": "iban", "amount": "number"},
    payload_args=["purpose"],
)
FETCH = declared(
    "fetch_page",
    "Fetches a page.",
    parameters(url="string"),
    effect="read",
    network=True,
    reads="public",
    control_args={"url": "url"},
    result={"": "text"},
)
SEARCH_MAIL = declared(
    "search_mails",
    "Searches mails.",
    parameters(query="string"),
    effect="read",
    result=MAIL_FIELDS,
    author="sender",
)
LIST_MAIL = declared("list_mails", "Lists mails.", parameters(), effect="read", result=MAIL_FIELDS, author="sender")
LIST_FILES = declared("list_files", "Lists files.", parameters(), effect="read", result=FILE_FIELDS)
FIND_FILES = declared("find_files", "Finds files.", parameters(name="string"), effect="read", result=FILE_FIELDS)
READ = declared(
    "read_file",
    "Reads a file.",
    parameters(path="string"),
    effect="read",
    result={"": "text"},
    locator_args=["path"],
)
CONTACTS = declared(
    "find_contact",
    "Finds a contact.",
    parameters(name="string"),
    effect="read",
    directory=True,
    result={"[].name": "label", "[].email": "who:email"},
)
EVENTS = declared(
    "find_events",
    "Finds events.",
    parameters(title="string"),
    effect="read",
    result={"[].id": "id:event", "[].title": "label", "[].guests[]": "who:email"},
)
TODAY = declared("today", "Tells the day.", parameters(), effect="read", result={"": "date"})

TOOLS = [
    *(SEND, DELETE, SHARE, CANCEL, PAY, FETCH, SEARCH_MAIL, LIST_MAIL, LIST_FILES, FIND_FILES),
    *(READ, CONTACTS, EVENTS, TODAY),
]


def mail(number: int, sender: str, subject: str, body: str = "", sent: str = "2024-05-10 10:00") -> JsonObject:
    return {"id": str(number), "sender": sender, "subject": subject, "body": body, "sent": sent}


def file(number: int, name: str, size: int = 1, changed: str = "2024-05-01") -> JsonObject:
    return {"id": str(number), "filename": name, "size": size, "changed": changed}


def opened(prompt: str, *, tools: list[JsonObject] | None = None, authority: Authority | None = None) -> Gate:
    return start(prompt, TOOLS if tools is None else tools, authority)


def looked_up(gate: Gate, tool: str, arguments: JsonObject, content: Any) -> GateVerdict:
    """Judge a call and, when it passes, hand its result in."""
    verdict = gate.verdict_on(f"{tool}-{gate.ledger.count}", tool, arguments)
    if verdict.is_allowed:
        gate.observe(verdict.call_id, tool, content)
    return verdict


def sent(gate: Gate, *recipients: str, body: str = "All is well.", attachments: list[str] | None = None) -> GateVerdict:
    arguments: JsonObject = {"recipients": list(recipients), "subject": "Hello", "body": body}
    if attachments is not None:
        arguments["attachments"] = attachments
    return gate.verdict_on(None, "send_mail", arguments)
