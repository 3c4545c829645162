//! Tokens that their issuer is asked about (RFC 7662). What it says is kept for a short while, and no longer than the token is good.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use form_urlencoded::{Serializer, byte_serialize};
use hyper::header::HeaderValue;
use mainstay_model::Timestamp;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::keyed_places::{KeyedPlace, KeyedPlaces};
use crate::outbound::{Address, Outbound, OutboundError};
use crate::peer_network::PeerNetwork;

/// How long it is kept that a token is good, in seconds.
const GOOD_SEC: i64 = 60;
/// How long it is kept that a token is not good, in seconds.
const WRONG_SEC: i64 = 10;
/// How long a token is refused about which the issuer did not answer, in seconds.
const UNANSWERED_SEC: i64 = 5;
/// How many answers of each kind are kept.
const ANSWERS: usize = 1000;
/// How many questions of each kind are asked at once. Others wait for a place, as long as the request in which they
/// are asked may take.
const AT_ONCE: usize = 8;
/// How many tokens that are not known to be good are asked about at once for one peer.
const AT_ONCE_FOR_PEER: usize = 2;
/// The largest token that an issuer is asked about, in bytes.
const TOKEN_BYTES: usize = 16 * 1024;

/// The SHA-256 of a token: nothing else is kept of it.
type Hash = [u8; 32];
/// The claims of a token that is good, or none.
type Answer = Option<Map<String, Value>>;

/// An issuer that is asked about tokens.
///
/// Bad tokens delay only other tokens that are not known to be good: one peer has [`AT_ONCE_FOR_PEER`] questions,
/// all together [`AT_ONCE`]. Tokens that were good when they were last asked about have places of their own.
pub struct Introspection {
    address: Address,
    outbound: Outbound,
    credentials: HeaderValue,
    answers: Mutex<Answers>,
    /// One client asks about a token; others that show the same one wait for the answer.
    tokens: KeyedPlaces<Hash>,
    peers: KeyedPlaces<PeerNetwork>,
    unknown: Semaphore,
    renewed: Semaphore,
}

/// What was answered of tokens. Refusals never make the room of tokens that are good.
#[derive(Default)]
struct Answers {
    good: HashMap<Hash, GoodToken>,
    /// Until when each is refused without a question, in seconds.
    refused: HashMap<Hash, i64>,
}

/// A token that was good when its issuer was asked.
struct GoodToken {
    claims: Map<String, Value>,
    /// Until when that counts, in seconds.
    until: i64,
    /// When the token expires, in seconds.
    expires: i64,
}

impl Answers {
    fn of(&self, token: &Hash, now: i64) -> Option<Answer> {
        if self.refused.get(token).is_some_and(|until| *until > now) {
            return Some(None);
        }
        let good = self.good.get(token).filter(|good| good.until > now)?;
        Some(Some(good.claims.clone()))
    }

    /// Whether a token was good when it was last asked about, and has not expired since.
    fn was_good(&self, token: &Hash, now: i64) -> bool {
        self.good.get(token).is_some_and(|good| good.expires > now)
    }

    fn keep(&mut self, token: Hash, answer: Answer, now: i64) {
        let Some(claims) = answer else {
            self.good.remove(&token);
            return self.refuse(token, now.saturating_add(WRONG_SEC), now);
        };
        self.refused.remove(&token);
        let expires = claims.get("exp").and_then(Value::as_i64).unwrap_or(i64::MIN);
        let until = expires.min(now.saturating_add(GOOD_SEC));
        make_room(&mut self.good, now, |good| (good.until, good.expires));
        self.good.insert(token, GoodToken { claims, until, expires });
    }

    fn refuse(&mut self, token: Hash, until: i64, now: i64) {
        make_room(&mut self.refused, now, |until| (*until, *until));
        self.refused.insert(token, until);
    }
}

/// Removes what has ended where there is no room for one more, or else what ceases to count first. `times`
/// says until when one counts, and when it ends.
fn make_room<T>(kept: &mut HashMap<Hash, T>, now: i64, times: impl Fn(&T) -> (i64, i64)) {
    if kept.len() >= ANSWERS {
        kept.retain(|_, one| times(one).1 > now);
    }
    if kept.len() >= ANSWERS
        && let Some(first) = kept.iter().min_by_key(|(_, one)| times(one)).map(|(token, _)| *token)
    {
        kept.remove(&first);
    }
}

/// A place among the questions that are under way.
struct Place<'a> {
    _peer: Option<KeyedPlace<PeerNetwork>>,
    _question: SemaphorePermit<'a>,
}

