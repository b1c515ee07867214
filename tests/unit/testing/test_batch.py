"""A batch of worlds has one hash, and a command that prints it."""

import subprocess
import sys
from hashlib import sha256

import pytest

from remit.testing.batch import hash_of_worlds
from remit.testing.scenarios import scenario


def test_the_hash_covers_every_turn_of_every_run() -> None:
    world, digest = scenario(4), sha256()
    for run_id in world.run_ids():
        digest.update(run_id.encode())
        for data in world.run(run_id).journal:
            digest.update(data)
    assert hash_of_worlds(range(4, 5)) == digest.hexdigest()


@pytest.mark.req("1.20")
def test_the_same_seeds_have_the_same_hash_and_others_another() -> None:
    assert hash_of_worlds(range(3)) == hash_of_worlds(range(3)) != hash_of_worlds(range(4))


def test_no_worlds_have_the_hash_of_nothing() -> None:
    assert hash_of_worlds(range(0)) == sha256().hexdigest()


def test_the_command_prints_the_hash_of_its_seeds() -> None:
    command = [sys.executable, "-m", "remit.testing.batch", "0", "3"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.strip() == hash_of_worlds(range(3))
