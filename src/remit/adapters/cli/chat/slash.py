"""What can be said in a chat besides messages: words that begin with a slash.

Rule 1: every one of them stands in this table, and the table is what /help prints.
Rule 2: nothing is guessed: an unknown one is refused, with the nearest that is known.
Rule 3: two slashes begin a message that begins with one.
"""

from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from remit.adapters.cli.commands.runs import RUNS_SHOWN, asked_in, entry_lines, run_line
from remit.adapters.cli.inputs import orders_from_file
from remit.adapters.cli.outputs import write_new
from remit.adapters.cli.screen.bars import budget_lines
from remit.adapters.cli.screen.colours import Ink, Line, columns_of, print_lines, print_prose
from remit.adapters.cli.screen.glance import standing_in_words
from remit.adapters.cli.screen.tree import BRANCHES, BRANCHES_ASCII, Canvas, tree_lines
from remit.core.failure import RequestRejected
from remit.core.limits.budget import FIELDS
from remit.core.run.messages import Role
from remit.observe.plain import printable_line
from remit.observe.views.explain import Spent
from remit.observe.views.outline import outline_of
from remit.observe.views.sentence import sentence

if TYPE_CHECKING:
    from remit.adapters.cli.chat.chat_session import TerminalChat

SLASH = "/"
SLASH_UNKNOWN = "SLASH_UNKNOWN"
SLASH_MISUSED = "SLASH_MISUSED"
SAVE_FAILED = "SAVE_FAILED"
DESCRIPTION_CHARS_MAX = 90
_SHOWN_CHARS_MAX = 40


class Slash(NamedTuple):
    """A word, what may follow it, what it does in one line, and its function."""

    word: str
    takes: str
    line: str
    act: "Callable[[TerminalChat, str], None]"


def obey(chat: "TerminalChat", line: str) -> None:
    """Do what a line says that begins with a slash; raises RequestRejected when it is unknown."""
    word, _, rest = line.strip().partition(" ")
    rest = rest.strip()
    found = _BY_WORD.get(word)
    if found is None:
        near = get_close_matches(word, _BY_WORD, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}? " if near else ""
        message = (
            f"there is no {word[:_SHOWN_CHARS_MAX]!r}; {hint}/help lists what there is, and // begins a message with /"
        )
        raise RequestRejected(SLASH_UNKNOWN, message)
    if rest and not found.takes:
        raise RequestRejected(
            SLASH_MISUSED, f"{found.word} takes nothing behind it, and got {rest[:_SHOWN_CHARS_MAX]!r}"
        )
    found.act(chat, rest)


def words() -> list[str]:
    """Everything that can be said with a slash."""
    return list(_BY_WORD)


def _help(chat: "TerminalChat", rest: str) -> None:
    lines: list[Line] = [
        ((f"  {f'{slash.word} {slash.takes}'.strip():<17}", Ink.NAME), (slash.line, Ink.PLAIN)) for slash in SLASHES
    ]
    lines.append(
        (("  A backslash at the end of a line continues it. Ctrl-C cancels an answer, Ctrl-D leaves.", Ink.FAINT),)
    )
    print_lines(chat.terminal, lines)


def _tools(chat: "TerminalChat", rest: str) -> None:
    tools = chat.conversation.tools
    if not tools:
        chat.terminal.remark("no tools; start the chat with --tools FILE.py")
    print_lines(
        chat.terminal,
        [
            (
                (f"  {tool.name:<20} ", Ink.NAME),
                (f"{tool.effect.value:<9}", Ink.WAITS if tool.effect.is_mutating else Ink.GOOD),
                (printable_line(tool.description.partition("\n")[0], DESCRIPTION_CHARS_MAX), Ink.PLAIN),
            )
            for tool in tools
        ],
    )


def _budget(chat: "TerminalChat", rest: str) -> None:
    conversation = chat.conversation
    told = chat.run(conversation.told(""))
    touched = {spent.dimension: spent for spent in told.explanation.spent}
    every = [touched.get(name) or Spent(name, 0, cap) for name, cap in zip(FIELDS, told.manifest.caps, strict=True)]
    print_lines(chat.terminal, budget_lines(chat.terminal, every))


