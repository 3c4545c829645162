//! How a client of dialect A shows who it is: when the session opens, by a challenge, and again before its credentials expire. Source: draft-arcp-01,
//! 8.1, 8.2 and 8.4.

use futures::{Stream, StreamExt};
use jiff::SignedDuration;
use mainstay_arcp_protocol::a::session::{
    Auth, AuthScheme, Identity, SessionAuthenticate, SessionChallenge, SessionRejected,
    SessionUnauthenticated,
};
use mainstay_arcp_protocol::a::{Envelope, ErrorCode, Message, decode};
use mainstay_gateway::admission::Admission;
use mainstay_gateway::jwt::is_jwt;
use mainstay_model::{Error, Source, Timestamp};
use tokio::time::timeout;

use super::translator::encoded;
use super::{A, Resume, errors, handshake, ids};
use crate::credentials::Credentials;
use crate::fold_place::Reached;
use crate::frames::{Incoming, Outbox};
use crate::peer::{AdmittedClient, Peer, Shown};
use crate::session::{Served, Session};

/// The schemes by which a client shows who it is with a token.
const WITH_TOKEN: [AuthScheme; 3] = [AuthScheme::Bearer, AuthScheme::SignedJwt, AuthScheme::Oauth2];

/// The client whose credentials are good. One that has none must have said that it wants to be anonymous (draft-arcp-01, 8.2).
pub(super) async fn admit(
    peer: &Peer,
    auth: Option<&Auth>,
    identity: Option<&Identity>,
    name: &str,
    is_anonymous: bool,
) -> Result<AdmittedClient, Box<Message>> {
    let shown = match shown(auth, identity)? {
        Shown::Nothing if peer.attached.is_none() && is_anonymous => Shown::Anonymous,
        shown => shown,
    };
    peer.client_of(shown, name).await.map_err(|error| match error {
        Error::Unauthorized => unauthenticated(),
        error => rejected(errors::code_of(&error), &format!("{error}; {}", error.next_step())),
    })
}

/// What is shown by its scheme. A bearer token may be that of an issuer too.
fn shown<'a>(auth: Option<&'a Auth>, identity: Option<&'a Identity>) -> Result<Shown<'a>, Box<Message>> {
    let token = auth.and_then(|auth| auth.token.as_deref()).filter(|token| !token.is_empty());
    match auth.map_or(AuthScheme::None, |auth| auth.scheme) {
        AuthScheme::Bearer => Ok(token.map_or(Shown::Nothing, Shown::Token)),
        AuthScheme::SignedJwt => {
            token.filter(|token| is_jwt(token)).map(Shown::IssuedToken).ok_or_else(unauthenticated)
        }
        AuthScheme::Oauth2 => token.map(Shown::IssuedToken).ok_or_else(unauthenticated),
        // Who is attached has shown the daemon's token, and needs no other.
        AuthScheme::None => Ok(Shown::Nothing),
        AuthScheme::Mtls => match identity.and_then(|identity| identity.fingerprint.as_deref()) {
            Some(fingerprint) => Ok(Shown::Certificate(Some(fingerprint))),
            None => {
                let reason = "the scheme mtls wants the fingerprint of the client's certificate";
                Err(rejected(ErrorCode::InvalidArgument, reason))
            }
        },
    }
}

fn rejected(code: ErrorCode, message: &str) -> Box<Message> {
    Box::new(Message::SessionRejected(SessionRejected {
        code,
        message: message.to_owned(),
        unsupported: None,
    }))
}

/// The same answer whatever is wrong with the credentials.
fn unauthenticated() -> Box<Message> {
    let error = Error::Unauthorized;
    let message = format!("{error}; {}", error.next_step());
    let code = ErrorCode::Unauthenticated;
    Box::new(Message::SessionUnauthenticated(SessionUnauthenticated { code, message }))
}

/// Whether a client that opens a session shows no credentials at all, and is asked for them.
pub(super) fn is_to_be_challenged(peer: &Peer, auth: Option<&Auth>) -> bool {
    let has_none = auth.is_none_or(|auth| WITH_TOKEN.contains(&auth.scheme) && auth.token.is_none());
    has_none && peer.attached.is_none()
}

