"""The tools of the workspace, as small functions over its data.

Rule 1: a function sees the world it is given and nothing else; a read returns copies.
Rule 2: what does not exist raises KeyError with its name; the runner turns that into an error of the tool.
"""

from copy import deepcopy

from tests.authority.records import Record, World, one


def _holding(records: list[Record], query: str, *fields: str) -> list[Record]:
    wanted = query.casefold()
    return deepcopy([r for r in records if any(wanted in str(r[field]).casefold() for field in fields)])


def search_contacts(world: World, query: str) -> list[Record]:
    return _holding(world["contacts"], query, "name", "email", "company")


def list_unread(world: World) -> list[Record]:
    return deepcopy([mail for mail in world["mails"] if mail["unread"]])


def list_inbox(world: World) -> list[Record]:
    return deepcopy(world["mails"])


def search_mail(world: World, query: str) -> list[Record]:
    return _holding(world["mails"], query, "sender", "sender_name", "subject", "body")


def read_mail(world: World, mail_id: str) -> Record:
    return deepcopy(one(world["mails"], mail_id))


def send_mail(
    world: World,
    recipients: list[str],
    subject: str,
    body: str,
    cc: list[str] | None = None,
    attachments: list[str] | None = None,
) -> Record:
    world["sent"].append({"to": recipients + (cc or []), "subject": subject, "body": body, "files": attachments or []})
    return {"sent": len(world["sent"])}


def reply_mail(world: World, mail_id: str, body: str) -> Record:
    mail = one(world["mails"], mail_id)
    return send_mail(world, [mail["sender"]], f"Re: {mail['subject']}", body)


def forward_mail(world: World, mail_id: str, recipients: list[str], note: str = "") -> Record:
    mail = one(world["mails"], mail_id)
    return send_mail(world, recipients, f"Fwd: {mail['subject']}", f"{note}\n{mail['body']}")


def delete_mail(world: World, mail_id: str) -> Record:
    world["mails"].remove(one(world["mails"], mail_id))
    return {"deleted": mail_id}


def mark_read(world: World, mail_id: str) -> Record:
    one(world["mails"], mail_id)["unread"] = False
    return {"read": mail_id}


def list_events(world: World, day: str) -> list[Record]:
    return deepcopy([event for event in world["events"] if event["start"].startswith(day)])


def search_events(world: World, query: str) -> list[Record]:
    return _holding(world["events"], query, "title")


def create_event(
    world: World,
    title: str,
    start: str,
    end: str,
    participants: list[str] | None = None,
    location: str = "",
    description: str = "",
) -> Record:
    event = {"id": f"e-{40 + len(world['events'])}", "title": title, "start": start, "end": end, "location": location}
    owner = world["owner"]["email"]
    world["events"].append(
        event | {"organizer": owner, "participants": [owner, *(participants or [])], "description": description}
    )
    return {"created": event["id"]}


def add_participants(world: World, event_id: str, participants: list[str]) -> Record:
    one(world["events"], event_id)["participants"].extend(participants)
    return {"invited": len(participants)}


def move_event(world: World, event_id: str, start: str, end: str) -> Record:
    one(world["events"], event_id).update(start=start, end=end)
    return {"moved": event_id}


def cancel_event(world: World, event_id: str) -> Record:
    world["events"].remove(one(world["events"], event_id))
    return {"cancelled": event_id}


def _listed(file: Record) -> Record:
    return {key: deepcopy(value) for key, value in file.items() if key != "content"}


def list_files(world: World) -> list[Record]:
    return [_listed(file) for file in world["files"]]


def search_files(world: World, query: str) -> list[Record]:
    return [_listed(file) for file in _holding(world["files"], query, "filename")]


def read_file(world: World, file_id: str) -> str:
    return str(one(world["files"], file_id)["content"])


def share_file(world: World, file_id: str, email: str, permission: str = "view") -> Record:
    one(world["files"], file_id)["shared_with"].append(email)
    return {"shared": file_id, "permission": permission}


def delete_file(world: World, file_id: str) -> Record:
    world["files"].remove(one(world["files"], file_id))
    return {"deleted": file_id}


def create_file(world: World, filename: str, content: str) -> Record:
    file = {"id": f"f-{20 + len(world['files'])}", "filename": filename, "owner": world["owner"]["email"]}
    world["files"].append(
        file | {"size": len(content), "modified": "2025-05-14", "shared_with": [], "content": content}
    )
    return {"created": file["id"]}


def append_file(world: World, file_id: str, content: str) -> Record:
    one(world["files"], file_id)["content"] += f"{content}\n"
    return {"appended": file_id}


def open_page(world: World, url: str) -> str:
    return str(world["pages"].get(url, "404 Not Found"))


def list_notes(world: World) -> list[Record]:
    return [{"id": f"n-{n}", "text": text} for n, text in enumerate(world["notes"], 1)]


def remember(world: World, text: str) -> Record:
    world["notes"].append(text)
    return {"notes": len(world["notes"])}


def set_vacation(world: World, text: str, until: str) -> Record:
    world["rules"].append({"answer": text, "until": until})
    return {"until": until}


def translate(world: World, text: str, language: str) -> str:
    return f"[{language}] {text}"


def create_mail_rule(world: World, condition: str, forward_to: str) -> Record:
    world["rules"].append({"condition": condition, "forward_to": forward_to})
    return {"rules": len(world["rules"])}


def export_mailbox(world: World, target: str) -> Record:
    return {"exported": len(world["mails"]), "target": target}
