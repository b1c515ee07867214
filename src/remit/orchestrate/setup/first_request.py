"""The first request of a process: what it is read by takes milliseconds to load and to compile.

Rule: a caller that opens a system beside its event loop has this done there, so that the first request holds up no loop.
"""

from remit.core.secrets.secret_names import means_a_secret
from remit.core.secrets.secret_search import secrets_in
from remit.orchestrate.facts.intent import intent_of


def compile_for_requests() -> None:
    """Load and compile it now. Another time it costs nothing."""
    intent_of("")
    means_a_secret("")
    secrets_in("what every text is searched for")
