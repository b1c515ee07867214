"""What a caller gives along with a request, for the tools of its run: names of projects, tickets, anything but secrets."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any


class CallMetadata(dict[str, Any]):
    """The metadata of the request that a call serves. A parameter annotated with it is filled in and hidden from the model.

    Each call has a copy of its own.
    """


NO_METADATA: Mapping[str, Any] = MappingProxyType({})
