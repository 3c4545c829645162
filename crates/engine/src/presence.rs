//! Who is there: the clients of the daemon, which sessions each follows, and whether the one that asked for a command has left since.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError};

use mainstay_model::client_info::ClientInfo;
use mainstay_model::{Principal, SessionId, Timestamp};

use tokio::sync::watch;

use crate::claims::CommandKey;
use crate::sync::{Mutex, MutexGuard};

/// Up to how many commands are remembered, with who asked for them, before those that have ended are looked for.
const REMEMBERED: usize = 64;

/// The clients that are there.
#[derive(Default)]
pub(crate) struct Clients {
    present: Mutex<PresenceTable>,
    /// Sent whenever a client leaves.
    departures: watch::Sender<()>,
}

#[derive(Default)]
struct PresenceTable {
    last: u64,
    clients: BTreeMap<u64, Entry>,
    /// The connections that asked for commands which had not ended when that was looked for last.
    asked: HashMap<CommandKey, u64>,
    /// Up to how many of those there may be until that is looked for again.
    most_asked: usize,
}

struct Entry {
    principal: Principal,
    name: Arc<str>,
    since: Timestamp,
    /// How many subscriptions it has to each session, and to all.
    follows: HashMap<Option<SessionId>, usize>,
}

impl Clients {
    /// Notes that a client has come; it is there until what this gives is dropped.
    pub(crate) fn come(self: &Arc<Self>, principal: Principal, name: &str, since: Timestamp) -> Presence {
        let name: Arc<str> = name.into();
        let mut present = self.lock();
        present.last += 1;
        let number = present.last;
        let entry = Entry { principal, name: Arc::clone(&name), since, follows: HashMap::new() };
        present.clients.insert(number, entry);
        Presence { clients: Arc::clone(self), number, name }
    }

    /// All who are there, the first to come first.
    pub(crate) fn list(&self) -> Vec<ClientInfo> {
        let info = |(number, entry): (&u64, &Entry)| {
            let mut follows: Vec<SessionId> = entry.follows.keys().copied().flatten().collect();
            follows.sort_unstable();
            ClientInfo {
                number: *number,
                principal: entry.principal.clone(),
                name: entry.name.to_string(),
                since: entry.since,
                follows,
                follows_all: entry.follows.contains_key(&None),
            }
        };
        self.lock().clients.iter().map(info).collect()
    }

    /// Whether the connection that asked for a command has left. Of a command that no connection asked for, it has not.
    pub(crate) fn has_left(&self, command: &CommandKey) -> bool {
        let present = self.lock();
        present.asked.get(command).is_some_and(|number| !present.clients.contains_key(number))
    }

    /// Notes that a client has asked for a command, which is under way. `is_under_way` says of earlier ones whether they have not ended yet.
    pub(crate) fn note_asked(
        &self,
        client: u64,
        command: CommandKey,
        is_under_way: impl Fn(&CommandKey) -> bool,
    ) {
        let mut present = self.lock();
        if present.asked.len() >= present.most_asked.max(REMEMBERED) {
            present.asked.retain(|command, _| is_under_way(command));
            present.most_asked = 2 * present.asked.len();
        }
        present.asked.insert(command, client);
    }

    /// Word of each client that leaves from now on.
    pub(crate) fn departures(&self) -> watch::Receiver<()> {
        self.departures.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, PresenceTable> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client's being there.
pub(crate) struct Presence {
    clients: Arc<Clients>,
    number: u64,
    name: Arc<str>,
}

impl Presence {
    /// What the client is.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Which client of the daemon's life it is.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Notes that the client has left, though something of it may still wait for answers.
    pub(crate) fn leave(&self) {
        if self.clients.lock().clients.remove(&self.number).is_some() {
            self.clients.departures.send_replace(());
        }
    }

    /// Notes that it follows a session, or all, until what this gives is dropped.
    pub(crate) fn follows(&self, session: Option<SessionId>) -> Following {
        if let Some(entry) = self.clients.lock().clients.get_mut(&self.number) {
            *entry.follows.entry(session).or_default() += 1;
        }
        Following { clients: Arc::clone(&self.clients), number: self.number, session }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.leave();
    }
}

/// A client's following of a session, or of all.
pub(crate) struct Following {
    clients: Arc<Clients>,
    number: u64,
    session: Option<SessionId>,
}

impl Drop for Following {
    fn drop(&mut self) {
        let mut present = self.clients.lock();
        let Some(entry) = present.clients.get_mut(&self.number) else { return };
        if let Some(count) = entry.follows.get_mut(&self.session) {
            *count -= 1;
            if *count == 0 {
                entry.follows.remove(&self.session);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use mainstay_model::CommandId;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn whoever_asked_for_a_command_is_known_to_have_left() {
        let clients = Arc::new(Clients::default());
        let key = |id: &str| (Principal::local(), CommandId::new(id).unwrap());
        let come = || clients.come(Principal::local(), "mcp:same", Timestamp::UNIX_EPOCH);
        let (one, other) = (come(), come());
        clients.note_asked(one.number(), key("its"), |_| true);
        clients.note_asked(other.number(), key("others"), |_| true);
        assert!(!clients.has_left(&key("its")) && !clients.has_left(&key("unknown")));
        let departures = clients.departures();
        one.leave();
        assert!(departures.has_changed().unwrap());
        assert!(clients.has_left(&key("its")) && !clients.has_left(&key("others")));
        drop(come());
        assert!(clients.has_left(&key("its")), "another of the same name is not it");

        // Those that have ended are not remembered for ever.
        (0..REMEMBERED)
            .for_each(|number| clients.note_asked(other.number(), key(&format!("c{number}")), |_| false));
        drop(other);
        assert!(!clients.has_left(&key("its")) && clients.has_left(&key("c63")));
        assert!(clients.lock().asked.len() <= REMEMBERED);
    }

    #[test]
    fn a_client_is_there_and_follows_as_long_as_someone_holds_that() {
        let clients = Arc::new(Clients::default());
        let session = Some(SessionId::from_uuid(Uuid::nil()));
        let follows = || clients.list().iter().map(|client| client.follows.len()).collect::<Vec<_>>();
        let one = clients.come(Principal::local(), "cli", Timestamp::UNIX_EPOCH);
        let two = clients.come(Principal::local(), "terminal", Timestamp::UNIX_EPOCH);
        let (first, second) = (two.follows(session), two.follows(session));
        drop(first);
        assert_eq!(follows(), [0, 1]);
        drop(second);
        assert_eq!(follows(), [0, 0]);
        let late = one.follows(session);
        let all = two.follows(None);
        assert_eq!(clients.list().iter().map(|client| client.follows_all).collect::<Vec<_>>(), [false, true]);
        drop(all);
        drop(one);
        drop(late);
        let left = clients.list();
        assert_eq!(left.iter().map(|client| client.name.as_str()).collect::<Vec<_>>(), ["terminal"]);
    }
}
