//! The source of the F# worker, carried in this program so that any SDK can compile it.

/// One file of the worker.
#[derive(Debug, Clone, Copy)]
pub(super) struct SourceFile {
    /// Its file name, which compiler errors mention.
    pub(super) name: &'static str,
    /// Its text.
    pub(super) text: &'static str,
}

macro_rules! sources {
    ($($name:literal)*) => {
        &[$(SourceFile { name: $name, text: include_str!(concat!("../../../../kernels/fsharp/", $name)) }),*]
    };
}

/// The files in the order of compilation, which `kernels/fsharp/sources.txt` sets.
pub(super) const WORKER: &[SourceFile] = sources![
    "Compat.fs"
    "Json.fs"
    "Limits.fs"
    "Protocol.fs"
    "Channel.fs"
    "UserOutput.fs"
    "Conditionals.fs"
    "Splitter.fs"
    "Printed.fs"
    "Syntax.fs"
    "Names.fs"
    "Purity.fs"
    "Turns.fs"
    "Diagnostics.fs"
    "Faults.fs"
    "Blame.fs"
    "Input.fs"
    "Sha256.fs"
    "Surroundings.fs"
    "Evaluator.fs"
    "Documentation.fs"
    "Intellisense.fs"
    "Explorer.fs"
    "Program.fs"
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_and_their_order_are_those_of_the_list_beside_them() {
        let list = include_str!("../../../../kernels/fsharp/sources.txt");
        assert_eq!(
            WORKER.iter().map(|source| source.name).collect::<Vec<_>>(),
            list.split_whitespace().collect::<Vec<_>>()
        );
    }
}
