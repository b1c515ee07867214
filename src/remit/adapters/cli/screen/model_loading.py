"""Showing that a model is being loaded, which may take longer than anything else a run waits for.

Rule 1: the loader says so in the log; here it is only shown. What the log itself shows stays as it was asked for.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Who loads models, and how each of its messages begins.
LOADER = "remit.inference.local.server"
BEGUN = "loading"


class _Ear(logging.Handler):
    """Passes on what is being loaded, and nothing once it is."""

    def __init__(self, show: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:  # type: ignore[explicit-override]  # Python 3.12 has the mark
        """Hear one line of the log."""
        text = record.getMessage()
        self._show(text if text.startswith(BEGUN) else "")


@contextmanager
def shown_while_loading(show: Callable[[str], None]) -> Iterator[None]:
    """Show what is being loaded for as long as this lasts."""
    logger, ear = logging.getLogger(LOADER), _Ear(show)
    level, propagates = logger.level, logger.propagate
    logger.propagate = propagates and logger.isEnabledFor(logging.INFO)
    logger.setLevel(logging.INFO)
    logger.addHandler(ear)
    try:
        yield
    finally:
        logger.removeHandler(ear)
        logger.setLevel(level)
        logger.propagate = propagates
