"""The disk that a power loss leaves: synced data and names are there, the rest may be."""

from pathlib import Path

from tests.e2e.disk import EVERYTHING, NOTHING, Disk, Survival, by_chance, read_trace

ROOT = "/disk"


def hexadecimal(text: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in text.encode())


def made(name: str) -> str:
    path = hexadecimal(f"{ROOT}/{name}")
    return f'1 openat(AT_FDCWD</>, "{path}", O_WRONLY|O_CREAT|O_APPEND, 0600) = 3<{path}>'


def wrote(name: str, text: str) -> str:
    return f'1 write(3<{hexadecimal(f"{ROOT}/{name}")}>, "{hexadecimal(text)}", {len(text)}) = {len(text)}'


def synced(name: str) -> str:
    return f"1 fsync(3<{hexadecimal(ROOT + name)}>) = 0"


def left(lines: list[str], survival: Survival, home: Path) -> dict[str, str]:
    disk = Disk(Path(ROOT))
    for event in read_trace(lines):
        disk.take(*event)
    disk.rebuild(home, survival)
    return {path.name: path.read_text() for path in home.iterdir()}


def test_what_was_synced_is_there_and_what_came_later_may_be(tmp_path: Path) -> None:
    lines = [made("a"), wrote("a", "one"), synced("/a"), synced(""), wrote("a", "two")]
    assert left(lines, NOTHING, tmp_path / "nothing") == {"a": "one"}
    assert left(lines, EVERYTHING, tmp_path / "everything") == {"a": "onetwo"}


def test_a_file_whose_folder_was_not_synced_may_be_missing_although_its_data_was(tmp_path: Path) -> None:
    lines = [made("a"), wrote("a", "one"), synced("/a")]
    assert left(lines, NOTHING, tmp_path / "nothing") == {}
    assert left(lines, EVERYTHING, tmp_path / "everything") == {"a": "one"}


def test_a_removed_name_comes_back_unless_its_folder_was_synced(tmp_path: Path) -> None:
    lines = [made("a"), wrote("a", "one"), synced("/a"), synced(""), f'1 unlink("{hexadecimal(f"{ROOT}/a")}") = 0']
    assert left(lines, NOTHING, tmp_path / "nothing") == {"a": "one"}
    assert left([*lines, synced("")], NOTHING, tmp_path / "synced") == {}


def test_a_sync_covers_what_was_written_before_it_began_and_only_once_it_has_returned(tmp_path: Path) -> None:
    path = hexadecimal(f"{ROOT}/a")
    begun = [made("a"), synced(""), wrote("a", "one"), f"2 fdatasync(3<{path}> <unfinished ...>", wrote("a", "two")]
    assert left(begun, NOTHING, tmp_path / "begun") == {"a": ""}
    assert left([*begun, "2 <... fdatasync resumed>) = 0"], NOTHING, tmp_path / "returned") == {"a": "one"}
    assert left([*begun, "2 <... fdatasync resumed>) = -1 EIO"], NOTHING, tmp_path / "failed") == {"a": ""}


def test_a_seed_keeps_some_of_what_was_not_synced_and_always_the_same(tmp_path: Path) -> None:
    lines = [made("a"), synced(""), *(wrote("a", letter) for letter in "abcdefgh")]
    found = {left(lines, by_chance(seed), tmp_path / f"{seed}-{time}")["a"] for seed in range(20) for time in range(2)}
    assert 1 < len(found) <= 20
