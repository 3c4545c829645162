//! Who is connected, to what, and how that ends.

use std::sync::{Arc, Mutex, PoisonError};

use mainstay_engine::Client;
use mainstay_gateway::admission::Admission;
use mainstay_gateway::arrivals::Arrival;
use mainstay_gateway::client_certificate::ClientCertificate;
use mainstay_gateway::daemon::Daemon;
use mainstay_gateway::peer_network::PeerNetwork;
use mainstay_model::{Error, Timestamp};
use mainstay_runner::Environment;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

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
    /// Where the connection comes from.
    pub(crate) from: PeerNetwork,
    /// The place of the connection, where it is counted here.
    pub(crate) place: Option<Place>,
}

/// The place of a connection among those that may be open. One from another machine has none until its client
/// has shown who it is: until then it is counted as one of a stranger, so that strangers take no places of
/// others.
pub(crate) struct Place {
    places: Arc<Semaphore>,
    taken: Mutex<Option<OwnedSemaphorePermit>>,
    arrival: Option<Arrival>,
}

impl Place {
    /// A place for a new connection; none where there is none left.
    pub(crate) fn of(places: Arc<Semaphore>, arrival: Option<Arrival>) -> Option<Self> {
        let taken = match arrival {
            Some(_) => None,
            None => Some(Arc::clone(&places).try_acquire_owned().ok()?),
        };
        Some(Self { places, taken: Mutex::new(taken), arrival })
    }

    /// Takes the place where that is still to be done, since the client has shown who it is. It is false
    /// where there is none left.
    fn take(&self) -> bool {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.is_none() {
            *taken = Arc::clone(&self.places).try_acquire_owned().ok();
        }
        if let (Some(_), Some(arrival)) = (taken.as_ref(), &self.arrival) {
            arrival.admit();
        }
        taken.is_some()
    }
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
    /// The client that shows this, and calls itself this. Who was let in before its first frame need show
    /// nothing.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] where what it shows is not good, [`Error::TooManyConnections`] where there is
    /// no place for its connection.
    pub(crate) async fn client_of(&self, shown: Shown<'_>, name: &str) -> Result<AdmittedClient, Error> {
        let now = Timestamp::now();
        let admission = self.admission_of(shown, now).await.ok_or(Error::Unauthorized)?;
        if self.place.as_ref().is_some_and(|place| !place.take()) {
            return Err(Error::TooManyConnections { limit: self.daemon.engine.limits().connections });
        }
        let access = admission.access.clone();
        let credentials = Credentials::shown(admission, now, self.settings.refresh());
        let name: String = name.chars().take(NAME_CHARS).collect();
        let client = self.daemon.engine.attach(access, &format!("arcp:{name}")).as_connection();
        let environment = self.attached.as_ref().and_then(|attached| attached.environment.clone());
        Ok(AdmittedClient { client: client.with_environment(environment), credentials })
    }

    async fn admission_of(&self, shown: Shown<'_>, now: Timestamp) -> Option<Admission> {
        let tokens = &self.daemon.tokens;
        match shown {
            // Whoever started the bridge has shown the token for it.
            Shown::Nothing => self.attached.as_ref().map(|attached| attached.admission.clone()),
            Shown::Anonymous => tokens.anonymous(),
            Shown::Token(token) => tokens.admit(token, self.from, now).await,
            Shown::IssuedToken(token) => tokens.admit_issued(token, self.from, now).await,
            Shown::Certificate(said) => {
                let certificate = self.certificate.as_ref()?;
                let is_it = said.is_none_or(|said| certificate.has_fingerprint(said));
                tokens.admit_certificate(certificate, now).filter(|_| is_it)
            }
        }
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
