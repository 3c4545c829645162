// How this browser is let in. Its secret is kept in the storage of this origin and sent in a header, and not as a cookie: browsers send a cookie
// to every port of a host, so also to other users' servers on this machine. So the daemon answers an address with a document without content,
// and this module fetches the content.

const KEY = "mainstay";

// The storage may be switched off; the secret then lasts as long as the page does.
let own = null;

function secret() {
  try {
    return localStorage.getItem(KEY) ?? own;
  } catch {
    return own;
  }
}

function keep(value) {
  own = value;
  try {
    localStorage.setItem(KEY, value);
  } catch {
    // It is kept above.
  }
}

// Asks the daemon for something. What is on another origin is never asked, whatever the path says or a redirect.
export function request(path, { headers, ...options } = {}) {
  const all = new Headers(headers);
  if (secret()) all.set("Authorization", `Bearer ${secret()}`);
  return fetch(path, { ...options, headers: all, mode: "same-origin", credentials: "omit", redirect: "error" });
}

// Redeems the code of a link. One that was used already changes nothing for a browser that was let in by it.
async function enter(code) {
  const answer = await request("/ui/enter", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ code }),
  }).catch(() => null);
  if (answer?.ok) keep((await answer.json()).secret);
}

// Shows what the daemon has at this address; says how to be let in where it shows nothing.
export async function load() {
  const code = new URLSearchParams(location.hash.slice(1)).get("enter");
  if (code !== null) {
    // It stays in no history.
    history.replaceState(history.state, "", location.pathname + location.search);
    await enter(code);
  }
  const answer = secret() ? await untilAnswered() : null;
  if (!answer || answer.status === 401) {
    document.getElementById("main").hidden = false;
    // Another tab may be let in.
    addEventListener("storage", ({ key, newValue }) => key === KEY && newValue && location.reload());
    return;
  }
  const shown = new DOMParser().parseFromString(await answer.text(), "text/html");
  document.title = shown.title;
  document.body.replaceWith(document.adoptNode(shown.body));
  if (location.hash.length > 1) location.replace(location.hash);
}

// The daemon may stop between this document and its content.
async function untilAnswered() {
  for (;;) {
    const answer = await request(location.pathname + location.search, { headers: { Accept: "text/html" } }).catch(() => null);
    if (answer) return answer;
    await new Promise((done) => setTimeout(done, 1000));
  }
}
