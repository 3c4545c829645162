//! Daemons as children of the test, which kills them at any time, also while they begin.

use std::process::{Child, Stdio};
use std::time::Duration;

use super::plan::Plan;
use crate::support::{World, within};

/// How long a daemon that finds another in its place may take to end.
const LONG: Duration = Duration::from_secs(60);

/// How long a daemon may take to come to the commit at which it ends.
const COMMITS: Duration = Duration::from_secs(2);

/// The daemons that were started and not killed: one, or several of which one gets the store.
#[derive(Default)]
pub(super) struct Daemons(Vec<Child>);

impl Daemons {
    /// Starts so many at once.
    pub(super) fn start(&mut self, world: &World, number: usize) {
        self.start_until(world, number, None);
    }

    /// The same, each of which ends at a commit.
    fn start_until(&mut self, world: &World, number: usize, ends_at: Option<(&str, u64)>) {
        let start = || {
            let mut command = world.command();
            if let Some((failpoint, time)) = ends_at {
                command.env("MAINSTAY_LOG_FAILPOINT", format!("{failpoint}:{time}"));
            }
            command.args(["serve", "--port", "0", "--no-watch", "--announce"]);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        };
        self.0.extend((0..number).map(|_| start()));
    }

    /// Kills all of them, and waits until they are gone.
    pub(super) fn kill(&mut self) {
        self.0.iter_mut().for_each(|daemon| daemon.kill().unwrap());
        for mut daemon in self.0.drain(..) {
            daemon.wait().unwrap();
        }
    }

    /// Does what the plan says.
    pub(super) fn suffer(&mut self, world: &World, plan: &Plan) {
        for kill in &plan.kills {
            // The moment is what is tried here.
            std::thread::sleep(kill.after);
            self.kill();
            self.start_until(world, kill.daemons, kill.ends_at);
            if kill.ends_at.is_some() {
                // Where it does not come to so many commits, it is killed for that.
                within(COMMITS, || self.0.iter_mut().any(|daemon| daemon.try_wait().unwrap().is_some()));
                self.kill();
                self.start(world, 1);
            }
        }
    }

    /// Waits until one is left, which is the one that the home names.
    pub(super) fn settle(&mut self, world: &World) -> Result<(), String> {
        let is_one = within(LONG, || {
            self.0.retain_mut(|daemon| daemon.try_wait().unwrap().is_none());
            self.0.len() <= 1
        });
        let pids: Vec<i32> = self.0.iter().map(|daemon| i32::try_from(daemon.id()).unwrap()).collect();
        match (is_one, world.daemon_pid()) {
            (true, Some(pid)) if pids == [pid] => Ok(()),
            (_, named) => Err(format!("of the daemons {pids:?} run, and the home names {named:?}")),
        }
    }
}

impl Drop for Daemons {
    fn drop(&mut self) {
        self.kill();
    }
}
