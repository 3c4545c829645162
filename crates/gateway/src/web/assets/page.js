// What the page does beside what Datastar does: keys, the editor, and the commands, which go to the HTTP API. Text that someone said is only
// ever set as text; the HTML that is taken over is the server's own.

const main = document.getElementById("main");
const session = main?.dataset.session;
const code = document.getElementById("code");
const completions = document.getElementById("completions");
const problems = document.getElementById("problems");

// Moments, in a shadow of their own: what Datastar morphs is the attribute.
customElements.define("m-time", class extends HTMLElement {
  static observedAttributes = ["datetime"];
  static all = new Set();
  connectedCallback() {
    this.constructor.all.add(this);
    this.write();
  }
  disconnectedCallback() {
    this.constructor.all.delete(this);
  }
  attributeChangedCallback() {
    this.write();
  }
  write() {
    const at = new Date(this.getAttribute("datetime"));
    this.title = at.toLocaleString();
    const shadow = this.shadowRoot ?? this.attachShadow({ mode: "open" });
    shadow.textContent = ago((Date.now() - at) / 1000);
  }
});

function ago(seconds) {
  const words = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });
  for (const [unit, length] of [["day", 86400], ["hour", 3600], ["minute", 60]]) {
    if (seconds >= length) return words.format(-Math.floor(seconds / length), unit);
  }
  return seconds < 5 ? "now" : `${Math.floor(seconds)} s ago`;
}

setInterval(() => customElements.get("m-time").all.forEach((moment) => moment.write()), 10_000);

// Whether the daemon is there, as the page's stream tells.
document.addEventListener("datastar-fetch", ({ detail }) => {
  const away = document.getElementById("away");
  if (detail.el?.id !== "follow" || !away) return;
  if (detail.type === "retrying" || detail.type === "error") away.hidden = false;
  else if (detail.type.startsWith("datastar-patch")) away.hidden = true;
});

// Commands.

async function send(path, body, method = "POST") {
  try {
    const answer = await fetch(path, {
      method,
      headers: { "Content-Type": "application/json", "Mainstay-Client": "web" },
      body: JSON.stringify(body),
    });
    const said = (answer.headers.get("Content-Type") ?? "").includes("json") ? await answer.json() : {};
    if (answer.ok) return said;
    tell(said.title ?? said.message ?? `The daemon answered ${answer.status}.`, said.nextStep);
  } catch {
    tell("The daemon does not answer.", "What you typed is still here; send it again once the page is back.");
  }
  return null;
}

function tell(message, step) {
  const line = document.createElement("p");
  line.append(message);
  if (step) {
    const next = document.createElement("span");
    next.className = "step";
    next.textContent = step;
    line.append(next);
  }
  const notice = document.getElementById("notice");
  notice.replaceChildren(line);
  clearTimeout(tell.timer);
  tell.timer = setTimeout(() => line.remove(), 12_000);
}

const of = (path) => `/sessions/${session}/${path}`;

const actions = {
  cancel: () => send(of("cancel"), {}),
  reset: () => send(of("reset"), {}),
  hardReset: () => send(of("hard-reset"), {}),
  start: () => send(of("start"), {}),
  stop: () => send(of("stop"), {}),
  rename: async () => {
    const said = await ask("Rename", [["name", "Name"]]);
    if (said) await send(of("rename"), said);
  },
  delete: async () => {
    if (!(await ask("Delete this session?", []))) return;
    if (await send(`/sessions/${session}`, {}, "DELETE")) location.assign("/ui");
  },
  fork: () => fork(selected()),
  merge: async () => {
    const said = await ask("Merge inputs of another session", [["from", "Session"], ["entries", "Entries, as in 0-4"]]);
    if (!said) return;
    const entries = said.entries.split(",").map((range) => {
      const [from, to] = range.split("-").map(Number);
      return [from, (to ?? from) + 1];
    });
    await send(of("merge"), { from: said.from, entries });
  },
  help: () => document.getElementById("help").showModal(),
  decline: (button) => send(`/asks/${button.closest("form").dataset.ask}`, { decline: true }),
};

