"""The tools of the bank, as small functions over its data.

Rule 1: a function sees the world it is given and nothing else; a read returns copies.
Rule 2: what does not exist raises KeyError with its name; the runner turns that into an error of the tool.
"""

from copy import deepcopy

from tests.authority.records import Record, World, one


def _holding(records: list[Record], query: str, *fields: str) -> list[Record]:
    wanted = query.casefold()
    return deepcopy([r for r in records if any(wanted in str(r[field]).casefold() for field in fields)])


def list_accounts(world: World) -> list[Record]:
    return deepcopy(world["accounts"])


def search_payees(world: World, name: str) -> list[Record]:
    return _holding(world["payees"], name, "name")


def list_transactions(world: World) -> list[Record]:
    return deepcopy(world["transactions"])


def search_transactions(world: World, query: str) -> list[Record]:
    return _holding(world["transactions"], query, "counterparty", "subject")


def list_documents(world: World) -> list[Record]:
    return [{key: d[key] for key in ("id", "filename", "received")} for d in world["documents"]]


def read_document(world: World, filename: str) -> str:
    return str(one(world["documents"], filename, key="filename")["text"])


def transfer(world: World, iban: str, amount: float, subject: str, from_account: str = "acc-1") -> Record:
    account = one(world["accounts"], from_account)
    account["balance"] = round(account["balance"] - amount, 2)
    number = f"t-{300 + len(world['transactions'])}"
    booked = {"id": number, "date": "2025-06-02", "counterparty": "", "iban": iban, "amount": amount}
    world["transactions"].append(booked | {"direction": "out", "subject": subject})
    return {"booked": number, "balance": account["balance"]}


def list_standing_orders(world: World) -> list[Record]:
    return deepcopy(world["standing_orders"])


def create_standing_order(
    world: World, iban: str, amount: float, interval: str, start_date: str, subject: str
) -> Record:
    number = f"so-{10 + len(world['standing_orders'])}"
    order = {"id": number, "payee": "", "iban": iban, "amount": amount, "interval": interval}
    world["standing_orders"].append(order | {"next_date": start_date, "subject": subject})
    return {"created": number}


def change_standing_order(world: World, order_id: str, amount: float) -> Record:
    one(world["standing_orders"], order_id)["amount"] = amount
    return {"changed": order_id}


def cancel_standing_order(world: World, order_id: str) -> Record:
    world["standing_orders"].remove(one(world["standing_orders"], order_id))
    return {"cancelled": order_id}


def list_cards(world: World) -> list[Record]:
    return deepcopy(world["cards"])


def block_card(world: World, card_id: str) -> Record:
    one(world["cards"], card_id)["blocked"] = True
    return {"blocked": card_id}


def set_card_limit(world: World, card_id: str, limit: float) -> Record:
    one(world["cards"], card_id)["limit"] = limit
    return {"card": card_id, "limit": limit}


def add_payee(world: World, name: str, iban: str) -> Record:
    world["payees"].append({"id": f"p-{10 + len(world['payees'])}", "name": name, "iban": iban})
    return {"payees": len(world["payees"])}


def request_money(world: World, iban: str, amount: float, subject: str) -> Record:
    world["requests"].append({"iban": iban, "amount": amount, "subject": subject})
    return {"requests": len(world["requests"])}


def send_statement(world: World, month: str, email: str) -> Record:
    return {"sent": month, "email": email}


def dispute_transaction(world: World, transaction_id: str, reason: str) -> Record:
    return {"disputed": one(world["transactions"], transaction_id)["id"], "reason": reason}


def update_address(world: World, address: str) -> Record:
    world["owner"]["address"] = address
    return {"address": address}


def fetch_rates(world: World, url: str) -> str:
    return str(world["pages"].get(url, "404 Not Found"))


def list_notes(world: World) -> list[Record]:
    return [{"text": text} for text in world["notes"]]


def add_note(world: World, text: str) -> Record:
    world["notes"].append(text)
    return {"notes": len(world["notes"])}


def grant_access(world: World, email: str, rights: str) -> Record:
    return {"granted": rights, "email": email}


def change_password(world: World, new_password: str) -> Record:
    return {"changed": bool(new_password)}


def convert(world: World, amount: float, source: str, target: str) -> Record:
    return {"amount": round(amount * 7.46, 2), "currency": target}
