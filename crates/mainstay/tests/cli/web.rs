//! The page in a real browser, with the real program; with the real compiler where F# is looked at.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::live_tests::{open_shop, save, source};
use crate::support::World;
use crate::support::agents::Agents;
use crate::support::terminal;
use mainstay_test_support::browser::{Browser, Tab};
use mainstay_test_support::model::{Step, call, say};
use serde_json::json;
use tokio::sync::Notify;

/// The last cell of code.
const LAST: &str = "[...document.querySelectorAll('.cell.eval')].at(-1)";

/// A daemon on a port that is its own, also when it comes back.
struct Site {
    world: World,
    port: u16,
}

impl Site {
    /// One with the real compiler.
    fn new() -> Self {
        Self::of(World::new(), "")
    }

    /// One whose F# sessions run what the scripted worker knows.
    fn scripted() -> Self {
        Self::of(World::scripted(), "")
    }

    /// Starts a daemon with these settings.
    fn of(world: World, settings: &str) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let site = Self { world, port };
        std::fs::write(site.world.home().join("config.toml"), settings).unwrap();
        site.starts();
        site
    }

    fn starts(&self) {
        let started = self.world.run(["-d", "--port", &self.port.to_string()]);
        assert_eq!(started.code, 0, "{started:?}");
    }

    /// The link to a session, or to the list.
    fn link(&self, session: Option<&str>) -> String {
        let arguments = ["web", "--print"].into_iter().chain(session);
        self.world.run(arguments).stdout.trim().to_owned()
    }

    /// A tab that shows a session.
    fn opened(&self, browser: &Browser, session: &str) -> Tab {
        let tab = browser.tab();
        tab.go(&self.link(Some(session)));
        tab.until("document.querySelector('#code')");
        tab
    }
}

#[test]
fn code_is_completed_checked_and_run_and_what_comes_of_it_is_shown() {
    let (site, browser) = (Site::new(), Browser::start());
    site.world.eval("let greeting = \"hello\"");
    let session = site.world.session();
    let name = session["name"].as_str().unwrap();

    let tab = browser.tab();
    tab.go(&site.link(None));
    tab.until("document.querySelector('#sessions li .state.ok')");
    tab.click("#sessions li a");
    tab.until("document.querySelector('.cell.eval .state.ok')");
    assert!(tab.text("h1").contains(name), "{}", tab.text("h1"));

    tab.runs("let square x = x * x\nprintfn \"squares of %d\" 3\nList.map square [1..3]");
    tab.until("[...document.querySelectorAll('.cell.eval')].at(-1).innerText.includes('[1; 4; 9]')");
    assert!(tab.text(".parts").contains("squares of 3"));
    tab.runs("square \"x\"");
    tab.until("document.querySelector('.cell .problems .error')");
    tab.runs("(failwith \"on purpose\" : int)");
    tab.until("[...document.querySelectorAll('.cell .error')].some(e => e.innerText.includes('on purpose'))");

    tab.pictured("session");

    tab.value("document.getElementById('code').focus()");
    tab.types("List.ma");
    tab.presses("Ctrl+ ");
    tab.until("document.querySelector('#completions [role=option][aria-selected=true]')");
    tab.picture("session-completes");
    assert_eq!(tab.barriers(), Vec::<String>::new());
    tab.presses("Enter");
    tab.until("document.getElementById('code').value === 'List.map'");
    tab.types(" (fun n -> n + \"x\") [1; 2; 3]");
    tab.until("document.querySelector('#problems .error')");
    tab.presses("Escape");
    tab.presses("?");
    tab.until("document.querySelector('dialog[open]')");
    assert_eq!(tab.problems(), Vec::<String>::new());
}

#[test]
fn a_loop_is_cancelled_and_an_ask_answered_and_the_actions_are_those_possible() {
    let (site, browser) = (Site::scripted(), Browser::start());
    site.world.eval("0");
    let name = site.world.session()["name"].as_str().unwrap().to_owned();
    let tab = site.opened(&browser, &name);
    assert!(tab.text("#actions").contains("Reset") && !tab.text("#actions").contains("Cancel"));

    // What it prints is seen while it runs.
    tab.runs("printfn \"in the loop\"\nwhile true do System.Threading.Thread.Sleep 1");
    tab.until("document.querySelector('.cell .state.runs') && [...document.querySelectorAll('.parts')].some(e => e.innerText.includes('in the loop'))");
    tab.until("document.querySelector('#run button').innerText === 'Run next'");
    assert_eq!(tab.value("document.querySelector('#actions > [data-do=reset]')"), json!(null));
    tab.runs("printfn \"after the loop\"");
    tab.until("document.querySelector('#lane .waits')");
    tab.picture("session-runs");
    tab.click("[data-do=cancel]");
    tab.until("document.querySelector('#cells').innerText.includes('cancelled by local · web')");
    tab.until("[...document.querySelectorAll('.parts')].some(e => e.innerText.includes('after the loop'))");
    tab.until("!document.querySelector('#lane .waits')");

    tab.runs("let name = System.Console.ReadLine()");
    tab.until("document.querySelector('#asks form input')");
    tab.picture("session-asks");
    assert_eq!(tab.barriers(), Vec::<String>::new());
    tab.value("document.activeElement.blur()");
    tab.presses("a");
    tab.types("Ada <b>Lovelace</b>");
    tab.presses("Enter");
    tab.until("!document.querySelector('#asks form')");
    tab.until("document.querySelector('#cells').innerText.includes('\"Ada <b>Lovelace</b>\"')");
    assert_eq!(tab.problems(), Vec::<String>::new());
}

