"""The front door: `remit.open()`, which costs nothing until it is entered."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remit.assemble import Opened
    from remit.orchestrate.facade import System
    from remit.orchestrate.tenants.policies import Policies
    from remit.tool.secrets.secret import Given


class Door:
    """A system that is loaded and opened when it is entered, beside the event loop, and closed when it is left."""

    def __init__(
        self,
        home: Path | str | None,
        secrets: "Mapping[str, Given]",
        policies: "Policies | None" = None,
        *,
        is_in_memory: bool,
    ) -> None:
        self._home, self._secrets, self._policies, self._is_in_memory = home, secrets, policies, is_in_memory
        self._opened: Opened | None = None
        self._is_entered = False

    async def __aenter__(self) -> "System":
        if self._is_entered:
            from remit.core.home import entered_twice

            raise entered_twice()
        self._is_entered = True
        try:
            self._opened = await asyncio.to_thread(self._made)
            return await self._opened.__aenter__()
        except BaseException:
            self._is_entered = False
            raise

    async def __aexit__(self, *_: object) -> None:
        # A caller that was kept from closing may try again.
        if self._opened is not None:
            await self._opened.aclose()
        self._opened, self._is_entered = None, False

    def _made(self) -> "Opened":
        from remit.assemble import Opened, opened_system, settings_of_place, system_in_memory
        from remit.core.declared_types import refusal
        from remit.core.run.request_checks import REQUEST_MALFORMED
        from remit.orchestrate.facts.intent import compile_for_requests
        from remit.stores import expect_no_place

        for argument, given, kind in (("memory", self._is_in_memory, bool), ("secrets", self._secrets, Mapping)):
            if not isinstance(given, kind):
                raise refusal(REQUEST_MALFORMED, argument, given, kind)
        compile_for_requests()
        if self._is_in_memory:
            expect_no_place(self._home)
            return Opened(lambda: system_in_memory(self._secrets, policies=self._policies))
        return opened_system(settings_of_place(self._home), secrets=self._secrets, policies=self._policies)


def open(  # noqa: A001  # `remit.open()` is how it is said
    home: Path | str | None = None,
    *,
    memory: bool = False,
    secrets: "Mapping[str, Given] | None" = None,
    policies: "Policies | None" = None,
) -> Door:
    """A system on the store in a folder or at an address (`nats://...`), on that of the environment, or in memory alone.

    `policies` say which boundary holds for the principals that it acts for.
    """
    return Door(home, {} if secrets is None else secrets, policies, is_in_memory=memory)
