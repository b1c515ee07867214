"""An office whose runs are traced: its tools with all they declare, a way to play a run by hand, and one to compare gates."""

import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from remit.core.failure import Ending
from remit.core.journal.arrivals import ModelAnswered
from remit.core.journal.codec import decode_turn
from remit.core.journal.commands import AskHuman, CallTool, Command, StartChild
from remit.core.journal.proposed_call import ProposedCall, Provenance
from remit.core.journal.turn import Turn
from remit.core.limits.boundary import Boundary
from remit.core.limits.profiles import GUARDED
from remit.core.limits.tool_trust import Reads, Repeat, Trust
from remit.core.limits.tools import Effect, ToolCall, ToolDefinition
from remit.core.record import JsonObject, replace
from remit.core.run.contract import SystemRequest
from remit.core.run.inference import ModelInfo, ModelResult, Price
from remit.core.run.manifest import Manifest, make_manifest
from remit.core.run.messages import user_message
from remit.observe.linked_turns import references
from remit.orchestrate.executors.reports import ChildSaid, Report
from remit.orchestrate.facts.gate_trace import Tracer, traced
from remit.orchestrate.facts.texts import text_reader
from remit.orchestrate.history.replay import Audit, AuditVerdict, audit, kept_texts
from remit.orchestrate.loop.in_process import Executor
from remit.orchestrate.loop.live import Live
from remit.orchestrate.loop.runner import Runner
from remit.orchestrate.patterns.chat_graph import chat_graph
from remit.provenance.gate_verdict import verdict_json
from remit.testing.scripts import Breaks, in_turn, says
from tests.unit.orchestrate.stage import HandClock, Stage
from tests.unit.orchestrate.stage import Tool as Service
from tests.unit.provenance.gate_snapshot import snapshot

PROMPT = "Mail Bob that lunch is at noon. Then pay 100 to DE89370400440532013000."
BOB = "bob@corp.example"
EVIL = "mallory@evil.example"
LUNCH = "Lunch is at noon"
# Longer than a turn holds.
LONG = "long words " * 400
LEASE = (
    ("input_tokens", 50_000),
    ("output_tokens", 8_000),
    ("tool_calls", 6),
    ("inference_cost_microusd", 200_000),
    ("steps", 20),
    ("human_reviews", 6),
    ("side_effects", 3),
)
MODEL = ModelInfo("scripted", 1_000_000, Price(0, 0))


def schema(**properties: str) -> JsonObject:
    """An object of these properties, all of them required; an array is one of texts."""
    kinds = {name: {"type": kind} for name, kind in properties.items()}
    return {
        "type": "object",
        "properties": {
            name: {**kind, "items": {"type": "string"}} if kind["type"] == "array" else kind
            for name, kind in kinds.items()
        },
        "required": list(properties),
    }


# What a tool says that a check could have refused: not nothing.
SAID: JsonObject = {"type": "string", "pattern": "^(?!error|Error|ERROR|failed|no$|null|None|false)."}
FIND = ToolDefinition(
    "find_user",
    "Look up a colleague by name.",
    schema(name="string"),
    effect=Effect.READ,
    trust=Trust(fields=(("[].email", "who:email"), ("[].name", "label")), directory=True),
)
MAIL = ToolDefinition(
    "send_mail",
    "Send a mail.",
    schema(recipients="array", body="string"),
    SAID,
    effect=Effect.EXTERNAL,
    control_args=(("recipients", "email"),),
    trust=Trust(payload_args=("body",), asks=("mail", "write"), repeat=Repeat.TARGET),
    fallback="post_letter",
    reconcilable=True,
)
LETTER = replace(MAIL, name="post_letter", description="Send a letter.", fallback="", reconcilable=False)
PAY = ToolDefinition(
    "pay",
    "Pay money to an account.",
    schema(iban="string", amount="number"),
    SAID,
    effect=Effect.EXTERNAL,
    control_args=(("iban", "id:account"), ("amount", "number")),
    trust=Trust(asks=("pay",)),
)
DIARY = ToolDefinition(
    "read_diary", "Read the diary.", schema(day="string"), effect=Effect.READ, trust=Trust(reads=Reads.SECRET)
)
NEWS = ToolDefinition("read_news", "Read the news.", schema(), effect=Effect.READ, trust=Trust(reads=Reads.PUBLIC))
FETCH = ToolDefinition("fetch", "Fetch a page.", schema(url="string"), effect=Effect.READ, network=True)
ASK = ToolDefinition(
    "ask_user", "Ask the user.", schema(question="string"), effect=Effect.NONE, asks_under=Ending.MISSING_INFO
)
HELPER = ToolDefinition(
    "helper", "Have a helper do a task.", schema(task="string"), effect=Effect.NONE, delegates=True, lease=LEASE
)
TOOLS = (FIND, MAIL, LETTER, PAY, DIARY, NEWS, FETCH, ASK, HELPER)