#[test]
fn a_daemon_that_was_killed_comes_back_with_nothing_missing_and_nothing_twice() {
    let (site, browser) = (Site::scripted(), Browser::start());
    site.world.eval("0");
    let name = site.world.session()["name"].as_str().unwrap().to_owned();
    let (own, other) = (site.opened(&browser, &name), site.opened(&browser, &name));
    own.runs("for i in 1 .. 5 do printfn \"line %d\" i");
    for tab in [&own, &other] {
        tab.until("document.querySelector('#cells').innerText.includes('line 5')");
    }
    own.runs("for n in 1 .. 1000000 do (printfn \"at %d\" n; System.Threading.Thread.Sleep 10)");
    other.until("document.querySelector('#cells').innerText.includes('at 30')");
    site.world.kill_daemon();
    own.until("!document.getElementById('away').hidden");
    assert!(own.text("#away").contains("mainstay web"), "{}", own.text("#away"));
    // Someone else works on before the pages are back.
    site.starts();
    assert_eq!(site.world.run(["cancel"]).code, 0, "it goes on");
    site.world.eval("printfn \"meanwhile\"");
    for tab in [&own, &other] {
        tab.until("document.querySelector('#cells').innerText.includes('cancelled by local')");
        tab.until("document.querySelector('#cells').innerText.includes('meanwhile')");
    }
    own.until("document.getElementById('away').hidden");
    own.runs("\"the end\"");
    let cells = "[...document.querySelectorAll('#cells > .cell')].map(e => e.id + e.querySelector('.parts').textContent + e.querySelector('footer').textContent)";
    let fresh = site.opened(&browser, &name);
    for tab in [&own, &other, &fresh] {
        tab.until(&format!("{LAST}.querySelector('.state.ok') && {LAST}.innerText.includes('the end')"));
    }
    for tab in [&own, &other] {
        assert_eq!(tab.value(cells), fresh.value(cells));
    }
    let ids = format!(
        "new Set({cells}.map(c => c.split(/[^a-z0-9-]/)[0])).size === document.querySelectorAll('#cells > .cell').length"
    );
    assert_eq!(own.value(&ids), true);
}

/// Morphs trees into each other, with a fixed sequence of random numbers, and says which did not become what they should.
const MORPHS: &str = r#"async () => {
    const { morph } = await import(document.querySelector('script[src]').src.replace(/[^/]*$/, 'live.js'));
    let seed = 7;
    const random = (n) => (seed = (seed * 48271) % 2147483647) % n;
    const tree = (depth) => {
        const names = ['p', 'div', 'span', 'ul', 'input', 'textarea', 'details'];
        const element = document.createElement(names[random(names.length)]);
        for (const name of ['class', 'title', 'hidden']) if (random(2)) element.setAttribute(name, random(3));
        const ids = new Set();
        for (let count = depth ? random(5) : 0; count && element.localName !== 'input'; count--) {
            if (random(3) === 0) { element.append(`text ${random(5)}`); continue; }
            const child = tree(depth - 1);
            const id = `id${depth}-${random(6)}`;
            if (random(2) && !ids.has(id)) { ids.add(id); child.id = id; }
            element.append(child);
        }
        element.normalize();
        return element;
    };
    const wrong = [];
    for (let round = 0; round < 2000; round++) {
        const holder = document.createElement('div');
        const [old, fresh] = [tree(4), tree(4)];
        holder.append(old);
        const wanted = fresh.cloneNode(true);
        morph(old, fresh);
        if (!holder.firstChild.isEqualNode(wanted)) wrong.push([holder.innerHTML, wanted.outerHTML]);
    }
    return wrong.slice(0, 3);
}"#;
/// Puts in all that a morph must leave alone, and morphs what is around it.
const KEEPS: &str = r#"async () => {
    const { morph } = await import(document.querySelector('script[src]').src.replace(/[^/]*$/, 'live.js'));
    const holder = document.createElement('div');
    holder.innerHTML = `<div id="kept"><p>one</p><textarea id="field">first</textarea>
        <div id="scrolls"><p>high</p></div><details data-preserve-attr="open"><summary>s</summary>t</details>
        <iframe id="frame" srcdoc="x"></iframe></div>`;
    document.body.append(holder);
    const [old, field, scrolls, frame] = ['kept', 'field', 'scrolls', 'frame'].map((id) => document.getElementById(id));
    const details = holder.querySelector('details');
    field.focus();
    field.value = 'typed by hand';
    field.setSelectionRange(2, 5);
    Object.assign(scrolls.style, { height: '2rem', overflow: 'auto' });
    scrolls.firstChild.style.height = '20rem';
    scrolls.scrollTop = 40;
    details.open = true;
    const inside = frame.contentWindow;
    const fresh = document.createElement('template');
    fresh.innerHTML = old.outerHTML.replace('<p>one</p>', '<h2>a new head</h2><p class="other">two</p><ul><li>x</li></ul>').replace(' open=""', '').replace('first', 'second');
    morph(old, fresh.content.firstElementChild);
    const is = {
        text: old.querySelector('p').textContent, head: old.querySelector('h2').textContent, value: field.value, focus: document.activeElement === field,
        selection: [field.selectionStart, field.selectionEnd], scroll: scrolls.scrollTop, open: details.open && details.isConnected,
        frame: frame.contentWindow === inside && frame.isConnected };
    holder.remove();
    return is;
}"#;

#[test]
fn a_morph_changes_what_is_other_and_keeps_what_the_browser_and_its_user_did() {
    let (site, browser) = (Site::scripted(), Browser::start());
    let tab = browser.tab();
    tab.go(&site.link(None));
    assert_eq!(tab.value(&format!("({MORPHS})()")), json!([]));
    let kept = json!({ "text": "two", "head": "a new head", "value": "typed by hand", "focus": true, "selection": [2, 5], "scroll": 40,
        "open": true, "frame": true });
    assert_eq!(tab.value(&format!("({KEEPS})()")), kept);
}

/// A server of somebody else's on this machine: what is asked of it, as it comes.
fn other_server() -> (u16, Arc<Mutex<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, heard) = (listener.local_addr().unwrap().port(), Arc::new(Mutex::new(String::new())));
    let hears = Arc::clone(&heard);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { break };
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while let Some(Ok(line)) =
                lines.next().filter(|line| line.as_ref().is_ok_and(|line| !line.is_empty()))
            {
                writeln!(hears.lock().unwrap(), "{line}").unwrap();
            }
            let answer = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<!doctype html><p id=other>other";
            stream.write_all(answer.as_bytes()).ok();
        }
    });
    (port, heard)
}

