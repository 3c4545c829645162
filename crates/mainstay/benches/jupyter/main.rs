//! The daemon beside jupyter_server and beside the bare kernel, on the same machine with the same ipykernel: a session created, an execution
//! there and back, the lines that code prints, memory, and coming back. `cargo xtask bench` runs it with the release build.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "this is a benchmark")]

mod direct;
mod figures;
mod http;
mod ours;
mod theirs;

use std::path::Path;

use figures::LINES;

fn main() {
    // `cargo test --benches` only wants to know that it builds.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let target = Path::new(env!("CARGO_BIN_EXE_mainstay")).ancestors().nth(2).unwrap();
    let folder = tempfile::Builder::new().prefix("bench").tempdir_in(target).unwrap();
    let folder = folder.path();
    let fsharp = format!("for i in 1 .. {LINES} do printfn \"line %d\" i");
    let python_lines = format!("for i in range(1, {LINES} + 1): print('line', i, flush=True)");
    let Ok(python) = std::env::var("MAINSTAY_TEST_PYTHON") else {
        println!("MAINSTAY_TEST_PYTHON names no Python with jupyter_server and ipykernel");
        return;
    };
    let kernels = Path::new(&python).ancestors().nth(2).unwrap().join("share/jupyter");
    figures::head();
    let direct = direct::measured(folder, &python, &python_lines);
    direct.print("ipykernel itself, over ZeroMQ");
    let ours = ours::measured(folder, "python3", &python_lines, &kernels);
    ours.print("Mainstay, ipykernel");
    let theirs = theirs::measured(folder, &python, &python_lines);
    theirs.print("jupyter_server, ipykernel");
    ours::measured(folder, "fsharp", &fsharp, &kernels).print("Mainstay, F#");
    let ms = |took: std::time::Duration| took.as_secs_f64() * 1000.0;
    println!(
        "\nMainstay over the bare kernel: {:.2} ms; over jupyter_server: {:.2} of its round trip",
        ms(ours.median()) - ms(direct.median()),
        ms(ours.median()) / ms(theirs.median()),
    );
}