def _trace(chat: "TerminalChat", rest: str) -> None:
    terminal = chat.terminal
    told = chat.run(chat.conversation.told(rest))
    marks = BRANCHES if terminal.has_unicode else BRANCHES_ASCII
    stands = {told.entry.run_id: standing_in_words(told.entry, told.explanation.standing)}
    print_lines(terminal, tree_lines(outline_of(told.reading), Canvas(marks, columns_of(terminal), {}, stands)))


def _explain(chat: "TerminalChat", rest: str) -> None:
    print_prose(chat.terminal, sentence(chat.run(chat.conversation.told(rest)).explanation))


def _runs(chat: "TerminalChat", rest: str) -> None:
    system, columns = chat.conversation.system, columns_of(chat.terminal)
    for entry in chat.run(chat.conversation.runs())[:RUNS_SHOWN]:
        asked = chat.run(asked_in(system, entry.run_id, chat.run(system.archive.glimpse(entry)).asked))
        for line in entry_lines(run_line(entry), asked, columns):
            chat.terminal.line(line)


def _session(chat: "TerminalChat", rest: str) -> None:
    if rest:
        chat.enter(rest)
        return
    conversation = chat.conversation
    count = len(chat.run(conversation.runs()))
    chat.terminal.line(f"session {conversation.session_id}: {count} exchange{'' if count == 1 else 's'}")


def _new(chat: "TerminalChat", rest: str) -> None:
    from remit.assemble import new_run_id

    chat.enter(new_run_id())


def _retry(chat: "TerminalChat", rest: str) -> None:
    chat.exchange(chat.conversation.retry())


def _resume(chat: "TerminalChat", rest: str) -> None:
    chat.exchange(chat.conversation.go_on())


def _cancel(chat: "TerminalChat", rest: str) -> None:
    chat.exchange(chat.conversation.cancel())


def _save(chat: "TerminalChat", rest: str) -> None:
    path = Path(rest).expanduser()
    if not rest:
        raise RequestRejected(SLASH_MISUSED, "/save needs the name of a file")
    said = chat.run(chat.conversation.messages())
    names = {Role.USER: chat.conversation.user or "user"}
    text = "".join(f"{names.get(message.role, message.role.value)}:\n{message.content}\n\n" for message in said)
    try:
        write_new(path, [text.encode("utf-8", "backslashreplace")])
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", "") or error
        raise RequestRejected(SAVE_FAILED, f"{rest!r} cannot be written: {why}; nothing is overwritten") from error
    chat.terminal.line(f"{len(said)} messages saved to {path}")


def _orders(chat: "TerminalChat", rest: str) -> None:
    if not rest:
        raise RequestRejected(SLASH_MISUSED, "/orders needs the name of a file with orders")
    chat.conversation.orders = orders_from_file(Path(rest).expanduser())
    chat.terminal.line(f"{len(chat.conversation.orders)} orders for the next message; every other effect asks")


def _quit(chat: "TerminalChat", rest: str) -> None:
    chat.is_over = True


SLASHES = (
    Slash("/help", "", "Show this.", _help),
    Slash("/tools", "", "List the tools, and what each does to the world.", _tools),
    Slash("/budget", "", "Show what the last exchange used of every cap.", _budget),
    Slash(
        "/explain", "[RUN]", "Say in one sentence what an exchange was allowed, did, spent, and why it ended.", _explain
    ),
    Slash("/trace", "[RUN]", "Show an exchange as a tree of its steps.", _trace),
    Slash("/runs", "", "List the exchanges of this session, newest first.", _runs),
    Slash("/session", "[ID]", "Tell the session, or go on with another one.", _session),
    Slash("/new", "", "Begin a new session.", _new),
    Slash("/retry", "", "Try the last exchange again, after it failed or was cancelled.", _retry),
    Slash("/resume", "", "Go on with the exchange that is open; what it asks is asked again.", _resume),
    Slash("/cancel", "", "End the exchange that is open.", _cancel),
    Slash("/orders", "FILE", "Give the effects that are wanted of the next message.", _orders),
    Slash("/save", "FILE", "Write the conversation to a new file.", _save),
    Slash("/quit", "", "Leave. The session is kept.", _quit),
)
_BY_WORD = {**{slash.word: slash for slash in SLASHES}, "/exit": SLASHES[-1]}
