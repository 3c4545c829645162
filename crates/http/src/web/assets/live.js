// Keeps the page as the server says: reads streams of server-sent events by fetch and applies the patches in them. A patch either morphs
// elements by their ids, which keeps focus, selection, scroll positions and typed text, or adds to an element or removes it.

// Follows a stream for as long as the page lives. A stream that ends is asked for again, from the last id on; a hidden tab has none, since
// browsers give a server few connections. `heard` is told whether the server is there, `refused` of an answer that no retry will change.
export function follow(path, { request, heard, refused }) {
  let [id, connection] = [null, null];
  const run = async ({ signal }) => {
    for (let wait = 300; !signal.aborted; wait = Math.min(wait * 2, 3000)) {
      try {
        const headers = { Accept: "text/event-stream", ...(id !== null && { "Last-Event-ID": id }) };
        const answer = await request(path, { headers, signal });
        // There is nothing to come back for.
        if (answer.status === 204) return;
        if (answer.status === 401 || answer.status === 404) return refused(answer);
        if (answer.ok) {
          heard(true);
          wait = 300;
          await read(answer, apply, (place) => (id = place));
        }
      } catch {
        // The connection is gone; the next one goes on.
      }
      if (signal.aborted) return;
      heard(false);
      await new Promise((done) => setTimeout(done, wait));
    }
  };
  const show = () => {
    if (document.hidden) {
      connection?.abort();
      connection = null;
    } else if (!connection) {
      connection = new AbortController();
      run(connection);
    }
  };
  document.addEventListener("visibilitychange", show);
  show();
}

// Applies the patches of an answer that is there already.
export async function patch(answer) {
  await read(answer, apply, () => {});
}

// Reads server-sent events as they come: lines of `field: value`, an empty line behind each event.
async function read(answer, happened, reached) {
  let [rest, name, data, id] = ["", "", [], null];
  const line = (text) => {
    if (!text) {
      if (data.length) happened({ name, data });
      if (id !== null) reached(id);
      [name, data, id] = ["", [], null];
      return;
    }
    const [field, ...said] = text.split(":");
    const value = said.join(":").replace(/^ /, "");
    if (field === "event") name = value;
    else if (field === "data") data.push(value);
    else if (field === "id") id = value;
  };
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    const lines = (rest + piece.value).split("\n");
    rest = lines.pop();
    lines.forEach((text) => line(text.replace(/\r$/, "")));
  }
}

// What an event says is to be done. Each of its lines of data is a name and a value.
function apply({ name, data }) {
  if (name !== "datastar-patch-elements") return;
  const values = (key) => data.filter((text) => text.startsWith(`${key} `)).map((text) => text.slice(key.length + 1));
  const [mode] = values("mode");
  const [selector] = values("selector");
  const target = selector && document.querySelector(selector);
  const template = document.createElement("template");
  template.innerHTML = values("elements").join("\n");
  const fresh = document.importNode(template.content, true);
  if (mode === "remove") target?.remove();
  else if (mode === "append") target?.append(fresh);
  else if (mode === "prepend") target?.prepend(fresh);
  else for (const element of [...fresh.children]) morphById(element);
}

function morphById(fresh) {
  const old = document.getElementById(fresh.id);
  if (old) morph(old, fresh);
}

// Makes an element like another one. What the browser or the user did to it stays: what a field holds, where it is scrolled to, and the
// attributes that it names in `data-preserve-attr`.
export function morph(old, fresh) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  if (!isSame(old, fresh)) return old.replaceWith(fresh);
  if (old.isEqualNode(fresh)) return;
  const preserved = (fresh.dataset?.preserveAttr ?? "").split(" ");
  for (const { name, value } of [...fresh.attributes]) {
    if (!preserved.includes(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (!preserved.includes(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  morphChildren(old, fresh);
}

// Whether one may become the other. A frame is loaded anew where it shows something else.
function isSame(old, fresh) {
  return (
    old.nodeType === fresh.nodeType &&
    old.nodeName === fresh.nodeName &&
    (old.id ?? "") === (fresh.id ?? "") &&
    old.getAttribute?.("data-shows") === fresh.getAttribute?.("data-shows")
  );
}

// Children are recognized by their ids; those without one by their kind and order. Those that stay are not moved where it can be avoided, since
// a moved element loses the focus and a moved frame its page.
function morphChildren(old, fresh) {
  const coming = new Set([...fresh.children].map(({ id }) => id).filter(Boolean));
  const known = new Map([...old.children].filter(({ id }) => id).map((child) => [child.id, child]));
  let at = old.firstChild;
  const drop = () => {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  };
  const stays = (node) => Boolean(node.id) && coming.has(node.id);
  for (const next of [...fresh.childNodes]) {
    const own = next.id ? known.get(next.id) : null;
    if (own && isSame(own, next)) {
      while (at && at !== own && !stays(at)) drop();
      if (at === own) at = at.nextSibling;
      else move(old, own, at);
      morph(own, next);
      continue;
    }
    let kept = next.id ? null : at;
    while (kept && !stays(kept) && !isSame(kept, next)) kept = kept.nextSibling;
    if (kept && !stays(kept)) {
      while (at !== kept) drop();
      at = at.nextSibling;
      morph(kept, next);
    } else {
      old.insertBefore(next, at);
    }
  }
  while (at) drop();
}

function move(parent, node, before) {
  if (parent.moveBefore) parent.moveBefore(node, before);
  else parent.insertBefore(node, before);
}