#[test]
fn a_server_on_another_port_sees_nothing_that_lets_it_in() {
    let (site, browser) = (Site::scripted(), Browser::start());
    site.world.eval("0");
    let id = site.world.session()["session"].as_str().unwrap().to_owned();
    let tab = site.opened(&browser, &id);
    let own = format!("http://127.0.0.1:{}/ui/sessions/{id}", site.port);
    assert_eq!(tab.value("location.href"), own, "the code is not in the address any more");
    assert_eq!(tab.value("document.cookie"), "");

    let (port, heard) = other_server();
    let other = format!("http://127.0.0.1:{port}/");
    tab.value(&format!(
        "void fetch('{other}asked', {{ mode: 'no-cors', credentials: 'include' }}).catch(() => 0)"
    ));
    tab.go(&other);
    tab.until("document.querySelector('#other')");
    assert_eq!(tab.value("Object.keys(localStorage).length + document.cookie + document.referrer"), "0");
    // It can neither ask nor frame the daemon's page from there.
    let asks =
        format!("fetch('{own}', {{ credentials: 'include' }}).then(() => 'answered', () => 'refused')");
    assert_eq!(tab.value(&asks), "refused");
    let heard = heard.lock().unwrap().clone();
    assert!(heard.contains("GET / HTTP/1.1"), "{heard}");
    // Nothing that could be sent on to the daemon is among it; the browser names only its own address to it.
    let sent: Vec<String> = heard
        .lines()
        .filter(|line| {
            ["cookie", "authorization", "referer"].iter().any(|name| line.to_lowercase().starts_with(name))
        })
        .filter(|line| !line.ends_with(&other))
        .map(str::to_owned)
        .collect();
    assert_eq!(sent, Vec::<String>::new());

    // The browser itself is in: by the address alone, after a reload, in another tab, and when it comes back.
    tab.go(&own);
    tab.until("document.querySelector('#code')");
    tab.value("void location.reload()");
    tab.until("document.querySelector('#code') && document.querySelector('#head .state')");
    let second = tab.beside();
    second.go(&format!("http://127.0.0.1:{}/ui", site.port));
    second.until("document.querySelector('#sessions li a')");
    second.click("#sessions li a");
    second.until("document.querySelector('#code')");
    // The page must be there to answer when it is asked to go.
    second.value("setTimeout(() => history.back())");
    second.until("document.querySelector('#sessions li a')");
    // One that was not let in is told how to be.
    let stranger = browser.tab();
    stranger.go(&own);
    stranger.until("document.querySelector('#main').innerText.includes('mainstay web')");
    assert_eq!(stranger.barriers(), Vec::<String>::new());
}

#[test]
fn the_other_screens_show_what_there_is_and_what_code_shows_stands_in_its_place() {
    let (site, browser) = (Site::of(World::new(), "[limits]\nhealth-ms = 200\n"), Browser::start());
    site.world.eval("let started = \"first words\"");
    let name = site.world.session()["name"].as_str().unwrap().to_owned();
    let list = browser.tab();
    list.go(&site.link(None));
    list.until("document.querySelector('#sessions .state.ok')");
    let tab = site.opened(&browser, &name);
    tab.runs("[ \"Ada\", 36; \"Grace\", 85 ] |> Mainstay.display");
    tab.until("document.querySelector('.display table td')");
    tab.runs("{ Mainstay.bar [ \"Mon\"; \"Tue\" ] [ 3; 7 ] with Title = \"Builds\" } |> Mainstay.display");
    tab.until("document.querySelector('.display img')?.naturalWidth > 0");
    tab.runs("Mainstay.html \"<h1 id=own>Hi</h1><script>parent.document.title = 'taken'</script>\" |> Mainstay.display");
    tab.until("document.querySelector('.display iframe')?.style.height");
    tab.until("[...document.querySelectorAll('.cell.eval')].at(-1).querySelector('.state.ok')");
    tab.picture("session-displays");
    assert_eq!(tab.barriers(), Vec::<String>::new());
    assert!(!tab.value("document.title").as_str().unwrap().contains("taken"));

    // The list hears of it, and of a fork up to the cell that is chosen.
    list.until("document.querySelector('#sessions').innerText.includes('4 evals')");
    tab.value("document.querySelector('.cell.eval').focus()");
    tab.click("[data-do=fork]");
    tab.until("document.querySelector('h1')?.innerText.includes('-2') || document.querySelector('h1')?.innerText.includes('2')");
    tab.until("document.querySelector('#cells').innerText.includes('begins with 2 entries')");
    tab.until(
        "document.querySelector('#inherited .cell .code')?.innerText === 'let started = \"first words\"'",
    );
    assert!(tab.text("#inherited").contains(&format!("from {name}")), "{}", tab.text("#inherited"));
    tab.runs("started");
    tab.until("document.querySelector('#cells').innerText.includes('\"first words\"')");
    list.until("document.querySelectorAll('#sessions li').length === 2");
    list.picture("sessions");
    assert_eq!(list.barriers(), Vec::<String>::new());

    tab.click("#head a[href$=lineage]");
    tab.until("document.querySelectorAll('.lineage a').length === 2");
    tab.picture("lineage");
    tab.presses("/");
    tab.types("words");
    tab.presses("Enter");
    tab.until("document.querySelector('.rows a mark')?.innerText === 'words'");
    tab.pictured("search");
    // The plots have what was before the screen was opened.
    tab.click(".bar a[href='/ui/health']");
    tab.until("document.querySelectorAll('#health polyline').length > 8");
    let points = tab.value("document.querySelector('#health polyline').points.length").as_u64().unwrap();
    assert!(points > 10, "{points} notes");
    let jobs = "Math.min(...[...document.querySelector('#health polyline').points].map(p => p.y)) < 5";
    assert_eq!(tab.value(jobs), true, "the evals of before are seen");
    tab.until(&format!("document.querySelector('#health polyline').points.length > {points}"));
    tab.pictured("health");
    for tab in [&tab, &list] {
        let problems = tab.problems();
        // The frame's script was kept from running.
        assert!(problems.iter().all(|problem| problem.contains("Content Security Policy")), "{problems:?}");
    }
}

