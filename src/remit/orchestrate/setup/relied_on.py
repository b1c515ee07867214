"""Files that a run relies on beside its tools and engines: what is said when one is gone or has changed.

Rule 1: a file is compared before anything of it is used; what differs is refused with a code, and the run stays open.
"""

from typing import NamedTuple

from remit.core.run.manifest import Source
from remit.tool.loader import SourceFault

# Before the name of a part of a plan, it names the source of it. No tool may have a colon in its name.
PLAN_MARK = "plan:"
PLAN_FILE = "plan:file"
# Before the name of a rule set, it names the code that hears an answer by it, and the source of that.
RULES_MARK = "rules:"


class Codes(NamedTuple):
    """The codes of a kind of file: it is gone, it has changed."""

    missing: str
    changed: str


PLAN_CODES = Codes("PLAN_SOURCE_MISSING", "PLAN_SOURCE_CHANGED")
VOTER_CODES = Codes("VOTER_SOURCE_MISSING", "VOTER_SOURCE_CHANGED")
RULES_CODES = Codes("RULES_SOURCE_MISSING", "RULES_SOURCE_CHANGED")


def expect(source: Source, digest: str, codes: Codes) -> None:
    """Refuse what is not there, or is no longer what its source says."""
    if not digest:
        raise fault(codes.missing, source, "it cannot be read; put it back")
    if digest != source.digest:
        problem = "it has changed since the run began; restore it, or accept the change by this name"
        raise fault(codes.changed, source, problem, digest)


def fault(code: str, source: Source, problem: str, digest: str = "") -> SourceFault:
    """The refusal of a file, in words and for programs."""
    details = {"name": source.name, "place": source.place, "expected": source.digest, "found": digest}
    message = f"{source.place!r}, on which the run relies as {source.name!r}: {problem}"
    return SourceFault(code, message, {**details, "faults": [{"code": code, **details}]})
