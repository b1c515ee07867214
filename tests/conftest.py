"""What all tests share: a failing example says how to play it again, and a slow machine fails nothing."""

import os

from hypothesis import settings

settings.register_profile("remit", deadline=None, print_blob=True)
# The inner loop looks at fewer examples of everything; the whole test run looks at all of them.
settings.register_profile("quick", settings.get_profile("remit"), max_examples=25)
settings.load_profile(os.environ.get("REMIT_EXAMPLES", "remit"))