/// Shows a table, a figure, a formula and Markdown, data, and charts as they are described, each in a cell of its own.
const PYTHON_SHOWS: [&str; 6] = [
    "import pandas as pd\npd.DataFrame({'city': ['Ulm', 'Bonn', 'Erfurt'], 'people': [126_000, 330_000, 214_000], 'share': [0.19, 0.49, 0.32]})",
    "import matplotlib.pyplot as plt\nplt.plot([1, 4, 9, 16]); plt.title('Squares'); plt.show()",
    "from IPython.display import Math, JSON, Markdown, display\ndisplay(Math(r'\\frac{1}{2}'), Markdown('**bold** words'))",
    "display(JSON({'answer': [4, 2]}))",
    "days = [{'day': day, 'n': n} for day, n in zip(['Mon', 'Tue', 'Wed'], [3, 7, 5])]
display({'application/vnd.vegalite.v6+json': {'mark': 'bar', 'data': {'values': days}, 'title': 'Builds', 'encoding':
  {'x': {'field': 'day', 'type': 'nominal'}, 'y': {'field': 'n', 'type': 'quantitative'}}}, 'text/plain': 'bars'}, raw=True)",
    "lines = [{'name': f'x to the {p}', 'type': 'scatter', 'y': [(x / 9) ** p for x in range(10)]} for p in (1, 2, 3)]
display({'application/vnd.plotly.v1+json': {'data': lines, 'layout': {'yaxis': {'title': {'text': 'power'}}}}, 'text/plain': 'lines'}, raw=True)",
];
/// HTML that would like to run something, in each way that there is.
const PYTHON_INTRUDES: &str = "from IPython.display import HTML
HTML('''<p>mine</p><script>parent.postMessage({ran: 1}, '*'); parent.document.title = 'taken'</script>
<img src=x onerror=\"parent.postMessage({ran: 2}, '*')\"><iframe srcdoc=\"<script>top.postMessage({ran: 3}, '*')</script>\"></iframe>''')";

/// A progress bar as `tqdm` prints it, and a line in a colour.
const PYTHON_PROGRESS: &str = r"import sys
for done in range(5):
    sys.stderr.write('\r{}% |{:<4}|'.format(done * 25, '█' * done))
    sys.stderr.flush()
sys.stderr.write('\n')
sys.stderr.flush()
print('\x1b[32mgreen\x1b[0m')";

#[test]
fn what_python_shows_stands_in_its_place_and_a_cells_html_runs_and_reaches_nothing() {
    let (site, browser) = (Site::of(World::with_jupyter(), ""), Browser::start());
    let begun = site.world.run(["eval", "--kind", "python3", "1 + 1"]);
    assert_eq!(begun.code, 0, "{begun:?}");
    let name = site.world.session()["name"].as_str().unwrap().to_owned();
    let tab = site.opened(&browser, &name);
    tab.shows(1100, 2600, "light");
    for (count, code) in PYTHON_SHOWS.iter().enumerate() {
        tab.runs(code);
        tab.until(&format!("document.querySelectorAll('.cell.eval .state.ok').length === {}", count + 2));
    }
    // The frame is as high as the table in it.
    tab.until(
        "(height => height > 90 && height < 200)(document.querySelector('.display iframe').offsetHeight)",
    );
    tab.until("document.querySelector('.display img')?.naturalWidth > 300");
    assert_eq!(tab.text(".display .latex"), "$\\displaystyle \\frac{1}{2}$");
    assert_eq!(tab.text(".display .markdown strong"), "bold");
    assert!(tab.text(".display .folded").contains("application/json"), "{}", tab.text(".display .folded"));
    assert_eq!(tab.value("document.querySelectorAll('.chart rect').length"), 3);
    assert_eq!(tab.value("document.querySelectorAll('.chart path.line').length"), 3);
    assert_eq!(tab.text(".chart .legend li"), "● x to the 1\n● x to the 2\n● x to the 3");
    assert!(!tab.text(".values").contains("Erfurt"), "the table stands above: {}", tab.text(".values"));
    let is_coloured = "[...document.querySelectorAll('code .k')].some(word => word.textContent === 'import')";
    assert_eq!(tab.value(is_coloured), true);
    tab.runs(PYTHON_PROGRESS);
    tab.until("document.querySelectorAll('.cell.eval .state.ok').length === 8");
    assert_eq!(tab.value(&format!("{LAST}.querySelector('.parts').innerText.trim()")), "100% |████|\ngreen");
    assert_eq!(tab.value(&format!("{LAST}.querySelector('.t-green').textContent")), "green\n");
    tab.pictured_as("python", 2600);
    assert_eq!(tab.problems(), Vec::<String>::new());

    tab.value(
        "window.heard = []; addEventListener('message', ({ data }) => heard.push(...Object.keys(data)))",
    );
    tab.runs(PYTHON_INTRUDES);
    tab.until("document.querySelectorAll('.cell.eval .state.ok').length === 9");
    tab.until("heard.includes('height')");
    assert_eq!(tab.value("heard.every(said => said === 'height' || said === 'ready')"), true);
    assert!(!tab.value("document.title").as_str().unwrap().contains("taken"));
    let last = format!("{LAST}.querySelector('iframe')");
    assert_eq!(tab.value(&format!("{last}.contentDocument")), serde_json::Value::Null);
    let policy =
        tab.value(&format!("fetch({last}.src).then(it => it.headers.get('content-security-policy'))"));
    let policy = policy.as_str().unwrap();
    assert!(policy.starts_with("sandbox allow-scripts; script-src 'sha256-"), "{policy}");
    assert!(policy.contains("default-src 'none'") && !policy.contains("same-origin"), "{policy}");

    tab.click(".bar a[href='/ui/history']");
    tab.until(&format!("location.pathname === '/ui/history' && {is_coloured}"));
}

