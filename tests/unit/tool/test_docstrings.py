"""Docstrings in three styles say what a tool and its parameters are for."""

import pytest

from remit.tool.declare.docstrings import parameters_of, summary_of

GOOGLE = """Look an order up,
    by its number.

    Reads the ledger.

    Args:
        order_id (str): The number.
            Digits only.
        limit: How many: at most ten.

        *rest: More of them.
    Returns:
        nothing: of interest
    """

NUMPY = """Look an order up.

    Parameters
    ----------
    order_id : str
        The number.
        Digits only.
    limit, offset
        How many.

    rest:
        More of them.

    Returns
    -------
    dict
        The order.
    """

SPHINX = """Look an order up.

    :param order_id: The number.
        Digits only.
    :param int limit: How many.
    :returns: the order
        in full
    :param empty:
    """


def test_the_summary_is_the_first_paragraph_on_one_line() -> None:
    assert summary_of(GOOGLE) == "Look an order up, by its number."
    assert summary_of("") == ""
    assert summary_of("\n\n  Late start.\n") == "Late start."


@pytest.mark.parametrize("docstring", ["\n    Args:\n        a: x", ":param a: x"])
def test_a_docstring_of_parameters_alone_has_no_summary(docstring: str) -> None:
    assert summary_of(docstring) == ""
    assert parameters_of(docstring) == {"a": "x"}


def test_google_style_items_go_on_where_they_are_indented_further() -> None:
    assert parameters_of(GOOGLE) == {
        "order_id": "The number. Digits only.",
        "limit": "How many: at most ten.",
        "rest": "More of them.",
    }


def test_numpy_style_names_may_share_a_description() -> None:
    assert parameters_of(NUMPY) == {
        "order_id": "The number. Digits only.",
        "limit": "How many.",
        "offset": "How many.",
        "rest": "More of them.",
    }


def test_sphinx_style_fields_may_name_their_type() -> None:
    assert parameters_of(SPHINX) == {"order_id": "The number. Digits only.", "limit": "How many."}


@pytest.mark.parametrize("docstring", ["", "Parameters", "Args:\n    no item here", "Parameters\n---\n  x\n%%\n  y"])
def test_what_cannot_be_read_is_left_out(docstring: str) -> None:
    assert parameters_of(docstring) == {}
