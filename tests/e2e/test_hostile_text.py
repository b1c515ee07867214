"""Whatever models, tools, files and people say, no command hands it to a terminal as something that it obeys.

The runs here hold every kind of text that does something to a terminal or to its reader. Every command of the
command line is said to them: to a pipe, as JSON, and to a terminal.
"""

import io
import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
import yaml

from remit.adapters.cli.main import main
from remit.adapters.cli.screen.response_lines import LINE_CHARS_MAX
from remit.adapters.cli.table import command_entries
from tests.e2e.command import SCRIPT, TOOLS

ANSI = "\x1b[2J\x1b[31mred\x1b[0m"
LINKS = "\x1b]8;;https://example.org\x07here\x1b]8;;\x07\x1b]52;c;ZXZpbA==\x07"
DEVICE = "\x1bPq#0;2;0;0;0\x1b\\"
C1 = "\x9b31m\x85\x9dtitle\x9c"
BIDI = "\u202e\u202d\u2066\u2067\u2068\u2069\u200f\u061c"
UNSEEN = "\u200b\u200d\u2060\ufeff\U000e0041\U000e0042"
MOVES = "\rover\b\b\b\x00\x07\x7f"
HOSTILE = f"{ANSI}{LINKS}{DEVICE}{C1}{BIDI}{UNSEEN}{MOVES}"
# As much of it as the name of a step may be.
NAME = f"{ANSI}{BIDI}{UNSEEN}\x7f"
# A script and a context have their limits; what a tool returns may be longer.
LONG = "x" * 100_000

TOOL_FILE = f'''
from remit import tool
from remit.tool.delegate import delegate

@tool(effect="read")
def look(place: str) -> str:
    """Look."""
    print({HOSTILE!r})
    return {HOSTILE!r} + "\\ud800" + "y" * 1_000_000

@tool(effect="read")
def fail(place: str) -> str:
    """Fail."""
    raise ValueError({HOSTILE!r} + "\\udcff" + "z" * 100_000)

@tool(effect="write", idempotent=True)
def write(text: str, idempotency_key: str) -> str:
    """Write."""
    return {HOSTILE!r}
'''
HANDLER_FILE = f"""
def fall(step):
    raise ValueError({HOSTILE!r})

HANDLERS = {{"fall": fall, {"echo" + HOSTILE!r}: lambda step: {HOSTILE!r}}}
"""
GRAPH = f"name: {json.dumps(HOSTILE)}\nstart: a\nnodes: []\nexits: []\n"

# What the command line itself may send to a terminal: the colours it knows.
COLOUR = re.compile(r"\x1b\[[0-9]{1,2}m")
OBEYED = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
# A line of a view may be as long as a folded one, with room for what stands before it.
LINE_MAX = LINE_CHARS_MAX + 200


def calls(name: str, **arguments: str) -> dict[str, object]:
    return {"tool_calls": [{"name": name, "arguments": arguments}], "usage": {"prompt_tokens": 1, "output_tokens": 1}}


# What another program's agent tells a guard: hostile in every place that may hold a text.
_TOOL = {"name": "send", "description": HOSTILE, "parameters": {"type": "object"}, "effect": "external"}
GUARDED = "".join(
    json.dumps(line) + "\n"
    for line in (
        {"op": "start", "run": HOSTILE, "prompt": HOSTILE, "tools": [_TOOL]},
        {"op": "call", "run": HOSTILE, "id": HOSTILE, "tool": "send", "args": {HOSTILE: HOSTILE}},
        {"op": "call", "run": HOSTILE, "tool": HOSTILE, "args": {}},
        {"op": "result", "run": HOSTILE, "tool": "send", "content": HOSTILE},
        {"op": HOSTILE},
        {HOSTILE: HOSTILE},
        HOSTILE,
    )
)


@contextmanager
def telling(words: str) -> Iterator[None]:
    """A stdin that holds these words, if there are any."""
    before = sys.stdin
    if words:
        sys.stdin = io.TextIOWrapper(io.BytesIO(words.encode()), "utf-8")
    try:
        yield
    finally:
        sys.stdin = before


