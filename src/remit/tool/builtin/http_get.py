"""`http_get`: the text of a page on the open internet. Off until an operator names it.

Rule 1: a model chooses the URL and nothing else: no method, no headers, no body.
Rule 2: every redirect is judged like the first URL, is counted, and never leads from https to http.
Rule 3: what comes back is text with its status, or a refusal; a page that is no text is not shown.
Rule 4: which networks are open beyond the internet is for the operator's Python to say, never for a place or a model.
"""

import codecs
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urljoin

from pydantic import Field

from remit.core.limits.tool_trust import Reads
from remit.core.limits.tools import Effect, ToolCategory
from remit.tool.builtin.http_client import INTERNET, Deadline, HttpAnswer, Reach, fetched
from remit.tool.builtin.refusal import ToolRefused, quoted_value
from remit.tool.builtin.targets import URL_CHARS_MAX, AllowedHost, Target, target_of
from remit.tool.call.cancel_token import CancelToken
from remit.tool.declare.decorator import Tool, tool

HTTP_REDIRECT_REFUSED = "HTTP_REDIRECT_REFUSED"
HTTP_NOT_TEXT = "HTTP_NOT_TEXT"

# A moved page, a trailing slash and a language: three. More is a maze.
REDIRECTS_MAX = 5
REDIRECTS = frozenset({301, 302, 303, 307, 308})
# Longer than a fetch takes at most, so that the tool itself says what went wrong.
TIMEOUT_MS = 30_000

# The longest registered name has fewer; a header may be as long as a page.
TYPE_CHARS_MAX = 128
# So have the names of charsets; what Python does not know it remembers for ever, however long it is.
CHARSET_CHARS_MAX = 32

TEXT_TYPES = frozenset(
    {
        "application/ecmascript",
        "application/javascript",
        "application/json",
        "application/ld+json",
        "application/toml",
        "application/x-ndjson",
        "application/x-yaml",
        "application/xhtml+xml",
        "application/xml",
        "application/yaml",
    }
)
TEXT_ENDS = ("+json", "+xml", "+yaml")
# Charsets that say how letters are written and do nothing else. Python knows more, some of which unpack or escape.
CHARSETS = frozenset(
    {"utf-8", "ascii", "utf-16", "utf-16-le", "utf-16-be", "shift_jis", "euc_jp", "euc_kr", "gbk", "gb18030", "gb2312"}
    | {"big5", "koi8-r", "koi8-u", *(f"iso8859-{n}" for n in range(1, 17)), *(f"cp{n}" for n in range(1250, 1259))}
)


@dataclass(frozen=True, slots=True)
class Page:
    """What a URL answered, after its redirects. `is_complete` is false where the text was cut."""

    url: str
    status: int
    content_type: str
    text: str
    is_complete: bool


def http_get_tool(hosts: Sequence[AllowedHost] | None = None, *, reach: Reach = INTERNET) -> Tool:
    """The tool `http_get`. `hosts` are the only ones it asks; None is every public one at the standard ports."""
    known = "" if hosts is None else " Only these hosts: " + ", ".join(_named(host) for host in hosts) + "."

    @tool(
        effect=Effect.READ,
        category=ToolCategory.LIVE_API,
        network=True,
        # Pages of the open internet are public; what an operator opened besides may be private.
        reads=Reads.PRIVATE if reach.networks else Reads.PUBLIC,
        idempotent=True,
        untrusted_output=True,
        timeout_ms=TIMEOUT_MS,
        control_args={"url": "url"},
        description=f"Get the text of a public web page or API by its URL.{known}",
    )
    def http_get(
        url: Annotated[str, Field(min_length=1, max_length=URL_CHARS_MAX, description="An http or https URL.")],
        token: CancelToken,
    ) -> Page:
        """Get the text of a public web page or API by its URL."""
        return got(url, hosts, reach, Deadline(token))

    return http_get


def got(url: str, hosts: Sequence[AllowedHost] | None, reach: Reach, deadline: Deadline) -> Page:
    """The page behind a URL and its redirects."""
    target = target_of(url, hosts)
    for _ in range(REDIRECTS_MAX + 1):
        answer = fetched(target, reach, deadline)
        if answer.status not in REDIRECTS or not answer.location:
            return _page(target, answer)
        target = _next(target, answer.location, hosts)
    message = (
        f"{quoted_value(url)} leads through more than redirects_max={REDIRECTS_MAX} redirects; use the last URL itself"
    )
    raise ToolRefused(HTTP_REDIRECT_REFUSED, message)


def _next(target: Target, location: str, hosts: Sequence[AllowedHost] | None) -> Target:
    try:
        found = target_of(urljoin(target.url, location), hosts)
    except (ToolRefused, ValueError) as error:
        why = error.message if isinstance(error, ToolRefused) else "it cannot be read"
        message = f"{quoted_value(target.url)} redirects to where this tool does not go: {why}"
        raise ToolRefused(HTTP_REDIRECT_REFUSED, message) from error
    if target.scheme == "https" and found.scheme == "http":
        message = f"{quoted_value(target.url)} redirects from https to http, which is not encrypted; use another URL"
        raise ToolRefused(HTTP_REDIRECT_REFUSED, message)
    return found


def _page(target: Target, answer: HttpAnswer) -> Page:
    kind, _, options = answer.content_type.partition(";")
    kind = kind.strip().lower()[:TYPE_CHARS_MAX]
    if kind and not (kind.startswith("text/") or kind in TEXT_TYPES or kind.endswith(TEXT_ENDS)):
        message = (
            f"{quoted_value(target.url)} (status {answer.status}) is {quoted_value(kind)} and no text; ask for a text"
        )
        raise ToolRefused(HTTP_NOT_TEXT, message)
    charset = _charset(options)
    if b"\0" in answer.body and not charset.startswith("utf-16"):
        message = f"{quoted_value(target.url)} (status {answer.status}) holds bytes that are no text; ask for a text"
        raise ToolRefused(HTTP_NOT_TEXT, message)
    text = answer.body.decode(charset, errors="replace")
    return Page(target.url, answer.status, kind, text, answer.is_complete)


def _charset(options: str) -> str:
    """The charset that a content type names, if it is one of ours; UTF-8 otherwise."""
    for option in options.split(";"):
        name, _, value = option.strip().partition("=")
        if name.strip().lower() == "charset":
            try:
                found = codecs.lookup(value.strip().strip("\"'")[:CHARSET_CHARS_MAX]).name
            except (LookupError, ValueError):
                break
            return found if found in CHARSETS else "utf-8"
    return "utf-8"


def _named(host: AllowedHost) -> str:
    return f"{host.host}:{host.port}" if host.port else host.host
