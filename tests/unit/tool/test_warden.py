"""The warden where the kernel gives no process numbers: it is the tool's parent, counts what is below it, and ends it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.tool.watching import running_in

pytestmark = pytest.mark.slow

KEPT = """
import os, signal, subprocess, sys, time
from remit.tool.process import warden
from remit.tool.process.confinement import LIMITS

{walls}

def work():
{work}

lifeline, mine = os.pipe()
limits = LIMITS._replace(processes_max=4)
status = warden.kept_within(limits, work, lifeline, is_boxed=False)
print("status", status, flush=True)
sys.exit(0 if status == warden.TOO_MANY else warden.end_as(status))
"""
NO_WALLS = "warden.raise_walls = lambda: warden.Walls()"
NO_PROC = "warden.mount_proc = lambda: False"


def kept(work: str, folder: Path, walls: str = NO_WALLS) -> "subprocess.CompletedProcess[str]":
    """A process that does the work below a warden, and what it came to."""
    body = "\n".join(f"    {line}" for line in work.splitlines())
    script = KEPT.format(walls=walls, work=body)
    return subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        start_new_session=True,
    )


@pytest.mark.parametrize("walls", [NO_WALLS, NO_PROC, ""])
def test_the_warden_ends_as_the_work_ended(tmp_path: Path, walls: str) -> None:
    assert kept("return 0", tmp_path, walls).returncode == 0
    assert kept("return 7", tmp_path, walls).returncode == 7
    assert kept("os.kill(os.getpid(), signal.SIGSEGV)", tmp_path, walls).returncode == -11


@pytest.mark.parametrize("walls", [NO_WALLS, NO_PROC, ""])
def test_too_many_processes_are_found_and_ended(tmp_path: Path, walls: str) -> None:
    work = "for _ in range(20):\n    subprocess.Popen(['sleep', '50'], start_new_session=True)\ntime.sleep(50)"
    done = kept(work, tmp_path, walls)
    assert (done.stdout, done.returncode) == ("status -1\n", 0), done
    assert not running_in(tmp_path)


@pytest.mark.parametrize("walls", [NO_WALLS, ""])
def test_what_the_work_leaves_behind_is_ended_even_in_a_session_of_its_own(tmp_path: Path, walls: str) -> None:
    work = (
        "subprocess.Popen(['sh', '-c', 'setsid sleep 50 & setsid sleep 50 &'], start_new_session=True).wait()\nreturn 0"
    )
    assert kept(work, tmp_path, walls).returncode == 0
    assert not running_in(tmp_path)


def test_work_that_ends_its_warden_ends_with_it_and_nothing_else(tmp_path: Path) -> None:
    done = kept("os.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(50)", tmp_path)
    assert done.returncode == -9
    assert not running_in(tmp_path)


@pytest.mark.parametrize("walls", [NO_WALLS, ""])
def test_the_end_of_the_lifeline_ends_everything(tmp_path: Path, walls: str) -> None:
    work = "time.sleep(50)"
    script_end = "os.close(mine)"
    body = KEPT.format(walls=walls, work=f"    {work}").replace("limits =", f"{script_end}\nlimits =")
    done = subprocess.run(
        [sys.executable, "-c", body], cwd=tmp_path, capture_output=True, timeout=60, check=False, start_new_session=True
    )
    assert done.returncode == -9
    assert not running_in(tmp_path)


def test_without_the_calls_of_linux_there_are_no_walls(tmp_path: Path) -> None:
    walls = "warden._libc = lambda: object()"
    assert kept("return 3", tmp_path, walls).returncode == 3
