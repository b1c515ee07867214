"""The child process of an isolated call: it loads one tool by its source, calls it once and writes the result.

Rule 1: the first bytes of standard input are the job; its end is the end of the parent, and of this process group.
Rule 2: the result goes through a pipe of its own, so that nothing a tool prints can be taken for it.
Rule 3: the tool runs below a warden, which counts its processes and ends as it ended.
Rule 4: a tool whose file or definition is not the one that was pinned is not called.
"""

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence

from remit.core.failure import ErrorCode, RemitError
from remit.core.record import JsonObject
from remit.core.run.manifest import Source
from remit.tool.call.arguments import call_function, result_text
from remit.tool.call.cancel_token import CancelToken
from remit.tool.call.hooks import verdict
from remit.tool.call.outcomes import Performed, ToolFault
from remit.tool.declare.decorator import Tool
from remit.tool.loader import reload
from remit.tool.process.confinement import BOXED, Limits
from remit.tool.process.framing import read_frame, write_frame
from remit.tool.process.warden import TOO_MANY, end_as, kept_within
from remit.tool.secrets.secret import Secret


def main(arguments: Sequence[str]) -> int:
    """Perform the job that stands in standard input: the number of the pipe for the result, and whether walls stand."""
    result_pipe = int(arguments[0])
    # What the tool starts must hold neither pipe, or the end of this process could not be noticed.
    os.set_inheritable(result_pipe, False)  # noqa: FBT003  # takes nothing else
    lifeline = _private_input()
    job = json.loads(read_frame(lifeline))
    limits = Limits(**job["limits"])

    def work() -> int:
        os.close(lifeline)
        return _tell(job, result_pipe)

    status = kept_within(limits, work, lifeline, is_boxed=BOXED in arguments)
    if status == TOO_MANY:
        error = f"it had more than processes_max={limits.processes_max} processes at a time, so all of them were ended"
        write_frame(result_pipe, json.dumps({"code": ErrorCode.TOOL_EXECUTION_FAILED, "error": error}).encode())
        return 0
    return end_as(status)


def _tell(job: JsonObject, result_pipe: int) -> int:
    """Call the tool and write what it came to."""
    sys.path[:] = job["path"]
    answer = _answer(job)
    sys.stdout.flush()
    sys.stderr.flush()
    # The pipe is left open: its end tells the parent that the process itself has ended, buffers and all.
    write_frame(result_pipe, json.dumps(answer).encode())
    return 0


def _private_input() -> int:
    """Standard input under a number that children do not inherit; tools read an empty one."""
    lifeline = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return lifeline


def _answer(job: JsonObject) -> JsonObject:
    try:
        tool = _loaded(Source(**job["source"]), job["version"])
        secrets = {parameter: Secret(value) for parameter, value in job["secrets"].items()}
        performed = _performed(tool, job, secrets)
    except ToolFault as fault:
        return {"code": fault.error_code, "error": fault.error, "is_unknown": fault.is_unknown}
    return {"content": performed.content, "refuted": performed.refuted, "stop_loop": performed.stop_loop}


def _loaded(source: Source, version: str) -> Tool:
    # Nothing was called yet, so whatever goes wrong here is a missing dependency and no failure of the tool.
    try:
        tool = next(iter(reload([source])))
    except RemitError as error:
        raise ToolFault(ErrorCode.TOOL_UNAVAILABLE, str(error)) from error
    if tool.definition.version != version:
        message = f"{source.attribute!r} of {source.place!r} is not the tool that was declared; put @tool on it there"
        raise ToolFault(ErrorCode.TOOL_UNAVAILABLE, message)
    return tool


def _performed(tool: Tool, job: JsonObject, secrets: Mapping[str, Secret]) -> Performed:
    arguments: JsonObject = job["arguments"]
    value = call_function(tool, arguments, job["key"], CancelToken(), secrets, job["metadata"])
    performed = result_text(tool, value)
    if tool.verify is None:
        return performed
    refuted = asyncio.run(verdict(tool, arguments, value))
    return Performed(performed.content, refuted, performed.stop_loop)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
