//! The compilers that the daemon keeps warm, read from the home and from the system.

use mainstay_home::Home;
use mainstay_home::compilers::{CompilerRecord, kept};
use mainstay_model::Error;
use mainstay_os::system::{started_at, usage_of};
use mainstay_terminal::{bytes, counted};
use rustix::process::Pid;
use serde::Serialize;

/// A compiler that is kept, as people and scripts see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompilerView {
    /// The number of its process.
    pub pid: u32,
    /// Whether it has compiled before, and is used.
    pub is_warm: bool,
    /// The memory of the process, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resident_bytes: Option<u64>,
}

/// The compilers of a home's daemon that live.
///
/// # Errors
/// The folder cannot be used.
pub fn compilers(home: &Home) -> Result<Vec<CompilerView>, Error> {
    let view = |CompilerRecord { pid, started, is_warm }| {
        let process = i32::try_from(pid).ok().and_then(Pid::from_raw)?;
        let is_same = started.is_some() && started_at(process) == started;
        let resident_bytes = usage_of(process).map(|usage| usage.resident_bytes);
        is_same.then_some(CompilerView { pid, is_warm, resident_bytes })
    };
    Ok(kept(&home.run_folder()?).into_iter().filter_map(view).collect())
}

/// What is to be said of the compilers; empty where there are none.
pub fn compilers_text(compilers: &[CompilerView]) -> String {
    if compilers.is_empty() {
        return String::new();
    }
    let memory: u64 = compilers.iter().filter_map(|one| one.resident_bytes).sum();
    let warming = match compilers.iter().filter(|one| !one.is_warm).count() {
        0 => "",
        1 if compilers.len() == 1 => ", and becomes warm",
        _ => ", and some become warm",
    };
    let (count, has) =
        (counted(compilers.len() as u64, "compiler"), if compilers.len() == 1 { "has" } else { "have" });
    format!("  {count} for projects that are built again, which {has} {}{warming}\n", bytes(memory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_are_told_with_what_they_cost() {
        let one = |is_warm| CompilerView { pid: 7, is_warm, resident_bytes: Some(402_000_000) };
        assert_eq!(compilers_text(&[]), "");
        insta::assert_snapshot!(compilers_text(&[one(true)]), @"  1 compiler for projects that are built again, which has 402.0 MB");
        insta::assert_snapshot!(compilers_text(&[one(false)]), @"  1 compiler for projects that are built again, which has 402.0 MB, and becomes warm");
        insta::assert_snapshot!(compilers_text(&[one(true), one(false)]), @"  2 compilers for projects that are built again, which have 804.0 MB, and some become warm");
    }
}