#[test]
fn what_is_new_in_a_fork_is_merged_and_where_it_stops_is_said() {
    let (site, browser) = (Site::scripted(), Browser::start());
    site.world.eval("let rate = 2");
    let name = site.world.session()["name"].as_str().unwrap().to_owned();
    for arguments in [["session", "rename", &name, "base"], ["session", "fork", "--name", "branch"]] {
        let done = site.world.run(arguments);
        assert_eq!(done.code, 0, "{done:?}");
    }
    let tab = site.opened(&browser, "branch");
    for (code, shows) in [
        ("let twice x = rate * x", "twice"),
        ("failwith \"no\"", "no"),
        ("let mark = System.IO.File.ReadAllText \"mark\"", "FileNotFound"),
        ("twice 21", "42"),
    ] {
        tab.runs(code);
        tab.until(&format!("{LAST}.querySelector('footer').innerText.includes('{shows}')"));
    }
    // It ran to its end here, and does not there.
    std::fs::write(site.world.work().join("mark"), "here").unwrap();
    tab.runs("let mark = System.IO.File.ReadAllText \"mark\"");
    tab.until(&format!("{LAST}.querySelector('footer').innerText.includes('here')"));
    std::fs::remove_file(site.world.work().join("mark")).unwrap();
    tab.runs("mark + \" and there\"");
    tab.until(&format!("{LAST}.querySelector('footer').innerText.includes('here and there')"));

    tab.value("document.activeElement.blur()");
    tab.click("[data-do=mergeInto]");
    tab.until("document.querySelector('#merge')");
    let chosen = "[...document.querySelectorAll('#merge [name=entry]:checked')].map(e => e.closest('li').querySelector('.code').innerText).join('|')";
    let new = "let twice x = rate * x|twice 21|let mark = System.IO.File.ReadAllText \"mark\"|mark + \" and there\"";
    assert_eq!(tab.value(chosen), new);
    assert_eq!(
        tab.value("document.querySelector('#merge select').selectedOptions[0].innerText.startsWith('base')"),
        true
    );
    assert_eq!(tab.barriers(), Vec::<String>::new());
    tab.click("#merge [type=submit]");
    tab.until("document.getElementById('merged').innerText.includes('2 merged, then it stopped.')");
    let came = tab.text("#merge .came");
    let came: Vec<_> = came.lines().filter(|line| !line.is_empty()).collect();
    assert!(
        matches!(came[..], ["merged", "merged", stopped, "not run"] if stopped.starts_with("stopped here: Could not find")),
        "{came:?}"
    );
    tab.pictured("merge");

    // What is there is not chosen again; one cell can be taken alone.
    tab.click("#merged a");
    tab.until("document.querySelector('#cells').innerText.includes('42')");
    assert!(tab.text("#cells").contains("brought"));
    let tab = site.opened(&browser, "branch");
    tab.click("[data-do=mergeInto]");
    tab.until("document.querySelector('#merge')");
    assert_eq!(tab.value(chosen), "let mark = System.IO.File.ReadAllText \"mark\"|mark + \" and there\"");
    assert!(tab.text("#merge").contains("is there already"));
    let tab = site.opened(&browser, "branch");
    tab.value(&format!("{LAST}.focus()"));
    tab.click("[data-do=mergeInto]");
    tab.until("document.querySelector('#merge')");
    assert_eq!(tab.value(chosen), "mark + \" and there\"");
    assert_eq!(tab.problems(), Vec::<String>::new());
}

#[test]
fn a_fork_shows_what_it_began_with_page_by_page_and_forks_there() {
    let (site, browser) = (Site::scripted(), Browser::start());
    site.world.eval("Mainstay.display (Mainstay.html \"<h1>first</h1>\")");
    for number in 1..=60 {
        site.world.eval(&format!("let n{number} = {number}"));
    }
    let done = site.world.run(["session", "fork", "--name", "branch"]);
    assert_eq!(done.code, 0, "{done:?}");
    let tab = site.opened(&browser, "branch");
    let cells = "document.querySelectorAll('#inherited-cells .cell').length";
    tab.until(&format!("{cells} === 50"));
    tab.click("#earlier button");
    tab.until(&format!("{cells} === 61 && !document.querySelector('#earlier button')"));
    tab.until("document.querySelector('#inherited-cells .display iframe')");
    let codes = "[...document.querySelectorAll('#inherited-cells .cell .code')].slice(1).map((e, i) => e.innerText === `let n${i + 1} = ${i + 1}`).every(Boolean)";
    assert_eq!(tab.value(codes), true);
    tab.value("document.querySelector('#inherited-cells .cell:nth-child(4)').focus(); scrollTo(0, 0)");
    tab.pictured("inherited");
    tab.click("[data-do=fork]");
    tab.until("document.querySelectorAll('#inherited-cells .cell').length === 4");
    let frame = tab.value("document.querySelector('#inherited-cells iframe').dataset.shows");
    assert!(frame.as_str().unwrap().ends_with("/entries/1/html"), "{frame}");
    assert_eq!(tab.problems(), Vec::<String>::new());
}

#[test]
fn the_end_stays_in_sight_until_somebody_scrolls_up() {
    let (site, browser) = (Site::of(World::scripted(), ""), Browser::start());
    for number in 1..=12 {
        site.world.eval(&format!("let n{number} = {number}"));
    }
    let name = site.world.session()["name"].as_str().unwrap().to_owned();
    let tab = site.opened(&browser, &name);
    tab.shows(900, 400, "light");
    let frames = |doing: &str| {
        let after = "requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(() => done(scrollY))))";
        tab.value(&format!("new Promise(done => {{ {doing}; {after} }})"))
    };
    let grow = "cells.append(Object.assign(document.createElement('textarea'), { rows: 30 }))";
    let is_at_end =
        "(root => root.scrollHeight - root.scrollTop - root.clientHeight < 2)(document.documentElement)";
    tab.until(&format!("document.documentElement.scrollHeight > 900 && {is_at_end}"));
    frames("scrollBy(0, -60)");
    // What comes before the page has heard that it scrolled puts the end out of sight, and nobody scrolled up.
    frames(&format!("scrollTo(0, document.documentElement.scrollHeight); {grow}"));
    assert_eq!(tab.value(is_at_end), true);
    frames("scrollTo(0, 0)");
    assert_eq!(frames(grow), 0, "whoever reads stays there");
    frames("scrollTo(0, document.documentElement.scrollHeight)");
    frames(grow);
    assert_eq!(tab.value(is_at_end), true, "whoever comes back to the end follows again");
}

