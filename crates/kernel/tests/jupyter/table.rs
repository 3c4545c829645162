//! The README's table of kinds: a row for each kernel that the behavioural tests hold to it, written from what they hold it to.

use std::env;
use std::path::Path;

use crate::session::Session;
use crate::tongue::{BASH, DENO, FSHARP, IPYKERNEL, Told, Tongue, XEUS_PYTHON, Yields};

/// Set, the table is written anew instead of compared.
const UPDATE: &str = "MAINSTAY_UPDATE_README";
const BEGIN: &str = "<!-- kinds: written by the tests of mainstay-kernel, MAINSTAY_UPDATE_README=1 -->\n";
const END: &str = "<!-- end of kinds -->\n";

async fn row(tongue: &Tongue) -> String {
    let session = Session::start(tongue).await;
    let info = session.worker.runner.process().info();
    // Versions are those of whoever runs the tests.
    let without_version = |text: &str| text.rsplit_once(' ').map_or(text, |(name, _)| name).to_owned();
    let yes = |is_so: bool| if is_so { "yes" } else { "–" };
    let value = match tongue.told {
        Told::Value => "yes",
        Told::Printed => "printed",
    };
    let interrupt = match tongue.yields {
        Yields::ToInterrupts => "stops the code",
        Yields::ByEnding => "by replay",
    };
    let cells = [
        format!("`{}`", tongue.kind),
        without_version(&info.kernel),
        value.to_owned(),
        interrupt.to_owned(),
        yes(tongue.ask.is_some()).to_owned(),
        yes(tongue.judges).to_owned(),
        yes(tongue.inspect.is_some()).to_owned(),
        yes(tongue.proves).to_owned(),
    ];
    format!("| {} |\n", cells.join(" | "))
}

#[tokio::test]
async fn the_readme_says_what_each_kind_can() {
    let mut table =
        "| `--kind` | what runs it | values | Ctrl-C | input | Enter | inspection | proves what is pure |\n\
                     | --- | --- | --- | --- | --- | --- | --- | --- |\n"
            .to_owned();
    for tongue in [&FSHARP, &IPYKERNEL, &XEUS_PYTHON, &DENO, &BASH] {
        table.push_str(&row(tongue).await);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = readme.split_once(BEGIN).expect("the README has a place for the table");
    let (written, after) = rest.split_once(END).unwrap();
    if env::var_os(UPDATE).is_some() {
        std::fs::write(path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
    } else {
        assert_eq!(written, table, "set {UPDATE}=1 to write it anew");
    }
}
