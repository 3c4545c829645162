// Counts what models pay for Mainstay's MCP: the list of tools, and each answer of the agent's task, both as the snapshots of the tests have them.
// Needs `npm install gpt-tokenizer@4` in this folder or above; `node xtask/tokens.mjs` prints a table.
import { encode } from "gpt-tokenizer/encoding/o200k_base";
import { readFileSync } from "node:fs";

const root = new URL("..", import.meta.url);
const snapshot = (path) => readFileSync(new URL(path, root), "utf8").split("---\n").slice(2).join("---\n");

const tools = JSON.parse(snapshot("crates/mcp/tests/mcp/snapshots/mcp__conversation__tools.snap"));
const list = encode(JSON.stringify(tools)).length;
console.log("| what | tokens |\n|---|---|");
console.log(`| the list of ${tools.length} tools | ${list}, ${Math.round(list / tools.length)} each |`);

const task = "crates/mainstay/tests/cli/snapshots/cli__agent_task__an_agent_explores_tests_breaks_repairs_forks_and_exports.snap";
for (const step of snapshot(task).split(/\n\n(?=› )/)) {
  const [call, ...answer] = step.split("\n");
  const [, tool] = call.split(" ");
  console.log(`| ${tool} | ${encode(answer.join("\n").slice(2)).length} |`);
}
