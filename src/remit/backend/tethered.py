"""Processes of this machine that end with the one that starts them, however it ends.

Rule 1: the kernel of the system tells the process that its parent is gone. Where none can (only Linux does), it goes on
        when its parent is killed, and ends when its parent ends it.
"""

import os
import signal
import sys
from collections.abc import Sequence

# Asks to be told, looks whether the parent is there still, and becomes the program. It loads nothing of the house.
_BECOME = """
import ctypes, os, sys
parent, number, *command = sys.argv[1:]
prctl = getattr(ctypes.CDLL(None), "prctl", None)
if prctl is not None:
    prctl(1, int(number), 0, 0, 0)
    if os.getppid() != int(parent):
        sys.exit(1)
os.execv(command[0], command)
"""


def tethered(command: Sequence[str]) -> list[str]:
    """The command line of a process that is sent SIGTERM when the thread that starts it is gone."""
    return [sys.executable, "-I", "-S", "-c", _BECOME, str(os.getpid()), str(int(signal.SIGTERM)), *command]
