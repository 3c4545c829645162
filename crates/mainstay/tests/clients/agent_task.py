"""An agent's whole task on a real project over MCP, as a script: it explores, evaluates, tests, breaks, reads what the compiler says, repairs,
forks and exports.

Usage: agent_task.py PROGRAM PROJECT_FOLDER, where nunit.framework.dll is too. Prints a JSON list: what was called with which arguments, and what it was answered.
"""

import asyncio
import json
import os
import pathlib
import sys

from mcp import Client, StdioServerParameters

PROGRAM, FOLDER = sys.argv[1:3]
SHOP = pathlib.Path(FOLDER)


async def main():
    steps = []
    server = StdioServerParameters(command=PROGRAM, args=["mcp"], env=dict(os.environ))
    async with Client(server) as client:

        async def call(tool, **arguments):
            result = await client.call_tool(tool, arguments)
            said = "\n".join(block.text for block in result.content if block.type == "text")
            steps.append({"tool": tool, "arguments": arguments, "isError": bool(result.is_error), "said": said})
            return result.structured_content or {}

        # What is there?
        await call("get_available_projects", folder=FOLDER)
        created = await call("create_session", workingDirectory=FOLDER, project=str(SHOP / "Shop.fsproj"), name="shop")
        await call("get_startup_profile")
        await call("explore_namespace", name="Shop")
        await call("explore_type", name="Shop.Item")
        await call("find_symbols", text="discount")
        # Does it do what it should?
        await call("send_code", code='[ { Name = "tea"; Price = 250 } ] |> Cart.discounted 10 |> Money.euros')
        await call("send_code", code='#r "nunit.framework.dll"')
        await call("load_script", path=str(SHOP / "tests.fsx"))
        await call("list_tests")
        await call("run_tests")
        # A repair that does not compile.
        cart = (SHOP / "Cart.fs").read_text()
        once = cart.replace("Money.percent discount (Money.percent discount (total items))", "Money.percnt discount (total items)")
        (SHOP / "Cart.fs").write_text(once)
        await call("hard_reset_session", rebuild=True)
        await call("get_values")
        # One that does.
        (SHOP / "Cart.fs").write_text(once.replace("percnt", "percent"))
        await call("hard_reset_session", rebuild=True)
        await call("send_code", code='#r "nunit.framework.dll"')
        await call("load_script", path=str(SHOP / "tests.fsx"))
        await call("run_tests")
        # What if? In a fork, so that the session stays as it is.
        forked = await call("fork_session", sessionId=created["sessionId"])
        await call("send_code", sessionId=forked["sessionId"], code="let items = []\ndiscounted 10 items")
        await call("send_code", sessionId=created["sessionId"], code="discounted 10 items")
        # What cannot be, and what is wrong.
        running = asyncio.create_task(client.call_tool("send_code", {"sessionId": created["sessionId"], "code": "System.Threading.Thread.Sleep 600000"}))
        while True:
            status = await client.call_tool("get_status", {"sessionId": created["sessionId"]})
            if status.structured_content["state"] == "Evaluating":
                break
        await call("reset_session", sessionId=created["sessionId"])
        await call("cancel_eval", sessionId=created["sessionId"])
        await running
        await call("send_code", sessionId=created["sessionId"], code='open NUnit.Framework\n[<Test>]\nlet hangs () = System.Threading.Thread.Sleep 600000')
        await call("run_tests", sessionId=created["sessionId"], pattern="hangs", timeoutMs=200)
        await call("create_session", workingDirectory=FOLDER, project=str(SHOP / "Gone.fsproj"), name="gone")
        await call("diagnose")
        await call("get_eval_timeline", sessionId=created["sessionId"])
        await call("export_session", sessionId=created["sessionId"], format="fsx")
    print(json.dumps(steps))


asyncio.run(main())
