"""The tools of the travel desk, as small functions over its data.

Rule 1: a function sees the world it is given and nothing else; a read returns copies.
Rule 2: what does not exist raises KeyError with its name; the runner turns that into an error of the tool.
"""

from copy import deepcopy

from tests.authority.records import Record, World, one


def _where(records: list[Record], field: str, value: str) -> list[Record]:
    return deepcopy([record for record in records if record[field] == value])


def search_flights(world: World, origin: str, destination: str, date: str) -> list[Record]:
    found = _where(world["flights"], "origin", origin)
    return [flight for flight in found if flight["destination"] == destination and flight["date"] == date]


def search_hotels(world: World, city: str) -> list[Record]:
    return [hotel | {"blurb": f"A house in {city}."} for hotel in _where(world["hotels"], "city", city)]


def hotel_reviews(world: World, hotel_id: str) -> list[Record]:
    return [{key: r[key] for key in ("author", "rating", "text")} for r in _where(world["reviews"], "hotel", hotel_id)]


def search_restaurants(world: World, city: str) -> list[Record]:
    return [place | {"blurb": f"Kitchen: {place['cuisine']}."} for place in _where(world["restaurants"], "city", city)]


def list_bookings(world: World) -> list[Record]:
    return [booking | {"remark": "Thank you for booking."} for booking in world["bookings"]]


def find_companion(world: World, name: str) -> list[Record]:
    return deepcopy([friend for friend in world["companions"] if name.casefold() in friend["name"].casefold()])


def list_cards(world: World) -> list[Record]:
    return [{"id": card["id"], "name": card["name"]} for card in world["cards"]]


def read_passport(world: World) -> str:
    return str(world["passport"])


def _book(world: World, kind: str, name: str, date: str, price: float) -> Record:
    number = f"B-{7100 + len(world['bookings'])}"
    world["bookings"].append(
        {"id": number, "kind": kind, "name": name, "date": date, "price": price, "status": "confirmed"}
    )
    return {"booked": number}


def book_flight(world: World, flight: str, date: str) -> Record:
    return _book(world, "flight", flight, date, one(world["flights"], flight, key="flight")["price"])


def book_hotel(world: World, hotel_id: str, check_in: str, check_out: str, wish: str = "") -> Record:
    hotel = one(world["hotels"], hotel_id)
    return _book(world, "hotel", hotel["name"], check_in, hotel["price"])


def reserve_table(world: World, restaurant_id: str, date: str, time: str, people: int) -> Record:
    return _book(world, "table", one(world["restaurants"], restaurant_id)["name"], f"{date}T{time}", 0)


def cancel_booking(world: World, booking_id: str) -> Record:
    one(world["bookings"], booking_id)["status"] = "cancelled"
    return {"cancelled": booking_id}


def change_booking(world: World, booking_id: str, date: str) -> Record:
    one(world["bookings"], booking_id)["date"] = date
    return {"changed": booking_id}


def pay_booking(world: World, booking_id: str, card_id: str, amount: float) -> Record:
    one(world["bookings"], booking_id)["status"] = "confirmed"
    world["paid"].append({"booking": booking_id, "card": one(world["cards"], card_id)["id"], "amount": amount})
    return {"paid": amount}


def send_itinerary(world: World, booking_id: str, email: str, message: str = "") -> Record:
    world["sent"].append({"booking": one(world["bookings"], booking_id)["id"], "email": email, "message": message})
    return {"sent": booking_id}


def message_hotel(world: World, hotel_id: str, text: str) -> Record:
    world["sent"].append({"hotel": one(world["hotels"], hotel_id)["id"], "text": text})
    return {"sent": hotel_id}


def post_review(world: World, hotel_id: str, rating: int, text: str) -> Record:
    world["reviews"].append({"hotel": hotel_id, "author": "ines", "rating": rating, "text": text})
    return {"posted": hotel_id}


def open_link(world: World, url: str) -> str:
    return str(world["pages"].get(url, "404 Not Found"))


def list_notes(world: World) -> list[Record]:
    return [{"text": text} for text in world["notes"]]


def add_note(world: World, text: str) -> Record:
    world["notes"].append(text)
    return {"notes": len(world["notes"])}


def rent_car(world: World, city: str, date: str, days: int) -> Record:
    return _book(world, "car", f"Car in {city}", date, 44 * days)


def refund_to(world: World, booking_id: str, iban: str) -> Record:
    return {"refunded": one(world["bookings"], booking_id)["price"], "iban": iban}


def share_profile(world: World, email: str) -> Record:
    return {"shared": email}


def weather(world: World, city: str, date: str) -> str:
    return f"{city}, {date}: sunny, 31 degrees."
