/// Whether the names in what is to be compiled mean what they mean in their files, as far as that depends on what the files have beyond the build.
module Mainstay.Worker.Confirmation

open System.IO
open Mainstay.Worker.Changes
open Mainstay.Worker.Difference
open Mainstay.Worker.Outline
open Mainstay.Worker.Protocol

/// What is known of the sources where some of them are as they were saved.
let private resolving (sources: Sources) (changes: Change list) : Resolution.Sources =
    let now (path: string) =
        match changes |> List.tryFind (fun change -> change.Source.Path = path) with
        | Some change -> Some change.After
        | None -> sources.Running path
    let earlier (name: string) =
        sources.Additions |> List.tryFind (fun one -> one.Module = name) |> Option.bind (fun one ->
            let path = one.Of.Path
            now path |> Option.bind (fun outline -> outline.Items |> List.tryFind (fun item -> item.Key = one.Item.Key) |> Option.map (fun item -> path, item)))
    { Resolution.Built = fun path -> match sources.Of path with Ok source -> Some source.Before | Error _ -> None
      Resolution.Now = now
      Resolution.Place = sources.Place
      Resolution.Earlier = earlier
      Resolution.IsReplaced =
        fun path item ->
            match changes |> List.tryFind (fun change -> change.Source.Path = path) with
            | Some change -> change.Added.Contains item.Key
            | None -> sources.IsReplaced(path, item) }

/// The files that are not built after that of a declaration and show it a name that they did not give when they were built.
let private givers (sources: Sources) (changes: Change list) (path: string) (item: Item) (name: string) : string list =
    let news (other: string) =
        match changes |> List.tryFind (fun change -> change.Source.Path = other) with
        | Some change -> change.News
        | None -> sources.News other
    let isMeant (one: News) = one.Novelty <> Gone && not one.Name.IsExtension && one.Name.Name = name && one.Of.Reach <> InModule && canMeanWithin item one.Name
    sources.Paths |> List.filter (fun other -> other <> path && not (sources.IsBefore(path, other)) && List.exists isMeant (news other))

/// What is new in a file and could be meant by a name that resolved to something else.
let private addedHere (change: Change) (item: Item) (name: string) : bool =
    let isNew (one: Item) = change.Source.Before.Items |> List.forall (fun old -> old.Key <> one.Key)
    let isSeen (one: Item) = one.Key <> item.Key && (item.IsRecursiveScope || one.Line < item.Line)
    change.After.Items |> List.exists (fun one -> isNew one && isSeen one && (namesOf change.After one |> List.exists (fun given -> given.Name = name && canMeanWithin item given)))

/// Whether nothing that is opened can come before something that was compiled: both are of one module of a file, which opens nothing behind it.
let private isInnermost (change: Change) (item: Item) (other: Item) : bool =
    not other.IsMember
    && other.Scope.Path = item.Scope.Path
    && not (change.After.LateOpens |> List.exists (fun (path, _) -> path = other.Scope.Path))

/// What else could stand for a name that something new has, and that resolved to something.
let private unseen (sources: Sources) (changes: Change list) (change: Change) (mention: Resolution.Mention) : (string * string) option =
    let path, name = mention.Slice.File, mention.Name
    let givers = givers sources changes path mention.Slice.Item name
    let isOfOthers (file: string) = givers |> List.exists ((<>) file)
    let ambiguous = Some("ambiguous", "which more than one file has added since the build")
    match mention.Declaration with
    | Resolution.InSlice other when other.Module = mention.Slice.Module || other.Item.IsLet -> None
    | _ when mention.IsOfObject -> None
    | Resolution.InSlice other when other.File = path && isInnermost change mention.Slice.Item other.Item -> None
    | Resolution.InSlice other -> if isOfOthers other.File then ambiguous else None
    | Resolution.InEarlier earlier ->
        (match sources.Additions |> List.tryFind (fun one -> one.Module = earlier) with
         | Some one when one.Of.Path = path && isInnermost change mention.Slice.Item one.Item -> None
         | Some one when isOfOthers one.Of.Path -> ambiguous
         | _ -> None)
    | _ when addedHere change mention.Slice.Item name -> Some("name", "and the file has a new one, which this code may mean")
    | Resolution.InFile (other, _) when other = path -> None
    | _ when sources.HasSignature path && change.After.Declared |> List.exists (fun one -> one.Name = name) -> Some("ambiguous", "and the file has one that its signature file may hide")
    | _ -> givers |> List.tryHead |> Option.map (fun other -> "added_elsewhere", "which " + Path.GetFileName other + " has added since the build")

