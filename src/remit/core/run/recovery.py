"""What became of calls without an outcome when a run was taken up again.

Rule 1: a mutating call is never made again blindly: either its tool is idempotent and gets the same key, or it is lost.
"""

from remit.core.record import Record


class Recovery(Record):
    """What was done about the calls that were open when a run was taken up after turn `seq`.

    `keyed_repeated` are mutating calls of idempotent tools, made again under the key they had, so that their effect is
    one. `blindly_repeated` are mutating calls made again without one: counted, to show that there
    are none. `lost` are those that were not made again and whose outcome is unknown here.
    """

    seq: int
    safe_repeated: int = 0
    keyed_repeated: int = 0
    blindly_repeated: int = 0
    lost: int = 0
