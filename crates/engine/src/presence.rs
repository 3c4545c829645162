//! Who is there: the clients of the daemon, and which sessions each follows.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError};

use mainstay_model::{Principal, SessionId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::sync::{Mutex, MutexGuard};

/// A client that is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientInfo {
    /// Counted from the daemon's start.
    pub number: u64,
    /// Whom it stands for.
    pub principal: Principal,
    /// What it is: `terminal`, `cli`, `mcp:NAME`.
    pub name: String,
    /// Since when it is there.
    pub since: Timestamp,
    /// The sessions it follows.
    pub follows: Vec<SessionId>,
    /// Whether it follows all.
    #[serde(default)]
    pub follows_all: bool,
}

/// The clients that are there.
#[derive(Default)]
pub(crate) struct Clients {
    present: Mutex<Present>,
}

#[derive(Default)]
struct Present {
    last: u64,
    clients: BTreeMap<u64, Entry>,
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

    fn lock(&self) -> MutexGuard<'_, Present> {
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
        self.clients.lock().clients.remove(&self.number);
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
    use super::*;
    use uuid::Uuid;

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