class Stage:
    """A folder with a store full of hostile runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / TOOLS).write_text(TOOL_FILE)
        (folder / "graph.yaml").write_text(GRAPH)
        (folder / "prompt.txt").write_text(HOSTILE + LONG)
        (folder / "model.gguf").write_bytes(b"GGUF" + HOSTILE.encode() * 10)

    def script(self, *replies: dict[str, object]) -> list[str]:
        (self.folder / SCRIPT).write_text(json.dumps({"replies": replies, "context_window": 100_000_000}))
        caps = "input_tokens=900000,output_tokens=50000,context_tokens=200000"
        named = ["--tools", str(self.folder / TOOLS), "--budget", caps]
        return [
            "run",
            "--file",
            str(self.folder / "prompt.txt"),
            "--engine",
            f"scripted:{self.folder / SCRIPT}",
            *named,
        ]

    def say(self, *words: str, out: io.StringIO | None = None) -> tuple[int, str, str]:
        """What a command answers, in this process, to a pipe or to a stream that is given."""
        stream = out if out is not None else io.TextIOWrapper(io.BytesIO(), "utf-8", newline="")
        err = io.StringIO()
        with redirect_stdout(stream), redirect_stderr(err), telling(GUARDED if words[0] == "guard" else ""):
            code = main([*words, "--home", str(self.folder / "home")])
        if isinstance(stream, io.StringIO):
            return code, stream.getvalue(), err.getvalue()
        stream.flush()
        written = stream.buffer
        assert isinstance(written, io.BytesIO)
        return code, written.getvalue().decode(), err.getvalue()

    def plan(self) -> list[str]:
        """A plan with hostile names, outputs and documents, whose last step fails."""
        folder = self.folder
        (folder / "docs").mkdir(exist_ok=True)
        (folder / "docs" / "page\x1b[2J.md").write_text(f"words {HOSTILE}")
        (folder / "handlers.py").write_text(HANDLER_FILE)
        steps = [
            {"name": f"find{NAME}", "type": "retrieve", "input": f"words {HOSTILE}"},
            {"name": "ask", "type": "infer"},
            {"name": f"echo{NAME}", "type": f"echo{HOSTILE}"},
            {"name": f"fall{NAME}", "type": "fall"},
        ]
        plan = {"documents": "docs", "handlers": "handlers.py", "steps": steps}
        (folder / "plan.yaml").write_text(yaml.safe_dump(plan))
        # A script of its own: what the other runs are told stays as it is.
        (folder / "plan.json").write_text(json.dumps({"replies": [{"text": HOSTILE}]}))
        words = ["run", "--engine", f"scripted:{folder / 'plan.json'}"]
        return [*words, "--mode", "plan", "--plan", str(folder / "plan.yaml")]

    def waiting(self) -> str:
        """A run that waits for a person to approve a call with hostile arguments; gives its id."""
        _, out, _ = self.say(*self.script(calls("write", text=HOSTILE + LONG), ANSWER), "--json")
        return str(json.loads(out)["run_id"])

    def exhausted(self) -> str:
        """A run that ended for want of budget, which hands that on to people; gives its id."""
        _, out, _ = self.say(*self.script(ANSWER), "--budget", "steps=1", "--json")
        return str(json.loads(out)["run_id"])

    def ended(self) -> str:
        """A run in which everything that can be hostile was; gives its id."""
        called = [calls("look", place=HOSTILE), calls("fail", place=HOSTILE), calls(HOSTILE, place=HOSTILE)]
        _, out, _ = self.say(*self.script(*called, ANSWER), "--json")
        return str(json.loads(out)["run_id"])


ANSWER: dict[str, object] = {"text": HOSTILE + LONG, "usage": {"prompt_tokens": 1, "output_tokens": 1}}


class Screen(io.StringIO):
    """A terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """A person looks at it."""
        return True


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """A store in which runs ended, wait, were rejected, cancelled, paused and told something."""
    stage = Stage(tmp_path_factory.mktemp("hostile"))
    stage.ended()
    stage.say("reject", stage.waiting(), "--reason", HOSTILE, "--by", HOSTILE)
    stage.say("signal", stage.waiting(), "cancel", HOSTILE, "--by", HOSTILE)
    paused = stage.waiting()
    stage.say("signal", paused, "feedback", HOSTILE, "--by", HOSTILE)
    stage.say("signal", paused, "pause", "--by", HOSTILE)
    stage.say(*stage.plan())
    stage.waiting()
    return stage


