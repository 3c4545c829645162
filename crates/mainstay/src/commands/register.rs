//! `mainstay kernel register|unregister`: kernelspecs by which Jupyter's front ends find Mainstay.

use std::path::PathBuf;

use clap::Args;
use mainstay_home::Home;
use mainstay_home::search::jupyter_kernels;
use mainstay_kernel::jupyter::Places;
use mainstay_model::{Error, SessionKind};
use mainstay_protocol::operations::GetSession;
use mainstay_terminal::{note, printable};
use mainstay_terminal_client::connect::connect_or_start;
use mainstay_terminal_client::kernels;

use crate::jupyter::{Registration, registered};

/// Where kernelspecs are written.
#[derive(Debug, Args)]
pub(super) struct Place {
    /// The Python environment in which Jupyter is installed; without it, the user's own kernels
    #[arg(long, value_name = "FOLDER")]
    prefix: Option<PathBuf>,
}

impl Place {
    fn kernels(&self) -> Result<PathBuf, Error> {
        match &self.prefix {
            Some(prefix) => Ok(prefix.join("share/jupyter/kernels")),
            None => Places::of_user().ok_or_else(|| Error::InvalidArgument {
                argument: "--prefix".to_owned(),
                reason: "it must be given where there is no home folder".to_owned(),
            }),
        }
    }
}

/// The kernel that is to be registered.
#[derive(Debug, Args)]
pub(super) struct Register {
    /// The kind of session that notebooks get: fsharp, or a Jupyter kernel that is to be durable and shared
    #[arg(default_value = "fsharp")]
    kind: String,

    /// This session for every notebook, instead of one for each
    #[arg(short, long, value_name = "SESSION", conflicts_with = "kind")]
    session: Option<String>,

    #[command(flatten)]
    place: Place,
}

impl Register {
    pub(super) async fn run(self, home: &Home) -> Result<(), Error> {
        let kernels = self.place.kernels()?;
        let registration = match self.session {
            Some(session) => {
                let client = connect_or_start(home, "cli").await?.client;
                let session = client.call(GetSession { session }).await?;
                Registration {
                    language: language(home, &session.kind)?.1,
                    display_name: format!("{} on Mainstay", printable(&session.name)),
                    session: Some(session.session.to_string()),
                    // Names of sessions are nobody's for good, and may look alike once they are those of folders.
                    name: format!("session-{}", session.short_id),
                    kind: session.kind,
                }
            }
            None => {
                let kind = SessionKind::new(self.kind)?;
                let (what, language) = language(home, &kind)?;
                Registration {
                    display_name: format!("{what} on Mainstay"),
                    language,
                    session: None,
                    name: kind.to_string(),
                    kind,
                }
            }
        };
        kernels::make_ready(home, &registration.kind, &std::env::current_dir().unwrap_or_default()).await?;
        let folder = registration.write(home, &kernels)?;
        note(&format!("{} is in {}", registration.display_name, folder.display()));
        note("choose it as the kernel of a notebook; `mainstay kernel unregister` takes it back");
        Ok(())
    }
}

/// What people call what runs sessions of a kind, and its language.
fn language(home: &Home, kind: &SessionKind) -> Result<(String, String), Error> {
    if kind.is_fsharp() {
        return Ok(("F#".to_owned(), "fsharp".to_owned()));
    }
    let folder = std::env::current_dir().ok();
    let kernelspecs = jupyter_kernels(home, folder.as_deref()).kernelspecs();
    let spec = kernelspecs.choose(kind)?;
    Ok((spec.display_name.clone(), spec.language.clone()))
}

/// Takes all of them away again.
pub(super) fn unregister(place: &Place) -> Result<(), Error> {
    let kernels = place.kernels()?;
    let found = registered(&kernels);
    if found.is_empty() {
        note(&format!("there is none in {}", kernels.display()));
    }
    for folder in found {
        std::fs::remove_dir_all(&folder).map_err(|error| Error::InvalidArgument {
            argument: folder.display().to_string(),
            reason: error.to_string(),
        })?;
        note(&format!("{} is gone", folder.display()));
    }
    Ok(())
}
