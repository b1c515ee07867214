"""What stands where on a NATS server: streams, subjects, headers, and what a server must be able to do.

Rule 1: whatever must be decided together stands in one stream, AGENT, so that one atomic batch can hold all of it.
Rule 2: kind before name in a subject, and a name is one token of it, whatever characters it has.
Rule 3: nothing here speaks to a server; connection.py does.
"""

from hashlib import sha256
from string import ascii_letters, digits
from typing import Any

from remit.core.journal.queued import ErrandName, Lane
from remit.wire.subjects import LOOPS_BUCKET, STREAM, TRAJECTORIES_BUCKET, SubjectFamily

# Journals and everything that is decided by being the next entry of a log; the subjects of seed 003 are in it, too.
# Long texts and snapshots in chunks, the newest of a subject alone.
TEXTS = "AGENT_TEXTS"
# Who is alive: the newest heartbeat of every process, which expires.
ALIVE = "AGENT_ALIVE"

# The logs of this house within the stream; see backend/folded/log.py for their names.
LOGS = "agent.log."
EVERY_LOG = LOGS + ">"
# Stands for the name of any of them where it is asked who may write there.
ANY = "any"
# What the stream has besides: tasks, requests, responses, signals and completions, calls of tools, and what users say.
SUBJECTS = ("agent.>", "tool.>", "user.>")

# Errands that are queued, their reports, claims on calls that change something, late reports, and errands that no worker can do.
ERRAND, REPORT, CLAIM, LATE, DEAD = "agent.errand.", "agent.report.", "agent.claim.", "agent.late.", "agent.dead."
# Runs that wait for a process to drive them.
DUE = "agent.due."
# How what a key may perform is spelt in its statement.
PERFORM = "agent.perform."

TEXT = "remit.text."
SNAPSHOT = "remit.snapshot."
HEARTBEAT = "remit.alive."
# Core subjects: nothing of them is kept. Turns as they are written, and rings of bells.
REPUBLISHED = "remit.bus."
RING = "remit.ring."
# Messages of the wire that will never be carried out, by their place in the stream; and what stands in a log or a queue
# and is not believed, by its place.
DEAD_LETTERS = "agent.dead.wire."
ASIDE = "agent.dead.aside."
# What a dead letter says of a message that is not kept in it.
CODE, REASON, SUBJECT = "Remit-Code", "Remit-Reason", "Remit-Subject"

# Where a deployment keeps what was said of keys.
KEYS_BUCKET = "AGENT_KEYS"
KEYS_STREAM, KEYS = f"KV_{KEYS_BUCKET}", f"$KV.{KEYS_BUCKET}."

# What a message says besides its bytes: the entry of a log, which write it belongs to, and what texts need.
ENTRY, NONCE, CHUNKS, AT_MS = "Remit-Entry", "Remit-Nonce", "Remit-Chunks", "Remit-At-Ms"

# Beside the bytes a message has headers, and a server takes 1 MiB for both unless it was told otherwise.
CHUNK_BYTES = 512 << 10
# A server takes headers of 64 KiB; an entry is written in base64 there, beside a few others.
ENTRY_BYTES_MAX = 44_000

# 2.14 loses batches, and older ones ignore most of what is asked of them without a word.
VERSION_MIN = (2, 15)
API_LEVEL_MIN = 5

# The longest name that stands in a subject as it is; the protocol has a limit of 4096 bytes for a line.
_NAME_MAX = 200
_PLAIN = frozenset(ascii_letters + digits + "-_")
_NS_PER_S = 1_000_000_000


def token(name: str) -> str:
    """A name as one token of a subject; different names have different ones."""
    if len(name) > _NAME_MAX:
        return "=h" + sha256(name.encode(errors="surrogatepass")).hexdigest()
    plain = (one if one in _PLAIN else f"={one.encode(errors='surrogatepass').hex()}=" for one in name)
    return "".join(plain) or "=e"


def log_subject(name: str) -> str:
    """The subject of a log: its kind, and whose it is."""
    kind, _, whose = name.partition(":")
    return f"{LOGS}{kind}.{token(whose)}"


def text_subject(digest: bytes, chunk: int) -> str:
    """The subject of a chunk of a long text."""
    return f"{TEXT}{digest.hex()}.{chunk}"


def snapshot_subject(run_id: str, chunk: int) -> str:
    """The subject of a chunk of a snapshot."""
    return f"{SNAPSHOT}{token(run_id)}.{chunk}"


