//! The program in a terminal: keys go in, and the screen is looked at until it shows what is expected.

use std::io::{Read, Write};
use std::num::NonZero;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::support::World;

/// No wait is this long unless something is wrong.
const LIMIT: Duration = Duration::from_secs(120);
/// The screen's size; the terminal of the tests has no scrollback.
const SIZE: PtySize = PtySize { rows: 60, cols: 100, pixel_width: 0, pixel_height: 0 };

pub(crate) const TAB: &str = "\t";
pub(crate) const ENTER: &str = "\r";
pub(crate) const ALT_ENTER: &str = "\u{1b}\r";
pub(crate) const UP: &str = "\u{1b}[A";
pub(crate) const LEFT: &str = "\u{1b}[D";
pub(crate) const CTRL_C: &str = "\u{3}";
pub(crate) const CTRL_D: &str = "\u{4}";
pub(crate) const CTRL_R: &str = "\u{12}";

/// A terminal with the program in it.
pub(crate) struct Terminal {
    keys: Keys,
    screen: Arc<Screen>,
    child: Box<dyn Child + Send + Sync>,
    /// Closing it would end the program.
    _master: Box<dyn MasterPty + Send>,
}

type Keys = Arc<Mutex<Box<dyn Write + Send>>>;

struct Screen {
    parser: Mutex<vt100::Parser<Answers>>,
    /// All that was written to it, with what is obeyed and not seen.
    written: Mutex<Vec<u8>>,
    has_changed: Condvar,
}

/// What a terminal says when it is asked where the cursor is.
struct Answers {
    keys: Keys,
}

impl vt100::Callbacks for Answers {
    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        _: Option<u8>,
        _: Option<u8>,
        params: &[&[u16]],
        c: char,
    ) {
        if c == 'n' && params == [&[6]] {
            let (row, column) = screen.cursor_position();
            write!(self.keys.lock().unwrap(), "\u{1b}[{};{}R", row + 1, column + 1).unwrap();
        }
    }
}

impl Terminal {
    /// Opens a prompt in the working folder.
    pub(crate) fn open(world: &World) -> Self {
        Self::run(&world.command())
    }

    /// Runs a command in the terminal.
    pub(crate) fn run(command: &Command) -> Self {
        let pair = native_pty_system().openpty(SIZE).unwrap();
        let child = pair.slave.spawn_command(in_terminal(command)).unwrap();
        drop(pair.slave);
        let keys: Keys = Arc::new(Mutex::new(pair.master.take_writer().unwrap()));
        let answers = Answers { keys: Arc::clone(&keys) };
        let (rows, columns) = (NonZero::new(SIZE.rows).unwrap(), NonZero::new(SIZE.cols).unwrap());
        let parser = Mutex::new(vt100::Parser::new_with_callbacks(rows, columns, 0, answers));
        let screen = Arc::new(Screen { parser, written: Mutex::default(), has_changed: Condvar::new() });
        let (mut output, shown) = (pair.master.try_clone_reader().unwrap(), Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                shown.written.lock().unwrap().extend_from_slice(&bytes[..count]);
                shown.parser.lock().unwrap().process(&bytes[..count]);
                shown.has_changed.notify_all();
            }
        });
        Self { keys, screen, child, _master: pair.master }
    }

    /// Sends keys to the terminal.
    pub(crate) fn press(&self, keys: &str) {
        let mut sink = self.keys.lock().unwrap();
        sink.write_all(keys.as_bytes()).unwrap();
        sink.flush().unwrap();
    }

    /// Types a line and Enter.
    pub(crate) fn enter(&self, line: &str) {
        self.press(line);
        self.press(ENTER);
    }

    /// Pastes, as terminals do it that say so.
    pub(crate) fn paste(&self, text: &str) {
        self.press(&format!("\u{1b}[200~{text}\u{1b}[201~"));
    }

    /// Waits until the screen shows a text.
    pub(crate) fn wait_for(&self, text: &str) {
        self.wait_until(text, |screen| screen.contains(text));
    }

    /// Waits until the last line of the screen is this one.
    pub(crate) fn wait_for_last_line(&self, line: &str) {
        self.wait_until(line, |screen| {
            screen.trim_end().lines().last().is_some_and(|last| last.trim_end() == line)
        });
    }

    /// Waits until the screen is as it should be.
    pub(crate) fn wait_until(&self, what: &str, fits: impl Fn(&str) -> bool) {
        let began = Instant::now();
        let mut parser = self.screen.parser.lock().unwrap();
        while !fits(&parser.screen().contents()) {
            let rest = LIMIT.saturating_sub(began.elapsed());
            assert!(!rest.is_zero(), "waited for {what:?} on:\n{}", parser.screen().contents());
            parser = self.screen.has_changed.wait_timeout(parser, rest).unwrap().0;
        }
    }

    /// What is on the screen.
    pub(crate) fn screen(&self) -> String {
        self.screen.parser.lock().unwrap().screen().contents()
    }

    /// All that was written to it, with what is obeyed and not seen.
    pub(crate) fn written(&self) -> String {
        String::from_utf8_lossy(&self.screen.written.lock().unwrap()).into_owned()
    }

    /// Waits until the program has ended, and gives its exit code.
    pub(crate) fn wait_for_end(mut self) -> u32 {
        self.child.wait().unwrap().exit_code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn in_terminal(command: &Command) -> CommandBuilder {
    let mut builder = CommandBuilder::new(command.get_program());
    builder.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => builder.env(name, value),
            None => builder.env_remove(name),
        }
    }
    builder.env("TERM", "xterm-256color");
    builder.cwd(command.get_current_dir().unwrap());
    builder
}
