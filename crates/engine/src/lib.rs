//! Sessions at run time: admission, the serial lane and the immediate one, jobs, supervision of workers, subscriptions.
//!
//! [`Engine`] is the only way in. Each session that is not at rest is one task ([`session`]), the sole owner of its state
//! and its worker; what it decides is committed, published and answered in order by [`commit`]. The engine knows
//! no protocol and no language: languages come in through [`runner::RunnerFactory`], protocols call [`Engine`].

mod accepted;
mod claims;
mod commit;
mod dependencies;
mod engine;
mod hub;
mod lane;
mod output;
pub mod runner;
mod session;
mod warm_up;
mod worker;

pub use engine::{CommandStatus, Engine, SessionStatus};
pub use hub::{Cursor, Subscription};
