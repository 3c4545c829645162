/// Has a project's code note which parts of it run. It is for a process in which nothing else runs but tests, one after the other: its code does so
/// until it ends.
module Mainstay.Worker.Measuring

open System
open System.Collections.Generic
open System.Reflection
open System.Runtime.InteropServices
open Mainstay.Worker.Baselines
open Mainstay.Worker.Measurement
open Mainstay.Worker.SourcePlaces

/// What identifies the build of an assembly.
let buildOf (assembly: Assembly) : string = assembly.ManifestModule.ModuleVersionId.ToString "N"

/// Code that runs once, before any test: nobody would see it run.
let private runsOnce (assembly: Assembly) (token: int) : bool =
    match assembly.ManifestModule.ResolveMethod token with
    | :? ConstructorInfo as found -> found.IsStatic
    | _ -> false

/// The code of an assembly that notes what runs of it: the memory has a byte for each part.
type private Noting =
    { /// The number of the assembly among those of the project.
      Number: int
      Memory: nativeint
      Parts: int
      /// The parts whose running is noted.
      Noted: int list }

let private noting (number: int) (baseline: Baseline) : Noting =
    let parts = stretchesOf baseline.Path
    let memory = Marshal.AllocHGlobal(max 1 parts.Length) // which the code writes to as long as the process lives
    let probes =
        parts
        |> List.indexed
        |> List.groupBy (fun (_, part) -> part.Token)
        |> List.filter (fun (token, _) -> baseline.IsAsBuilt token && not (runsOnce baseline.Assembly token))
        |> List.map (fun (token, all) -> token, [ for part, stretch in all -> ({ Offset = stretch.Offset; Address = int64 memory + int64 part }: Probes.Probe) ])
    let noting = baseline.NoteWith probes |> HashSet<int>
    { Number = number
      Memory = memory
      Parts = parts.Length
      Noted = [ for part, stretch in List.indexed parts do if noting.Contains stretch.Token then part ] }

/// The code of these assemblies notes from here on what runs of it, as far as it can change.
type Measuring(assemblies: string list) =
    let baselines = capture assemblies
    let notes = List<string>()

    let all =
        [ for number, baseline in List.indexed baselines do
            let refuse (reason: string) = notes.Add("the lines of " + baseline.Name + " are not measured: " + reason)
            match baseline.Obstacle with
            | Some (_, reason) -> refuse reason
            | None ->
                match (try Ok(noting number baseline) with e -> Error(e.GetBaseException().Message)) with
                | Ok found -> found
                | Error reason -> refuse reason ]

    /// The assemblies, as a measurement tells them.
    member _.Assemblies : (string * string) list = [ for one in baselines -> one.Name, buildOf one.Assembly ]

    /// The parts whose running is noted.
    member _.Noted : PartRange list = [ for one in all do yield! rangesOf one.Number one.Noted ]

    /// Why others are left out.
    member _.Notes = List.ofSeq notes

    /// Forgets what has run.
    member _.Forget() = for one in all do Marshal.Copy(Array.zeroCreate<byte> one.Parts, 0, one.Memory, one.Parts)

    /// What has run since.
    member _.Ran() : PartRange list =
        [ for one in all do
            let bytes = Array.zeroCreate<byte> one.Parts
            Marshal.Copy(one.Memory, bytes, 0, one.Parts)
            yield! rangesOf one.Number [ for part in 0 .. one.Parts - 1 do if bytes.[part] <> 0uy then part ] ]
