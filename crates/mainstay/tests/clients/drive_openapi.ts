// Drives a session with the client that openapi-typescript made: ADDRESS TOKEN FOLDER. Says what each step gave as JSON.

import createClient from "openapi-fetch";
import type { components, paths } from "./schema.d.ts";

type Schemas = components["schemas"];

// What an answer has, where it is one of success.
function given<T>({ data, error }: { data?: T; error?: Schemas["ProblemDocument"] }): T {
  if (data === undefined) throw new Error(JSON.stringify(error));
  return data;
}

// Commands that are waited for are answered with their outcome.
function outcome<T extends object>(answer: T | Schemas["Accepted"]): T {
  const isAccepted = Object.keys(answer).sort().join() === "commandId,seq,session";
  if (isAccepted) throw new Error("it took too long");
  return answer as T;
}

const [address, token, folder] = process.argv.slice(2) as [string, string, string];
const client = createClient<paths>({ baseUrl: address, headers: { Authorization: `Bearer ${token}` } });
const header = { Prefer: "wait=60" };

const kinds: Schemas["KnownKind"][] = given(await client.GET("/kinds"));
const kind = kinds.find((known) => known.kind === "python3")?.kind;
const body = { workingDirectory: folder, kind, name: "by-typescript" };
const session: Schemas["SessionView"] = outcome(
  given(await client.POST("/sessions", { body, params: { header } })),
);
const path = { session: session.session };
const exec = async (code: string): Promise<Schemas["EvalView"]> =>
  outcome(given(await client.POST("/sessions/{session}/exec", { params: { path, header }, body: { code } })));
const value = await exec("6 * 7");
const raised = await exec("1 / 0");

const sent = given(await client.POST("/sessions/{session}/exec", { params: { path }, body: { code: "7" } }));
const commandId: string = "commandId" in sent ? sent.commandId : sent.command;
const known = given(await client.GET("/commands/{command}", { params: { path: { command: commandId } } }));
// It has its turn behind the one that was not waited for.
await exec("8");
const status = given(await client.GET("/sessions/{session}", { params: { path } }));
// A command that says nothing more needs no body.
const reset: Schemas["CommandView"] = outcome(
  given(await client.POST("/sessions/{session}/reset", { params: { path, header } })),
);

const entries = given(await client.GET("/sessions/{session}/entries", { params: { path } }));
const recent = { params: { path, query: { limit: 1000 } } };
const events = given(await client.GET("/sessions/{session}/events/recent", recent));
const file: string = given(await client.GET("/sessions/{session}/export", { params: { path }, parseAs: "text" }));
const imported = given(await client.POST("/import", { body: { file, name: "copy" }, params: { header } }));
const { error: unknown } = await client.GET("/sessions/{session}", { params: { path: { session: "nothing" } } });
const deleted: Schemas["CommandView"] = outcome(
  given(await client.DELETE("/sessions/{session}", { params: { path, header } })),
);

const told = {
  value: value.value,
  raised: raised.error?.kind,
  command: known.command,
  reset: reset.state,
  state: status.state,
  roles: entries.map(({ entry }) => entry.role),
  first: events[0]?.kind,
  imported: [imported.format, imported.entries, imported.session.name],
  unknown: unknown?.code,
  deleted: deleted.state,
};
console.log(JSON.stringify(told));
