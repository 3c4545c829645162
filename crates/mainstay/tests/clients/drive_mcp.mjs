// Drives a real F# session through the SDK of npm's `@modelcontextprotocol/sdk`.
//
// Usage: drive_mcp.mjs PACKAGES CONVERSATION stdio PROGRAM | drive_mcp.mjs PACKAGES CONVERSATION http URL TOKEN, where PACKAGES is the
// folder that has the SDK, and CONVERSATION a file of an agent's conversation.
// Prints one JSON object: what each step gave. The Rust test that starts this judges it.

import path from "node:path"
import { createRequire } from "node:module"

const [packages, conversation, way, target, token] = process.argv.slice(2)
// As a file in the folder of packages would name them.
const load = createRequire(path.join(packages, "packages.cjs"))
const sdk = (file) => load(`@modelcontextprotocol/sdk/${file}`)
const { Client } = sdk("client/index.js")
const { StdioClientTransport } = sdk("client/stdio.js")
const { StreamableHTTPClientTransport } = sdk("client/streamableHttp.js")
const { ElicitRequestSchema, ResourceListChangedNotificationSchema } = sdk("types.js")

const transport =
  way === "stdio"
    ? new StdioClientTransport({ command: target, args: ["mcp"], env: process.env })
    : new StreamableHTTPClientTransport(new URL(target), { requestInit: { headers: { Authorization: `Bearer ${token}` } } })

const client = new Client({ name: "driver", version: "1" }, { capabilities: { elicitation: {} } })
const steps = {}

// What resolves once this kind of notification has come.
const told = (schema) => new Promise((resolve) => client.setNotificationHandler(schema, () => resolve(true)))
const call = async (name, args, options) => {
  const result = await client.callTool({ name, arguments: args }, undefined, options)
  return { isError: result.isError ?? false, ...result.structuredContent }
}
const send = (code, options) => call("send_code", { code }, options)

await client.connect(transport)
steps.server = client.getServerVersion()
steps.capabilities = client.getServerCapabilities()
steps.tools = (await client.listTools()).tools.map((tool) => tool.name).sort()

await client.listResources()
const another = told(ResourceListChangedNotificationSchema)
steps.created = await call("create_session", { workingDirectory: process.cwd(), name: "driven" })
steps.toldOfAnother = await another

steps.defined = await send('type Dog = { Name: string }\nlet rex = { Name = "Rex" }')
steps.value = await send("rex.Name.Length")
steps.rejected = await send("rex.Name + 1")

const heard = []
const onprogress = ({ progress, message }) => heard.push([progress, message])
steps.printed = await send('for i in 1 .. 3 do\n    printfn "%d" i\n    System.Threading.Thread.Sleep 200', { onprogress })
steps.heard = heard

client.setRequestHandler(ElicitRequestSchema, async () => ({ action: "accept", content: { answer: "Ada" } }))
steps.asked = await send("System.Console.ReadLine()")

const { resources } = await client.listResources()
const { uri } = resources.find((resource) => resource.name === "driven")
steps.transcript = (await client.readResource({ uri: `${uri}/transcript` })).contents[0].text

steps.imported = await call("import_session", { path: conversation })
await call("switch_session", { sessionId: steps.imported.sessionId })
steps.toolsOfConversation = (await client.listTools()).tools.map((tool) => tool.name).sort()

steps.stopped = await call("stop_session", { sessionId: steps.created.sessionId })
// Over HTTP there is a session of the transport, which a client ends. The SDK throws where that is refused, and forgets the id where it is not.
steps.hadSession = transport.sessionId !== undefined
await transport.terminateSession?.()
steps.ended = steps.hadSession && transport.sessionId === undefined
await client.close()
console.log(JSON.stringify(steps))