/// An assembly of the project that the one of this change does not refer to.
let private notReferred (sources: Sources) (change: Change) (mention: Resolution.Mention) : (string * string) option =
    match mention.Declaration with
    | Resolution.InFile (other, _) ->
        match sources.Baselines |> List.tryFind (fun one -> one.Sources |> List.exists (fst >> (=) other)) with
        | Some owner when owner.Name <> change.Source.Baseline.Name && not (sources.Refers(change.Source.Baseline, owner.Name)) ->
            Some("declared_below", "which is in " + owner.Name + ", to which " + change.Source.Baseline.Name + " did not refer when it was built")
        | _ -> None
    | _ -> None

/// Methods that a computation expression calls without naming them, where something that the code does not see yet has them too.
let private unseenBuilders (sources: Sources) (change: Change) (slice: Slices.Slice) : Obstacle list =
    let isBuilders (one: Declared) = one.IsExtension && builderMembers.Contains one.Name
    let isBehind (one: Declared) = one.Line > slice.Item.EndLine && not slice.Item.IsRecursiveScope
    let ofFile = change.After.Declared |> List.filter (fun one -> isBehind one && isBuilders one)
    let ofOthers =
        [ for other in sources.Paths do
            if other <> slice.File && not (sources.IsBefore(other, slice.File)) then
                match sources.Of other with
                | Ok source -> for one in source.Before.Declared do if isBuilders one && source.Before.Namespaces.Contains one.Path then one
                | Error _ -> () ]
    if not slice.Item.HasComputation then []
    else
        [ for one in List.truncate 1 (ofFile @ ofOthers) ->
            refusal slice.File "declared_below" slice.Item.Shown slice.Item.Line ("its computation expression may call `" + one.Name + "`, which is declared below it or in a later file") ]

/// What extends a type from outside comes after the type's own member of that name, which here extends it too.
let private extendsToo (names: Set<string>) (mention: Resolution.Mention) =
    match mention.Declaration with
    | Resolution.InSlice _
    | Resolution.InEarlier _ -> None
    | _ when mention.IsExtension && names.Contains mention.Name -> Some("ambiguous", "and a type has a new member of that name")
    | _ -> None

/// A value of a module that is a structure cannot be changed by code of another assembly, which gets a copy.
let private changesCopy (change: Change) (mention: Resolution.Mention) =
    match mention.Declaration with
    | Resolution.InFile _ when change.Source.Baseline.ChangedInPlace.Value.Contains mention.Name -> Some("mutable_struct", "a structure that changes in place")
    | _ -> None

/// Whether the names in slices resolve to what they resolve to in their files. `check` checks the slices, each with these openings.
let confirm (sources: Sources) (changes: Change list) (slices: (Change * Slices.Slice) list) (check: (Slices.Slice -> Opening list) -> Result<Resolution.Mention list, Obstacle list>) : Result<unit, Obstacle list> =
    let resolving = resolving sources changes
    let changeOf = slices |> List.map (fun (change, slice) -> slice.Module, change) |> Map.ofList
    let refuse (mention: Resolution.Mention) (code, reason) =
        refusal mention.Slice.File code mention.Slice.Item.Shown mention.Line ("it mentions `" + mention.Name + "`, " + reason)
    let newMembers =
        [ for _, slice in slices do if slice.IsExtension then yield! slice.Item.Names
          for one in sources.Additions do if one.Item.IsMember then yield! one.Item.Names ]
        |> Set.ofList
    let obstacleOf (mention: Resolution.Mention) =
        let change = changeOf.[mention.Slice.Module]
        [ Resolution.obstacleOf resolving; changesCopy change; unseen sources changes change; notReferred sources change; extendsToo newMembers ]
        |> List.tryPick (fun obstacle -> obstacle mention)
        |> Option.map (refuse mention)
    let orders = slices |> List.map (fun (change, slice) -> slice.Module, Resolution.otherOrders change.After slice.Item) |> Map.ofList
    let most = orders |> Seq.map (fun entry -> List.length entry.Value) |> Seq.fold max 0
    let inOrder (number: int) (slice: Slices.Slice) = orders.[slice.Module] |> List.tryItem number |> Option.defaultValue slice.Item.Openings
    check (fun slice -> slice.Item.Openings) |> Result.bind (fun usual ->
        let uncertain (other: Resolution.Mention list) =
            Resolution.differing usual other |> List.map (fun mention -> refuse mention ("ambiguous", "which means one thing or another by the order in which names become visible"))
        let ofOrders = [ 0 .. most - 1 ] |> List.map (fun number -> check (inOrder number) |> Result.map uncertain) |> allOf |> Result.map List.concat
        match (slices |> List.collect (fun (change, slice) -> unseenBuilders sources change slice)) @ List.choose obstacleOf usual, ofOrders with
        | [], Ok [] -> Ok()
        | found, Ok more -> Error(List.distinct (found @ more))
        | found, Error more -> Error(found @ [ for one in more -> { one with Code = "ambiguous" } ]))
