"""What all tests share: a failing example says how to play it again, and a slow machine fails nothing."""

from hypothesis import settings

settings.register_profile("remit", deadline=None, print_blob=True)
settings.load_profile("remit")