impl Introspection {
    /// Asks at this address, as this client with this secret (RFC 6749, 2.3.1). None where those cannot be sent.
    pub fn new(address: Address, outbound: Outbound, client: &str, secret: &str) -> Option<Self> {
        let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
        let pair = format!("{}:{}", encoded(client), encoded(secret));
        let mut credentials = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(pair))).ok()?;
        credentials.set_sensitive(true);
        Some(Self {
            address,
            outbound,
            credentials,
            answers: Mutex::default(),
            tokens: KeyedPlaces::new(1),
            peers: KeyedPlaces::new(AT_ONCE_FOR_PEER),
            unknown: Semaphore::new(AT_ONCE),
            renewed: Semaphore::new(AT_ONCE),
        })
    }

    /// What the issuer says at this time of a token that a client of this network shows; none where it is not
    /// good, or the issuer cannot say.
    pub(crate) async fn claims_of(&self, token: &str, from: PeerNetwork, now: Timestamp) -> Answer {
        if token.is_empty() || token.len() > TOKEN_BYTES || !token.bytes().all(|byte| byte.is_ascii_graphic())
        {
            return None;
        }
        let began = Instant::now();
        let now = || {
            let waited = i64::try_from(began.elapsed().as_secs()).unwrap_or(i64::MAX);
            now.as_second().saturating_add(waited)
        };
        let hash = Sha256::digest(token.as_bytes()).into();
        if let Some(known) = self.lock().of(&hash, now()) {
            return known;
        }
        let _asks = self.tokens.acquire(hash).await?;
        // Another may have asked meanwhile.
        if let Some(known) = self.lock().of(&hash, now()) {
            return known;
        }
        let _place = self.place(&hash, from, now()).await?;
        let asked_at = now();
        let answered = self.ask(token).await;
        let mut answers = self.lock();
        match answered {
            Ok(answer) => {
                answers.keep(hash, answer.clone(), asked_at);
                answer
            }
            Err(error) => {
                tracing::warn!(%error, "an issuer cannot be asked about a token");
                answers.refuse(hash, now().saturating_add(UNANSWERED_SEC), now());
                None
            }
        }
    }

    /// A place for a question about a token.
    async fn place(&self, token: &Hash, from: PeerNetwork, now: i64) -> Option<Place<'_>> {
        if self.lock().was_good(token, now) {
            return Some(Place { _peer: None, _question: self.renewed.acquire().await.ok()? });
        }
        let peer = self.peers.acquire(from).await?;
        Some(Place { _peer: Some(peer), _question: self.unknown.acquire().await.ok()? })
    }

    async fn ask(&self, token: &str) -> Result<Answer, OutboundError> {
        let form = Serializer::new(String::new())
            .append_pair("token", token)
            .append_pair("token_type_hint", "access_token")
            .finish();
        let said = self.outbound.post(&self.address, &self.credentials, form).await?;
        let claims = serde_json::from_slice::<Map<String, Value>>(&said).ok();
        Ok(claims.filter(|claims| claims.get("active") == Some(&Value::Bool(true))))
    }

    fn lock(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn numbered(number: u64) -> Hash {
        let mut token = [0; 32];
        token[..8].copy_from_slice(&number.to_le_bytes());
        token
    }

    fn claims(exp: i64) -> Answer {
        json!({ "active": true, "exp": exp }).as_object().cloned()
    }

    #[test]
    fn an_answer_counts_for_a_while_and_no_longer_than_its_token() {
        let mut answers = Answers::default();
        for (token, answer, until) in
            [(1, claims(1_000), GOOD_SEC), (2, claims(20), 20), (3, None, WRONG_SEC), (4, claims(-5), -5)]
        {
            answers.keep([token; 32], answer.clone(), 0);
            assert_eq!(
                answers.of(&[token; 32], until - 1),
                (until > 0).then_some(answer).or(answers.of(&[token; 32], until - 1))
            );
            assert_eq!(answers.of(&[token; 32], until), None, "{token}");
        }
        let no_end = json!({ "active": true }).as_object().cloned();
        answers.keep([5; 32], no_end, 0);
        assert_eq!(answers.of(&[5; 32], 0), None, "nobody knows how long it would be good");
    }

    #[test]
    fn a_token_was_good_until_it_expires_or_is_refused() {
        let mut answers = Answers::default();
        answers.keep([1; 32], claims(1_000), 0);
        assert!(answers.was_good(&[1; 32], 999), "though it is to be asked about");
        assert!(!answers.was_good(&[1; 32], 1_000));
        answers.refuse([1; 32], UNANSWERED_SEC, 0);
        assert_eq!(answers.of(&[1; 32], 0), Some(None));
        assert!(answers.was_good(&[1; 32], 0), "its issuer did not say otherwise");
        answers.keep([1; 32], None, 0);
        assert!(!answers.was_good(&[1; 32], 0));
    }

    #[test]
    fn no_more_answers_are_kept_than_there_is_room_for_and_refusals_never_take_that_of_good_tokens() {
        let mut answers = Answers::default();
        answers.keep(numbered(0), claims(1_000), 0);
        for number in 1..2 * ANSWERS as u64 {
            answers.keep(numbered(number), None, 0);
        }
        assert_eq!((answers.good.len(), answers.refused.len()), (1, ANSWERS));
        for number in 1..2 * ANSWERS as u64 {
            answers.keep(numbered(number), claims(1_000), 0);
        }
        assert_eq!(answers.good.len(), ANSWERS);
    }
}
