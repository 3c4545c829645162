// An extension of pi's that asks whether the grant of a job allows what a tool is about to do, before it does it. Mainstay, which speaks to
// pi over its pipes, answers the dialog itself: nobody sees it. Mainstay writes this file anew at each start of pi.

import { realpathSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";

const TITLE = "mainstay:operation";
const READS = ["read", "ls", "grep", "find"];
const WRITES = ["write", "edit"];

export default function (pi) {
  pi.on("tool_call", async (event, context) => {
    const { operation, path } = about(event, context.cwd);
    const answer = await context.ui.input(TITLE, JSON.stringify(operation));
    if (answer === "unbounded") return undefined;
    if (answer === "granted") {
      // What was checked is what is acted on, however the tool would have read the path.
      if (path !== undefined) event.input.path = path;
      return undefined;
    }
    return { block: true, reason: answer ?? "Mainstay does not say whether this is granted; it may be tried again" };
  });
}

/** What a tool is about to do, and the path that it does it to. */
function about({ toolName, input }, folder) {
  const kind = READS.includes(toolName) ? "fs.read" : WRITES.includes(toolName) ? "fs.write" : undefined;
  if (!kind) return { operation: { kind: "tool.call", target: toolName } };
  const path = real(resolve(folder, withoutHome(input.path ?? ".")));
  return { operation: { kind, target: path }, path };
}

function withoutHome(path) {
  const plain = path.startsWith("@") ? path.slice(1) : path;
  return plain === "~" || plain.startsWith("~/") ? homedir() + plain.slice(1) : plain;
}

/** The path without links, as far as it is there. */
function real(path) {
  try {
    return realpathSync(path);
  } catch {
    const folder = dirname(path);
    return folder === path ? path : join(real(folder), basename(path));
  }
}
