//! How a browser is let in: a link that works once gives it a secret, and the secret stands for the principal that asked for the link.
//!
//! The page keeps the secret in the storage of its origin and sends it as a bearer token (`web/assets/origin.js`). No cookie is set or read:
//! browsers send cookies to every port of a host. A secret says whom it stands for and until when, sealed with a key that is made of the
//! daemon's token: it outlives the daemon, nothing of it is stored here, and another token makes all of them void.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use mainstay_model::{Access, Error, Principal, Timestamp};
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use crate::browser_secret;
use crate::daemon::Daemon;
use crate::problem::Problem;
use crate::tokens::Tokens;

/// How long a link may be used.
const LINK_LIFE: Duration = Duration::from_secs(60);
/// Links of one principal that wait to be used; then its oldest is void.
const LINKS: usize = 10;

/// Links that were not used yet.
#[derive(Default)]
pub struct Links(Mutex<HashMap<String, (Principal, Instant)>>);

impl Links {
    /// The code of a new link.
    pub fn issue(&self, principal: Principal) -> String {
        let code = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        let now = Instant::now();
        let mut waiting = self.waiting();
        waiting.retain(|_, (_, until)| *until > now);
        let own = waiting.iter().filter(|(_, (of, _))| *of == principal);
        if own.clone().count() >= LINKS
            && let Some(oldest) = own.min_by_key(|(_, (_, until))| *until).map(|(code, _)| code.clone())
        {
            waiting.remove(&oldest);
        }
        waiting.insert(code.clone(), (principal, now + LINK_LIFE));
        code
    }

    /// Whom a code lets in; once.
    fn redeem(&self, code: &str) -> Option<Principal> {
        let (principal, until) = self.waiting().remove(code)?;
        (until > Instant::now()).then_some(principal)
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<String, (Principal, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The address that lets a browser in, once. Its code stands in the fragment, which browsers send to nobody; the page redeems it and takes it
/// off the address.
pub fn link(daemon: &Daemon, principal: Principal, to: &str) -> String {
    let code = daemon.links.issue(principal);
    format!("http://127.0.0.1:{}{to}#enter={code}", daemon.port)
}

/// What the page sends to be let in.
#[derive(Deserialize)]
pub struct LoginRequest {
    code: String,
}

/// Lets a browser in: redeems the code of a link for a secret.
pub async fn enter(State(daemon): State<Daemon>, Json(entrance): Json<LoginRequest>) -> Response {
    let Some(principal) = daemon.links.redeem(&entrance.code) else {
        return Problem::from(Error::Unauthorized).into_response();
    };
    let life = Duration::from_millis(daemon.engine.limits().browser_ms);
    let until = Timestamp::now().as_second().saturating_add_unsigned(life.as_secs());
    let secret = seal(&daemon.tokens, &principal, until);
    ([(header::CACHE_CONTROL, "no-store")], Json(json!({ "secret": secret }))).into_response()
}

/// Whom a browser's secret stands for.
pub fn access_of(tokens: &Tokens, secret: &str) -> Option<Access> {
    open(tokens, secret, Timestamp::now().as_second())
}

fn seal(tokens: &Tokens, principal: &Principal, until: i64) -> String {
    browser_secret::seal(&tokens.browser_key(), principal, until)
}

fn open(tokens: &Tokens, sealed: &str, now: i64) -> Option<Access> {
    tokens.access_of_principal(&browser_secret::open(&tokens.browser_key(), sealed, now)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::TokenHash;
    use mainstay_model::Rights;

    fn ada() -> Access {
        let rights = Rights::Some { see: Vec::new(), drive: Vec::new() };
        Access {
            principal: Principal::new("ada é").unwrap_or_else(|_| Principal::new("ada").unwrap()),
            rights,
        }
    }

    fn tokens(local: &str) -> Tokens {
        Tokens::new(local, [(TokenHash::of("hers"), ada())])
    }

    #[test]
    fn a_secret_stands_for_its_principal_as_long_as_it_and_the_token_last() {
        let tokens = tokens("secret");
        for access in [Access::local(), ada()] {
            let sealed = seal(&tokens, &access.principal, 100);
            assert_eq!(open(&tokens, &sealed, 99), Some(access));
            assert_eq!(open(&tokens, &sealed, 100), None, "it is too old");
            assert_eq!(open(&self::tokens("another"), &sealed, 99), None, "the token is another");
            let later = sealed.replacen("100", "999", 1);
            assert_eq!(open(&tokens, &later, 99), None, "it was changed");
        }
        let gone = seal(&tokens, &Principal::new("bob").unwrap(), 100);
        assert_eq!(open(&tokens, &gone, 99), None, "nobody has that name any more");
        for nonsense in ["", ".", "..", "1.2.3", "a.b.c", "100..", &"x".repeat(10_000)] {
            assert_eq!(open(&tokens, nonsense, 0), None, "{nonsense:?}");
        }
    }

    #[test]
    fn a_link_works_once() {
        let links = Links::default();
        let code = links.issue(Principal::local());
        assert_eq!(links.redeem("another"), None);
        assert_eq!(links.redeem(&code), Some(Principal::local()));
        assert_eq!(links.redeem(&code), None);
    }

    #[test]
    fn nobody_uses_up_the_links_of_others() {
        let links = Links::default();
        let (first, hers) = (links.issue(Principal::local()), ada().principal);
        let codes: Vec<_> = (0..=LINKS).map(|_| links.issue(hers.clone())).collect();
        assert_eq!(links.redeem(&codes[0]), None, "her oldest made room");
        assert_eq!(links.redeem(&codes[LINKS]), Some(hers));
        assert_eq!(links.redeem(&first), Some(Principal::local()));
    }
}
