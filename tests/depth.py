"""How much a law looks at where it says so itself: all of it in the long run, less in the test run and the inner loop."""

import os

_PARTS = {"thorough": 1, "tested": 4, "quick": 10}


def examples(count: int) -> int:
    """So many examples in the long run; a quarter in the whole test run, and a tenth in the inner loop."""
    return max(count // _PARTS[os.environ.get("REMIT_EXAMPLES", "tested")], 1)
