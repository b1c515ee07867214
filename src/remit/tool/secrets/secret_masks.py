"""Masks of secrets: every form of a secret in a text becomes the name of the secret.

Rule 1: a value is looked for as it is, and as JSON, a URL, HTML, hexadecimal and base64 write it, at any place of a text.
Rule 2: where a text was cut, what is left of a value at its edge counts as the value.
Rule 3: a short value would be found in many words, and a guess would be confirmed; so no secret is that short.
Rule 4: this is a net and no wall: a tool that is given a value can write it in a form that is not looked for.
"""

import base64
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple
from urllib.parse import quote, quote_plus

# So much of a value at the edge of a text is no chance: values often begin alike, as addresses and keys do. Half of a value
# that is shorter than twice that.
EDGE_CHARS_MAX = 16

# How this house ends a text that it cut.
_CUT_MARKS = ("", " ...", "…")


class _Form(NamedTuple):
    """One way of writing a value, the name of the secret, and how much of it is told from chance at an edge."""

    text: str
    name: str
    edge: int


class Masker:
    """Finds the values it was made with."""

    __slots__ = ("_forms", "names")

    def __init__(self, values: Iterable[tuple[str, str]] = ()) -> None:
        """The names of secrets, each with a value; a name may come with several."""
        known = list(dict.fromkeys(values))
        forms = {text: name for name, value in known for text in forms_of(value)}
        # The longest first: a value may be the beginning of another one.
        listed = sorted(forms, key=lambda text: (-len(text), text))
        self._forms = tuple(_Form(text, forms[text], min(len(text) // 2, EDGE_CHARS_MAX)) for text in listed)
        # Of the secrets whose values are looked for; with none, nothing is.
        self.names = tuple(dict.fromkeys(name for name, _ in known))

    def masked(self, text: str) -> str:
        """The text with `[secret NAME]` in place of every value."""
        return self._replaced(text, "[secret {}]")

    def exposed(self, text: str) -> str:
        """The text of a model without any secret, with a mark that no tool's result is given."""
        return self._replaced(text, "[exposed secret {}]")

    def without(self, text: str, mark: Callable[[str], str]) -> str:
        """The text with what stands for it in place of every value, which is asked for as it is written there."""
        for form in self._forms:
            if form.text in text:
                text = text.replace(form.text, mark(form.text))
        return text

    def value_in(self, text: str) -> str:
        """The name of a secret whose value stands in a text; empty if none does."""
        return next((form.name for form in self._forms if form.text in text), "")

    def found_in(self, arguments: str) -> str:
        """The name of a secret that arguments, as JSON, hold the value or the mark of; empty if they hold none."""
        if name := self.value_in(arguments):
            return name
        return next((name for name in self.names if f"[exposed secret {name}]" in arguments), "")

    def _replaced(self, text: str, mark: str) -> str:
        for form in self._forms:
            if form.text in text:
                text = text.replace(form.text, mark.format(form.name))
        for form in self._forms:
            if len(text) >= form.edge:
                text = _without_ended(_without_begun(text, form, mark), form, mark)
        return text


def forms_of(value: str) -> Iterator[str]:
    """The ways in which a value is commonly written."""
    data = value.encode(errors="surrogatepass")
    yield value
    for escaped in (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]):
        # A text within JSON that is itself a text within JSON, as errors of services often are.
        yield from (escaped, json.dumps(escaped)[1:-1], escaped.replace("/", "\\/"))
    for quoted in (quote(data, safe=""), quote(data), quote_plus(data)):
        yield from (quoted, re.sub("%[0-9A-F]{2}", lambda found: found.group().lower(), quoted))
    yield html.escape(value)
    yield from (data.hex(), data.hex().upper())
    for plain in (base64.b64encode(data).decode(), *(_base64_core(data, offset) for offset in range(3))):
        yield from (plain, plain.replace("+", "-").replace("/", "_"))


def _base64_core(data: bytes, offset: int) -> str:
    """What base64 makes of data behind so many other bytes, without the letters that depend on its neighbours."""
    text = base64.b64encode(b"\0" * offset + data).decode().rstrip("=")
    # Three bytes are four letters. The letter that a byte shares with its neighbour before or behind it tells nothing.
    first = (0, 2, 3)[offset]
    return text[first : len(text) - ((len(data) + offset) % 3 != 0)]


def _without_begun(text: str, form: _Form, mark: str) -> str:
    """The text without the beginning of a value at its end."""
    head = form.text[: form.edge]
    for end in _CUT_MARKS:
        if not text.endswith(end):
            continue
        whole = text[: len(text) - len(end)]
        at = whole.find(head, max(len(whole) - len(form.text), 0))
        while at >= 0:
            if form.text.startswith(whole[at:]):
                return whole[:at] + mark.format(form.name) + end
            at = whole.find(head, at + 1)
    return text


def _without_ended(text: str, form: _Form, mark: str) -> str:
    """The text without the end of a value at its beginning."""
    tail = form.text[-form.edge :]
    at = text.rfind(tail, 0, len(form.text))
    while at >= 0:
        end = at + form.edge
        if form.text.endswith(text[:end]):
            return mark.format(form.name) + text[end:]
        at = text.rfind(tail, 0, end - 1)
    return text
