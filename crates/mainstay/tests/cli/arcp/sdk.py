"""Drives a daemon with ARCP's public Python SDK, unchanged. What is seen is printed, a line of JSON each.

Arguments: the address of the daemon, its token, the folder of the sessions, and the story. A line on the input lets a story go on.
The agent is a Jupyter kernel of Python.
"""

import asyncio
import json
import sys
from datetime import datetime, timedelta, timezone

from arcp import ClientInfo, WebSocketTransport
from arcp._messages.execution import LeaseConstraints
from arcp._messages.session import ListJobsFilter, SessionResume
from arcp.client import ARCPClient

URL, TOKEN, FOLDER, STORY = sys.argv[1:5]
AGENT = "python3"
FOREVER = "import time\nwhile True: time.sleep(0.005)"
GATE = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.005)\n"


def code(text):
    return {"code": text, "working_directory": FOLDER}


def tell(**seen):
    print(json.dumps(seen, sort_keys=True, ensure_ascii=False), flush=True)


async def told_to_go_on():
    if not await asyncio.to_thread(sys.stdin.readline):
        raise SystemExit("nobody says more")


def client():
    return ARCPClient(client=ClientInfo(name="story", version="1"), token=TOKEN)


async def transport():
    """A connection; a daemon that is not there yet is tried again."""
    for _ in range(400):
        try:
            return await WebSocketTransport.connect(URL)
        except OSError:
            await asyncio.sleep(0.05)
    raise SystemExit("the daemon does not come back")


async def connected():
    one = client()
    await one.connect(await transport())
    return one


async def ended(handle):
    try:
        result = await handle.done
        return {"final_status": result.final_status, "result": result.result}
    except Exception as error:  # noqa: BLE001
        return {"error": getattr(error, "code", type(error).__name__), "message": str(error)}


async def code_of(refused):
    try:
        await refused
    except Exception as error:  # noqa: BLE001
        return getattr(error, "code", type(error).__name__)
    return None


async def kinds(handle):
    return [[event["kind"], event["body"]] async for event in handle.events()]


async def eval_story():
    one = await connected()
    tell(features=list(one.negotiated_features), agents=[agent.name for agent in one.welcome.capabilities.agents])
    handle = await one.submit(agent=AGENT, input=code("print('hello'); shared + 1"))
    tell(agent=handle.agent_ref, events=await kinds(handle), end=await ended(handle))
    handle = await one.submit(agent=AGENT, input=code("raise ValueError('oops')"))
    tell(failed=await ended(handle))
    tell(no_agent=await code_of(one.submit(agent="nobody", input="1")))
    tell(no_version=await code_of(one.submit(agent=f"{AGENT}@99", input="1")))
    tell(no_token=await code_of(ARCPClient(client=ClientInfo(name="x", version="1"), token="x").connect(await transport())))
    await one.close()


async def key_story():
    one, other = await connected(), await connected()
    first = await one.submit(agent=AGENT, input=code("print('once'); 1"), idempotency_key="k")
    tell(first=await ended(first))
    again = await one.submit(agent=AGENT, input=code("print('once'); 1"), idempotency_key="k")
    tell(same=first.job_id == again.job_id, again=await ended(again))
    elsewhere = await other.submit(agent=AGENT, input=code("print('once'); 1"), idempotency_key="k")
    tell(same=first.job_id == elsewhere.job_id, elsewhere=await ended(elsewhere))
    tell(conflict=await code_of(other.submit(agent=AGENT, input=code("2"), idempotency_key="k")))
    await one.close()
    await other.close()


async def cancel_story():
    one, other = await connected(), await connected()
    handle = await one.submit(agent=AGENT, input=code(FOREVER))
    listed = await other.list_jobs(filter=ListJobsFilter(status=("running", "pending")))
    tell(listed=[job.job_id == handle.job_id for job in listed.jobs])
    subscribed = await other.subscribe(handle.job_id, history=True)
    await other.cancel_job(handle.job_id)
    await one.cancel_job(handle.job_id, reason="enough")
    tell(cancelled=await ended(handle), refused=await ended(subscribed.handle))
    limited = await one.submit(agent=AGENT, input=code(FOREVER), max_runtime_sec=1)
    tell(timed_out=await ended(limited))
    await one.close()
    await other.close()


