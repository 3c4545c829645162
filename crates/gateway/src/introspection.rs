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
use tokio::sync::Semaphore;

use crate::outbound::{Address, Outbound};

/// How long it is kept that a token is good, in seconds.
const GOOD_SEC: i64 = 60;
/// How long it is kept that a token is not good, in seconds.
const WRONG_SEC: i64 = 10;
/// How many answers are kept.
const ANSWERS: usize = 1000;
/// How many tokens an issuer is asked about at once. Who waits in vain is refused by the timeout of what it asks.
const AT_ONCE: usize = 8;
/// The largest token that an issuer is asked about, in bytes.
const TOKEN_BYTES: usize = 16 * 1024;

/// The claims of a token that is good, or none.
type Answer = Option<Map<String, Value>>;

/// An issuer that is asked about tokens.
pub struct Introspection {
    address: Address,
    outbound: Outbound,
    credentials: HeaderValue,
    answers: Mutex<Answers>,
    asking: Semaphore,
}

/// What was answered of tokens, which are known by their hash, and until when that counts, in seconds.
#[derive(Default)]
struct Answers(HashMap<[u8; 32], (Answer, i64)>);

impl Answers {
    fn of(&self, token: &[u8; 32], now: i64) -> Option<Answer> {
        self.0.get(token).filter(|(_, until)| *until > now).map(|(answer, _)| answer.clone())
    }

    fn keep(&mut self, token: [u8; 32], answer: Answer, now: i64) {
        let until = match &answer {
            Some(claims) => {
                let expires = claims.get("exp").and_then(Value::as_i64).unwrap_or(i64::MIN);
                expires.min(now.saturating_add(GOOD_SEC))
            }
            None => now.saturating_add(WRONG_SEC),
        };
        if self.0.len() >= ANSWERS {
            self.0.retain(|_, (_, until)| *until > now);
        }
        // What nobody is sure to ask for again makes room.
        if self.0.len() >= ANSWERS
            && let Some(next) = self.0.iter().min_by_key(|(_, (_, until))| *until).map(|(token, _)| *token)
        {
            self.0.remove(&next);
        }
        self.0.insert(token, (answer, until));
    }
}

impl Introspection {
    /// Asks at this address, as this client with this secret (RFC 6749, 2.3.1). None where those cannot be sent.
    pub fn new(address: Address, outbound: Outbound, client: &str, secret: &str) -> Option<Self> {
        let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
        let pair = format!("{}:{}", encoded(client), encoded(secret));
        let mut credentials = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(pair))).ok()?;
        credentials.set_sensitive(true);
        let asking = Semaphore::new(AT_ONCE);
        Some(Self { address, outbound, credentials, answers: Mutex::default(), asking })
    }

    /// What the issuer says of a token at this time; none where it is not good, or the issuer cannot say.
    pub(crate) async fn claims_of(&self, token: &str, now: Timestamp) -> Answer {
        if token.is_empty() || token.len() > TOKEN_BYTES || !token.bytes().all(|byte| byte.is_ascii_graphic())
        {
            return None;
        }
        let (hash, now) = (Sha256::digest(token.as_bytes()).into(), now.as_second());
        if let Some(known) = self.lock().of(&hash, now) {
            return known;
        }
        let _place = self.asking.acquire().await.ok()?;
        // Another may have asked meanwhile.
        if let Some(known) = self.lock().of(&hash, now) {
            return known;
        }
        let form = Serializer::new(String::new())
            .append_pair("token", token)
            .append_pair("token_type_hint", "access_token")
            .finish();
        let said = match self.outbound.post(&self.address, &self.credentials, form).await {
            Ok(said) => said,
            Err(error) => {
                tracing::warn!(%error, "an issuer cannot be asked about a token");
                return None;
            }
        };
        let claims = serde_json::from_slice::<Map<String, Value>>(&said).ok();
        let answer = claims.filter(|claims| claims.get("active") == Some(&Value::Bool(true)));
        self.lock().keep(hash, answer.clone(), now);
        answer
    }

    fn lock(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_answer_counts_for_a_while_and_no_longer_than_its_token() {
        let claims = |exp: i64| json!({ "active": true, "exp": exp }).as_object().cloned();
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
    fn no_more_answers_are_kept_than_there_is_room_for() {
        let mut answers = Answers::default();
        for number in 0..2 * ANSWERS as u64 {
            let mut token = [0; 32];
            token[..8].copy_from_slice(&number.to_le_bytes());
            answers.keep(token, None, 0);
        }
        assert_eq!(answers.0.len(), ANSWERS);
    }
}
