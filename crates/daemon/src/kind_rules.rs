//! What this machine has for each kind of session, as the engine asks it to find or create one.

use std::path::Path;

use mainstay_embedded::kernel_file;
use mainstay_engine::KindRules;
use mainstay_home::Home;
use mainstay_home::config::Config;
use mainstay_home::search::fsharp_sdks;
use mainstay_kernel::fsharp::{Code, Selected, is_built, select};
use mainstay_kernel::jupyter::install::is_installable;
use mainstay_kernel::jupyter::{Kernelspecs, Places};
use mainstay_model::{Error, SessionKind};
use mainstay_runner::Environment;

use crate::default_kind::default_kind;

/// Goes by the kernels and SDKs that are found for a client's environment, laid over the daemon's.
pub(crate) struct MachineKinds {
    pub(crate) home: Home,
}

impl MachineKinds {
    fn kernelspecs(&self, folder: Option<&Path>, environment: &Environment) -> Kernelspecs {
        Places::of_session(environment, &self.home.jupyter(), folder).kernelspecs()
    }

    /// Whether an SDK for this folder is there, and the worker is built with it.
    fn has_fsharp(&self, folder: &Path, environment: &Environment) -> Result<bool, Error> {
        let search = fsharp_sdks(&self.home, Config::load(&self.home)?.fsharp).of_session(environment);
        Ok(match select(&search, Code::In(folder)) {
            Ok(Selected { sdk, .. }) => is_built(&search.home, &sdk, kernel_file),
            Err(_) => false,
        })
    }
}

impl KindRules for MachineKinds {
    fn default_kind(&self, folder: &Path, environment: &Environment) -> SessionKind {
        default_kind(&self.home, folder, environment).unwrap_or_else(|error| {
            tracing::warn!(%error, "it cannot be told which kind of session a folder is for");
            SessionKind::fsharp()
        })
    }

    fn preferred(
        &self,
        kinds: &[SessionKind],
        folder: Option<&Path>,
        environment: &Environment,
    ) -> Option<SessionKind> {
        let kernelspecs = self.kernelspecs(folder, environment);
        let is_there = |kind: &&SessionKind| kind.is_fsharp() || kernelspecs.choose(kind).is_ok();
        let could_be = |kind: &&SessionKind| is_installable(kind);
        kinds.iter().find(is_there).or_else(|| kinds.iter().find(could_be)).or(kinds.first()).cloned()
    }

    fn same_kernel(
        &self,
        kind: &SessionKind,
        kinds: Vec<SessionKind>,
        folder: Option<&Path>,
        environment: &Environment,
    ) -> Vec<SessionKind> {
        if kind.is_fsharp() || kind.is_agent() || kinds.iter().all(|other| other == kind) {
            return kinds.into_iter().filter(|other| other == kind).collect();
        }
        let kernelspecs = self.kernelspecs(folder, environment);
        kinds.into_iter().filter(|other| is_same(&kernelspecs, kind, other)).collect()
    }

    fn is_ready(&self, kind: &SessionKind, folder: &Path, environment: &Environment) -> bool {
        if kind.is_agent() {
            return true;
        }
        if kind.is_fsharp() {
            return self.has_fsharp(folder, environment).unwrap_or_default();
        }
        // What cannot be installed here is as ready as it will be: its creation says what is missing.
        !is_installable(kind) || self.kernelspecs(Some(folder), environment).choose(kind).is_ok()
    }
}

/// Whether the same kernel runs sessions of both kinds: a language stands for the kernel of it that is found first.
fn is_same(kernelspecs: &Kernelspecs, one: &SessionKind, other: &SessionKind) -> bool {
    let spec = |kind: &SessionKind| kernelspecs.choose(kind).ok().map(|spec| &spec.name);
    one == other || spec(one).is_some_and(|own| spec(other) == Some(own))
}
