/// Puts compiled methods in the place of those that assemblies were built with while the submission that has them runs, and takes all of
/// that back where it fails. So what makes the submission's values runs the new functions, and nothing is made before it is known that all fits.
module Mainstay.Worker.Exchange

open System
open System.Collections.Generic
open System.IO
open System.Reflection
open Mainstay.Worker.Baselines
open Mainstay.Worker.Changes
open Mainstay.Worker.Compat
open Mainstay.Worker.Outline
open Mainstay.Worker.Protocol

/// Where a submission finds who waits at its gates.
[<Literal>]
let private Place = "mainstay.swap"

/// What a submission runs at a gate: it has the worker go on with the exchange.
let gate = "(global.System.AppDomain.CurrentDomain.GetData \"" + Place + "\" :?> global.System.Action<global.System.Reflection.Assembly>).Invoke(global.System.Reflection.Assembly.GetExecutingAssembly())"

/// Runs a submission; at each gate `work` is given its assembly, and may raise an exception, which ends it.
let whileAtGates (work: Assembly -> unit) (run: unit -> 'T) : 'T =
    let raised: exn option ref = ref None
    let atGate (assembly: Assembly) =
        try
            work assembly
        with e ->
            raised.Value <- Some e
            raise e
    AppDomain.CurrentDomain.SetData(Place, Action<Assembly> atGate)
    try
        let result = try Ok(run ()) with e -> Error e
        match raised.Value, result with
        | Some e, _ -> raise e // whatever the compiler's service made of it
        | None, Ok result -> result
        | None, Error e -> raise e
    finally
        AppDomain.CurrentDomain.SetData(Place, null)

/// What a submission raised; the compiler's service wraps that.
let private causeOf (e: exn) : exn =
    match e.GetBaseException() with
    | stopped when stopped.GetType().Name = "StopProcessingExn" ->
        (match stopped.GetType().GetProperty("Data0", BindingFlags.Instance ||| BindingFlags.Public ||| BindingFlags.NonPublic) with
         | null -> stopped
         | property ->
            match property.GetValue stopped with
            | :? (exn option) as cause -> cause |> Option.map (fun cause -> cause.GetBaseException()) |> Option.defaultValue stopped
            | _ -> stopped)
    | e -> e

/// A declaration that was compiled, and the methods that it is to replace.
type Compiled =
    { Of: Source
      Slice: Slices.Slice
      /// The type as which the slice's own module was compiled.
      Kind: Type option
      Redirections: Deltas.Redirection list }

/// Nothing that a submission has can be put in, for these reasons.
exception private Unfit of Obstacle list

/// A runtime that does not change an assembly: the name of that, and why.
exception private Refused of assembly: string * reason: string

/// What one save gives bodies to.
type private Redirected() =
    let earlier = Stack<Baseline * Deltas.Redirection list>()

    /// Gives methods bodies, assembly by assembly.
    member _.Put(redirections: (Baseline * Deltas.Redirection) list) =
        for baseline, all in redirections |> List.groupBy (fun (baseline, _) -> baseline.Path) |> List.map (fun (_, all) -> fst all.Head, List.map snd all) do
            let before = [ for one in all -> { one with New = baseline.BodyOf one.Old } ]
            try
                baseline.Redirect all
            with e -> raise (Refused(baseline.Name, e.GetBaseException().Message))
            earlier.Push(baseline, before)

    /// Gives all of them the bodies that they had.
    member _.TakeBack() =
        while earlier.Count > 0 do
            let baseline, before = earlier.Pop()
            baseline.Redirect before

/// The type as which a slice's own module was compiled.
let private compiledOf (assembly: Assembly) (slice: Slices.Slice) : Type option =
    let own = assembly.GetTypes() |> Array.tryFind (fun kind -> kind.Name = slice.Module)
    (own, slice.Within)
    ||> List.fold (fun found name -> found |> Option.bind (fun kind -> kind.GetNestedType(name, BindingFlags.Public ||| BindingFlags.NonPublic) |> Option.ofObj))

/// The methods that a compiled declaration is to replace.
let private redirectionsOf (source: Source) (slice: Slices.Slice) (compiled: Type option) : Result<Deltas.Redirection list, Obstacle list> =
    let refuse reason = [ refusal source.Path "signature" slice.Item.Shown slice.Item.Line reason ]
    match compiled with
    | None -> Error(refuse "what was compiled of it is not found")
    | Some compiled ->
        List.zip slice.Item.CompiledNames slice.Names
        |> List.map (fun (old, name) ->
            Replaced.pair source.Baseline.Assembly compiled slice.Item old name
            |> Result.map (fun (old, replacement) -> { Deltas.Old = old; Deltas.New = Deltas.Calls replacement })
            |> Result.mapError refuse)
        |> allOf

/// What was compiled of the declarations in an assembly, and what it is to replace. What is new has nothing to replace, and what has another
/// signature does not fit.
let private pairs (slices: (Change * Slices.Slice) list) (assembly: Assembly) : Result<Compiled list, Obstacle list> =
    slices
    |> List.map (fun (change, slice) ->
        let kind = compiledOf assembly slice
        let isBuilt = change.Source.Before.Items |> List.exists (fun one -> one.Key = slice.Item.Key)
        let ofTest = if slice.IsAdded then SavedTests.obstacle change.Source.Baseline.Assembly slice.Item kind else None
        match slice.IsAdded, (if isBuilt || not slice.IsAdded then redirectionsOf change.Source slice kind else Ok []), ofTest with
        | _, _, Some reason -> Error [ refusal change.Source.Path "attribute" slice.Item.Shown slice.Item.Line reason ]
        | true, Error _, _ -> Ok []
        | _, found, _ -> found
        |> Result.map (fun redirections -> { Of = change.Source; Slice = slice; Kind = kind; Redirections = redirections }))
    |> allOf

/// The methods that are to run what they were built with.
let private toRestore (changes: Change list) (compiled: Compiled list) : (Baseline * Deltas.Redirection) list =
    let asBuilt (source: Source) (item: Item) =
        match source.Baseline.Current.TryGetValue(keyOf source.Path item) with
        | true, running -> [ for old in running.Methods -> source.Baseline, { Deltas.Old = old; Deltas.New = Deltas.AsBuilt } ]
        | _ -> []
    // What has another signature now is called by code of the session as it was built.
    let isResigned (source: Source) (item: Item) =
        compiled |> List.exists (fun one -> one.Of.Path = source.Path && one.Slice.Item.Key = item.Key && one.Slice.IsAdded && List.isEmpty one.Redirections)
    [ for change in changes do
        for item in change.Restored do yield! asBuilt change.Source item
        for item, _ in change.Items do if isResigned change.Source item then yield! asBuilt change.Source item ]

/// Runs a submission of declarations, and puts these in the place of those that were built: before a value is made, all that stands above
/// it. `complaintsOf` has what the compiler says where it does not take the submission.
let run (isolated: Isolated.Isolated) (changes: Change list) (slices: (Change * Slices.Slice) list) (standings: Isolated.Standing list) (text: string) (complaintsOf: CompilerMessage[] -> Obstacle list) : Result<Compiled list, Obstacle list> =
    let redirected = Redirected()
    let path = (fst slices.Head).Source.Path
    let mutable compiled: Compiled list option = None
    let mutable left: (bool * (Baseline * Deltas.Redirection) list) list = [] // each with whether something is made for it first
    let values = Queue<Slices.Slice>(slices |> Seq.map snd |> Seq.filter (fun slice -> slice.IsMade))
    let mutable making: Slices.Slice option = None // the value whose code runs
    let put (due: (bool * (Baseline * Deltas.Redirection) list) list) =
        left <- List.skip due.Length left
        redirected.Put(List.collect snd due)
    let start (assembly: Assembly) =
        match pairs slices assembly with
        | Error obstacles -> raise (Unfit obstacles)
        | Ok all ->
            compiled <- Some all
            left <- (false, toRestore changes all) :: [ for one in all -> one.Slice.IsMade, [ for redirection in one.Redirections -> one.Of.Baseline, redirection ] ]
    let atGate (assembly: Assembly) =
        match compiled with
        | None -> start assembly
        | Some _ ->
            making <- if values.Count > 0 then Some(values.Dequeue()) else None
            put (List.head left :: List.takeWhile (fst >> not) (List.tail left))
    try
        match whileAtGates atGate (fun () -> isolated.Run(standings, text)), compiled with
        | (true, _), Some all ->
            put left
            Ok all
        | (_, messages), _ ->
            redirected.TakeBack()
            Error(complaintsOf messages)
    with e ->
        redirected.TakeBack()
        match causeOf e with
        | Unfit obstacles -> Error obstacles
        | Refused (assembly, reason) -> Error [ refusal path "runtime_refused" assembly 1 reason ]
        | e ->
            let reason = e.GetType().FullName + ": " + e.Message
            match making with
            | Some slice -> Error [ refusal slice.File "raised" slice.Item.Shown slice.Item.Line reason ]
            | None -> Error [ refusal path "raised" (Path.GetFileName path) 1 reason ]

/// Has declarations run what they were built with.
let restore (changes: Change list) : Result<Compiled list, Obstacle list> =
    let redirected = Redirected()
    try
        redirected.Put(toRestore changes [])
        Ok []
    with Refused (assembly, reason) ->
        redirected.TakeBack()
        Error [ for change in List.truncate 1 changes -> refusal change.Source.Path "runtime_refused" assembly 1 reason ]
