//! A Chromium without windows, driven over a pipe by its own protocol (DevTools), so that no port and no driver is needed.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A test that waits so long hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser with a profile of its own.
pub struct Browser {
    child: Child,
    wire: Arc<Wire>,
    _profile: tempfile::TempDir,
}

struct Wire {
    commands: Mutex<ChildStdin>,
    number: AtomicU64,
    heard: Mutex<Heard>,
}

#[derive(Default)]
struct Heard {
    waiting: HashMap<u64, mpsc::Sender<Value>>,
    /// What went wrong in each tab, as its console says.
    problems: HashMap<String, Vec<String>>,
}

impl Browser {
    /// Starts the browser that `cargo xtask test` provides, without a window.
    pub fn start() -> Self {
        let profile = crate::short_folder::short_folder();
        // The protocol is spoken on the descriptors 3 and 4.
        let mut command = Command::new("sh");
        command
            .args(["-c", r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null"#])
            .arg(crate::provided::chromium());
        command
            .args(["--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu"])
            .args([
                "--no-sandbox",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
                "--force-color-profile=srgb",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank");
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let commands = Mutex::new(child.stdin.take().unwrap());
        let wire = Arc::new(Wire { commands, number: AtomicU64::new(1), heard: Mutex::default() });
        let said = BufReader::new(child.stdout.take().unwrap());
        let listening = Arc::clone(&wire);
        std::thread::spawn(move || {
            for message in said.split(0) {
                let Ok(message) = message else { break };
                listening.hear(serde_json::from_slice(&message).unwrap());
            }
        });
        Self { child, wire, _profile: profile }
    }

    /// A tab with cookies and storage of its own.
    pub fn tab(&self) -> Tab {
        let context = self.wire.call(None, "Target.createBrowserContext", json!({})).unwrap();
        Tab::open(&self.wire, context["browserContextId"].clone())
    }
}

impl Tab {
    fn open(wire: &Arc<Wire>, context: Value) -> Self {
        let call = |method, params| wire.call(None, method, params).unwrap();
        let target =
            call("Target.createTarget", json!({ "url": "about:blank", "browserContextId": context }));
        let target = target["targetId"].clone();
        let attached = call("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        let session = attached["sessionId"].as_str().unwrap().to_owned();
        let tab = Self { wire: Arc::clone(wire), session, context };
        for domain in ["Page", "Runtime", "Log"] {
            tab.call(&format!("{domain}.enable"), json!({}));
        }
        tab.shows(1100, 800, "light");
        tab
    }

    /// Another tab with the same cookies and storage.
    pub fn beside(&self) -> Self {
        Self::open(&self.wire, self.context.clone())
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.wire.call(None, "Browser.close", json!({})).ok();
        self.child.wait().ok();
    }
}

impl Wire {
    fn call(&self, session: Option<&str>, method: &str, params: Value) -> Result<Value, String> {
        let id = self.number.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = mpsc::channel();
        self.heard.lock().unwrap().waiting.insert(id, answer);
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let mut commands = self.commands.lock().unwrap();
        commands.write_all(format!("{message}\0").as_bytes()).unwrap();
        commands.flush().unwrap();
        drop(commands);
        let mut answer =
            answered.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{method} is not answered: {params}"));
        match answer.get("error") {
            Some(error) => Err(error["message"].to_string()),
            None => Ok(answer["result"].take()),
        }
    }

    fn hear(&self, message: Value) {
        let mut heard = self.heard.lock().unwrap();
        if let Some(answer) = message["id"].as_u64().and_then(|id| heard.waiting.remove(&id)) {
            answer.send(message).ok();
            return;
        }
        let params = &message["params"];
        let problem = match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => params["exceptionDetails"].to_string(),
            Some("Log.entryAdded") if params["entry"]["level"] == "error" => {
                params["entry"]["text"].to_string()
            }
            _ => return,
        };
        let tab = message["sessionId"].as_str().unwrap_or_default().to_owned();
        heard.problems.entry(tab).or_default().push(problem);
    }
}

/// A tab of the browser.
pub struct Tab {
    wire: Arc<Wire>,
    session: String,
    /// What it shares cookies and storage with.
    context: Value,
}

impl Tab {
    fn call(&self, method: &str, params: Value) -> Value {
        self.wire.call(Some(&self.session), method, params).unwrap()
    }

    /// Goes somewhere, and waits until it is there.
    pub fn go(&self, url: &str) {
        self.call("Page.navigate", json!({ "url": url }));
        self.until("document.readyState === 'complete' && location.protocol.startsWith('http')");
    }

    /// What an expression gives.
    pub fn value(&self, expression: &str) -> Value {
        self.evaluate(expression).unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    /// Waits until an expression is true: it is looked at whenever the page paints.
    pub fn until(&self, expression: &str) {
        let started = Instant::now();
        let waits = format!(
            "new Promise(done => {{ const end = Date.now() + 2000; const look = () => {{ let is; try {{ is = {expression} }} catch {{}}; \
             if (is) done(true); else if (Date.now() > end) done(false); else setTimeout(look, 20); }}; look(); }})"
        );
        while started.elapsed() < PATIENCE {
            // On its way to another page it gives nothing.
            if self.evaluate(&waits) == Ok(Value::Bool(true)) {
                return;
            }
        }
        let (body, problems) = (self.value("document.body.innerText"), self.problems());
        panic!("{expression} does not come true:\n{}\n{problems:?}", body.as_str().unwrap_or_default());
    }

    fn evaluate(&self, expression: &str) -> Result<Value, String> {
        let params = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut answer = self.wire.call(Some(&self.session), "Runtime.evaluate", params)?;
        match answer.get("exceptionDetails") {
            Some(thrown) => Err(thrown.to_string()),
            None => Ok(answer["result"]["value"].take()),
        }
    }

    /// What stands on the page, as text.
    pub fn text(&self, selector: &str) -> String {
        let found = format!("[...document.querySelectorAll({selector:?})].map(e => e.innerText).join('\\n')");
        self.value(&found).as_str().unwrap().to_owned()
    }

    /// Waits for the element, and clicks it.
    pub fn click(&self, selector: &str) {
        self.until(&format!("document.querySelector({selector:?})"));
        self.value(&format!("document.querySelector({selector:?}).click()"));
    }

    /// Types where the focus is.
    pub fn types(&self, text: &str) {
        self.call("Input.insertText", json!({ "text": text }));
    }

    /// Presses a key as people do, with Ctrl or Alt where it says so.
    pub fn presses(&self, key: &str) {
        let (modifiers, key) = match key.split_once('+') {
            Some(("Alt", key)) => (1, key),
            Some(("Ctrl", key)) => (2, key),
            Some(_) | None => (0, key),
        };
        let code = match key {
            "Enter" => 13,
            "Escape" => 27,
            "Tab" => 9,
            " " => 32,
            "ArrowUp" => 38,
            "ArrowDown" => 40,
            _ => 0,
        };
        let text = match key {
            "Enter" => "\r",
            key if key.chars().count() == 1 && modifiers == 0 => key,
            _ => "",
        };
        let kind = if text.is_empty() { "rawKeyDown" } else { "keyDown" };
        for kind in [kind, "keyUp"] {
            let mut event =
                json!({ "type": kind, "key": key, "modifiers": modifiers, "windowsVirtualKeyCode": code });
            if kind == "keyDown" {
                event["text"] = text.into();
            }
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Runs code in the editor.
    pub fn runs(&self, code: &str) {
        self.value("document.getElementById('code').focus()");
        self.types(code);
        self.presses("Ctrl+Enter");
    }

    /// Shows pages in this size and colours.
    pub fn shows(&self, width: u32, height: u32, scheme: &str) {
        let is_phone = width < 600;
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": if is_phone { 2 } else { 1 }, "mobile": is_phone });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// Takes a picture of the page into `target/screenshots`.
    pub fn picture(&self, name: &str) {
        let picture = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        let folder = pictures();
        std::fs::create_dir_all(&folder).unwrap();
        let bytes = decoded(picture["data"].as_str().unwrap());
        std::fs::write(folder.join(format!("{name}.png")), bytes).unwrap();
    }

    /// Takes pictures of the page in light, dark and on a phone, on none of which axe may find anything.
    pub fn pictured(&self, name: &str) {
        self.pictured_as(name, 800);
    }

    /// The same, with so many pixels from top to bottom.
    pub fn pictured_as(&self, name: &str, height: u32) {
        for (look, width, height, scheme) in [
            ("dark", 1100, height, "dark"),
            ("phone", 390, height - 20, "light"),
            ("light", 1100, height, "light"),
        ] {
            self.shows(width, height, scheme);
            // It has been painted so.
            self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
            self.picture(&format!("{name}-{look}"));
            assert_eq!(self.barriers(), Vec::<String>::new(), "{look}");
        }
    }

    /// What the console had to say that is wrong.
    pub fn problems(&self) -> Vec<String> {
        self.wire.heard.lock().unwrap().problems.get(&self.session).cloned().unwrap_or_default()
    }

    /// What axe finds that is serious or critical: a line for each.
    pub fn barriers(&self) -> Vec<String> {
        let script = std::fs::read_to_string(crate::provided::axe()).unwrap();
        self.value(&format!("{script}; true"));
        let found = self.value(
            "axe.run(document, { resultTypes: ['violations'] }).then(found => found.violations
                .filter(one => one.impact === 'serious' || one.impact === 'critical')
                .flatMap(one => one.nodes.map(node => `${one.id}: ${node.html} ${node.any.concat(node.all).map(a => a.message)}`)))",
        );
        serde_json::from_value(found).unwrap()
    }
}

/// `target/screenshots`: a test's executable is in `target/debug/deps`.
fn pictures() -> PathBuf {
    let executable = std::env::current_exe().unwrap();
    executable.ancestors().nth(3).unwrap().join("screenshots")
}

fn decoded(base64: &str) -> Vec<u8> {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let values = base64.bytes().filter_map(|byte| digits.iter().position(|digit| *digit == byte));
    let values: Vec<u32> = values.map(|value| value as u32).collect();
    let mut bytes = Vec::new();
    for chunk in values.chunks(4) {
        let bits = chunk.iter().fold(0, |bits, value| bits << 6 | value) << (6 * (4 - chunk.len()));
        bytes.extend_from_slice(&bits.to_be_bytes()[1..chunk.len()]);
    }
    bytes
}