Words = Callable[[Stage], list[list[str]]]


def of_every_kind(*words: str) -> Words:
    """A command about a run of each kind: tests leave many in the store that came to the same end in as many turns."""

    def spelled(stage: Stage) -> list[list[str]]:
        _, listed, _ = stage.say("runs", "--limit", "0", "--json")
        rows = [json.loads(line) for line in listed.splitlines()]
        kinds = {(row["listing"]["mode"], row["turns"], row.get("ending"), row.get("waiting_for")): row for row in rows}
        return [[words[0], row["run_id"], *words[1:]] for row in kinds.values()]

    return spelled


def said(*words: str) -> Words:
    """A command that needs nothing prepared."""
    return lambda stage: [[word.replace("{folder}", str(stage.folder)) for word in words]]


def shown_turns(stage: Stage) -> list[list[str]]:
    run_id = stage.ended()
    _, rows, _ = stage.say("trace", run_id, "--json")
    turns = [["show", run_id, "--turn", str(seq)] for seq in range(len(rows.splitlines()))]
    return [*of_every_kind("show")(stage), *turns]


def traced(stage: Stage) -> list[list[str]]:
    return [
        *of_every_kind("trace")(stage),
        *of_every_kind("trace", "--turns")(stage),
        *of_every_kind("trace", "--last", "2")(stage),
    ]


def costed(stage: Stage) -> list[list[str]]:
    by = [["cost", "--by", by, "--limit", "0"] for by in ("tenant", "run", "each-run", "node", "tool", "model")]
    (stage.folder / "prices.yaml").write_text(f"{json.dumps(HOSTILE)}: 1\n")
    bad = [["cost", "--since", HOSTILE], ["cost", "--tenant", HOSTILE], ["cost", HOSTILE], ["cost", "--by", HOSTILE]]
    return [*by, *bad, ["cost", "--prices", HOSTILE], ["cost", "--prices", str(stage.folder / "prices.yaml")]]


def quoted(stage: Stage) -> list[list[str]]:
    # Large enough that no other command here is refused for it.
    quotas = [{"tenant": "*", "period": "day", "caps": {"output_tokens": 10**12}}]
    (stage.folder / "home" / "quotas.yaml").write_text(yaml.safe_dump({"quotas": quotas}))
    return [["quotas"], ["quotas", "--tenant", HOSTILE], ["quotas", HOSTILE]]


def started(stage: Stage) -> list[list[str]]:
    run = stage.script(calls("look", place=HOSTILE), calls(HOSTILE), ANSWER)
    # Who runs it and in which session must be printable; what is said of that is not.
    plan = stage.plan()
    bad = [[*plan, "--mode", "redundant"], [*plan, "--plan", HOSTILE], [*run, "--voting", HOSTILE]]
    return [run, plan, *bad, [*run, "--user", HOSTILE], [*run, "--session", HOSTILE], [*run, "--boundary", HOSTILE]]


def queued(stage: Stage) -> list[list[str]]:
    stage.waiting()
    stage.exhausted()
    return [["queues"], *(["queues", name] for name in ("operator", "budget", "user", HOSTILE))]


def drained(stage: Stage) -> list[list[str]]:
    stage.waiting()
    (stage.folder / "webhook").write_bytes(b"k" * 32)
    words = ["queues", "drain", "operator", "--key-file", str(stage.folder / "webhook"), "--webhook"]
    # No peer is there, so nothing is taken, and every line about that holds an id.
    return [
        [*words, HOSTILE],
        ["queues", "drain", HOSTILE],
        ["queues", "drain", "user", *words[3:], "http://127.0.0.1:1/"],
    ]


def constrained(stage: Stage) -> list[list[str]]:
    texts = stage.folder / "texts.jsonl"
    texts.write_text(
        "".join(json.dumps({"text": text}) + "\n" for text in (HOSTILE, json.dumps(HOSTILE), f"['{HOSTILE}'"))
    )
    prompt = str(stage.folder / "prompt.txt")
    return [["constrain", prompt], ["constrain", str(texts), "--jsonl"], ["constrain", prompt, "--schema", HOSTILE]]


