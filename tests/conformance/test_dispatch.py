"""The dispatch within one process does what every dispatch must."""

import asyncio

import pytest

from remit.testing.conformance.processes.dispatch import DISPATCH_CHECKS, DispatchCheck, in_process_dispatch


@pytest.mark.parametrize("check", DISPATCH_CHECKS, ids=lambda check: check.__name__)
def test_the_dispatch_in_process_does_what_every_dispatch_must(check: DispatchCheck) -> None:
    asyncio.run(check(in_process_dispatch))
