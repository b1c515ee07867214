"""An errand: the prompt, the thirty tools, the results and the calls of a run that looks mails up and sends one.

The tools and texts are of the size that people write: a mail of six arguments whose body has some seventy words, and
results of twenty records with a text each.
"""

from remit.core.record import JsonObject

PROMPT = (
    "Please search the mails about the quarterly report. Mail the report 'report.docx' with a short summary to "
    "mark@corp.example, cc alice@corp.example and Ann Lee, and update the ticket 4711 with the amount 250.00 EUR by "
    "2024-05-10. Thanks!"
)
THINGS = ("mail", "file", "event", "contact", "invoice", "channel", "ticket", "booking", "note")
RECORDS = 20
_TEXT: JsonObject = {"type": "string"}
_TEXTS: JsonObject = {"type": "array", "items": _TEXT}

_BODY = (
    "Hi Mark,\n\nattached you find the report. It says that all is well and that nothing is left to do; revenue rose "
    "by 12.5 percent and costs fell. The open questions of last time are answered, and what we agreed on is done.\n\n"
    "If anything is missing, please tell me before the end of the week. I will then add it to the next one, which the "
    "whole team is going to read.\n\nBest regards,\nAnn"
)
# Every argument of it is bound: by the words, by a record that they name, by its default, or as prose.
MAIL: JsonObject = {
    "recipients": ["mark@corp.example"],
    "cc": ["alice@corp.example", "ann.lee@corp.example"],
    "subject": "The quarterly report",
    "body": _BODY,
    "attachments": ["7"],
    "importance": "normal",
}
# The same with a recipient whom only a result named.
STRAY: JsonObject = {**MAIL, "recipients": ["mark@corp.example", "p3.4@elsewhere.example"]}
LOOKUP = ("search_mails", {"query": "quarterly report", "limit": 20, "folder": "inbox"})
# What is looked up before the mail: who Ann Lee is, and which file is meant.
FOUND = (
    ("find_files", {"name": "report.docx"}, [{"id": "7", "filename": "report.docx", "size": 3}]),
    ("find_contact", {"name": "Ann Lee"}, [{"name": "Ann Lee", "email": "ann.lee@corp.example"}]),
)


def _tool(name: str, description: str, properties: JsonObject, required: list[str], **more: object) -> JsonObject:
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"name": name, "description": description, "parameters": parameters, **more}


def _tools_for(thing: str) -> tuple[JsonObject, ...]:
    key = f"{thing}_id"
    return (
        _tool(
            f"search_{thing}s",
            f"Searches {thing}s by a query and lists those that fit, newest first.",
            {"query": _TEXT, "limit": {"type": "integer", "default": 20}, "folder": _TEXT},
            ["query"],
            effect="read",
            result={
                "[].id": f"id:{thing}",
                "[].sender": "who:email",
                "[].subject": "label",
                "[].amount": "number",
                "[].sent": "datetime",
                "[].body": "text",
            },
        ),
        _tool(
            f"update_{thing}",
            f"Updates the {thing} with the given id. Overwrites what was there.",
            {key: _TEXT, "title": _TEXT, "text": _TEXT, "amount": {"type": "number"}},
            [key],
            effect="write",
            control_args={key: f"id:{thing}", "amount": "number"},
            payload_args=["text"],
        ),
        _tool(
            f"delete_{thing}",
            f"Deletes a {thing} for good.",
            {key: _TEXT},
            [key],
            effect="write",
            destructive=True,
            control_args={key: f"id:{thing}"},
        ),
    )


TOOLS: list[JsonObject] = [
    *(tool for thing in THINGS for tool in _tools_for(thing)),
    _tool(
        "find_contact",
        "Finds a contact by name.",
        {"name": _TEXT},
        ["name"],
        effect="read",
        directory=True,
        result={"[].name": "label", "[].email": "who:email"},
    ),
    _tool(
        "find_files",
        "Finds files by their name.",
        {"name": _TEXT},
        ["name"],
        effect="read",
        result={"[].id": "id:file", "[].filename": "label", "[].size": "number"},
    ),
    _tool(
        "send_mail",
        "Sends a mail to the recipients.",
        {
            "recipients": _TEXTS,
            "cc": _TEXTS,
            "subject": _TEXT,
            "body": _TEXT,
            "attachments": _TEXTS,
            "importance": {"enum": ["low", "normal", "high"], "default": "normal"},
        },
        ["recipients", "subject", "body"],
        effect="external",
        control_args={"recipients": "email", "cc": "email", "attachments": "id:file"},
        payload_args=["subject", "body"],
        asks=["mail"],
        repeat="free",
    ),
]


def mails(number: int) -> list[JsonObject]:
    """One page of mails; no two pages have a record in common."""
    return [
        {
            "id": f"{number}-{place}",
            "sender": f"p{number}.{place}@elsewhere.example",
            "subject": f"Subject {place}",
            "amount": number + place,
            "sent": f"2024-05-{place % 28 + 1:02} 10:00",
            "body": "Some words that nobody vouches for, and so on. " * 8 + f"See http://x{number}.example/{place}.",
        }
        for place in range(RECORDS)
    ]