def bounded(verb: str) -> Words:
    """A command about a hostile boundary that is fine, about one that is not, and about one that is not there."""

    def spelled(stage: Stage) -> list[list[str]]:
        texts = {"allowed": [NAME], "permissions": [NAME], "rates": [{"tool": NAME, "times": 1, "per": "1m"}]}
        fine = {
            "name": NAME,
            "tools": texts,
            "escalation": {"queues": {"outage": NAME}, "on_silence": [NAME]},
            "conditions": [{"name": NAME, "when": f"tool == {json.dumps(NAME)}", "message": HOSTILE}],
        }
        files = {"fine": fine, "key": {"name": "a", HOSTILE: 1}, "value": {"name": "a", "mode": HOSTILE}}
        for name, content in files.items():
            (stage.folder / f"{name}.yaml").write_text(yaml.safe_dump(content))
        tools = ["--tools", str(stage.folder / TOOLS)] if verb == "check" else []
        return [
            ["boundary", verb, said, *tools] for said in (*[f"{stage.folder}/{name}.yaml" for name in files], HOSTILE)
        ]

    return spelled


# How each command is said to the hostile runs. A command that is not here fails the first test below.
SAID: dict[str, Words] = {
    "run": started,
    "resume": of_every_kind("resume"),
    "signal": lambda stage: [["signal", stage.waiting(), "cancel", HOSTILE, "--by", HOSTILE]],
    "fork": lambda stage: [
        ["fork", stage.ended(), "--at", "0", "--why", HOSTILE],
        ["fork", stage.ended(), "--at", "0", "--why", "again", "--by", HOSTILE],
        ["fork", HOSTILE, "--at", "0"],
    ],
    "halt": lambda stage: [
        ["halt", "--tool", HOSTILE, "--why", HOSTILE],
        ["halt", "--tool", "nothing", "--why", HOSTILE],
        ["halt", "--list"],
        ["halt", "--tool", "nothing", "--lift", "--why", "over"],
    ],
    "approvals": lambda stage: [["approvals"], ["approvals", stage.waiting()], ["approvals", f"{stage.waiting()}+"]],
    "approve": lambda stage: [
        ["approve", stage.waiting(), "--by", HOSTILE],
        ["approve", f"{stage.waiting()}+", "--by", HOSTILE, "--reason", HOSTILE],
        ["approve", stage.waiting(), "--arguments", json.dumps({HOSTILE: HOSTILE, "text": HOSTILE})],
        ["approve", stage.waiting(), "--packet", HOSTILE],
        ["approve", f"{stage.waiting()}+", "--only", HOSTILE],
    ],
    "reject": lambda stage: [["reject", stage.waiting(), "--reason", HOSTILE, "--by", HOSTILE]],
    "queues": queued,
    "queues ack": lambda stage: [["queues", "ack", stage.exhausted(), "--by", HOSTILE], ["queues", "ack", HOSTILE]],
    "queues drain": drained,
    "constrain": constrained,
    "guard": said("guard"),
    "runs": said("runs", "--children"),
    "show": shown_turns,
    "explain": of_every_kind("explain"),
    "trace": traced,
    "cost": costed,
    "quotas": quoted,
    "export": lambda stage: [["export", stage.ended(), "--output", str(stage.folder / "export.jsonl")]],
    "verify": of_every_kind("verify"),
    "replay": of_every_kind("replay"),
    "delete": lambda stage: [["delete", stage.ended()]],
    "redact": lambda stage: [["redact", stage.ended(), "--pattern", "any", "--why", "a mistake"]],
    "rebuild": said("rebuild"),
    "gc": said("gc", "--dry-run"),
    "backup": lambda stage: [["backup", f"{stage.folder}/copy{len(list(stage.folder.iterdir()))}"]],
    "doctor": said("doctor"),
    "trust": said("trust"),
    "restore": said("restore", "--all"),
    "models list": said("models", "list"),
    "models add": said("models", "add", "{folder}/model.gguf"),
    "models show": said("models", "show", "{folder}/model.gguf"),
    "completion": said("completion", "bash"),
    "boundary check": bounded("check"),
    "boundary show": bounded("show"),
    "boundary diff": lambda stage: [[*words, "standard"] for words in bounded("diff")(stage)],
    "graph check": said("graph", "check", "{folder}/graph.yaml"),
    "graph draw": said("graph", "draw", "{folder}/graph.yaml"),
    # These begin a conversation or load a model; only what they say of a command line that is wrong is heard here.
    "demo": said("demo", HOSTILE),
    "chat": said("chat", "--engine", HOSTILE),
    "dev": said("dev", "--nats", "--engine", HOSTILE),
    "gateway": said("gateway", "--engine", HOSTILE),
    "channel cli": said("channel", "cli", "--store", HOSTILE),
    "channel hook": said("channel", "hook", HOSTILE),
    "worker loop": said("worker", "loop", "--store", HOSTILE),
    "worker model": said("worker", "model", "--engine", HOSTILE),
    "worker tools": said("worker", "tools", "--tools", HOSTILE),
    "worker letters": said("worker", "letters", "--store", HOSTILE),
    "grants list": said("grants", "list"),
    "grants give": said("grants", "give", HOSTILE),
    "grants revoke": said("grants", "revoke", HOSTILE),
    "import": said("import", HOSTILE),
    "keys": said("keys"),
    "keys admit": said("keys", "admit", HOSTILE),
    "keys account": said("keys", "account", HOSTILE),
    "keys revoke": said("keys", "revoke", HOSTILE),
}
# What prints a text for programs, or the answer itself, exactly as long as it is.
EXACT = {"run", "resume", "approve", "reject", "signal", "completion", "export", "constrain", "guard"}