#[test]
fn each_person_sees_what_is_theirs_and_on_a_shared_session_what_the_others_do() {
    let world = World::scripted();
    let made = world.run(["principal", "new", "ada", "--drive", "shared", "--see", "shown", "--json"]).json();
    let site = Site::of(world, made["config"].as_str().unwrap());
    let (browser, token) = (Browser::start(), made["token"].as_str().unwrap());
    for name in ["hidden", "shared", "shown"] {
        assert_eq!(site.world.run(["session", "new", "--name", name]).code, 0);
    }
    let hers = |to: Option<&str>| {
        let mut command = site.world.command();
        command.env("MAINSTAY_TOKEN", token).args(["web", "--print"].into_iter().chain(to));
        String::from_utf8(command.output().unwrap().stdout).unwrap().trim().to_owned()
    };
    let list = browser.tab();
    list.go(&hers(None));
    list.until("document.querySelectorAll('#sessions li').length === 2");
    assert!(!list.text("#sessions").contains("hidden"));
    let (own, ada) = (site.opened(&browser, "shared"), browser.tab());
    ada.go(&hers(Some("shared")));
    ada.until("document.querySelector('#run button')");
    for (tab, code, name) in [(&own, "let by = 1", "local · web"), (&ada, "let she = by + 41", "ada · web")]
    {
        tab.until("document.querySelector('#head .state.ok')");
        tab.runs(code);
        for looks in [&own, &ada] {
            looks.until(&format!(
                "{LAST}?.querySelector('.code').innerText === {code:?} && {LAST}.querySelector('.state.ok')"
            ));
            looks.until(&format!("{LAST}.querySelector('header').innerText.includes({name:?})"));
        }
    }
    own.until("document.querySelector('.people').innerText.includes('ada · web')");
    own.picture("session-shared");
    assert!(!ada.text("#actions").contains("Delete"), "it is another's");

    // What she may only look at has no editor that runs, and nothing that changes it.
    ada.go(&hers(Some("shown")));
    ada.until("document.querySelector('#run').innerText.includes('You may look at this session')");
    assert_eq!(
        ada.value("[...document.querySelectorAll('#actions button')].map(e => e.dataset.do).join()"),
        "fork,mergeInto"
    );
    assert_eq!(ada.barriers(), Vec::<String>::new());
    let hidden = site.world.run(["session", "show", "hidden", "--json"]).json();
    ada.go(&format!("http://127.0.0.1:{}/ui/sessions/{}", site.port, hidden["session"].as_str().unwrap()));
    ada.until("document.body.innerText.includes('This cannot be shown')");
}

#[test]
fn a_session_is_made_by_the_form_and_what_it_says_is_wrong_is_told() {
    let (site, browser) = (Site::scripted(), Browser::start());
    let tab = browser.tab();
    tab.go(&site.link(None));
    tab.click(".new summary");
    tab.value("document.querySelector('#new [name=workingDirectory]').focus()");
    tab.types("not/absolute");
    tab.presses("Enter");
    tab.until("document.querySelector('#notice .step')");
    tab.pictured("sessions-new");
    let folder = site.world.work().display().to_string();
    tab.value(&format!("document.querySelector('#new [name=workingDirectory]').value = {folder:?}; document.querySelector('#new [name=name]').focus()"));
    tab.types("made here");
    tab.presses("Enter");
    tab.until("document.querySelector('h1')?.innerText === 'made here' && document.querySelector('#head .state.ok')");
    tab.runs("6 * 7");
    tab.until(&format!("{LAST}?.innerText.includes('42')"));
}

#[test]
fn the_form_offers_the_kinds_that_can_start_and_says_what_the_others_lack() {
    let settings = "[fsharp]\ndotnet = \"/nowhere/dotnet\"\n[pi]\npath = \"/nowhere/pi\"\n";
    let (site, browser) = (Site::of(World::with_jupyter(), settings), Browser::start());
    let tab = browser.tab();
    tab.go(&site.link(None));
    tab.click(".new summary");
    let kinds = "[...document.querySelectorAll('#kinds option')].map(e => e.value).sort().join()";
    assert_eq!(tab.value(kinds), "bash,deno,python3,xpython,xpython-raw");
    let missing = tab.text("#kinds .missing");
    assert!(missing.contains("F#: the configured .NET SDK /nowhere/dotnet cannot be used"), "{missing}");
    assert!(missing.contains("pi, a coding agent: the configured pi /nowhere/pi is not there"), "{missing}");
    tab.pictured("sessions-kinds");

    // The kernels of a project's own environment are among them once its folder is said.
    let own = site.world.work().join(".venv/share/jupyter/kernels/research");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(site.world.work().join(".venv/pyvenv.cfg"), "").unwrap();
    let spec = json!({ "argv": ["/bin/sh"], "display_name": "Research", "language": "python" });
    std::fs::write(own.join("kernel.json"), spec.to_string()).unwrap();
    tab.value("document.querySelector('#kinds select').value = 'bash'; document.querySelector('#new [name=workingDirectory]').focus()");
    tab.types(site.world.work().to_str().unwrap());
    tab.value("document.querySelector('#new [name=name]').focus()");
    tab.until("document.querySelector('#kinds option[value=research]')");
    assert_eq!(tab.value("document.querySelector('#kinds select').value"), "bash");
    tab.presses("Enter");
    tab.until(
        "document.querySelector('#code') && document.querySelector('#head').innerText.includes('bash')",
    );
    tab.runs("echo $((6 * 7))");
    tab.until(&format!("{LAST}?.innerText.includes('42')"));

    // Its kind is the first from now on, and one that cannot start is refused before there is a session.
    tab.go(&format!("http://127.0.0.1:{}/ui", site.port));
    tab.until("document.querySelector('#kinds option')?.value === 'bash'");
    let refused = tab.value(&format!(
        "import(document.querySelector('script[src]').src.replace(/[^/]*$/, 'origin.js')).then(({{ request }}) => request('/sessions', {{
            method: 'POST', headers: {{ 'Content-Type': 'application/json' }},
            body: JSON.stringify({{ kind: 'fsharp', workingDirectory: {:?} }}) }})).then(answer => answer.json()).then(said => said.code)",
        site.world.work()
    ));
    assert_eq!(refused, "kernel_unavailable");
    assert_eq!(tab.text("#sessions li .name").lines().count(), 1);
}