def streams_told_of(run_id: str) -> list[tuple[str, str]]:
    """The streams and subjects of what the wire tells of a run under its name."""
    buckets = [(f"KV_{name}", f"$KV.{name}.{token(run_id)}") for name in (LOOPS_BUCKET, TRAJECTORIES_BUCKET)]
    families = (SubjectFamily.CREATED, SubjectFamily.CONTEXT, SubjectFamily.COMPLETE)
    return buckets + [(STREAM, f"{family.value}.{token(run_id)}") for family in families]


def bucket(name: str, replicas: int) -> dict[str, Any]:
    """How the stream of a bucket is made, as every client of NATS knows buckets: the newest entry under each key."""
    return {
        "subjects": [f"$KV.{name}.>"],
        "storage": "file",
        "retention": "limits",
        "discard": "new",
        "num_replicas": replicas,
        "max_msgs_per_subject": 1,
        "allow_rollup_hdrs": True,
        "deny_delete": True,
        "allow_direct": True,
    }


def errand_subject(name: ErrandName, lane: Lane) -> str:
    """The subject of an errand: who is given it, and which it is."""
    return f"{lane_subject(lane)}.{token(name.run_id)}.{token(name.command_id)}.{name.attempt}"


def sent_subject(name: ErrandName) -> str:
    """The pattern of an errand of this name, whichever its lane is."""
    return f"{ERRAND}*.*.*.{token(name.run_id)}.{token(name.command_id)}.{name.attempt}"


def lane_subject(lane: Lane) -> str:
    """How the subjects of all errands of a lane begin."""
    return f"{ERRAND}{token(lane.kind)}.{token(lane.name)}.{token(lane.version)}"


def performance_subject(lane: Lane) -> str:
    """What a statement must cover for its holder to be believed about errands of a lane; nothing is published there."""
    return f"{PERFORM}{token(lane.kind)}.{token(lane.name)}.{token(lane.version)}"


def errands_of(run_id: str) -> tuple[str, ...]:
    """The patterns of everything that was queued for a run or told of it, but for claims: those hold no words.

    Errands stand first: a worker that finds none of its own any more knows that no driver waits for it.
    """
    return f"{ERRAND}*.*.*.{token(run_id)}.>", f"{REPORT}{token(run_id)}.>", f"{LATE}{token(run_id)}.>"


def report_subject(name: ErrandName) -> str:
    """The subject of what came of an errand."""
    return f"{REPORT}{token(name.run_id)}.{token(name.command_id)}.{name.attempt}"


def claim_subject(run_id: str, command_id: str) -> str:
    """The subject of the words about a call that changes something."""
    return f"{CLAIM}{token(run_id)}.{token(command_id)}"


def streams(replicas: int) -> dict[str, dict[str, Any]]:
    """How the streams are made on a server with so many nodes for each of them."""
    common = {
        "storage": "file",
        "retention": "limits",
        "discard": "old",
        "num_replicas": replicas,
        "allow_direct": True,
    }
    return {
        # Without schedules and rollups: with either, a client of one subject could write under others, or empty them.
        STREAM: common
        | {
            "subjects": list(SUBJECTS),
            "allow_atomic": True,
            "allow_msg_ttl": True,
            "republish": {"src": LOGS + "run.>", "dest": REPUBLISHED + "run.>", "headers_only": True},
        },
        TEXTS: common | {"subjects": [TEXT + ">", SNAPSHOT + ">"], "max_msgs_per_subject": 1},
        ALIVE: common
        | {
            "subjects": [HEARTBEAT + ">"],
            "storage": "memory",
            "max_msgs_per_subject": 1,
            "allow_msg_ttl": True,
            "max_age": 3600 * _NS_PER_S,
        },
    }


# With any of these the stream would forget turns by itself.
LIMITS = ("max_age", "max_msgs", "max_bytes", "max_msgs_per_subject")

# What a stream must have as it comes back, whichever process made it, with what cannot be done without it.
NEEDED = {
    STREAM: {
        "allow_atomic": "a turn and all that it orders in one batch",
        "allow_msg_ttl": "entries that expire",
        "allow_direct": "reading from every node",
        "republish": "telling listeners without being asked",
    },
    TEXTS: {"allow_direct": "reading from every node"},
    ALIVE: {"allow_msg_ttl": "heartbeats that expire"},
}
