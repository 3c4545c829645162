//! What is said, for people, of projects that lack something. Both roads say it alike.

use std::path::Path;

use crate::fsharp::version::SdkVersion;

pub(super) fn not_built(project: &Path, output: &Path) -> String {
    format!("{}: {} is not there; `session rebuild` builds it", project.display(), output.display())
}

pub(super) fn not_restored(project: &Path, packages: &[String]) -> String {
    let packages = packages.join(", ");
    format!("{}: its packages ({packages}) were not found; `session rebuild` restores it", project.display())
}

pub(super) fn not_there(project: &Path, reference: &Path) -> String {
    format!("{}: it refers to {}, which is not there", project.display(), reference.display())
}

pub(super) fn not_loadable(project: &Path, framework: &str, runtime: &SdkVersion) -> String {
    format!("{}: it is for {framework}, which the runtime {runtime} cannot load", project.display())
}

pub(super) fn not_loaded(project: &Path, runtime: &str) -> String {
    format!("{}: it runs on {runtime}, which is not installed beside the SDK", project.display())
}

pub(super) fn unknown_language(project: &Path, language: &str) -> String {
    format!(
        "{}: its `LangVersion` {language} is none of this SDK's F#; the session's code is compiled without it",
        project.display()
    )
}
