//! The extension that lets pi work in the daemon's sessions, without pi: node loads it, and a script stands for pi and for the daemon.

use std::process::Command;

/// Loads the extension while one daemon runs, and calls its tool while none does. The next one has another port.
const SCRIPT: &str = r#"
import { createServer } from "node:http";
import { once } from "node:events";
import { writeFileSync, rmSync } from "node:fs";

async function daemon(answer) {
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (piece) => (body += piece));
    request.on("end", () => {
      const result = answer(JSON.parse(body), request);
      if (!result) return request.socket.destroy();
      response.end(JSON.stringify({ jsonrpc: "2.0", id: 1, result }));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  writeFileSync(process.env.MAINSTAY_DAEMON_FILE, JSON.stringify({ port: server.address().port }));
  return server;
}

const first = await daemon(({ method }) =>
  method === "tools/list" ? { tools: [{ name: "send_code", description: "runs code" }] } : { instructions: "use them" });
const tools = [];
const { default: extension } = await import(process.env.EXTENSION);
await extension({ registerTool: (tool) => tools.push(tool), on: (_event, say) => say({}, { ui: { notify: console.log } }) });
first.close();
await once(first, "close");
MEANWHILE

const call = tools[0].execute("c1", { code: "41 + 1" });
const second = await daemon(({ params }, { headers }) =>
  params.arguments.code === "41 + 1" ? { content: [], structuredContent: headers.authorization } : undefined);
console.log(tools[0].name, (await call).details);
await tools[0].execute("c2", { code: "exit 1" }).catch((error) => console.log(error.message));
second.close();
const stop = new AbortController();
const waits = tools[0].execute("c3", {}, stop.signal).catch((error) => console.log(error.name));
stop.abort();
await waits;
"#;

#[test]
fn a_call_waits_for_the_next_daemon_and_one_that_a_daemon_has_got_is_not_repeated() {
    let expected = "mainstay_send_code Bearer secret\n\
        the daemon ended during the call, which may have been carried out: look before you repeat it\n\
        AbortError\n";
    // A daemon that was killed leaves its file, and one that stops removes it.
    for meanwhile in ["", "rmSync(process.env.MAINSTAY_DAEMON_FILE);"] {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).map(|()| path)
        };
        let extension = file("extension.mjs", include_str!("../src/pi/live_sessions.js")).unwrap();
        let script = file("script.mjs", &SCRIPT.replace("MEANWHILE", meanwhile)).unwrap();
        let token_file = file("token", "secret\n").unwrap();
        let mut node = Command::new("node");
        node.arg(script)
            .env("EXTENSION", extension)
            .env("MAINSTAY_DAEMON_FILE", folder.path().join("daemon.json"))
            .env("MAINSTAY_TOKEN_FILE", token_file)
            .env("MAINSTAY_PROJECT", folder.path());
        let output = node.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    }
}
