#!/usr/bin/env node
// Starts Mainstay: the program is in the package of this platform, which npm installs as an optional dependency.
"use strict";

const { spawn } = require("node:child_process");

const name = `@SCOPE@/${process.platform}-${process.arch}`;
const isWindows = process.platform === "win32";

function program() {
  try {
    return require.resolve(`${name}/bin/${isWindows ? "mainstay.exe" : "mainstay"}`);
  } catch {
    console.error(`mainstay: the package ${name} is not installed`);
    console.error("either there is none for this platform, or npm left it out: install without --omit=optional");
    process.exit(1);
  }
}

const file = program();
const given = process.argv.slice(2);

// Newer versions of Node.js can become the program, so that nothing stands between it and who started it.
if (process.execve && !isWindows) {
  process.execve(file, [file, ...given], process.env);
}

const child = spawn(file, given, { stdio: "inherit" });
child.on("error", (error) => {
  console.error(`mainstay: ${file} cannot be started: ${error.message}`);
  process.exit(1);
});
// Ctrl-C at a terminal reaches the program by itself.
process.on("SIGINT", () => process.stdin.isTTY || child.kill("SIGINT"));
for (const signal of ["SIGHUP", "SIGTERM"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  for (const handled of ["SIGHUP", "SIGINT", "SIGTERM"]) process.removeAllListeners(handled);
  process.kill(process.pid, signal);
});
