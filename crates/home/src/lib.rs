//! What a user's machine has of Mainstay's, as the daemon and its clients both need to know it.
//!
//! - [`Home`] is the home folder: the paths and the files in it. [`DaemonRecord`] and [`Announcement`] say which daemon runs.
//! - [`config`] has the settings of the user.
//! - [`environment`] is the environment that a daemon or a session starts with.
//! - [`Installation`] says how the program was installed.
//! - [`search`] says where kernels, SDKs and agents are looked for.
//!
//! Nothing here runs a daemon or connects to one.

pub mod compilers;
pub mod config;
mod daemon_record;
pub mod environment;
mod home;
mod installation;
mod program;
pub mod search;

pub use self::daemon_record::{Announcement, DaemonRecord, VERSION, transcribing};
pub use self::home::{HOME_VARIABLE, Home, TOKEN_VARIABLE, append_private, hash, new_token, shows_own_token};
pub use self::installation::Installation;
pub use self::program::{lasting_program, program, program_file, program_for_others};
