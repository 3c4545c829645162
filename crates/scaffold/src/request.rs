//! What is asked for over a protocol: the tests of a function whose type is given, or is what the session knows of it.

use mainstay_engine::Client;
use mainstay_model::{Error, SessionId};
use mainstay_protocol::operations::Scaffolded;
use mainstay_runner::query::KernelQuery;

use super::{Framework, ScaffoldError, Signature, Subject, scaffold};

/// The tests of what.
#[derive(Clone, Debug, Default)]
pub struct ScaffoldRequest {
    /// The function, as code names it.
    pub name: String,
    /// Its type, where the session does not know it.
    pub signature: Option<String>,
    /// What they are written for: `plain`, where it is not said.
    pub framework: Option<String>,
    /// A function that undoes it.
    pub inverse: Option<String>,
}

/// Writes them. Nothing runs.
///
/// # Errors
/// [`Error::InvalidArgument`] where no test can be written of it, and those of a query where the session is asked for its type.
pub async fn scaffolded(
    client: &Client,
    session: SessionId,
    asked: ScaffoldRequest,
) -> Result<Scaffolded, Error> {
    let ScaffoldRequest { name, signature, framework, inverse } = asked;
    let framework = framework.map_or(Ok(Framework::default()), |name| name.parse()).map_err(refusal)?;
    let signature = match signature {
        Some(signature) => signature,
        None => type_of(client, session, &name).await?,
    };
    let parsed = Signature::parse(&signature)
        .map_err(|error| invalid("signature", format!("`{signature}`: {error}")))?;
    let subject = Subject { name: &name, signature: &parsed, inverse: inverse.as_deref() };
    let code = scaffold(subject, framework).map_err(refusal)?;
    Ok(Scaffolded { signature, code })
}

/// The type of a function, as the session knows it. Of overloads it is the first's.
async fn type_of(client: &Client, session: SessionId, name: &str) -> Result<String, Error> {
    let members = client.query(session, KernelQuery::Members { name: name.to_owned() }).await?.members()?;
    let own = members.members.into_iter().find(|member| name.ends_with(&member.name));
    own.and_then(|member| member.signature).ok_or_else(|| {
        invalid("name", format!("`{name}` is a {} and no function; say its type", members.kind))
    })
}

fn refusal(error: ScaffoldError) -> Error {
    let argument = match error {
        ScaffoldError::Name(_) => "name",
        ScaffoldError::Framework(_) => "framework",
        ScaffoldError::Inverse(_) => "inverse",
    };
    invalid(argument, error.to_string())
}

fn invalid(argument: &str, reason: String) -> Error {
    Error::InvalidArgument { argument: argument.to_owned(), reason }
}
