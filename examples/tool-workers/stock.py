"""A tool worker in Python, with the public SDK of ARCP: `pip install agentruntimecontrolprotocol`.

In Mainstay's config.toml:

    [tool-workers.stock]
    command = ["python3", "/path/to/stock.py"]

Then `mainstay eval --kind stock 'quote {"sku": "A1", "count": 3}'`, and clients of ARCP submit jobs to `stock.quote`.
"""

import asyncio
import os
import sys

from arcp import RuntimeInfo, StdioTransport
from arcp.runtime import ARCPRuntime, StaticBearerVerifier

PRICES = {"A1": 250, "B2": 1300}
LONGEST_LINE = 16 * 1024 * 1024


async def quote(order, job):
    """What an order costs, in cents."""
    if order["sku"] not in PRICES:
        raise LookupError(f"nothing is called {order['sku']}")
    return {"cents": PRICES[order["sku"]] * order.get("count", 1)}


async def count(shelves, job):
    """Counts what is on so many shelves, which takes a while."""
    for shelf in range(shelves):
        await job.progress(shelf, total=shelves, units="shelves")
        await asyncio.sleep(0.1)
    await job.log("info", f"{shelves} shelves are counted")
    return {"found": 12 * shelves}


async def standard_streams():
    """Like StdioTransport.from_std_streams, whose reader ends at lines over 64 KiB: calls may be longer."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LONGEST_LINE)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    pipe, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    return StdioTransport(reader, asyncio.StreamWriter(pipe, protocol, None, loop))


async def main():
    runtime = ARCPRuntime(
        runtime=RuntimeInfo(name="stock", version="1.0.0"),
        bearer=StaticBearerVerifier({os.environ["ARCP_TOKEN"]: "mainstay"}),
    )
    runtime.register_agent_version("quote", "2", quote)
    runtime.register_agent("count", count)
    await runtime.accept(await standard_streams())


sys.exit(asyncio.run(main()))
