//! Until when a connection's credentials are good, and when its client is asked for new ones. Source: draft-arcp-01, 8.4.

use std::time::Duration;

use mainstay_gateway::admission::{Admission, wait_until};
use mainstay_model::Timestamp;

/// The credentials of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) admission: Admission,
    /// When the client is asked for new ones; none where it was asked, or never is.
    asks_at: Option<Timestamp>,
}

/// What is to be done about credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// The client is asked for new ones, which must be there at this time.
    Refresh(Timestamp),
    /// They are good no longer.
    Expired,
}

impl Credentials {
    /// Credentials that were shown now. The client is asked so long before they expire, or half-way where they are good for less than twice that.
    pub(crate) fn shown(admission: Admission, now: Timestamp, before: Duration) -> Self {
        let asks_at = admission.expires_at.and_then(|at| {
            let half = Duration::try_from(at.duration_since(now)).unwrap_or_default() / 2;
            at.checked_sub(before.min(half)).ok()
        });
        Self { admission, asks_at }
    }

    /// What is due now.
    pub(crate) fn due(&mut self, now: Timestamp) -> Option<Due> {
        let expires_at = self.admission.expires_at?;
        if expires_at <= now {
            return Some(Due::Expired);
        }
        self.asks_at.take_if(|at| *at <= now).map(|_| Due::Refresh(expires_at))
    }

    /// Waits until something is due.
    pub(crate) async fn wait(next: Option<Timestamp>) {
        match next {
            Some(at) => wait_until(at).await,
            None => std::future::pending().await,
        }
    }

    /// When something is due next.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.asks_at.or(self.admission.expires_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_model::Access;
    use proptest::prelude::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn good_until(second: Option<i64>) -> Credentials {
        let admission = Admission { access: Access::local(), expires_at: second.map(at) };
        Credentials::shown(admission, at(0), Duration::from_secs(60))
    }

    #[test]
    fn a_client_is_asked_once_in_time_and_goes_at_the_end() {
        let mut credentials = good_until(Some(1000));
        assert_eq!((credentials.next(), credentials.due(at(939))), (Some(at(940)), None));
        assert_eq!(credentials.due(at(940)), Some(Due::Refresh(at(1000))));
        assert_eq!((credentials.next(), credentials.due(at(999))), (Some(at(1000)), None));
        assert_eq!(credentials.due(at(1000)), Some(Due::Expired));
        assert_eq!(good_until(Some(20)).next(), Some(at(10)), "half-way, since there is less than a minute");
        let mut unlimited = good_until(None);
        assert_eq!((unlimited.next(), unlimited.due(at(1 << 33))), (None, None));
    }

    proptest! {
        #[test]
        fn whenever_it_is_looked_at_they_are_good_until_their_end(until in -100i64..1000, looks in proptest::collection::vec(0i64..1200, 0..9)) {
            let mut credentials = good_until(Some(until));
            let mut asked = 0;
            for look in looks {
                match credentials.due(at(look)) {
                    Some(Due::Expired) => prop_assert!(look >= until),
                    Some(Due::Refresh(deadline)) => {
                        prop_assert!(look < until && deadline == at(until));
                        asked += 1;
                    }
                    None => prop_assert!(look < until),
                }
            }
            prop_assert!(asked <= 1);
        }
    }
}
