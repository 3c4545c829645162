"""Drives a real F# session through the public MCP client of PyPI's `mcp`.

Usage: drive_mcp.py stdio PROGRAM | drive_mcp.py http URL TOKEN | drive_mcp.py sse URL TOKEN, then the path of a script to run.
Prints one JSON object: what each step gave. The Rust test that starts this judges it.
"""

import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client


def server():
    if sys.argv[1] == "stdio":
        return StdioServerParameters(command=sys.argv[2], args=["mcp"], env=dict(os.environ))
    headers = {"Authorization": f"Bearer {sys.argv[3]}"}
    if sys.argv[1] == "sse":
        return sse_client(sys.argv[2], headers=headers)
    return streamable_http_client(sys.argv[2], http_client=create_mcp_http_client(headers=headers))


async def main():
    steps = {}
    async with Client(server()) as client:
        tools = await client.list_tools()
        steps["tools"] = sorted(tool.name for tool in tools.tools)

        async def call(tool, **arguments):
            result = await client.call_tool(tool, arguments)
            return {"isError": result.is_error, **(result.structured_content or {})}

        created = await call("create_session", workingDirectory=os.getcwd(), name="agent")
        steps["created"] = created
        steps["defined"] = await call("send_code", code='type Dog = { Name: string }\nlet rex = { Name = "Rex" }')
        steps["printed"] = await call("send_code", code='printfn "%s" rex.Name\nrex.Name.Length')
        steps["rejected"] = await call("send_code", code='rex.Name + 1')
        resources = await client.list_resources()
        uri = str(next(resource.uri for resource in resources.resources if resource.name == "agent"))
        transcript = await client.read_resource(f"{uri}/transcript")
        steps["transcript"] = transcript.contents[0].text
        repair = await client.get_prompt("repair_error", {"session": created["sessionId"]})
        steps["repair"] = [repair.messages[0].content.text, repair.messages[1].content.resource.text]
        steps["checked"] = await call("check_code", code="let d : Dog = { Name = 3 }")
        steps["completed"] = await call("get_completions", code="let a = 1\nrex.", line=2, column=5)
        steps["status"] = await call("get_status")
        first = await call("get_recent_events")
        steps["events"] = first
        steps["later"] = await call("get_recent_events", since=first["cursor"])
        with open(sys.argv[-1], encoding="utf-8") as script:
            steps["script"] = await call("send_code", code=script.read())
        running = asyncio.create_task(call("send_code", code="while true do ()"))
        while (await call("get_status")).get("state") != "Evaluating":
            await asyncio.sleep(0)
        steps["refused"] = await call("reset_session")
        waiting = asyncio.create_task(call("send_code", code="1"))
        steps["cancelled"] = await call("cancel_eval")
        steps["ended"] = await running
        steps["waited"] = await waiting
        steps["kept"] = await call("send_code", code="rex.Name")
        steps["reset"] = await call("reset_session")
        steps["gone"] = await call("send_code", code="rex.Name")
        steps["hardReset"] = await call("hard_reset_session")
        steps["listed"] = await call("list_sessions")
        steps["stopped"] = await call("stop_session", sessionId=created["sessionId"])
    print(json.dumps(steps))


asyncio.run(main())
