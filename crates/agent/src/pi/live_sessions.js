// An extension of pi's that gives its model the tools of Mainstay's MCP endpoint, so that an agent works in the live sessions that people
// look at. Which tools there are, the endpoint says. Mainstay writes this file anew at each start of pi.

import { readFileSync } from "node:fs";
import { request } from "node:http";

const VERSION = "2026-07-28";
/** How long the endpoint may take to say what it has, in milliseconds: pi waits for it. */
const LIST_LIMIT = 10_000;
const { MAINSTAY_MCP_URL, MAINSTAY_TOKEN_FILE, MAINSTAY_PROJECT, MAINSTAY_CLIENT } = process.env;

export default async function (pi) {
  let tools, instructions;
  try {
    const limit = AbortSignal.timeout(LIST_LIMIT);
    ({ instructions } = await ask("server/discover", {}, limit));
    ({ tools } = await ask("tools/list", {}, limit));
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
  const { content, structuredContent, isError } = await ask("tools/call", { name, arguments: given }, signal);
  // What a tool of pi's throws is what its model is told as a failure.
  if (isError) throw new Error(content.flatMap((part) => part.text ?? []).join("\n"));
  return { content, details: structuredContent };
}

/** One request, which has nothing to do with those before it. It ends when its signal says so, and what it began with it. */
async function ask(method, params, signal) {
  const client = { name: MAINSTAY_CLIENT, version: "1" };
  const meta = { protocolVersion: VERSION, clientInfo: client, clientCapabilities: {} };
  const _meta = Object.fromEntries(Object.entries(meta).map(([name, value]) => [`io.modelcontextprotocol/${name}`, value]));
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta } });
  const headers = {
    authorization: `Bearer ${readFileSync(MAINSTAY_TOKEN_FILE, "utf8").trim()}`,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": VERSION,
    "mcp-method": method,
    ...(params.name && { "mcp-name": params.name }),
  };
  const text = await post(headers, body, signal);
  const { result, error, message } = JSON.parse(text);
  if (!result) throw new Error(error?.message ?? message ?? text);
  return result;
}

/** Code may run for hours: unlike `fetch`, this waits as long as it takes. */
function post(headers, body, signal) {
  const address = new URL(MAINSTAY_MCP_URL);
  address.searchParams.set("folder", MAINSTAY_PROJECT);
  return new Promise((resolve, reject) => {
    const sent = request(address, { method: "POST", headers, signal }, (response) => {
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