COMMANDS = [entry.words for entry in command_entries()]


def obeyed(text: str) -> Iterator[str]:
    """What a terminal would do something about, with what stands around it."""
    for found in OBEYED.finditer(text):
        yield ascii(text[max(found.start() - 30, 0) : found.end() + 30])


def expect_harmless(words: list[str], code: int, out: str, err: str) -> None:
    assert "Traceback" not in out + err, (words, err[-2000:])
    assert "UNEXPECTED" not in out + err, (words, err[-2000:])
    assert code in range(5), (words, err[-2000:])
    assert next(obeyed(out), None) is None, words
    assert next(obeyed(err), None) is None, words
    (out + err).encode()


def test_every_command_is_said_to_hostile_runs() -> None:
    assert set(COMMANDS) <= set(SAID), "say here how the new command is used on a hostile run"


# A terminal is harder to please than a pipe; the test run looks at the one, the long run at both.
@pytest.mark.soak
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_hands_a_terminal_anything_that_it_obeys(command: str, stage: Stage) -> None:
    for words in SAID[command](stage):
        code, out, err = stage.say(*words)
        expect_harmless(words, code, out, err)
        if command not in EXACT:
            assert max(map(len, (out + err).splitlines()), default=0) <= LINE_MAX, words


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_json_of_every_command_is_harmless_and_parses(command: str, stage: Stage) -> None:
    for words in SAID[command](stage):
        code, out, err = stage.say(*words, "--json")
        expect_harmless(words, code, out, err)
        assert out.isascii()
        assert all(isinstance(json.loads(line), dict) for line in out.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_terminal_gets_our_own_colours_and_nothing_else_that_it_obeys(
    command: str, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for words in SAID[command](stage):
        code, out, err = stage.say(*words, out=Screen())
        expect_harmless(words, code, COLOUR.sub("", out), err)
        if command not in EXACT:
            assert max(map(len, COLOUR.sub("", out).splitlines()), default=0) <= LINE_MAX, words


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_hostile_command_line_is_refused_in_harmless_words(command: str, stage: Stage) -> None:
    for more in ([HOSTILE, HOSTILE, HOSTILE, HOSTILE], [f"--{HOSTILE}"], ["--log-level", HOSTILE], ["\udcff" + LONG]):
        words = [*command.split(), *more]
        code, out, err = stage.say(*words)
        expect_harmless(words, code, out, err)
        assert code in (1, 2), words
        assert max(map(len, (out + err).splitlines()), default=0) <= LINE_MAX, words


def test_the_texts_hold_every_kind_that_is_looked_for() -> None:
    found = set(OBEYED.findall(HOSTILE))
    for kind in ("\x1b", "\x9b", "\x85", "\u202e", "\u2066", "\u200b", "\U000e0041", "\r", "\b", "\x00", "\x7f"):
        assert kind in found
    assert next(obeyed("plain text\n"), None) is None
