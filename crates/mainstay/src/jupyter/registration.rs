//! The kernelspec by which front ends find Mainstay.

use std::path::{Path, PathBuf};

use mainstay_formats::notebook::OWN_KERNELS;
use mainstay_home::{HOME_VARIABLE, Home, lasting_program};
use mainstay_kernel::jupyter::kernelspec::METADATA;
use mainstay_model::{Error, SessionKind};
use serde_json::{Value, json};

/// A kernelspec to be written, or that was.
pub(crate) struct Registration {
    /// The kind of its sessions.
    pub(crate) kind: SessionKind,
    /// The one session it stands for, where it does not stand for those of notebooks.
    pub(crate) session: Option<String>,
    /// The name of the kernelspec.
    pub(crate) name: String,
    /// What people call it.
    pub(crate) display_name: String,
    /// What its sessions speak.
    pub(crate) language: String,
}

impl Registration {
    /// What front ends know it by.
    fn folder_name(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
        format!("{OWN_KERNELS}{}", self.name.to_lowercase().chars().map(plain).collect::<String>())
    }

    /// Writes it under a folder of kernelspecs; gives its own.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it cannot be written.
    pub(crate) fn write(&self, home: &Home, kernels: &Path) -> Result<PathBuf, Error> {
        let folder = kernels.join(self.folder_name());
        let unwritable = |error: std::io::Error| Error::InvalidArgument {
            argument: folder.display().to_string(),
            reason: error.to_string(),
        };
        let program = lasting_program().map_err(unwritable)?;
        std::fs::create_dir_all(&folder).map_err(unwritable)?;
        let spec = self.spec(&program, home.folder());
        std::fs::write(folder.join("kernel.json"), format!("{spec:#}\n")).map_err(unwritable)?;
        Ok(folder)
    }

    fn spec(&self, program: &Path, home: &Path) -> Value {
        let which = match &self.session {
            Some(session) => ["--session", session],
            None => ["--kind", self.kind.as_str()],
        };
        let program = program.display().to_string();
        let argv: Vec<&str> =
            [program.as_str(), "kernel", "serve", "{connection_file}"].into_iter().chain(which).collect();
        json!({
            "argv": argv,
            "display_name": self.display_name,
            "language": self.language,
            "interrupt_mode": "message",
            "env": { HOME_VARIABLE: home.display().to_string() },
            "metadata": { METADATA: { "kind": self.kind } },
        })
    }
}

/// The folders of kernelspecs of ours under a folder of such.
pub(crate) fn registered(kernels: &Path) -> Vec<PathBuf> {
    let is_ours = |folder: &PathBuf| {
        let text = std::fs::read_to_string(folder.join("kernel.json")).unwrap_or_default();
        serde_json::from_str::<Value>(&text).is_ok_and(|spec| spec["metadata"][METADATA].is_object())
    };
    let entries = std::fs::read_dir(kernels).into_iter().flatten().filter_map(Result::ok);
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_ours).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registration(name: &str, session: Option<&str>) -> Registration {
        Registration {
            kind: SessionKind::fsharp(),
            session: session.map(str::to_owned),
            name: name.to_owned(),
            display_name: "F# on Mainstay".to_owned(),
            language: "fsharp".to_owned(),
        }
    }

    #[test]
    fn a_kernelspec_starts_this_program() {
        let spec = |registration: Registration| {
            let spec = registration.spec(Path::new("/bin/mainstay"), Path::new("/home/ada/.mainstay"));
            format!("{spec:#}")
        };
        insta::assert_snapshot!(spec(registration("fsharp", None)));
        let of_one = registration("Ada's lab", Some("1f2e"));
        assert_eq!(of_one.folder_name(), "mainstay-ada-s-lab");
        assert!(spec(of_one).contains("--session"));
    }
}
