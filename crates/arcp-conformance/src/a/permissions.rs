//! Dialect A §15.4 and §15.5: permissions, and the leases that they give.

use serde_json::{Value, json};

use super::session::{Session, capabilities, concerns, is_terminal, job_id, open};
use crate::json::{kind, short, text};
use crate::probe::{Behaviour, Probe};
use crate::scenario::{Stop, Verdict, expect, scenarios};

scenarios! {
    "a.15.4.request" Must
        "A job that needs a permission sends permission.request, with its job_id and the permission."
        => request;
    "a.15.4.grant" Must
        "After permission.grant the job goes on to its end."
        => grant;
    "a.15.4.deny" Must
        "After permission.deny the job still comes to an end."
        => deny;
    "a.15.4.unknown" Must
        "A permission.grant for a request that never was is answered with a nack."
        => unknown;
    "a.15.5.granted" Must
        "A permission.grant for a time is answered by lease.granted, with lease_id, permission and expires_at."
        => granted;
    "a.15.5.covers" Should
        "What a lease covers is not asked about again while it is held."
        => covers;
    "a.15.5.extended" Must
        "lease.refresh is answered by lease.extended, with an expires_at that is later."
        => extended;
    "a.15.5.unknown-lease" Must
        "lease.refresh of a lease that never was is answered with a nack."
        => unknown_lease;
}

/// How long a lease is wanted for, in seconds.
const SECONDS: u64 = 600;

/// A job that asks for permissions.
struct Asking {
    session: Session,
    command: String,
    job: String,
}

impl Asking {
    async fn begin(probe: &Probe) -> Result<Self, Stop> {
        let work = Session::work(probe, Behaviour::Permitted)?;
        let mut offered = capabilities();
        offered["permissions"] = json!(true);
        let mut session = Session::open_with(probe, open(probe.settings.token.as_deref(), offered)).await?;
        let command = session.send("tool.invoke", work).await?;
        let accepted = session.answer(&command, &["job.accepted"]).await?;
        let job = job_id(&accepted)?;
        Ok(Self { session, command, job })
    }

    /// The next request for a permission.
    async fn request(&mut self) -> Result<Value, Stop> {
        let asks = |message: &Value| kind(message) == "permission.request" || is_terminal(message);
        let request = self.session.peer.take("permission.request", asks).await?;
        expect(kind(&request) == "permission.request", "permission.request", || short(&request))?;
        Ok(request)
    }

    async fn answer(&mut self, kind: &str, request: &Value, payload: Value) -> Verdict {
        let mut answer = self.session.envelope(kind, payload);
        answer["correlation_id"] = request["id"].clone();
        answer["job_id"] = json!(self.job);
        self.session.peer.send(answer).await.map(drop)
    }

    /// Gives what a request asks for, as long as a lease is wanted, and returns what the lease is.
    async fn lease(&mut self, request: &Value) -> Result<Value, Stop> {
        let mut payload = json!({ "lease_seconds": SECONDS });
        for field in ["permission", "resource", "operation"] {
            if let Some(asked) = request["payload"].get(field) {
                payload[field] = asked.clone();
            }
        }
        self.answer("permission.grant", request, payload).await?;
        let granted = |message: &Value| matches!(kind(message), "lease.granted" | "nack");
        let lease = self.session.peer.take("lease.granted", granted).await?;
        expect(kind(&lease) == "lease.granted", "lease.granted", || short(&lease))?;
        Ok(lease)
    }

    /// Answers all that is asked until the job ends, and returns its end.
    async fn end(&mut self, kind_of_answer: &str) -> Result<Value, Stop> {
        loop {
            let (command, job) = (self.command.clone(), self.job.clone());
            let next = |message: &Value| {
                kind(message) == "permission.request"
                    || is_terminal(message) && concerns(message, &command, &job)
            };
            let message = self.session.peer.take("the end of the job", next).await?;
            if is_terminal(&message) {
                return Ok(message);
            }
            self.answer(kind_of_answer, &message, json!({})).await?;
        }
    }
}