#[test]
fn an_imported_conversation_is_shown_with_its_roles_and_what_was_thought_called_and_answered() {
    let (site, browser) = (Site::scripted(), Browser::start());
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/tests/samples");
    let opened = |file: &str, name: &str| {
        let done = site.world.run(["import".as_ref(), samples.join(file).as_os_str()]);
        assert_eq!(done.code, 0, "{done:?}");
        site.opened(&browser, name)
    };
    let tab = opened("claude-code-branches.jsonl", "A plot");
    tab.until("document.querySelectorAll('.cell').length > 9");
    let roles: Vec<String> = tab.text(".cell.work .role").lines().map(str::to_owned).collect();
    assert_eq!(
        roles,
        ["user", "assistant", "assistant", "user", "system", "assistant", "user", "assistant"],
        "{}",
        tab.text("#cells")
    );
    assert_eq!(
        tab.text(".cell .prompt").replace("\n\n", "\n"),
        "What is in this picture?\n(image)\nAnother idea.\nGo on."
    );
    assert_eq!(tab.value("document.querySelectorAll('.cell .thinking').length"), 1);
    let tools = "[...document.querySelectorAll('.cell .tool')].map(e => [e.querySelector('b').textContent, e.querySelector('.state').className, e.querySelector('.answer').textContent])";
    let answered = json!([["Read", "state ok", "one\ntwo"], ["Read", "state bad", "no such file"]]);
    assert_eq!(tab.value(tools), answered);
    assert!(tab.text("#cells").contains("A picture of a plot; another idea was better."));
    tab.pictured("session-imported");
    assert_eq!(tab.problems(), Vec::<String>::new());

    let tab = opened("pi.jsonl", "Count words");
    tab.until("document.querySelector('.cell .tool .answer')");
    assert!(tab.value("document.querySelectorAll('.cell .said').length").as_u64().unwrap() > 1);
    assert_eq!(tab.problems(), Vec::<String>::new());
}

#[test]
fn a_reset_says_what_it_drops_and_asks_and_is_undone_by_a_fork() {
    let (site, browser) = (Site::scripted(), Browser::start());
    assert_eq!(site.world.run(["session", "new", "--name", "lab"]).code, 0);
    let tab = site.opened(&browser, "lab");
    let resets = |count: usize| {
        let reset = "[...document.querySelectorAll('.cell.note')].filter(e => e.innerText.includes('definitions are dropped')).length";
        tab.until(&format!("{reset} === {count} && document.querySelector('#head .state.ok')"));
    };
    // Nothing was said yet: there is nothing to ask.
    tab.click("#actions [data-do=reset]");
    resets(1);
    assert_eq!(tab.value("document.querySelector('[data-do=undoReset]')"), json!(null));

    tab.runs("let rate = 21");
    tab.until(&format!("{LAST}?.querySelector('.state.ok')"));
    // The first time that a worker names its values takes longest, and the dialog does not wait for it for ever.
    assert_eq!(site.world.run(["explore", "--values", "--session", "lab"]).code, 0);
    tab.value("document.querySelector('#actions [data-do=reset]').focus()");
    tab.presses("Enter");
    tab.until("document.querySelector('dialog[open] #reset')");
    let asked = tab.text("dialog[open]");
    assert!(asked.contains("This drops what this session has defined, with 1 value (rate)."), "{asked}");
    tab.pictured("session-reset");
    // What Enter takes first is to leave it.
    assert_eq!(tab.text("dialog[open] :focus"), "Leave it");
    tab.presses("Enter");
    tab.until("!document.querySelector('dialog[open]')");
    tab.value("document.querySelector('#actions [data-do=reset]').focus()");
    tab.presses("Enter");
    tab.until("document.querySelector('dialog[open] #reset')");
    tab.presses("Escape");
    tab.until("!document.querySelector('dialog[open]')");
    tab.runs("rate * 2");
    tab.until(&format!("{LAST}?.innerText.includes('42')"));
    resets(1);

    tab.value("document.querySelector('#actions [data-do=reset]').focus()");
    tab.presses("Enter");
    tab.until("document.querySelector('dialog[open] #reset')");
    tab.presses("Tab");
    tab.presses("Enter");
    resets(2);
    tab.until("document.querySelector('[data-do=undoReset]')");
    assert_eq!(tab.barriers(), Vec::<String>::new());
    tab.value("document.querySelector('#actions [data-do=hardReset]').click()");
    tab.until("document.querySelector('dialog[open] #reset')");
    let asked = tab.text("dialog[open]");
    assert!(asked.contains("a new worker takes the place of this one"), "{asked}");
    tab.presses("Escape");
    tab.until("!document.querySelector('dialog[open]')");

    tab.click("[data-do=undoReset]");
    tab.until(
        "document.querySelector('h1')?.innerText === 'lab-2' && document.querySelector('#head .state.ok')",
    );
    tab.runs("rate + 1");
    tab.until(&format!("{LAST}?.innerText.includes('22')"));
    assert_eq!(tab.problems(), Vec::<String>::new());
}

#[test]
fn what_was_run_before_is_recalled_and_found_also_what_was_typed_elsewhere() {
    let (site, browser) = (Site::scripted(), Browser::start());
    let line = r#"{"id":"00000000-0000-0000-0000-000000000001","at":"2026-02-13T13:29:20Z","text":"let typed = \"elsewhere\""}"#;
    std::fs::write(site.world.home().join("history.unsent"), format!("{line}\n")).unwrap();
    site.world.eval("0");
    let name = site.world.session()["name"].as_str().unwrap().to_owned();
    let terminal = terminal::Terminal::open(&site.world);
    terminal.wait_for_last_line("work>");
    terminal.press(terminal::CTRL_D);
    assert_eq!(terminal.wait_for_end(), 0);

    let tab = site.opened(&browser, &name);
    for code in ["let first = 1", "let second = 2\nsecond + first"] {
        tab.runs(code);
        tab.until(&format!("{LAST}.querySelector('.state.ok') && {LAST}.innerText.includes({code:?})"));
    }
    tab.value("document.getElementById('code').focus()");
    let shows = |wanted: &str| tab.until(&format!("document.getElementById('code').value === {wanted:?}"));
    tab.types("draft");
    for wanted in ["let second = 2\nsecond + first", "let first = 1", "let typed = \"elsewhere\""] {
        tab.presses("Alt+ArrowUp");
        shows(wanted);
    }
    for wanted in ["let first = 1", "let second = 2\nsecond + first", "draft"] {
        tab.presses("Alt+ArrowDown");
        shows(wanted);
    }
    tab.value("document.getElementById('code').value = ''");
    tab.presses("ArrowUp");
    shows("let second = 2\nsecond + first");

    // Another browser of the same person has it too.
    let tab = site.opened(&browser, &name);
    tab.value("document.getElementById('code').focus()");
    tab.presses("Ctrl+r");
    tab.until("document.querySelectorAll('#recalled [role=option]').length === 3");
    tab.types("let typed");
    tab.until("document.querySelectorAll('#recalled [role=option]').length === 1");
    tab.picture("history-found");
    assert_eq!(tab.barriers(), Vec::<String>::new());
    tab.presses("Enter");
    tab.until("!document.querySelector('dialog[open]') && document.getElementById('code').value === 'let typed = \"elsewhere\"'");
    tab.click(".bar a[href='/ui/history']");
    tab.until("document.querySelectorAll('.rows li').length === 3");
    tab.pictured("history");
    assert_eq!(tab.problems(), Vec::<String>::new());
}

