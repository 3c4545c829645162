//! What a worker brought in before its session's own code.

use mainstay_model::{Session, Startup};
use serde::{Deserialize, Serialize};

/// What a worker brought in before its session's own code, in few words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StartupView {
    /// The startup in one line.
    pub summary: String,
    /// What did not go as it was meant to: the first few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
    /// What of its project no build has taken in yet, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unbuilt: Option<String>,
}

impl StartupView {
    /// How many faults are told of.
    const FAULTS: usize = 10;

    /// What there is to say of a session's; none where there is nothing.
    pub fn of(session: &Session) -> Option<Self> {
        let passed_over = passed_over(session);
        match &session.startup {
            None => passed_over.map(|fault| Self {
                summary: "for no project".to_owned(),
                faults: vec![fault],
                unbuilt: None,
            }),
            Some(startup) => {
                let mut view = Self::new(startup, session.unbuilt_words());
                view.faults.extend(passed_over);
                Some(view)
            }
        }
    }

    fn new(startup: &Startup, unbuilt: Option<String>) -> Self {
        let mut faults = startup.faults();
        let more = faults.len().saturating_sub(Self::FAULTS);
        if more > 0 {
            faults.truncate(Self::FAULTS);
            faults.push(format!("and {more} more"));
        }
        Self { summary: startup.to_string(), faults, unbuilt }
    }
}

/// What is said of a session in whose folder there are several projects, of which none was named.
fn passed_over(session: &Session) -> Option<String> {
    let name = |path: &String| path.rsplit('/').next().unwrap_or(path).to_owned();
    let names: Vec<String> = session.passed_over.iter().map(name).collect();
    (!names.is_empty()).then(|| {
        format!(
            "its folder has several projects ({}) and none was named, so it is for none of them; name one for a new session: --project {}",
            names.join(", "),
            names[0]
        )
    })
}