async def watch_story():
    """A session is told of a job of another: what happened before, what comes, and how it ends."""
    one, other = await connected(), await connected()
    handle = await one.submit(
        agent=AGENT,
        input=code("print('before', flush=True)\n" + GATE + "1"),
    )
    async for event in handle.events():
        if event["kind"] == "log":
            break
    subscribed = await other.subscribe(handle.job_id, history=True)
    tell(subscribed=True)
    await told_to_go_on()
    tell(events=await kinds(subscribed.handle), end=await ended(subscribed.handle))
    await one.close()
    await other.close()


async def chunk_story():
    one = await connected()
    handle = await one.submit(agent=AGENT, input=code("'é' * 5000"))
    end = await ended(handle)
    value = json.loads(await handle.collect_chunks())["value"]
    tell(final_status=end["final_status"], inline=end["result"], length=len(value))
    await one.close()


async def lease_story():
    one = await connected()
    asked = LeaseConstraints(expires_at="2099-01-01T00:00:00Z")
    handle = await one.submit(
        agent=AGENT, input=code("1"), lease_request={"cost.budget": ["USD:5.25"]}, lease_constraints=asked
    )
    granted = handle.accepted
    tell(lease=granted.lease, budget=granted.budget, expires_at=granted.lease_constraints.expires_at)
    await ended(handle)
    soon = (datetime.now(timezone.utc) + timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    asked = LeaseConstraints(expires_at=soon)
    tell(expired=await ended(await one.submit(agent=AGENT, input=code(FOREVER), lease_constraints=asked)))


async def resume_story():
    """A job prints while its client is away and its daemon is killed; all of it is told, with no gap."""
    one = await connected()
    handle = await one.submit(
        agent=AGENT,
        input=code("print('begun', flush=True)\n" + GATE + "for n in range(200): print(n, flush=True)"),
    )
    async for event in handle.events():
        if event["kind"] == "log":
            break
    resume = SessionResume(
        session_id=one.session_id, resume_token=one.welcome.resume_token, last_event_seq=one._highest_seq
    )
    tell(begun=True)
    await told_to_go_on()
    seqs, texts, done, again = [], [], asyncio.Event(), client()
    dispatch = again._dispatch

    async def seen(envelope):
        if envelope.event_seq is not None:
            seqs.append(envelope.event_seq)
        if envelope.type == "job.event" and envelope.payload["kind"] == "log":
            texts.append(envelope.payload["body"]["message"])
        if envelope.type in ("job.result", "job.error"):
            texts.append(envelope.payload["final_status"])
            done.set()
        await dispatch(envelope)

    again._dispatch = seen
    welcome = await again.resume(await transport(), resume=resume)
    await asyncio.wait_for(done.wait(), 60)
    first = resume.last_event_seq + 1
    tell(
        same_session=welcome.session_id == one.session_id,
        rotated=welcome.resume_token != resume.resume_token,
        gapless=seqs == list(range(first, first + len(seqs))),
        text="".join(texts),
    )
    # The token before is good until the daemon has heard of a client that has the new one.
    await again.list_jobs()
    tell(old_token=await code_of(client().resume(await transport(), resume=resume)))


async def tool_story():
    """Tools of a worker are agents; a call goes on while its daemon is killed."""
    one = await connected()
    tell(agents=[agent.name for agent in one.welcome.capabilities.agents if agent.name.startswith("stock")])
    handle = await one.submit(agent="stock.count", input=2)
    seen = await kinds(handle)
    progress = [body for kind, body in seen if kind == "progress"]
    tell(agent=handle.agent_ref, progress=progress, end=await ended(handle))
    quote = await one.submit(agent="stock.quote@2", input={"sku": "A1"})
    tell(quote=await ended(quote))
    tell(no_version=await code_of(one.submit(agent="stock.quote@9", input={"sku": "A1"})))
    unknown = await one.submit(agent="stock.nothing", input={})
    tell(unknown=await ended(unknown))
    stopped = await one.submit(agent="stock.count", input=100000)
    async for event in stopped.events():
        if event["kind"] == "progress":
            break
    await one.cancel_job(stopped.job_id)
    tell(stopped=await ended(stopped))
    await one.close()


asyncio.run(globals()[f"{STORY}_story"]())
