"""A watcher sees that a model is being loaded; the log stays as it was asked for."""

import logging

import pytest

from remit.adapters.cli.screen.narration import LOADER, shown_while_loading


def test_a_model_is_shown_while_it_loads_and_no_longer(caplog: pytest.LogCaptureFixture) -> None:
    logger, shown = logging.getLogger(LOADER), list[str]()
    with shown_while_loading(shown.append):
        logger.info("loading model %s", "big.gguf")
        logger.info("loaded model %s in %.1f s", "big.gguf", 2.0)
    logger.info("loading model %s", "another.gguf")
    assert shown == ["loading model big.gguf", ""]
    assert caplog.records == []


def test_who_asked_for_the_log_has_it_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO), shown_while_loading(lambda text: None):
        logging.getLogger(LOADER).info("loading model %s", "big.gguf")
    assert [record.getMessage() for record in caplog.records] == ["loading model big.gguf"]


def test_the_loader_says_so_in_these_words() -> None:
    from remit.inference.local import server

    assert server.__name__ == LOADER
