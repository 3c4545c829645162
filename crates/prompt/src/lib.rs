//! The prompt: a person at a terminal, attached to a session that others may be attached to as well.
//!
//! - [`run`] attaches a person to a session. `prompt_loop` is the loop: read, carry out, read again.
//! - `editor` reads, on a thread of its own, with `line_prompt`, `keys`, `history` (over `history_cache`), `completion` (over `mentions`) and
//!   `highlight`; `completeness` tells whether what was typed is finished.
//! - `command` is the table of commands, [`help`] lists them, `actions` carries them out.
//! - `evaluation` runs code, and cells of other sessions; `agent_turn` speaks to agents, `output` shows what their tools gave, and `ask_prompt` asks
//!   what either asks. `echo_off` keeps what is typed meanwhile off the screen.
//! - `other_clients` shows what others do in the session, `banner` what one sees on attaching, `reconnection` what happens when the daemon ends.
//!
//! Only the loop's task prints, and only while the editor does not read. What others do is kept until the bell has interrupted the editor.

mod actions;
mod agent_start;
mod agent_turn;
mod ask_prompt;
mod banner;
mod command;
mod completeness;
mod completion;
mod echo_off;
mod editor;
mod evaluation;
pub mod help;
mod highlight;
mod history;
mod history_cache;
mod keys;
mod line_prompt;
mod mentions;
mod other_clients;
mod other_jobs;
mod output;
mod prompt_loop;
mod reconnection;
mod remedies;
mod watched_tests;

pub use self::prompt_loop::run;
