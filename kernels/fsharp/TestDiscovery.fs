/// Answers `tests`: the tests that the session's code defined and those of the assemblies it refers to. None of its code runs.
module Mainstay.Worker.TestDiscovery

open MainstayDisplay.TestsModel
open Mainstay.Worker.Protocol
open Mainstay.Worker.Evaluator

/// The tests with this in their names and of this category, at most so many as an answer holds, and how many they are.
let discover (evaluator: Evaluator) (pattern: string option) (category: string option) : TestItem list * int * string list =
    let listed, _, notes = evaluator.Tests { Pattern = pattern; Category = category }
    let item (one: MainstayDisplay.TestsFinding.Listed) : TestItem =
        { Name = one.Name
          Framework = one.Framework
          Assembly = one.Assembly
          Categories = one.Categories
          Skipped = one.Skipped
          Cases = one.Cases }
    List.truncate Limits.itemLimit listed |> List.map item, List.length listed, notes
