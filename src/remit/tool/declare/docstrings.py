"""Docstrings: what a function says about itself and its parameters, in the three styles people write.

Rule 1: the first paragraph describes the tool; the rest is for readers of the code.
Rule 2: what cannot be read is left out; a docstring never makes a definition invalid.
"""

import re
from collections.abc import Sequence
from inspect import cleandoc

from remit.core.regex import regex

_GOOGLE = regex(r"(?:Args|Arguments|Parameters):")
_NUMPY = regex(r"(?:Other )?Parameters")
_UNDERLINE = regex(r"-{3,}")
_GOOGLE_ITEM = regex(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)")
_NUMPY_ITEM = regex(r"\*{0,2}(\w+(?:\s*,\s*\w+)*)\s*(?::.*)?")
_SPHINX_ITEM = regex(r":param\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)")


def summary_of(docstring: str) -> str:
    """The first paragraph, on one line."""
    paragraph = cleandoc(docstring).strip().split("\n\n")[0]
    lines = paragraph.split("\n")
    # A docstring may begin with its parameters; those are no description.
    while lines and not lines[0].strip():
        lines.pop(0)
    if lines and (_GOOGLE.fullmatch(lines[0].strip()) or lines[0].lstrip().startswith(":param")):
        return ""
    return " ".join(line.strip() for line in lines)


def parameters_of(docstring: str) -> dict[str, str]:
    """What the docstring says about each parameter, by its name."""
    lines = cleandoc(docstring).split("\n")
    found = _sphinx(lines)
    for number, line in enumerate(lines):
        if _GOOGLE.fullmatch(line.strip()):
            found |= _google(lines[number + 1 :])
        elif _NUMPY.fullmatch(line.strip()) and number + 1 < len(lines) and _UNDERLINE.fullmatch(lines[number + 1]):
            found |= _numpy(lines[number + 2 :])
    return {name: text for name, text in found.items() if text}


def _google(lines: Sequence[str]) -> dict[str, str]:
    """Items stand indented below the heading; what is indented further goes on with the item."""
    found: dict[str, str] = {}
    name, margin = "", 0
    for line in lines:
        text, indent = line.strip(), len(line) - len(line.lstrip())
        if not text:
            continue
        if indent == 0:
            break
        margin = margin or indent
        item = _GOOGLE_ITEM.fullmatch(text) if indent <= margin else None
        if item:
            name = item[1]
            found[name] = item[2].strip()
        elif name:
            found[name] = f"{found[name]} {text}".strip()
    return found


def _numpy(lines: Sequence[str]) -> dict[str, str]:
    """Names stand at the margin, descriptions below them; an underlined line is the next section."""
    found: dict[str, str] = {}
    names: list[str] = []
    for number, line in enumerate(lines):
        text = line.strip()
        if number + 1 < len(lines) and _UNDERLINE.fullmatch(lines[number + 1].strip()):
            break
        if not text:
            continue
        if line[0] != " ":
            item = _NUMPY_ITEM.fullmatch(text)
            names = re.split(r"\s*,\s*", item[1]) if item else []
        else:
            found |= {name: f"{found.get(name, '')} {text}".strip() for name in names}
    return found


def _sphinx(lines: Sequence[str]) -> dict[str, str]:
    """Fields at the margin; an indented line goes on with the field above it."""
    found: dict[str, str] = {}
    name = ""
    for line in lines:
        if item := _SPHINX_ITEM.fullmatch(line.strip()):
            name = item[1]
            found[name] = item[2].strip()
        elif line.startswith(" ") and name:
            found[name] = f"{found[name]} {line.strip()}".strip()
        else:
            name = ""
    return found
