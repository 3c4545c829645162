// An extension of pi's that gives its model the tools of Mainstay's MCP endpoint, so that an agent works in the live sessions that people
// look at. Which tools there are, the endpoint says. Mainstay writes this file anew at each start of pi.

import { readFileSync } from "node:fs";
import { request } from "node:http";
import { setTimeout as pause } from "node:timers/promises";

const VERSION = "2026-07-28";
/** How long the endpoint may take to say what it has, in milliseconds: pi waits for it. */
const LIST_LIMIT = 10_000;
/** How long pi's start waits for a daemon that is not there, in milliseconds. */
const START_PATIENCE = 2_000;
/** How long a call waits for a daemon that is not there, in milliseconds: it may be starting again, after a crash or an upgrade. */
const CALL_PATIENCE = 30_000;
/** How long it takes from one look for the daemon to the next, in milliseconds. */
const PAUSE = 200;
const { MAINSTAY_DAEMON_FILE, MAINSTAY_TOKEN_FILE, MAINSTAY_PROJECT, MAINSTAY_CLIENT } = process.env;

export default async function (pi) {
  let tools, instructions;
  try {
    const limit = AbortSignal.timeout(LIST_LIMIT);
    ({ instructions } = await ask("server/discover", {}, limit, START_PATIENCE));
    ({ tools } = await ask("tools/list", {}, limit, START_PATIENCE));
  } catch (error) {
    let isSaid = false;
    pi.on("session_start", (_event, context) => {
      if (isSaid) return;
      isSaid = true;
      context.ui.notify(`Live sessions are not there for this agent: ${error.message}`, "warning");
    });
    return;
  }
  // What people are asked is theirs to answer.
  tools = tools.filter((tool) => tool.name !== "answer_ask");
  for (const [index, tool] of tools.entries()) {
    pi.registerTool({
      name: `mainstay_${tool.name}`,
      label: tool.name,
      description: tool.description,
      promptSnippet: tool.description,
      promptGuidelines: index === 0 ? [`Of the tools that begin with mainstay_: ${instructions}`] : [],
      parameters: tool.inputSchema,
      execute: (_call, given, signal) => carryOut(tool.name, given, signal),
    });
  }
}

async function carryOut(name, given, signal) {
  const asked = ask("tools/call", { name, arguments: given }, signal, CALL_PATIENCE);
  const { content, structuredContent, isError } = await asked;
  // What a tool of pi's throws is what its model is told as a failure.
  if (isError) throw new Error(content.flatMap((part) => part.text ?? []).join("\n"));
  return { content, details: structuredContent };
}

/** One request, which has nothing to do with those before it. It ends when its signal says so, and what it began with it. */
async function ask(method, params, signal, patience) {
  const client = { name: MAINSTAY_CLIENT, version: "1" };
  const meta = { protocolVersion: VERSION, clientInfo: client, clientCapabilities: {} };
  const _meta = Object.fromEntries(Object.entries(meta).map(([name, value]) => [`io.modelcontextprotocol/${name}`, value]));
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta } });
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": VERSION,
    "mcp-method": method,
    ...(params.name && { "mcp-name": params.name }),
  };
  const text = await deliver(headers, body, signal, patience);
  const { result, error, message } = JSON.parse(text);
  if (!result) throw new Error(error?.message ?? message ?? text);
  return result;
}

/** Posts to the daemon that runs, or to the next one that does: a request that has reached none is posted again for a while. */
async function deliver(headers, body, signal, patience) {
  const deadline = Date.now() + patience;
  for (;;) {
    try {
      // The daemon and its port may be others than those of the last call.
      const { port } = JSON.parse(readFileSync(MAINSTAY_DAEMON_FILE, "utf8"));
      const authorization = `Bearer ${readFileSync(MAINSTAY_TOKEN_FILE, "utf8").trim()}`;
      return await post(`http://127.0.0.1:${port}/mcp`, { ...headers, authorization }, body, signal);
    } catch (error) {
      if (error.code === "ECONNRESET") {
        throw new Error("the daemon ended during the call, which may have been carried out: look before you repeat it");
      }
      if (error.code !== "ECONNREFUSED" && error.code !== "ENOENT") throw error;
      if (Date.now() >= deadline) {
        throw new Error("no daemon of Mainstay runs; `mainstay -d` starts it");
      }
    }
    await pause(PAUSE, undefined, { signal });
  }
}

/** Code may run for hours: unlike `fetch`, this waits as long as it takes. */
function post(url, headers, body, signal) {
  const address = new URL(url);
  address.searchParams.set("folder", MAINSTAY_PROJECT);
  return new Promise((resolve, reject) => {
    // A connection of its own: one that is kept may lead to a daemon that is gone.
    const options = { method: "POST", headers, signal, agent: false };
    const sent = request(address, options, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (piece) => (text += piece));
      response.on("end", () => resolve(text));
      response.on("error", reject);
    });
    sent.on("error", reject);
    sent.end(body);
  });
}