/// What a client answers to a challenge: the credentials, and the message that has them. Whatever else it sends meanwhile is dropped.
///
/// # Errors
/// What the client is told that does not answer in time; none where it is gone.
pub(super) async fn challenge(
    peer: &Peer,
    outbox: &Outbox,
    incoming: &mut (impl Stream<Item = Incoming> + Send + Unpin),
    opening: &str,
) -> Result<(String, Auth), Option<Box<Message>>> {
    let certificate = peer.certificate.as_ref().map(|_| AuthScheme::Mtls);
    let schemes = WITH_TOKEN.into_iter().chain(certificate).collect();
    let (now, patience) = (Timestamp::now(), peer.settings.handshake());
    let deadline =
        SignedDuration::try_from(patience).ok().and_then(|patience| now.checked_add(patience).ok());
    let challenge = Message::SessionChallenge(SessionChallenge {
        challenge: None,
        schemes: Some(schemes),
        expires_at: deadline,
    });
    let id = ids::at(0, now, rand::random());
    let envelope = Envelope { correlation_id: Some(opening.to_owned()), ..Envelope::new(id, now, challenge) };
    outbox.send(encoded(&envelope)).await;
    match timeout(patience, answer(incoming)).await {
        Ok(answer) => answer.ok_or(None),
        Err(_) => Err(Some(unauthenticated())),
    }
}

/// The credentials that the client sends; none where it is gone.
async fn answer(incoming: &mut (impl Stream<Item = Incoming> + Send + Unpin)) -> Option<(String, Auth)> {
    loop {
        match incoming.next().await? {
            Incoming::Text(text) => match decode(&text) {
                Ok(Envelope {
                    id,
                    message: Message::SessionAuthenticate(SessionAuthenticate { auth }),
                    ..
                }) => {
                    return Some((id, auth));
                }
                Ok(_) | Err(_) => tracing::debug!("a message before the session's acceptance is dropped"),
            },
            Incoming::Ended => return None,
            Incoming::Binary(_) | Incoming::TooLarge | Incoming::Alive => {}
        }
    }
}

impl Session<A> {
    /// Takes new credentials of the same principal in place of those that the session has. Wrong ones change nothing: the client may try again until the
    /// others expire.
    pub(super) async fn authenticate(&mut self, id: String, auth: &Auth) -> Result<Option<Served>, Error> {
        let now = Timestamp::now();
        let (tokens, from) = (&self.daemon.tokens, self.from);
        let admission = match shown(Some(auth), None) {
            Ok(Shown::Token(token)) => tokens.admit(token, from, now).await.ok_or_else(unauthenticated),
            Ok(Shown::IssuedToken(token)) => {
                tokens.admit_issued(token, from, now).await.ok_or_else(unauthenticated)
            }
            // A certificate is that of the connection, and is no newer than it was.
            Ok(Shown::Certificate(_) | Shown::Nothing | Shown::Anonymous) => Err(unauthenticated()),
            Err(refusal) => Err(refusal),
        };
        let is_same = |admission: &Admission| admission.access.principal == *self.client.principal();
        match admission {
            Ok(admission) if is_same(&admission) => {
                let has_other_rights = admission.access != self.credentials.admission.access;
                self.credentials = Credentials::shown(admission, now, self.settings.refresh());
                let accepted = Message::SessionAccepted(handshake::accepted(self));
                self.answer(&id, accepted).await;
                Ok(if has_other_rights { Some(self.change_rights(id)) } else { None })
            }
            Ok(_) => {
                self.answer(&id, *unauthenticated()).await;
                Ok(None)
            }
            Err(refusal) => {
                self.answer(&id, *refusal).await;
                Ok(None)
            }
        }
    }

    /// Has the session go on from here with the rights of its new credentials.
    fn change_rights(&mut self, message: String) -> Served {
        let name = match self.client.source() {
            Source::Client { name, .. } => name,
            _ => String::new(),
        };
        let access = self.credentials.admission.access.clone();
        let client = self.daemon.engine.attach(access, &name).as_connection();
        self.client = client.with_environment(self.client.environment().cloned());
        let (session, reached) = (self.stored.id.clone(), Reached::Seq(self.sent));
        self.dialect.resume = Some(Resume { message, session, reached });
        Served::Resumes
    }
}