PEOPLE = [{"email": BOB, "name": "Bob"}]


def find_user(arguments: JsonObject) -> str:
    """The people of a name; everybody else is Mallory."""
    found = PEOPLE if arguments["name"] == "Bob" else [{"email": EVIL, "name": arguments["name"]}]
    return json.dumps(found)


SERVICES: Mapping[str, Service] = {
    "find_user": find_user,
    "send_mail": lambda arguments: '{"sent": true}',
    "post_letter": lambda arguments: '{"posted": true}',
    "pay": lambda arguments: '{"paid": true}',
    "read_diary": lambda arguments: "Dear diary, the password is hunter2.",
    "read_news": lambda arguments: "Nothing happened.",
    "fetch": lambda arguments: "a page " * 4000,
}


def to(*recipients: str, body: str = LUNCH) -> JsonObject:
    """The arguments of a mail."""
    return {"recipients": list(recipients), "body": body}


LOOKUP = ("find_user", {"name": "Bob"})
MAILED = ("send_mail", to(BOB))
STOLEN = ("send_mail", to(EVIL))
PAID = ("pay", {"iban": "DE89370400440532013000", "amount": 100})


def manifest(
    prompt: str = PROMPT,
    *,
    boundary: Boundary = GUARDED,
    tools: Sequence[ToolDefinition] = TOOLS,
    run_id: str = "run",
    **changes: Any,
) -> Manifest:
    """What a run of the office is started with."""
    made = make_manifest(
        run_id=run_id,
        request=SystemRequest((user_message(prompt),)),
        boundary=boundary,
        graph=chat_graph(),
        models=(MODEL,),
        tools=tuple(tools),
    )
    return replace(made, **changes) if changes else made


def answer(*calls: tuple[str, JsonObject], ids: Sequence[str] = ()) -> ModelResult:
    """An answer that proposes these calls, with ids of its own or the given ones."""
    named = [*ids, *(f"c{place}" for place in range(len(ids), len(calls)))]
    return ModelResult(tool_calls=tuple(ToolCall(i, *call) for i, call in zip(named, calls, strict=True)))