async fn request(probe: &Probe) -> Verdict {
    let mut asking = Asking::begin(probe).await?;
    let request = asking.request().await?;
    asking.session.clean_up(&asking.job).await?;
    let whole = text(&request, "/job_id") == asking.job && !text(&request, "/payload/permission").is_empty();
    expect(whole, "the job_id and a permission", || short(&request))
}

async fn grant(probe: &Probe) -> Verdict {
    let mut asking = Asking::begin(probe).await?;
    let end = asking.end("permission.grant").await?;
    expect(matches!(kind(&end), "job.completed" | "tool.result"), "job.completed or tool.result", || {
        short(&end)
    })
}

async fn deny(probe: &Probe) -> Verdict {
    let mut asking = Asking::begin(probe).await?;
    asking.end("permission.deny").await.map(drop)
}

async fn unknown(probe: &Probe) -> Verdict {
    let mut asking = Asking::begin(probe).await?;
    let mut answer = asking.session.envelope("permission.grant", json!({}));
    answer["correlation_id"] = json!("msg_nobody");
    let id = asking.session.peer.send(answer).await?;
    let codes = ["NOT_FOUND", "FAILED_PRECONDITION", "INVALID_ARGUMENT", "UNIMPLEMENTED"];
    let refused = asking.session.refusal(&id, &codes).await;
    asking.session.clean_up(&asking.job).await?;
    refused.map(drop)
}

async fn granted(probe: &Probe) -> Verdict {
    let mut asking = Asking::begin(probe).await?;
    let request = asking.request().await?;
    let lease = asking.lease(&request).await?;
    asking.session.clean_up(&asking.job).await?;
    let is_named = !text(&lease, "/payload/lease_id").is_empty();
    let is_same = text(&lease, "/payload/permission") == text(&request, "/payload/permission");
    let ends = text(&lease, "/payload/expires_at").parse::<jiff::Timestamp>();
    expect(is_named && is_same && ends.is_ok(), "lease_id, the permission and expires_at", || short(&lease))
}

async fn covers(probe: &Probe) -> Verdict {
    let mut asking = Asking::begin(probe).await?;
    let first = asking.request().await?;
    asking.lease(&first).await?;
    let next = asking.request().await?;
    asking.session.clean_up(&asking.job).await?;
    let is_same = next["payload"]["resource"] == first["payload"]["resource"]
        && next["payload"]["permission"] == first["payload"]["permission"];
    expect(!is_same, "a request for something else", || short(&next))
}

async fn extended(probe: &Probe) -> Verdict {
    let mut asking = Asking::begin(probe).await?;
    let first = asking.request().await?;
    let lease = asking.lease(&first).await?;
    // The job waits for another permission meanwhile.
    asking.request().await?;
    let payload = json!({ "lease_id": lease["payload"]["lease_id"], "requested_lease_seconds": SECONDS });
    let id = asking.session.send("lease.refresh", payload).await?;
    let answered = |message: &Value| {
        kind(message) == "lease.extended" || kind(message) == "nack" && text(message, "/correlation_id") == id
    };
    let extended = asking.session.peer.take("lease.extended", answered).await?;
    asking.session.clean_up(&asking.job).await?;
    let end = |message: &Value| text(message, "/payload/expires_at").parse::<jiff::Timestamp>().ok();
    let is_later = end(&extended).is_some() && end(&extended) > end(&lease);
    expect(kind(&extended) == "lease.extended" && is_later, "a later expires_at", || short(&extended))
}

async fn unknown_lease(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let id = session.send("lease.refresh", json!({ "lease_id": "lease_nobody" })).await?;
    let codes =
        ["NOT_FOUND", "FAILED_PRECONDITION", "INVALID_ARGUMENT", "PERMISSION_DENIED", "UNIMPLEMENTED"];
    session.refusal(&id, &codes).await.map(drop)
}
