"""A support desk behind a web server: submit, follow, show, answer what is asked. It survives `kill -9`: open runs go on.

Customers ask and staff answers; who is who is for your own login to say, here the browser is believed.

    pip install fastapi uvicorn
    DESK_ENGINE=scripted:examples/support.script.yaml python examples/web_server.py    # http://127.0.0.1:8000
"""

import asyncio
import json
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import msgspec
import uvicorn
from fastapi import Body, FastAPI, Header, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, StreamingResponse

import remit
from remit import AgentLoop, RemitError, RequestRejected, Signal, System, UserSignal, load_tools

HERE = Path(__file__).parent
ENGINE = os.environ.get("DESK_ENGINE", "local")
TOOLS = load_tools(str(HERE / "support_tools.py"))
# What the page shows of a question: the exact call, where each value comes from, why it asks.
SHOWN = ("id", "packet", "tool", "arguments", "origins", "reasons")
Said = Annotated[str, Body(embed=True)]


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, System]]:
    """Open the store, and go on with what an earlier process left open; a run that waits for a person needs no driver here."""
    async with remit.open() as system:
        left = [entry.run_id for entry in await system.archive.runs(open_only=True) if not entry.waiting_for]
        going_on = [asyncio.create_task(go_on(system, run_id)) for run_id in left]
        yield {"system": system}
        for task in going_on:
            task.cancel()


async def go_on(system: System, run_id: str) -> None:
    """Resume a run; one that cannot be resumed says why, and keeps the others from nothing."""
    try:
        await system.resume(run_id)
    except RemitError as error:
        logging.getLogger("desk").warning("run %s rests: %s", run_id, error)


app = FastAPI(lifespan=lifespan)


@app.exception_handler(RemitError)
async def refused(request: Request, error: RemitError) -> JSONResponse:
    """Whatever remit refuses has a code for programs and words for people."""
    status = 404 if error.code.endswith("NOT_FOUND") else 409
    return JSONResponse({"code": error.code, "message": error.message}, status_code=status)


@app.exception_handler(RequestValidationError)
async def malformed(request: Request, error: RequestValidationError) -> JSONResponse:
    """What is wrong with a body, without what stood there: not every value of a body can be written down again."""
    told = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
    return JSONResponse({"code": "REQUEST_MALFORMED", "message": told}, status_code=422)


@app.post("/runs")
async def submit(request: Request, text: Said, user: Said = "customer") -> dict[str, str]:
    """Start a run, which goes on whether or not a client watches."""
    agent = AgentLoop(ENGINE, tools=TOOLS, boundary="customer_support", user_id=user, system=request.state.system)
    return {"run": (await agent.start(text)).id}


@app.get("/runs/{run_id}")
async def show(request: Request, run_id: str) -> dict[str, Any]:
    """How a run stands, at once."""
    entry = await request.state.system.archive.find(run_id)
    if not entry.ending and not entry.waiting_for:
        return {"stands": "running"}
    response = await request.state.system.result(run_id)
    return {"stands": entry.ending or entry.waiting_for, "content": response.content}


@app.get("/runs/{run_id}/events")
async def follow(request: Request, run_id: str, last_event_id: Annotated[int, Header()] = -1) -> StreamingResponse:
    """What happens in a run until it rests, as server-sent events; a browser that lost the connection goes on behind its last."""
    run = await request.state.system.find(run_id)

    async def events() -> AsyncIterator[str]:
        async for event in run.events(since=last_event_id, chunks=True):
            name = type(event.turn.arrival).__name__ if event.turn else event.kind.value
            number = f"id: {event.seq}\n" if event.turn else ""
            yield f"{number}event: step\ndata: {json.dumps({'what': name, 'text': event.text})}\n\n"
        yield f"event: rests\ndata: {json.dumps(await show(request, run_id))}\n\n"

    told = events()
    # Asked for before the answer begins: a place that is nowhere in the run is a 4xx, and no stream that breaks off.
    first = await anext(told)

    async def stream() -> AsyncIterator[str]:
        yield first
        async for event in told:
            yield event

    return StreamingResponse(stream(), media_type="text/event-stream")


@app.get("/approvals")
async def approvals(request: Request) -> list[dict[str, Any]]:
    """What staff is asked: the exact call, where its values come from, why it asks."""
    asked = await request.state.system.archive.approvals()
    return [{name: msgspec.to_builtins(getattr(one, name)) for name in SHOWN} for one in asked]


@app.post("/approvals/{run_id}/{question}")
async def answer(
    request: Request, run_id: str, question: str, decision: Said, packet: Said, by: Said
) -> dict[str, str]:
    """Say `approve` or `reject` to a packet, as it was shown: another version of it is refused."""
    if decision not in ("approve", "reject"):
        raise RequestRejected("DECISION_UNKNOWN", f"decision={decision[:80]!r} is unknown; say approve or reject")
    payload = {"packet_id": f"{run_id}/{question}", "packet": packet}
    system: System = request.state.system
    await system.signal(UserSignal(str(uuid4()), Signal(decision), run_id, by, payload=payload))
    if decision == "reject" and (await system.result(run_id)).paused_by:
        # To say no loads no tools: a run of the server before this one stands paused with its no, and goes on from there.
        await system.signal(UserSignal(str(uuid4()), Signal.RESUME, run_id, by))
    return {"run": run_id}


@app.get("/", response_class=HTMLResponse)
async def page() -> str:
    """A page that does all of it."""
    return (HERE / "web_page.html").read_text(encoding="utf-8")


if __name__ == "__main__":
    # A browser may follow a run for hours: to stop, the server does not wait for it. The run goes on at the next start.
    port = int(os.environ.get("PORT", "8000"))
    uvicorn.run(app, port=port, log_level="warning", timeout_graceful_shutdown=2)
