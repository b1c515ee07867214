"""Where a grammar comes from: its text, or a file that has it."""

from pathlib import Path

from remit.core.failure import ErrorCode, RequestRejected


def grammar_text(source: Path | str) -> str:
    """The grammar in a file, where a path or the name of one is given; else the text itself."""
    is_name = isinstance(source, str) and "\n" not in source and source.endswith((".gbnf", ".lark"))
    if not isinstance(source, Path) and not is_name:
        return source
    try:
        return Path(source).read_text()
    except (OSError, UnicodeDecodeError) as error:
        message = f"the grammar file {str(source)[:200]!r} cannot be read: {error}"
        raise RequestRejected(ErrorCode.CONFIG_GRAMMAR_NOT_FOUND, message, {"file": str(source)[:200]}) from error
