// An extension of pi's that asks whether the grant of a job allows what a tool is about to do, before it does it. Mainstay, which speaks to
// pi over its pipes, answers the dialog itself: nobody sees it. Mainstay writes this file anew at each start of pi.

import { lstatSync, readlinkSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";

const TITLE = "mainstay:operation";
const READS = ["read", "ls", "grep", "find"];
/** Those that read all that is below what they are given. */
const RECURSIVE = ["grep", "find"];
const WRITES = ["write", "edit"];
/** What pi takes for a plain space in a path. */
const SPACES = /[\u00A0\u2000-\u200A\u202F\u205F\u3000]/g;
/** How many links a path may lead over. */
const LINKS = 40;

export default function (pi) {
  pi.on("tool_call", async (event, context) => {
    const { operation, path, refusal } = about(event, context.cwd);
    const answer = await context.ui.input(TITLE, JSON.stringify(operation));
    if (answer === "unbounded") return undefined;
    if (answer === "granted" && refusal === undefined) {
      // What was checked is what is acted on, however the tool would have read the path.
      if (path !== undefined) event.input.path = path;
      return undefined;
    }
    return { block: true, reason: refusal ?? answer ?? "Mainstay does not say whether this is granted; it may be tried again" };
  });
}

/** What a tool is about to do, and the path that it does it to. */
function about({ toolName, input }, folder) {
  const kind = READS.includes(toolName) ? "fs.read" : WRITES.includes(toolName) ? "fs.write" : undefined;
  if (!kind) return { operation: { kind: "tool.call", target: toolName } };
  const operation = (target) => ({ kind, target, isRecursive: RECURSIVE.includes(toolName) });
  const written = resolve(folder, withoutHome(String(input.path ?? ".").replace(SPACES, " ")));
  try {
    const path = real(written, LINKS);
    // pi tries other spellings of a path that is not there.
    if (kind === "fs.read") lstatSync(path);
    return { operation: operation(path), path };
  } catch (error) {
    // Where it leads to is not known: where a grant bounds the job, nothing is done there.
    return { operation: operation(written), refusal: error.message };
  }
}

function withoutHome(path) {
  const plain = path.startsWith("@") ? path.slice(1) : path;
  return plain === "~" || plain.startsWith("~/") ? homedir() + plain.slice(1) : plain;
}

/** The path without links, as far as it is there. A link to what is not there yet is followed, too: a tool would make that. */
function real(path, links) {
  if (links === 0) throw new Error(`${path} leads over too many links`);
  try {
    return realpathSync(path);
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
  }
  const folder = dirname(path);
  if (folder === path) return path;
  const here = join(real(folder, links), basename(path));
  let link;
  try {
    link = readlinkSync(here);
  } catch (error) {
    // It is not there, or no link.
    if (error.code === "ENOENT" || error.code === "EINVAL") return here;
    throw error;
  }
  return real(resolve(dirname(here), link), links - 1);
}
