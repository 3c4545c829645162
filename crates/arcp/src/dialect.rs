//! What differs between the two dialects in a session on its connection.

use std::future::Future;
use std::time::Duration;

use mainstay_model::{CommandId, Error, Event, Timestamp};

use crate::frames::Incoming;
use crate::message_fold::Translator;
use crate::pending_submissions::{PendingSubmission, Refusal};
use crate::resume_token::ResumeToken;
use crate::session::{Served, Session};

/// A dialect on one connection, with what it keeps of that.
pub(crate) trait Dialect: Sized + Send + Sync {
    /// What translates what happens to jobs into its messages.
    type Translator: Translator;

    /// Whether the acceptance of a job is told with the job's events; else it is an answer beside them.
    const TELLS_ACCEPTANCE: bool;

    /// Whether a session forgets by itself what its client surely had long ago, since the client acknowledges nothing.
    const FORGETS: bool;

    /// Tells what is no part of the session's jobs once its client was welcomed.
    fn greeted(_: &mut Session<Self>) -> impl Future<Output = Result<(), Error>> + Send {
        async { Ok(()) }
    }

    /// Tells what an event says that is no part of the session's jobs.
    fn heard(_: &mut Session<Self>, _: &Event) -> impl Future<Output = Result<(), Error>> + Send {
        async { Ok(()) }
    }

    /// Ends the serving where something is over that was to end it; asked after each step.
    fn finish(session: &mut Session<Self>) -> impl Future<Output = Result<Option<Served>, Error>> + Send;

    /// Does what a frame asks; says how the serving ends where it does.
    fn handle_frame(
        session: &mut Session<Self>,
        frame: Incoming,
    ) -> impl Future<Output = Result<Option<Served>, Error>> + Send;

    /// What the client of an opened session is welcomed with.
    fn welcome(
        session: &Session<Self>,
        token: ResumeToken,
    ) -> impl Future<Output = Result<Option<String>, Error>> + Send;

    /// Says that a job was accepted.
    fn accepted(session: &Session<Self>, job: &CommandId, submission: &PendingSubmission) -> String;

    /// Says that a submission was refused, by the message that submitted it.
    fn refused(session: &Session<Self>, message: &str, refusal: &Refusal) -> String;

    /// Says that the connection ends for this reason.
    fn failed(session: &Session<Self>, error: &Error) -> String;

    /// Asks the client for new credentials, which must be there at this time; none where the dialect has no way to.
    fn refresh(session: &Session<Self>, deadline: Timestamp) -> Option<String>;

    /// Says that the connection ends since the credentials have expired.
    fn evicted(session: &Session<Self>) -> String;

    /// Says that the session cannot be resumed from where its client is.
    fn expired(session: &Session<Self>) -> String;

    /// How often something is sent though nothing happens.
    fn beat_interval(session: &Session<Self>) -> Duration;

    /// What is sent from time to time.
    fn beat(session: &mut Session<Self>) -> Vec<String>;

    /// Whether nothing is told of jobs until the client has said that it is ready for it.
    fn is_held_back(session: &Session<Self>) -> bool;

    /// Whether the client says something at least as often as it is sent something from time to time.
    fn expects_answers(session: &Session<Self>) -> bool;
}
