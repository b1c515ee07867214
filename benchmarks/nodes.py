"""Servers for benchmarks: one node, or a cluster of them, all on this machine; and what a process has used, as Linux counts."""

import json
import os
import socket
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from remit.backend.cluster.server.nats_server import NatsServer


@dataclass(frozen=True)
class Nodes:
    """Nodes at work: where clients connect, and where each tells its figures."""

    address: str
    figures: tuple[int, ...]
    pids: tuple[int, ...]

    def bytes_of_clients(self) -> int:
        """The bytes that the nodes have taken from clients and sent to them by now, not those between nodes."""
        total = 0
        for port in self.figures:
            where = f"http://127.0.0.1:{port}/connz?state=all&limit=10000"
            with urllib.request.urlopen(where, timeout=10) as answer:  # a server of this benchmark
                total += sum(one["in_bytes"] + one["out_bytes"] for one in json.load(answer)["connections"])
        return total


@contextmanager
def nodes(folder: Path, count: int) -> Iterator[Nodes]:
    """So many nodes, each with a folder of its own, that sync every write."""
    ports = free_ports(count * 3)
    clients, figures, routes = ports[:count], ports[count : 2 * count], ports[2 * count :]
    others = ", ".join(f'"nats://127.0.0.1:{port}"' for port in routes)
    with ExitStack() as running:
        servers = []
        for number, (port, told, route) in enumerate(zip(clients, figures, routes, strict=True)):
            more = f'server_name: node{number}\nhttp: "127.0.0.1:{told}"'
            if count > 1:
                more += f'\ncluster {{ name: bench, listen: "127.0.0.1:{route}", routes: [{others}] }}'
            servers.append(running.enter_context(NatsServer(folder / f"node{number}", port=port, more=more)))
        yield Nodes(",".join(one.address for one in servers), tuple(figures), tuple(one.process.pid for one in servers))


def cpu_s(*pids: int) -> float:
    """The seconds of CPU time that processes have used by now."""
    lines = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    # Time in the program and in the system, behind the name and eleven others.
    return sum(int(one[11]) + int(one[12]) for one in lines) / os.sysconf("SC_CLK_TCK")


def held_kb(pid: int) -> int:
    """How much memory a process holds."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def free_ports(count: int) -> list[int]:
    """Ports that no program listens on just now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()
