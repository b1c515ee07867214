"""What a process that performs errands says to the one that sends them: a message a line.

It says `{"at": MOMENT}` wherever it may be killed, and goes on when it gets a line.
"""

import json
import sys

# Whoever performs an errand has it, and has not looked at it; was allowed to begin; is at work; has acted; has a report.
RECEIVED, CLAIMED, ACTING, ACTED, DONE = MOMENTS = ("received", "claimed", "acting", "acted", "done")


def say(**message: object) -> str:
    """Say something, and give the answer."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()
    return sys.stdin.readline()


def reach(moment: str) -> None:
    """Be killed here, or go on."""
    say(at=moment)
