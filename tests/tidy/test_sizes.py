"""Size creeps unless a test says no."""

from tests.tidy.source import PACKAGE, Source, expect_none, functions, source, sources

FILE_LINES_MAX = 500
# One screen, with some room for a table.
FUNCTION_LINES_MAX = 60


def long_files(file: Source) -> list[str]:
    lines = len(file.text.splitlines())
    return [f"{file.path}: {lines} lines, at most {FILE_LINES_MAX}"] if lines > FILE_LINES_MAX else []


def long_functions(file: Source) -> list[str]:
    return [
        file.at(function, f"{function.name} has {lines} lines, at most {FUNCTION_LINES_MAX}")
        for function in functions(file.tree)
        if (lines := (function.end_lineno or function.lineno) - function.lineno + 1) > FUNCTION_LINES_MAX
    ]


def test_no_file_in_src_is_over_the_wall() -> None:
    expect_none(complaint for file in sources(PACKAGE) for complaint in long_files(file))


def test_no_function_in_src_is_over_the_wall() -> None:
    expect_none(complaint for file in sources(PACKAGE) for complaint in long_functions(file))


def test_a_file_one_line_over_the_wall_is_found() -> None:
    assert long_files(source("src/remit/a.py", "x = 1\n" * FILE_LINES_MAX)) == []
    assert long_files(source("src/remit/a.py", "x = 1\n" * (FILE_LINES_MAX + 1))) != []


def test_a_function_one_line_over_the_wall_is_found_even_inside_a_class() -> None:
    tall = "class A:\n    async def f(self):\n" + "        x = 1\n" * (FUNCTION_LINES_MAX - 1)
    assert long_functions(source("src/remit/a.py", tall)) == []
    assert long_functions(source("src/remit/a.py", tall + "        x = 1\n")) != []
