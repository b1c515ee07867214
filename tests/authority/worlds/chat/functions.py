"""The tools of the chat, as small functions over its data.

Rule 1: a function sees the world it is given and nothing else; a read returns copies.
Rule 2: what does not exist raises KeyError with its name; the runner turns that into an error of the tool.
"""

from copy import deepcopy

from tests.authority.records import Record, World, one


def _message(world: World, identity: str) -> Record:
    return one(world["messages"] + world["direct"], identity)


def list_channels(world: World) -> list[Record]:
    return deepcopy(world["channels"])


def list_users(world: World) -> list[Record]:
    return deepcopy(world["users"])


def find_user(world: World, name: str) -> list[Record]:
    wanted = name.casefold()
    return deepcopy([u for u in world["users"] if wanted in u["name"].casefold() or wanted == u["handle"]])


def read_channel(world: World, channel: str) -> list[Record]:
    one(world["channels"], channel, key="name")
    return [
        {key: value for key, value in message.items() if key != "channel"}
        for message in world["messages"]
        if message["channel"] == channel
    ]


def read_direct(world: World) -> list[Record]:
    return deepcopy(world["direct"])


def post_message(world: World, channel: str, text: str) -> Record:
    one(world["channels"], channel, key="name")
    number = f"msg-{100 + len(world['messages'])}"
    message = {"id": number, "channel": channel, "author": "dana", "time": "2025-06-06T10:00", "likes": 0}
    world["messages"].append(message | {"text": text})
    return {"posted": number}


def send_direct(world: World, user: str, text: str) -> Record:
    return {"sent": one(world["users"], user, key="handle")["handle"], "chars": len(text)}


def reply_message(world: World, message_id: str, text: str) -> Record:
    return {"replied": _message(world, message_id)["id"], "chars": len(text)}


def delete_message(world: World, message_id: str) -> Record:
    world["messages"].remove(one(world["messages"], message_id))
    return {"deleted": message_id}


def pin_message(world: World, message_id: str) -> Record:
    _message(world, message_id)["pinned"] = True
    return {"pinned": message_id}


def add_to_channel(world: World, user: str, channel: str) -> Record:
    one(world["channels"], channel, key="name")["members"].append(user)
    return {"added": user}


def remove_from_channel(world: World, user: str, channel: str) -> Record:
    one(world["channels"], channel, key="name")["members"].remove(user)
    return {"removed": user}


def invite_by_email(world: World, email: str) -> Record:
    return {"invited": email}


def create_channel(world: World, name: str) -> Record:
    world["channels"].append({"name": name, "topic": "", "members": ["dana"]})
    return {"created": name}


def open_link(world: World, url: str) -> str:
    return str(world["pages"].get(url, "404 Not Found"))


def publish_post(world: World, title: str, text: str, link: str = "") -> Record:
    world["posts"].append({"title": title, "text": text, "link": link})
    return {"posts": len(world["posts"])}


def set_topic(world: World, channel: str, topic: str) -> Record:
    one(world["channels"], channel, key="name")["topic"] = topic
    return {"topic": topic}


def set_status(world: World, text: str) -> Record:
    return {"status": text}


def list_notes(world: World) -> list[Record]:
    return [{"text": text} for text in world["notes"]]


def take_note(world: World, text: str) -> Record:
    world["notes"].append(text)
    return {"notes": len(world["notes"])}


def make_admin(world: World, user: str) -> Record:
    return {"admin": one(world["users"], user, key="handle")["handle"]}


def create_webhook(world: World, channel: str, url: str) -> Record:
    return {"webhook": url, "channel": channel}


def export_channel(world: World, channel: str, email: str) -> Record:
    return {"exported": channel, "email": email}


def count_words(world: World, text: str) -> int:
    return len(text.split())