#[test]
fn an_agent_is_asked_and_steered_and_what_it_says_and_does_is_seen() {
    let (agents, browser) = (Agents::new(), Browser::start());
    let made = agents.world.run(["session", "new", "--kind", "pi", "--name", "main"]);
    assert_eq!(made.code, 0, "{made:?}");
    let tab = browser.tab();
    tab.go(agents.world.run(["web", "--print", "main"]).stdout.trim());
    tab.until("document.querySelector('#run button[name=prompt]')");
    agents.model.will(call("c1", "bash", &json!({ "command": "echo from the shell" })));
    agents.model.will(say(&["It says ", "so."]));
    tab.click("[data-do=settings]");
    tab.until("document.querySelector('#settings')");
    assert!(tab.text("#settings").contains("can be chosen once it was started"));
    tab.click("#settings button[value='']");
    tab.runs("what does the shell say?");
    tab.until("document.querySelector('.cell.work .tool .state.ok')");
    tab.until("document.querySelector('.cell.work .said')?.innerText === 'It says so.'");
    tab.until("document.querySelector('.cell.work > header .state.ok')");
    assert_eq!(tab.value("document.querySelectorAll('.cell.work .said').length"), 1);
    tab.click(".tool summary");
    assert!(tab.text(".tool .answer").contains("from the shell"));

    // It goes on with another model, and a line of a shell runs beside it.
    tab.click("[data-do=settings]");
    tab.until("document.querySelector('#settings select')");
    tab.picture("settings");
    assert_eq!(tab.barriers(), Vec::<String>::new());
    tab.value("[...document.querySelectorAll('#settings option')].find(o => o.innerText.startsWith('local/other')).selected = true");
    tab.click("#settings .primary");
    tab.until("document.querySelector('#head').innerText.includes('other')");
    tab.runs("!echo beside $((40 + 2))");
    tab.until("document.querySelector('#cells').innerText.includes('beside 42')");

    // What it thinks and says is seen while it goes on; it is steered meanwhile, and told to stop.
    let go_on = Arc::new(Notify::new());
    let (half, rest) = (Step::Text("half of ".to_owned()), Step::Wait(Arc::clone(&go_on)));
    agents.model.will(vec![Step::Think("a long thought"), half, rest]);
    tab.runs("go on for long");
    tab.until("document.querySelector('#run button[name=steer]')");
    tab.until("[...document.querySelectorAll('.said[data-open]')].some(e => e.innerText === 'half of ')");
    assert!(tab.text(".thinking").contains("a long thought"));
    tab.runs("not that way");
    tab.until("document.querySelector('#cells').innerText.includes('steer: not that way')");
    tab.picture("session-agent");
    tab.click("[data-do=cancel]");
    tab.until("document.querySelector('#cells').innerText.includes('cancelled by local · web')");
    assert_eq!(tab.barriers(), Vec::<String>::new());
    assert_eq!(tab.problems(), Vec::<String>::new());
}

#[test]
fn tests_and_the_lines_that_they_reach_are_shown_as_they_are_and_follow_what_is_saved() {
    let (site, browser) = (Site::new(), Browser::start());
    open_shop(&site.world);
    let name = site.world.session()["name"].as_str().unwrap().to_owned();
    let panel = site.opened(&browser, &name);
    assert_eq!(panel.value("document.getElementById('tests').hidden"), json!(true));

    let mut runs = site.world.follow_lines(&["test", "--watch", "--json"]);
    runs.next();
    panel.until("document.querySelector('#tests .state.ok')");
    assert!(panel.text("#tests").contains("2 passed"), "{}", panel.text("#tests"));
    let lines = site.opened(&browser, &name);
    lines.click("#tests a");
    lines.until("document.querySelector('table.coverage a')");
    assert_eq!(lines.barriers(), Vec::<String>::new());
    lines.click("table.coverage tbody a");
    lines.until("document.querySelector('#L2.passing')");
    assert!(lines.text("#L2").contains("let price"), "{}", lines.text("#L2"));
    assert_eq!(lines.value("document.querySelector('#L3').className"), json!("unreached"));
    assert_eq!(lines.value("document.querySelector('#L1').className"), json!(""));

    save(&site.world, &source("\n  count * 9"));
    lines.until("document.querySelector('#L3.failing')");
    assert!(
        lines
            .value("document.querySelector('#L3 [role=img]').title")
            .as_str()
            .is_some_and(|words| words.contains("Shop.Tests.prices"))
    );
    assert_eq!(lines.value("document.querySelector('#L5').className"), json!("passing"));
    lines.pictured("coverage");
    panel.until("document.querySelector('#tests .state.bad')");
    panel.until("document.querySelector('#tests').innerText.includes('1 of 3 tests reach the change')");
    let told = panel.text("#tests");
    assert!(
        told.contains("1 test fails") && told.contains("Shop.Tests.prices") && told.contains("18"),
        "{told}"
    );
    panel.pictured("session-tests");
    for tab in [&panel, &lines] {
        assert_eq!(tab.barriers(), Vec::<String>::new());
        assert_eq!(tab.problems(), Vec::<String>::new());
    }
    panel.click("#tests .failing a");
    panel.until("document.querySelector('.source tr:target')");
    assert!(panel.text("tr:target").contains("Assert.Equal"), "{}", panel.text("tr:target"));
}
