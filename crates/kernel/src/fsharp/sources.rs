//! The source of the F# worker, carried in this program so that any SDK can compile it.

/// One file of the worker.
#[derive(Debug, Clone, Copy)]
pub(super) struct SourceFile {
    /// Its file name, which compiler errors mention.
    pub(super) name: &'static str,
    /// The text of the file.
    pub(super) text: &'static str,
}

/// What the worker is made of. The files of each assembly stand in the order of compilation, which the `sources.txt` beside them sets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sources {
    /// The module `Mainstay`, which code of sessions uses and the worker too.
    pub(super) display: &'static [SourceFile],
    /// The source files of the worker.
    pub(super) worker: &'static [SourceFile],
}

/// The sources that this program carries.
pub(super) const SOURCES: Sources = Sources { display: DISPLAY, worker: WORKER };

macro_rules! sources {
    ($folder:literal: $($name:literal)*) => {
        &[$(SourceFile { name: $name, text: include_str!(concat!("../../../../kernels/fsharp/", $folder, $name)) }),*]
    };
}

const DISPLAY: &[SourceFile] = sources!["display/":
    "Bundle.fs"
    "Cells.fs"
    "Table.fs"
    "Numbers.fs"
    "Plot.fs"
    "Conventions.fs"
    "Forms.fs"
    "Sink.fs"
    "TestsModel.fs"
    "TestsReflection.fs"
    "TestsMarked.fs"
    "Stand.fs"
    "EngineCalls.fs"
    "TestsNunit.fs"
    "TestsMstest.fs"
    "TestsFailure.fs"
    "Limited.fs"
    "EngineXunit2.fs"
    "EngineXunit3.fs"
    "EngineNunit.fs"
    "EngineExpecto.fs"
    "EngineAdapter.fs"
    "EnginePlatform.fs"
    "Engines.fs"
    "TestsFinding.fs"
    "TestsWords.fs"
    "TestsProgress.fs"
    "TestsRunning.fs"
    "TestsReport.fs"
    "Mainstay.fs"
    "Awaiting.fs"
    "Host.fs"
];

const WORKER: &[SourceFile] = sources!["":
    "Compat.fs"
    "Json.fs"
    "Limits.fs"
    "Protocol.fs"
    "Channel.fs"
    "Blame.fs"
    "UserOutput.fs"
    "Restores.fs"
    "Conditionals.fs"
    "Awaits.fs"
    "Frameworks.fs"
    "Splitter.fs"
    "Directives.fs"
    "Silenced.fs"
    "LoadedScripts.fs"
    "Ahead.fs"
    "Printed.fs"
    "Syntax.fs"
    "Names.fs"
    "Purity.fs"
    "Plain.fs"
    "Fragments.fs"
    "Turns.fs"
    "Diagnostics.fs"
    "Faults.fs"
    "StandardInput.fs"
    "Input.fs"
    "Displays.fs"
    "Sha256.fs"
    "Surroundings.fs"
    "Descriptions.fs"
    "Bound.fs"
    "Interruption.fs"
    "SubmissionThread.fs"
    "Evaluator.fs"
    "Documentation.fs"
    "Intellisense.fs"
    "Explorer.fs"
    "Search.fs"
    "Review.fs"
    "Listening.fs"
    "Startup.fs"
    "TestDiscovery.fs"
    "Program.fs"
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_and_their_order_are_those_of_the_lists_beside_them() {
        let display = include_str!("../../../../kernels/fsharp/display/sources.txt");
        for (sources, list) in
            [(WORKER, include_str!("../../../../kernels/fsharp/sources.txt")), (DISPLAY, display)]
        {
            assert_eq!(
                sources.iter().map(|source| source.name).collect::<Vec<_>>(),
                list.split_whitespace().collect::<Vec<_>>()
            );
        }
    }
}