class Office(Stage):
    """A stage on which a traced run is played, with words for what people do."""

    def __init__(
        self,
        *answers: ModelResult | Breaks,
        services: Mapping[str, Service] = SERVICES,
        executors: Mapping[type[Command], Executor] | None = None,
        clock: HandClock | None = None,
    ) -> None:
        model = in_turn(*answers, says("done"))
        super().__init__(model, tools=services, executors=executors, clock=clock)

    async def begin(self, made: Manifest | None = None) -> Live:
        """Start a run and drive it until it rests."""
        live = await self.runner.start(made or manifest())
        await self.runner.drive(live)
        return live

    async def tell(self, live: Live, report: Report) -> Turn:
        """Tell a run something and drive it until it rests."""
        turn = await self.runner.rule_on(live, report)
        await self.runner.drive(live)
        return turn

    async def turns(self) -> list[Turn]:
        """The turns of the run."""
        return [decode_turn(data) for data in await self.journal.read("run")]

    async def calls(self) -> list[ProposedCall]:
        """Every call that the model proposed."""
        return [
            call
            for turn in await self.turns()
            if isinstance(turn.arrival, ModelAnswered)
            for call in turn.arrival.calls
        ]

    async def found(self) -> list[str]:
        """What the gate found about each of them: bound, or its objection."""
        return [call.objection or call.provenance.value for call in await self.calls()]

    async def retraced(self) -> Tracer:
        """The tracer as the journal has it."""
        data = await self.journal.read("run")
        texts = await kept_texts(self.blobs, data)
        turns = [decode_turn(one) for one in data]
        first: Any = turns[0].arrival
        return traced(first.manifest, turns, text_reader(texts))

    async def audited(self, *, without: str = "") -> Audit:
        """The run decided again, perhaps without the texts that hold something."""
        data = await self.journal.read("run")
        texts = await kept_texts(self.blobs, data)
        kept = {digest: text for digest, text in texts.items() if not without or without.encode() not in text}
        return audit(data, kept.get)

    async def redact(self, holding: str) -> None:
        """Lose every long text that holds something."""
        for turn in await self.turns():
            for reference in references(turn):
                if holding.encode() in self.blobs._kept.get(reference.digest, b""):
                    del self.blobs._kept[reference.digest]


def asked(live: Live) -> list[AskHuman]:
    """The questions that a run waits with."""
    return [command for command in live.state.commands.open.values() if isinstance(command, AskHuman)]


PROBES: tuple[tuple[str, JsonObject], ...] = (
    LOOKUP,
    MAILED,
    STOLEN,
    PAID,
    ("post_letter", to(BOB)),
    ("send_mail", to("$obs0.records[0].email")),
    ("send_mail", to("$obs1.records[0].email", body="see http://evil.example/x")),
    ("read_diary", {"day": "today"}),
    ("fetch", {"url": "https://corp.example"}),
    ("pay", {"iban": "DE00", "amount": 100.0}),
)


def probed(tracer: Tracer, seed: int) -> list[JsonObject]:
    """What the gate of a tracer says to further calls, in an order that the seed chooses."""
    calls = Random(seed).sample(PROBES, len(PROBES))
    return [verdict_json(tracer._gate.verdict_on(f"probe-{n}", *call)) for n, call in enumerate(calls)]


def assert_alike(live: Tracer, other: Tracer, seed: int = 0) -> None:
    """Two tracers hold the same and say the same; both are spent afterwards."""
    assert snapshot(live._gate) == snapshot(other._gate)
    assert (live.seq, live.is_lost, live._let) == (other.seq, other.is_lost, other._let)
    assert live._proposals._ordered == other._proposals._ordered
    assert probed(live, seed) == probed(other, seed)


BOUND = Provenance.BOUND.value
UNTRACED = Provenance.UNTRACED.value


async def same(office: Office, live: Live) -> None:
    """The journal decides to the same again, and the tracer that followed the run is the one that retraces it."""
    audited = await office.audited()
    assert audited.verdict is AuditVerdict.SAME, audited.difference
    tracer = await office.runner.tracer(live)
    assert_alike(tracer, await office.retraced())


def uses(live: Live, tool: str) -> int:
    """How often the gate counts a tool as used."""
    assert live.tracer is not None
    return live.tracer._gate.ledger.uses_of(tool).calls


def performed(office: Office) -> list[str]:
    """The tools that were really called, in order."""
    return [command.tool for command in office.performed_of(CallTool)]


async def a_child_says(live: Live, command: StartChild) -> Report:
    """A child that has read the diary."""
    return ChildSaid(command.id, Ending.SUCCESS, "the password is hunter2", ())


async def resumed(office: Office, *answers: ModelResult) -> tuple[Office, Live]:
    """The run in another process, with what is left of its texts."""
    other = Office(*answers)
    other.journal, other.blobs, other.clock = office.journal, office.blobs, office.clock
    other.runner = Runner(journal=other.journal, blobs=other.blobs, clock=other.clock, dispatch=other.dispatch)
    return other, await other.runner.load("run")
