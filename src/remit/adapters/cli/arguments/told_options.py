"""What a run is told besides the prompt: instructions for the model, files with evidence, and the effects that are wanted.

Rule 1: all are read before anything begins; what cannot be read is wrong usage.
Rule 2: instructions are the operator's words, evidence is data: it is numbered, named by its file, and untrusted.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from remit.adapters.cli.arguments.inputs import (
    PROMPT_UNREADABLE,
    STDIN,
    InputUnusable,
    as_usage,
    orders_from_file,
    text_from_file,
    wrong_usage,
)
from remit.core.run.contract import Mode
from remit.core.run.messages import Message, system_message
from remit.core.work.graph import NodeKind
from remit.core.work.orders import Order

if TYPE_CHECKING:
    from remit.assemble import RunWork

CONTEXT_UNREADABLE = "CONTEXT_UNREADABLE"
# Before the name of a file that is meant in place of a text.
FILE_MARK = "@"


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class ToldOptions:
    """The options that say what the model is told."""

    system: Annotated[str, Parameter(help="What the model is told about its task: a text, or @FILE with one.")] = ""
    context: Annotated[
        list[Path] | None,
        Parameter(
            help="A file with evidence for the model; `-` is stdin. May be said several times.",
            allow_leading_hyphen=True,
        ),
    ] = None

    orders: Annotated[
        Path | None,
        Parameter(help="A file of YAML or JSON with the effects that you want; every other one asks. `-` is stdin."),
    ] = None

    def ordered(self) -> tuple[Order, ...]:
        """The orders of the caller."""
        return () if self.orders is None else orders_from_file(self.orders)

    def messages(self) -> tuple[Message, ...]:
        """What stands before the prompt."""
        if not self.system:
            return ()
        text = self.system
        if text.startswith(FILE_MARK):
            text = text_from_file(Path(text.removeprefix(FILE_MARK)), PROMPT_UNREADABLE)
        if not text.strip():
            raise InputUnusable(PROMPT_UNREADABLE, f"--system {self.system[:80]!r} says nothing; leave it out")
        return (system_message(text),)

    def check(self, mode: Mode, file: Path | None) -> None:
        """Refuse evidence that nothing would read."""
        named = self.context or []
        if named and mode is Mode.PLAN:
            raise wrong_usage("--context is nothing a plan reads; name `documents` in the plan file")
        if [file, self.orders, *named].count(STDIN) > 1:
            raise wrong_usage("stdin can be read once; name `-` for one of --file, --context and --orders alone")

    def spelled(self) -> list[tuple[str, str]]:
        """The options as they are typed, for a user who comes back."""
        named = [("--context", str(file)) for file in self.context or () if file != STDIN]
        return [("--system", self.system), *named] if self.system else named

    def work(self, work: "RunWork") -> "RunWork":
        """The work of a run with the evidence added."""
        if not self.context:
            return work
        from remit.assemble import RunWork
        from remit.orchestrate.drafts import evidence_of

        graph = work.terms.graph
        if graph is not None and all(node.kind is not NodeKind.RETRIEVE for node in graph.nodes):
            raise wrong_usage(f"--context is nothing that graph {graph.name!r} reads; it has no node of kind retrieve")
        texts = [
            ("stdin" if file == STDIN else str(file), text_from_file(file, CONTEXT_UNREADABLE)) for file in self.context
        ]
        with as_usage():
            return RunWork(replace(work.kit, context=evidence_of(texts)), work.terms)


NOTHING_TOLD = ToldOptions()
