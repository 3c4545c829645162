//! Who is connected, to what, and how that ends.

use std::sync::Arc;

use mainstay_engine::Client;
use mainstay_gateway::admission::Admission;
use mainstay_gateway::client_certificate::ClientCertificate;
use mainstay_gateway::daemon::Daemon;
use mainstay_model::Timestamp;
use mainstay_runner::Environment;

use crate::credentials::Credentials;
use crate::live_sessions::LiveSessions;
use crate::settings::{NAME_CHARS, Settings};

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The client closed it.
    Gone,
    /// The client has no session.
    Refused,
    /// The client does not answer.
    Silent,
    /// Another connection resumed the session.
    Replaced,
    /// The client's credentials have expired.
    Expired,
    /// The daemon goes down.
    ShutDown,
}

/// Who is connected, and to what.
pub(crate) struct Peer {
    pub(crate) daemon: Daemon,
    pub(crate) settings: Settings,
    pub(crate) live: LiveSessions,
    /// What is known of a client that was let in before its first frame.
    pub(crate) attached: Option<Attached>,
    /// The certificate that the client has shown for its connection.
    pub(crate) certificate: Option<Arc<ClientCertificate>>,
}

/// What a client shows of itself.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shown<'a> {
    Nothing,
    /// Nothing, where it knows that it is to stand for nobody in particular.
    Anonymous,
    Token(&'a str),
    /// A token that only an issuer can have given.
    IssuedToken(&'a str),
    /// The certificate of its connection, with this fingerprint where it says that.
    Certificate(Option<&'a str>),
}

impl Peer {
    /// The client that shows this, and calls itself this; none where that is not good. Who was let in before its first frame need show nothing.
    pub(crate) async fn client_of(&self, shown: Shown<'_>, name: &str) -> Option<AdmittedClient> {
        let now = Timestamp::now();
        let tokens = &self.daemon.tokens;
        let admission = match shown {
            // Whoever started the bridge has shown the token for it.
            Shown::Nothing => match &self.attached {
                Some(attached) => attached.admission.clone(),
                None => return None,
            },
            Shown::Anonymous => tokens.anonymous()?,
            Shown::Token(token) => tokens.admit(token, now).await?,
            Shown::IssuedToken(token) => tokens.admit_issued(token, now).await?,
            Shown::Certificate(said) => {
                let certificate = self.certificate.as_ref()?;
                let is_it = said.is_none_or(|said| certificate.has_fingerprint(said));
                tokens.admit_certificate(certificate, Timestamp::now()).filter(|_| is_it)?
            }
        };
        let access = admission.access.clone();
        let credentials = Credentials::shown(admission, now, self.settings.refresh());
        let name: String = name.chars().take(NAME_CHARS).collect();
        let client = self.daemon.engine.attach(access, &format!("arcp:{name}")).as_connection();
        let environment = self.attached.as_ref().and_then(|attached| attached.environment.clone());
        Some(AdmittedClient { client: client.with_environment(environment), credentials })
    }
}

/// A client whose credentials are good.
pub(crate) struct AdmittedClient {
    pub(crate) client: Client,
    pub(crate) credentials: Credentials,
}

/// A client of the local socket, which showed the daemon's token.
pub(crate) struct Attached {
    pub(crate) admission: Admission,
    /// The folder in which the client works.
    pub(crate) folder: Option<String>,
    /// What the client has in its environment.
    pub(crate) environment: Option<Environment>,
}