// A fork of all there is, or up to the chosen cell.
async function fork(cell) {
  const body = {};
  if (cell) {
    const until = await fetch(`/ui/sessions/${session}/entries?seq=${cell.id.slice(5)}`);
    if (until.ok) body.entries = (await until.json()).entries;
  }
  const forked = await send(of("fork"), body);
  if (forked) location.assign(`/ui/sessions/${forked.session}`);
}

// A question of our own.
function ask(title, fields) {
  const dialog = document.createElement("dialog");
  const form = document.createElement("form");
  form.method = "dialog";
  const heading = document.createElement("h2");
  heading.textContent = title;
  form.append(heading);
  for (const [name, words] of fields) {
    const label = document.createElement("label");
    const input = document.createElement("input");
    Object.assign(input, { name, required: true, autocomplete: "off" });
    label.append(words, input);
    form.append(label);
  }
  const buttons = document.createElement("div");
  buttons.className = "buttons";
  for (const [value, words] of [["", "Leave it"], ["yes", title.split(" ")[0]]]) {
    const button = document.createElement("button");
    Object.assign(button, { value, textContent: words, formNoValidate: !value, className: value ? "primary" : "" });
    buttons.append(button);
  }
  form.append(buttons);
  dialog.append(form);
  dialog.setAttribute("aria-label", title);
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((answer) => {
    dialog.addEventListener("close", () => {
      answer(dialog.returnValue ? Object.fromEntries(new FormData(form)) : null);
      dialog.remove();
    });
  });
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-do]");
  if (button) actions[button.dataset.do]?.(button);
  const place = event.target.closest("#problems .place");
  if (place) putCursor(+place.dataset.line, +place.dataset.column);
  const option = event.target.closest("#completions [role=option]");
  if (option) insert(option);
  if (!event.target.closest(".more")) document.querySelector(".more[open]")?.removeAttribute("open");
});

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.dataset.ask) {
    event.preventDefault();
    const field = form.querySelector("[data-kind]");
    await send(`/asks/${form.dataset.ask}`, { value: answerOf(event.submitter, field) });
  } else if (form.id === "editor") {
    event.preventDefault();
    await run();
  } else if (form.id === "new") {
    event.preventDefault();
    const said = Object.fromEntries([...new FormData(form)].filter(([, value]) => value));
    const made = await send("/sessions", said);
    if (made) location.assign(`/ui/sessions/${made.session}`);
  }
});

function answerOf(button, field) {
  if (button?.value && button.name === "value") return JSON.parse(button.value);
  if (field.dataset.kind === "text") return field.value;
  try {
    return JSON.parse(field.value);
  } catch {
    return field.value;
  }
}

// The editor.

async function run() {
  const text = code.value;
  const button = document.querySelector("#run button");
  if (!text.trim() || !button.name) return;
  code.value = "";
  close();
  problems.replaceChildren();
  const body = button.name === "exec" ? { code: text } : { text };
  if (await send(of(button.name), body)) {
    follows = true;
    keepAtEnd();
  } else if (!code.value) {
    code.value = text;
  }
}

const isAgent = () => document.querySelector("#run button")?.name !== "exec";

function cursor() {
  const before = code.value.slice(0, code.selectionStart).split("\n");
  return { line: before.length, column: before.at(-1).length + 1 };
}

function indexOf(line, column) {
  return code.value.split("\n").slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0) + column - 1;
}

function putCursor(line, column) {
  const at = indexOf(line, column);
  code.focus();
  code.setSelectionRange(at, at);
}

let asked = 0;

