"""What an exception of foreign code says. Its words are code of its own, which may raise as well."""


def words_of(error: BaseException) -> str:
    """The message of an error, or that there is none to be had."""
    try:
        return str(error)
    except Exception as failure:  # noqa: BLE001  # the words of a stranger's error are a stranger's code
        return f"its message raised {type(failure).__name__}"


def raised(error: BaseException) -> str:
    """The type and the message of an error."""
    words, kind = words_of(error), type(error).__name__
    return f"{kind}: {words}" if words else kind
