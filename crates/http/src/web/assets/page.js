// What the page does: keys, the editor, and the commands, which go to the HTTP API. What changes comes by live.js. Text that someone said is only
// ever set as text; the HTML that is taken over is the server's own.

import { follow, patch } from "./live.js";
import { load, request } from "./origin.js";

await load();

const main = document.getElementById("main");
const session = main?.dataset.session;
const code = document.getElementById("code");
const completions = document.getElementById("completions");
const problems = document.getElementById("problems");

// Moments, in a shadow of their own: what a patch morphs is the attribute.
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
const stream = document.getElementById("follow")?.dataset.follow;
if (stream) {
  follow(stream, {
    request,
    heard: (isThere) => (document.getElementById("away").hidden = isThere),
    refused: () => location.reload(),
  });
}

// Shows what a button says is there: older cells.
async function show(button) {
  button.disabled = true;
  const answer = await request(button.dataset.get).catch(() => null);
  if (answer?.ok) return patch(answer);
  button.disabled = false;
  tell("This cannot be shown now.");
}

// Commands.

async function send(path, body, { method = "POST", headers = {} } = {}) {
  try {
    const answer = await request(path, {
      method,
      headers: { "Content-Type": "application/json", "Mainstay-Client": "web", ...headers },
      body: JSON.stringify(body),
    });
    const said = (answer.headers.get("Content-Type") ?? "").includes("json") ? await answer.json() : {};
    if (answer.ok) return said;
    tell(said.title ?? said.message ?? `The daemon answered ${answer.status}.`, said.nextStep);
  } catch {
    tell("The daemon does not answer.", "What you typed is still here; send it again once the page is back.");
    return undefined;
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
  reset: () => drop("reset", "reset", {}),
  hardReset: () => drop("hardReset", "hard-reset", {}),
  rebuild: () => drop("rebuild", "hard-reset", { rebuild: true }),
  undoReset: async () => {
    const forked = await send(of("fork"), { beforeReset: true });
    if (forked) location.assign(`/ui/sessions/${forked.session}`);
  },
  start: () => send(of("start"), {}),
  stop: () => send(of("stop"), {}),
  rename: async () => {
    const said = await ask("Rename", [["name", "Name"]]);
    if (said) await send(of("rename"), said);
  },
  delete: async () => {
    if (!(await ask("Delete this session?", []))) return;
    if (await send(`/sessions/${session}`, {}, { method: "DELETE" })) location.assign("/ui");
  },
  fork: () => fork(selected()),
  mergeInto: () => {
    const cell = selected();
    location.assign(`/ui/sessions/${session}/merge${cell && !cell.dataset.entries ? `?cell=${cell.id.slice(5)}` : ""}`);
  },
  mergeAll: () => choices().forEach((choice) => (choice.checked = true)),
  mergeNone: () => choices().forEach((choice) => (choice.checked = false)),
  compact: () => send(of("compact"), {}),
  settings: async () => {
    const form = await dialogOf(`/ui/sessions/${session}/settings`);
    for (const select of form?.querySelectorAll("select") ?? []) {
      const [chosen] = select.selectedOptions;
      if (chosen.value && !chosen.defaultSelected) await send(of("settings"), JSON.parse(chosen.value));
    }
  },
  help: () => document.getElementById("help").showModal(),
  decline: (button) => send(`/asks/${button.closest("form").dataset.ask}`, { decline: true }),
};

// Does what drops definitions, once that is agreed to; it is not asked where there are none.
async function drop(how, path, body) {
  const asked = await request(`/ui/sessions/${session}/reset?how=${how}`).catch(() => null);
  if (!asked?.ok) return tell("What this would drop cannot be said now; nothing was reset.");
  if (asked.status !== 204 && !(await formShown(asked))) return;
  await send(of(path), body);
}

// A fork of all there is, or up to the chosen cell.
async function fork(cell) {
  const body = {};
  if (cell?.dataset.entries) {
    body.entries = +cell.dataset.entries;
  } else if (cell) {
    const until = await request(`/ui/sessions/${session}/entries?seq=${cell.id.slice(5)}`).catch(() => null);
    if (!until?.ok) return tell("Where this cell ends cannot be read; nothing was forked.");
    body.entries = (await until.json()).entries;
  }
  const forked = await send(of("fork"), body);
  if (forked) location.assign(`/ui/sessions/${forked.session}`);
}

// A question of our own.
async function ask(title, fields) {
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
  return (await shown(form)) ? Object.fromEntries(new FormData(form)) : null;
}

// A question of the server's: its form, once it is answered.
async function dialogOf(path) {
  const answer = await request(path).catch(() => null);
  return answer?.ok ? formShown(answer) : tell("This cannot be shown now.");
}

async function formShown(answer) {
  const holder = document.createElement("div");
  holder.innerHTML = await answer.text();
  const form = holder.querySelector("form");
  return (await shown(form)) ? form : null;
}

// Shows a form in a dialog, until it is answered; whether it is not left.
function shown(form) {
  const dialog = document.createElement("dialog");
  dialog.setAttribute("aria-label", form.querySelector("h2").textContent);
  dialog.append(form);
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((answer) => {
    dialog.addEventListener("close", () => {
      answer(Boolean(dialog.returnValue));
      dialog.remove();
    });
  });
}

// Merging.

const choices = () => document.querySelectorAll("#merge [name=entry]");

async function merge(form) {
  const chosen = [...choices()].filter((choice) => choice.checked);
  const into = form.elements.into.value;
  const said = document.getElementById("merged");
  if (!chosen.length) return tell("Nothing is chosen.", "Choose at least one input.");
  const button = form.querySelector("[type=submit]");
  button.disabled = true;
  said.textContent = "It runs there …";
  // Sent again after a failure it goes on where it was cut off.
  form.dataset.command ||= crypto.randomUUID();
  const entries = chosen.map(({ value }) => [+value, +value + 1]);
  const body = { from: form.dataset.from, entries, commandId: form.dataset.command };
  const merged = await send(`/sessions/${into}/merge`, body, { headers: { Prefer: "wait=600" } });
  button.disabled = false;
  said.textContent = "";
  if (!merged) return;
  delete form.dataset.command;
  for (const { index, eval: came } of merged.ran ?? []) {
    const first = came.diagnostics?.find((one) => one.severity === "error")?.message;
    cameOf(index, came.success, came.success ? "merged" : `stopped here: ${came.error?.message ?? first ?? came.ending}`);
  }
  if (merged.refused) cameOf(merged.refused.index, false, `stopped here: ${merged.refused.error.message}`);
  for (const index of merged.notRun ?? []) cameOf(index, false, "not run");
  const count = (merged.ran ?? []).filter((one) => one.eval.success).length;
  const link = document.createElement("a");
  Object.assign(link, { href: `/ui/sessions/${into}`, textContent: "See the session" });
  const words = merged.success ? `${count} merged.` : merged.ran ? `${count} merged, then it stopped.` : "It goes on.";
  said.append(`${words} `, link);
}

function cameOf(index, isDone, words) {
  const choice = document.getElementById(`input-${index}`);
  const came = choice?.closest("li").querySelector(".came");
  if (!came) return;
  if (isDone) choice.checked = false;
  came.className = `came state ${isDone ? "ok" : "bad"}`;
  came.textContent = words;
}

// Which kinds can be created in a folder; what was chosen stays, where it is still there.
async function kindsOf(folder) {
  const chosen = document.querySelector("#kinds select").value;
  const answer = await request(`/ui/kinds?${new URLSearchParams({ folder })}`).catch(() => null);
  if (!answer?.ok) return;
  await patch(answer);
  const select = document.querySelector("#kinds select");
  if ([...select.options].some(({ value }) => value === chosen)) select.value = chosen;
}

document.addEventListener("change", ({ target }) => {
  if (target.form?.id === "new" && target.name === "workingDirectory") kindsOf(target.value);
  else if (target.dataset.goes) location.assign(target.dataset.goes + target.value);
  else if (target.name === "entry") delete target.form.dataset.command;
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-do]");
  if (button) actions[button.dataset.do]?.(button);
  const more = event.target.closest("[data-get]");
  if (more) show(more);
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
  } else if (form.id === "merge") {
    event.preventDefault();
    await merge(form);
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

let lost = null;

async function run() {
  const text = code.value;
  back = -1;
  const button = document.querySelector("#run button");
  if (!text.trim() || !button.name) return;
  code.value = "";
  close();
  problems.replaceChildren();
  const [path, body] = commandOf(button.name, text);
  // What was sent and not answered may have arrived: sent again under its id, it is carried out once.
  const commandId = lost?.text === text ? lost.commandId : crypto.randomUUID();
  const said = await send(of(path), { ...body, commandId });
  lost = said === undefined ? { text, commandId } : null;
  if (said) {
    follows = true;
    keepAtEnd();
    keep(text);
  } else {
    code.value = code.value ? `${text}\n${code.value}` : text;
  }
}

// An agent's session runs `!line` as a line of a shell, and `!!line` without telling its model.
function commandOf(path, text) {
  if (path === "exec") return [path, { code: text }];
  const [, marks, line] = /^(!!?)\s*(.*)$/s.exec(text) ?? [];
  if (marks && path === "prompt") return ["shell", { line, isPrivate: marks === "!!" }];
  return [path, { text }];
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
  const answer = await request(`/ui/sessions/${session}/${path}`, {
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

// Marks one of a list's options as the one that Enter takes, for the field beside it.
function choose(option, field = code) {
  if (!option) return field.removeAttribute("aria-activedescendant");
  for (const other of option.parentElement.querySelectorAll("[aria-selected=true]")) other.ariaSelected = "false";
  option.ariaSelected = "true";
  option.scrollIntoView({ block: "nearest" });
  field.setAttribute("aria-activedescendant", option.id);
}

function walk(list, key, field) {
  const chosen = list.querySelector("[aria-selected=true]");
  const next = key === "ArrowDown" ? chosen?.nextElementSibling : chosen?.previousElementSibling;
  if (next?.role === "option") choose(next, field);
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

// What was submitted before by the same person, anywhere in this folder, the newest first; it is read when it is wanted.

const past = { lines: [], isRead: false, before: null, isWhole: false, kept: null };
let back = -1;
let draft = "";

function keep(text) {
  const line = { id: crypto.randomUUID(), at: new Date().toISOString(), folder: main.dataset.folder, session, text };
  // What is read later has it.
  if (past.isRead) past.lines.unshift({ text });
  past.kept = send("/history", line);
}

async function more() {
  await past.kept;
  past.isRead = true;
  const query = new URLSearchParams({ folder: main.dataset.folder, limit: 50 });
  if (past.before !== null) query.set("before", past.before);
  const answer = await request(`/history?${query}`).catch(() => null);
  if (!answer?.ok) return;
  const { lines } = await answer.json();
  past.isWhole = lines.length < 50;
  past.before = lines.at(-1)?.number ?? past.before;
  past.lines.push(...lines.map(({ number, content }) => (content.object ? { number } : { text: content })));
}

// What a line says; a large one is read now.
async function textOf(line) {
  if (line.text === undefined) {
    const answer = await request(`/history/${line.number}`).catch(() => null);
    line.text = answer?.ok ? (await answer.json()).text : "";
  }
  return line.text;
}

async function recall(step) {
  const before = code.value;
  let at = back;
  do {
    at += step;
    if (at >= past.lines.length && !past.isWhole) await more();
  } while (at >= 0 && at < past.lines.length && (await textOf(past.lines[at])) === before);
  if (at >= past.lines.length || at < -1 || code.value !== before) return;
  if (back < 0) draft = before;
  back = at;
  code.value = at < 0 ? draft : past.lines[at].text;
  code.setSelectionRange(code.value.length, code.value.length);
  later();
}

// Whether an arrow walks through what was before, and not through the text.
function walks(key) {
  if (code.selectionStart !== code.selectionEnd || (back < 0 && code.value)) return false;
  const rest = key === "ArrowUp" ? code.value.slice(0, code.selectionStart) : code.value.slice(code.selectionEnd);
  return !rest.includes("\n") && (key === "ArrowUp" || back >= 0);
}

// Searching in it: a list that is the server's, and a field above.
async function search() {
  const form = document.createElement("form");
  form.method = "dialog";
  form.className = "recall";
  form.innerHTML = `<h2>What you ran before</h2><input type="search" aria-label="Words in it" placeholder="Words in it" autocomplete="off"
    role="combobox" aria-expanded="true" aria-controls="recalled"><div id="recalled" role="listbox" aria-label="Lines" tabindex="0"></div>`;
  const [field, list] = [form.querySelector("input"), form.querySelector("[role=listbox]")];
  const look = async () => {
    const q = field.value;
    const answer = await request(`/ui/history/lines?${new URLSearchParams({ q })}`).catch(() => null);
    if (!answer?.ok || field.value !== q) return;
    list.innerHTML = await answer.text();
    choose(list.querySelector("[role=option]"), field);
  };
  const take = (option) => {
    if (option) form.dataset.number = option.dataset.number;
    form.closest("dialog").close(option ? "yes" : "");
  };
  field.addEventListener("input", look);
  field.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      walk(list, event.key, field);
    } else if (event.key === "Enter") {
      event.preventDefault();
      take(list.querySelector("[aria-selected=true]"));
    }
  });
  list.addEventListener("click", ({ target }) => take(target.closest("[role=option]")));
  look();
  if (!(await shown(form))) return code.focus();
  code.value = await textOf({ number: form.dataset.number });
  code.focus();
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
  } else if (event.key === "r" && event.ctrlKey) {
    event.preventDefault();
    search();
  } else if (chosen && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
    event.preventDefault();
    walk(completions, event.key, code);
  } else if ((event.key === "ArrowUp" || event.key === "ArrowDown") && walks(event.key)) {
    event.preventDefault();
    recall(event.key === "ArrowUp" ? 1 : -1);
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

const cells = () => [...document.querySelectorAll("#inherited-cells > .cell, #cells > .cell")];

// The cell that was chosen last: a button takes the focus, and not the choice.
const selected = () => document.querySelector(".cell.chosen");
document.addEventListener("focusin", ({ target }) => {
  const cell = target.closest(".cell");
  if (!cell && target !== code) return;
  selected()?.classList.remove("chosen");
  cell?.classList.add("chosen");
});

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
  if (event.key === "Escape" && types && !event.target.closest("dialog")) {
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

// What code shows as HTML stands in a frame, which is handed it when it is ready and says how high it is; nothing else that comes from there is
// heard.

addEventListener("message", ({ source, data }) => {
  const frame = [...document.querySelectorAll(".display iframe")].find((frame) => frame.contentWindow === source);
  if (frame && data?.ready) fill(frame);
  if (frame && Number.isFinite(data?.height)) frame.style.height = `${Math.min(Math.max(data.height + 2, 24), 416)}px`;
});

async function fill(frame) {
  const answer = await request(frame.dataset.shows).catch(() => null);
  // The frame has an origin that nothing else has, and no name for it.
  if (answer?.ok) frame.contentWindow?.postMessage({ html: await answer.text() }, "*");
}

// The end stays in sight for whoever is there.

let follows = true;
let scrolledTo = 0;
function keepAtEnd() {
  if (follows && session) scrollTo({ top: document.documentElement.scrollHeight });
}
addEventListener("scroll", () => {
  const { scrollHeight, scrollTop, clientHeight } = document.documentElement;
  if (scrollHeight - scrollTop - clientHeight < 120) follows = true;
  // Only whoever scrolls up leaves the end: what has been added since the page scrolled down puts it out of sight, too.
  else if (scrollTop < scrolledTo) follows = false;
  scrolledTo = scrollTop;
});
if (session) {
  new ResizeObserver(keepAtEnd).observe(document.getElementById("cells"));
  if (location.hash) follows = false;
  else keepAtEnd();
}
