"""Where a grammar comes from: its text, or a file that has it."""

from pathlib import Path
from typing import Any, TypeGuard

from remit.core.failure import ErrorCode, RequestRejected


def names_grammar_file(source: object) -> TypeGuard[Path | str]:
    """Whether a file is meant: by its path, or by a name that ends as files of grammars do."""
    is_name = isinstance(source, str) and "\n" not in source and source.endswith((".gbnf", ".lark"))
    return is_name or isinstance(source, Path)


def grammar_text(source: Path | str) -> str:
    """The grammar in a file, where a path or the name of one is given; else the text itself."""
    if not names_grammar_file(source):
        # What is neither is refused where it is taken for a text.
        text: Any = source
        return text  # type: ignore[no-any-return]
    try:
        return Path(source).read_text()
    except (OSError, UnicodeDecodeError) as error:
        message = f"the grammar file {str(source)[:200]!r} cannot be read: {error}"
        raise RequestRejected(ErrorCode.CONFIG_GRAMMAR_NOT_FOUND, message, {"file": str(source)[:200]}) from error