async function read(path, body) {
  const answer = await fetch(`/ui/sessions/${session}/${path}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  }).catch(() => null);
  return answer?.ok ? answer.text() : null;
}

async function check() {
  const [text, own] = [code.value, ++asked];
  const html = text.trim() && !isAgent() ? await read("check", { code: text }) : "";
  if (own === asked && html !== null && code.value === text) problems.innerHTML = html;
}

async function complete() {
  if (isAgent()) return;
  const [text, at] = [code.value, cursor()];
  const html = await read("complete", { code: text, cursor: at });
  if (html === null || code.value !== text) return;
  completions.innerHTML = html;
  const first = completions.querySelector("[role=option]");
  completions.hidden = !first;
  choose(first);
}

function choose(option) {
  for (const other of completions.querySelectorAll("[aria-selected=true]")) other.ariaSelected = "false";
  if (!option) return code.removeAttribute("aria-activedescendant");
  option.ariaSelected = "true";
  option.scrollIntoView({ block: "nearest" });
  code.setAttribute("aria-activedescendant", option.id);
}

function close() {
  completions.hidden = true;
  completions.replaceChildren();
  choose(null);
}

function insert(option) {
  const start = indexOf(+option.dataset.line, +option.dataset.column);
  code.focus();
  code.setRangeText(option.querySelector(".label").textContent, start, code.selectionStart, "end");
  close();
  later();
}

let timer;
function later() {
  clearTimeout(timer);
  timer = setTimeout(check, 350);
}

// What was run before, the newest first; it is what the cells say.
let back = -1;
function recall(step) {
  const inputs = [...document.querySelectorAll(".cell.eval .code, .cell.work > .prompt")].reverse();
  const next = Math.max(-1, Math.min(inputs.length - 1, back + step));
  if (next === back) return;
  back = next;
  code.value = back < 0 ? "" : inputs[back].textContent;
  later();
}

code?.addEventListener("input", (event) => {
  back = -1;
  later();
  if (event.data === ".") complete();
  else if (!completions.hidden) /[\w']/.test(event.data ?? "") ? complete() : close();
});

code?.addEventListener("keydown", (event) => {
  const chosen = completions.querySelector("[aria-selected=true]");
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    run();
  } else if (event.key === " " && event.ctrlKey) {
    event.preventDefault();
    complete();
  } else if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
    event.preventDefault();
    recall(event.key === "ArrowUp" ? 1 : -1);
  } else if (chosen && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
    event.preventDefault();
    const next = event.key === "ArrowDown" ? chosen.nextElementSibling : chosen.previousElementSibling;
    if (next?.role === "option") choose(next);
  } else if (chosen && (event.key === "Enter" || event.key === "Tab") && !event.shiftKey) {
    event.preventDefault();
    insert(chosen);
  } else if (event.key === "Escape" && !completions.hidden) {
    event.preventDefault();
    event.stopPropagation();
    close();
  }
});

// Keys.

const cells = () => [...document.querySelectorAll("#cells > .cell")];
const selected = () => document.activeElement?.closest?.(".cell");

function move(step) {
  const all = cells();
  const at = all.indexOf(selected());
  const next = all[at < 0 ? (step < 0 ? all.length - 1 : 0) : at + step];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

let escaped = 0;
const keys = {
  "/": () => document.getElementById("search").focus(),
  "?": actions.help,
  e: () => code?.focus(),
  j: () => move(1),
  k: () => move(-1),
  a: () => document.querySelector("#asks input, #asks textarea, #asks button")?.focus(),
  c: () => {
    const text = selected()?.querySelector(".code")?.textContent;
    if (text === undefined || !code) return;
    code.value = text;
    code.focus();
  },
  Escape: (event) => {
    const is_second = event.timeStamp - escaped < 800;
    escaped = event.timeStamp;
    const cancel = document.querySelector('[data-do="cancel"]');
    if (is_second && cancel) actions.cancel();
  },
};

document.addEventListener("keydown", (event) => {
  const types = event.target.closest("input, textarea, select, dialog");
  if (event.key === "Escape" && types && types.tagName !== "DIALOG") {
    keys.Escape(event);
    types.blur();
    return;
  }
  if (types || event.ctrlKey || event.metaKey || event.altKey) return;
  const act = keys[event.key];
  if (!act) return;
  event.preventDefault();
  act(event);
});

// The end stays in sight for whoever is there.

let follows = true;
function keepAtEnd() {
  if (follows && session) scrollTo({ top: document.documentElement.scrollHeight });
}
addEventListener("scroll", () => {
  const root = document.documentElement;
  follows = root.scrollHeight - root.scrollTop - root.clientHeight < 120;
});
if (session) {
  new ResizeObserver(keepAtEnd).observe(document.getElementById("cells"));
  if (location.hash) follows = false;
  else keepAtEnd();
}
