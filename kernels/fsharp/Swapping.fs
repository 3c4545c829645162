/// Puts what changed in source files of the project into the session that runs: methods of loaded assemblies get the bodies of newly compiled
/// ones. Either all that changed in the files is put in, or nothing is, and why not is told.
module Mainstay.Worker.Swapping

open System
open System.Collections.Generic
open System.IO
open System.Reflection
open Mainstay.Worker.Baselines
open Mainstay.Worker.Changes
open Mainstay.Worker.Compat
open Mainstay.Worker.Outline
open Mainstay.Worker.Protocol

/// A file as it is now, with the hash of its content.
let private read (path: string) : string * string =
    use content = new MemoryStream(File.ReadAllBytes path)
    let hash = Sha256.ofStream content
    content.Position <- 0L
    use reader = new StreamReader(content)
    reader.ReadToEnd(), hash

/// A text that is in no file, with its hash.
let private hashed (text: string) : string * string =
    use content = new MemoryStream(Text.Encoding.UTF8.GetBytes text)
    text, Sha256.ofStream content

/// How often a save is compiled at most, each time with more declarations that have another signature.
let private mostAttempts = 3

/// What one session has put in; it sees nothing of what the session does later. `assemblies` are the paths of its project's own, `symbolsOf` gives
/// what conditional compilation of one knows, where that is known, and `order` has their sources in the order of the build. `most` says how many
/// saves may be compiled: each leaves memory behind that only a new worker gives back.
type Swapping(session: Session, symbolsOf: string -> Set<string> option, assemblies: string list, order: string list, most: int64 option) =
    let isolated = try Some(Isolated.Isolated session) with _ -> None
    let opened = Opened.Names(fun text -> match isolated with Some isolated -> isolated.Check([], text) | None -> check session text)
    let referenced = lazy (check session "").Assemblies() // those of the project are what they are from the beginning
    let sources = Sources(session, symbolsOf, assemblies, order, opened)
    let mutable count = 0
    let mutable taken = 0L // how many saves were compiled
    let mutable isCompiled = false // whether the present one was
    let mutable hear: Affected.Exchanged list -> unit = ignore
    let lastRead = Dictionary<string, string>() // the hashes of files
    let mutable tests: MainstayDisplay.TestsFinding.SavedTests = { Added = []; Gone = Set.empty }
    let mutable testPlaces: Map<string, string * int> = Map.empty
    let mutable madeEarlier: unit -> Affected.MadeEarlier list = fun () -> []

    let sliceOf (source: Source) (item: Item, isAdded: bool) : Slices.Slice =
        count <- count + 1
        let name = "Swapped" + string count
        let isWord (name: string) = name |> Seq.forall (fun c -> Char.IsLetterOrDigit c || c = '_')
        let names =
            match item.Kind with
            | Member one when one.IsLet -> item.CompiledNames
            | Member _ when not (List.forall isWord item.Names) -> [ "swapped" + string count ]
            | Member _ -> item.Names
            | Function
            | Value -> item.CompiledNames
        let typed = { item with Rewritten = item.Rewritten @ Replaced.typings source.Baseline.Assembly item }
        { Item = typed; File = source.Path; Module = name; IsAdded = isAdded; Names = names }

    /// Where the code of a declaration stands, with whose rights it is compiled.
    let standingsOf (isOfType: bool) (source: Source) (item: Item) : Isolated.Standing list =
        match referenced.Value |> List.tryFind (fun one -> one.SimpleName = source.Baseline.Name) with
        | None -> []
        | Some assembly ->
            let standing path isOfType state = { Isolated.Assembly = assembly; Isolated.Path = path; Isolated.IsOfType = isOfType; Isolated.State = state }
            [ yield standing item.Scope.Path false Set.empty
              match item.Kind with
              | Member one -> yield standing (item.Scope.Path @ [ one.Type ]) isOfType one.State
              | Function
              | Value -> () ]

    let isStruct (source: Source) (item: Item) (name: string) =
        match item.Kind with
        | Member one -> Replaced.typeOf source.Baseline.Assembly item.Scope name one.Parameters.Length |> Option.exists (fun kind -> kind.IsValueType)
        | Function
        | Value -> false

    /// What the compiler says of a submission that it does not take; `placeOf` gives the file and line of a message.
    let complaints (path: string) (placeOf: CompilerMessage -> string * int) (messages: CompilerMessage[]) : Obstacle list =
        match messages |> Array.filter (fun message -> message.Severity = "error") |> List.ofArray with
        | [] -> [ refusal path "not_compiled" (Path.GetFileName path) 1 "the compiler of this SDK compiles no part of a project" ]
        | errors ->
            [ for message in errors do
                let file, line = placeOf message
                refusal file "not_compiled" (Path.GetFileName file) line message.Text ]

    /// Whether a slice may see what was compiled of another declaration: in its own file, or of one that is built before it and shows it.
    let sees (slice: Slices.Slice) (other: Slices.Visible) : bool =
        let baselineOf (path: string) = match sources.Of path with Ok source -> Some source.Baseline | Error _ -> None
        match baselineOf slice.File, baselineOf other.File with
        | _ when slice.File = other.File -> true
        | Some own, Some theirs when sources.IsBefore(other.File, slice.File) && not (sources.HasSignature other.File) ->
            (match other.Reach with
             | InModule -> false
             | InAssembly -> own.Name = theirs.Name
             | Everywhere -> own.Name = theirs.Name || sources.Refers(own, theirs.Name))
        | _ -> false

    /// What earlier submissions compiled that stays as it is, in the order of the build.
    let stillThere (changes: Change list) : Slices.Visible list =
        let isAgain = let keys = Set.ofList [ for change in changes do for item, _ in change.Items -> keyOf change.Source.Path item ] in keys.Contains
        let isGone (one: Addition) =
            changes |> List.exists (fun change -> one.Of.Path = change.Source.Path && not (change.Added.Contains one.Item.Key))
        [ for one in sources.Additions |> List.sortBy (fun one -> sources.Place one.Of.Path, one.Item.Line) do
            if not (one.Item.IsLet || isAgain (keyOf one.Of.Path one.Item) || isGone one) then
                { Slices.Visible.File = one.Of.Path
                  Slices.Visible.Path = one.Item.Scope.Path
                  Slices.Visible.Module = one.Module
                  Slices.Visible.IsExtension = one.Item.IsMember
                  Slices.Visible.Reach = one.Item.Reach } ]

    /// Declarations in the order in which they are compiled: that of their file, but that all members of a type see those that are new.
    let inOrder (items: (Item * bool) list) : (Item * bool) list =
        let firstOf (item: Item) = items |> List.map fst |> List.find (fun one -> one.IsOfTypeOf item && not one.IsLet)
        let isNewMember (item: Item) isAdded = isAdded && item.IsMember
        items |> List.sortBy (fun (item, isAdded) -> if isNewMember item isAdded then (firstOf item).Line, 0, item.Line else item.Line, 1, item.Line)

    /// Slices of one save whose code calls what `let` binds in their types.
    let callingLets (slices: (Change * Slices.Slice) list) : (Change * Slices.Slice) list =
        let binds (name: string) (user: Slices.Slice) (one: Slices.Slice) =
            one.Item.IsLet && one.File = user.File && one.Item.IsOfTypeOf user.Item && List.contains name one.Item.Names
        slices |> List.map (fun (change, slice) -> change, Slices.callingLets (fun name -> slices |> List.map snd |> List.tryFind (binds name slice)) slice)

    /// Compiles declarations, and puts them in the place of those that were built.
    let exchangeWith (isolated: Isolated.Isolated) (changes: Change list) : Result<Exchange.Compiled list, Obstacle list> =
        let slices = callingLets [ for change in changes do for item, isAdded in inOrder change.Items -> change, sliceOf change.Source (item, isAdded) ]
        let visible = stillThere changes
        let names = sources.Baselines |> List.map (fun one -> one.Name)
        let submissionWith (openings: Slices.Slice -> Opening list) =
            slices
            |> List.map (fun (change, slice) -> change.After, isStruct change.Source slice.Item, { slice with Item = { slice.Item with Openings = openings slice } })
            |> Slices.submission names visible sees Exchange.gate
        let types = slices |> List.map (fun (change, slice) -> change.Source.Path, slice.Item.Scope, (match slice.Item.Kind with Member one -> Some(one.Type, one.Parameters.Length) | Function | Value -> None))
        let isOfType = match List.distinct types with [ _, _, Some _ ] -> true | _ -> false
        let standings =
            slices
            |> List.collect (fun (change, slice) -> standingsOf isOfType change.Source slice.Item)
            |> List.distinctBy (fun one -> one.Assembly.SimpleName, one.Path, one.State)
        let path = (fst slices.Head).Source.Path
        let resolveIn (openings: Slices.Slice -> Opening list) =
            let lines = submissionWith openings |> Array.ofList
            let found = isolated.Check(standings, Slices.plain (List.ofArray lines))
            let origin (message: CompilerMessage) =
                match lines |> Array.tryItem (message.StartLine - 1) |> Option.bind (fun line -> line.Origin) with
                | Some (slice, line) -> slice.File, line
                | None -> path, 1
            if found.Messages |> Array.exists (fun message -> message.Severity = "error") then Error(complaints path origin found.Messages)
            else Ok(Resolution.mentionsOf (fun name -> List.contains name names) lines (found.Uses()))
        let resolve openings =
            try
                resolveIn openings
            with e -> Error [ refusal path "not_compiled" (Path.GetFileName path) 1 ("the compiler could not be asked what its names mean: " + e.GetBaseException().Message) ]
        Confirmation.confirm sources changes slices resolve |> Result.bind (fun () ->
            let text = Slices.placed (submissionWith (fun slice -> slice.Item.Openings))
            isCompiled <- true
            Exchange.run isolated changes slices standings text (complaints path (fun message -> (if File.Exists message.File then message.File else path), message.StartLine)))

    /// Puts in what differs, or takes back to what was built where nothing has to be compiled.
    let exchangeAll (changes: Change list) : Result<Exchange.Compiled list, Obstacle list> =
        match isolated with
        | _ when changes |> List.forall (fun change -> List.isEmpty change.Items) -> Exchange.restore changes
        | _ when most |> Option.exists (fun most -> taken >= most) ->
            let path = (List.head changes).Source.Path
            Error [ refusal path "swap_limit" (Path.GetFileName path) 1 ("this worker has taken " + string taken + " saves (`swaps-per-worker`)") ]
        | Some isolated -> exchangeWith isolated changes
        | None -> Error(complaints (List.head changes).Source.Path (fun message -> message.File, message.StartLine) [||])

    /// Whether a declaration runs otherwise than it has run.
    let isNews (change: Change) (item: Item) : bool =
        let source = change.Source
        let key = keyOf source.Path item
        match source.Baseline.Current.TryGetValue key with
        | true, running -> running.Text <> change.RunsAs item
        | _ -> source.Before.Items |> List.forall (fun one -> keyOf source.Path one <> key || one.Text <> change.RunsAs item)

    /// Whether what a declaration has made since it was compiled may keep functions that `let` binds in its type, as they were then.
    let keepsLets (change: Change) (item: Item) : bool =
        change.Source.Baseline.Current.ContainsKey(keyOf change.Source.Path item) && item.OfType |> Option.exists (fun one -> one.KeepsLets)

    /// Whether a declaration that is compiled only for what it uses is to be told: something of its older version stays.
    let keepsOlder (change: Change) (item: Item) : bool =
        keepsLets change item || (item.MakesAnonymous && not (change.Source.Baseline.Current.ContainsKey(keyOf change.Source.Path item)))

    /// What of the older version of a declaration stays with those who have it. `keepers` are those of the save that may keep older functions.
    let keptOf (keepers: Set<Declaration>) (source: Source) (item: Item) : string option =
        let before = source.Before.Items |> List.tryFind (fun one -> one.Key = item.Key)
        let handedOver = before |> Option.map (fun one -> one.HandedOver) |> Option.defaultValue []
        if before |> Option.exists (fun old -> old.IsInline || item.IsInline) then Some "inline"
        // Nobody but what was compiled before can call what `let` binds in a type.
        elif sources.IsResigned(source, item) then Some(if item.IsLet then "closures" else "signature")
        elif before.IsNone && item.IsMember then Some "reflection"
        elif item.Kind = Value && before.IsSome then Some "value"
        elif item.Attributes |> List.exists (fun (name, _) -> name = "EntryPoint") then Some "run"
        elif handedOver <> item.HandedOver && not (List.isEmpty handedOver) then Some "closures"
        elif keepers.Contains(keyOf source.Path item) then Some "closures"
        elif item.MakesAnonymous then Some "anonymousRecord"
        else None

    /// Takes note of what runs now.
    let remember (changes: Change list) (compiled: Exchange.Compiled list) =
        for change in changes do
            let source = change.Source
            for item in change.Restored do
                source.Baseline.Current.Remove(keyOf source.Path item) |> ignore
            for item, _ in change.Items do
                let replaced = compiled |> List.filter (fun one -> one.Of.Path = source.Path && one.Slice.Item.Key = item.Key)
                let earlier = match source.Baseline.Current.TryGetValue(keyOf source.Path item) with | true, running -> running.Methods | _ -> []
                let methods = match [ for one in replaced do for redirection in one.Redirections -> redirection.Old ] with [] -> earlier | methods -> methods
                source.Baseline.Current.[keyOf source.Path item] <- { Text = change.RunsAs item; Methods = methods }
        sources.Remember(changes, [ for one in compiled do if one.Slice.IsAdded then { Of = one.Of; Item = one.Slice.Item; Module = one.Slice.Module; Kind = one.Kind; IsRedirected = not (List.isEmpty one.Redirections) } ])

    /// What was exchanged, for those who follow which code runs which other.
    let exchanged (changes: Change list) (compiled: Exchange.Compiled list) : Affected.Exchanged list =
        let isNewsOf (one: Exchange.Compiled) = changes |> List.exists (fun change -> change.Source.Path = one.Of.Path && isNews change one.Slice.Item)
        let anew =
            [ for one in compiled ->
                { Affected.Name = one.Slice.Item.Shown
                  Affected.Old = [ for redirection in one.Redirections -> redirection.Old :> MethodBase ]
                  Affected.New = Affected.Compiled(one.Kind, one.Slice.Item.Words)
                  Affected.IsNews = isNewsOf one } ]
        let again =
            [ for change in changes do
                for item in change.Restored ->
                    { Affected.Name = item.Shown
                      Affected.Old = [ for old in change.Source.Baseline.Current.[keyOf change.Source.Path item].Methods -> old :> MethodBase ]
                      Affected.New = Affected.AsBuilt
                      Affected.IsNews = isNews change item } ]
        anew @ again

    /// What was in a file, as it ran where that was not as it was built, and is not any more.
    let goneFrom (running: Outline option) (change: Change) : Item list =
        let before = defaultArg running change.Source.Before
        before.Items |> List.filter (fun item -> change.After.Items |> List.forall (fun one -> one.Key <> item.Key))

    /// Puts in what differs; gives what runs now and did not before, each with what stays of its older version.
    let putIn (changes: Change list) : Result<(Source * Item * string option) list, Obstacle list> =
        exchangeAll changes |> Result.map (fun compiled ->
            let news = [ for change in changes do for item, _ in change.Items do if isNews change item || keepsOlder change item then change.Source, item ]
            let again = [ for change in changes do for item in change.Restored do if isNews change item then change.Source, item ]
            let keepers = Set.ofList [ for change in changes do for item, _ in change.Items do if keepsLets change item then keyOf change.Source.Path item ]
            let exchanged = try exchanged changes compiled with _ -> []
            remember changes compiled
            let saved, places = SavedTests.read sources
            tests <- saved
            testPlaces <- places
            try hear exchanged with _ -> ()
            [ for source, item in news @ again -> source, item, keptOf keepers source item ])

    /// Puts in what these files, with their texts, have otherwise than the code that runs. A declaration with another signature shows itself
    /// when it was compiled, and then is taken for a new one, which those are to use that mention it.
    let rec attempt (saved: (string * string) list) (attempts: int) (resigned: Set<Declaration>) =
        let changes = sources.Changes(saved, resigned)
        match changes |> List.map snd |> allOf |> Result.bind putIn with
        | Error obstacles when attempts > 1 ->
            let more = sources.MayBeResigned([ for _, change in changes do match change with Ok change -> change | Error _ -> () ], obstacles) - resigned
            if Set.isEmpty more then changes, Error obstacles
            else
                match attempt saved (attempts - 1) (resigned + more) with
                | again, Ok swapped -> again, Ok swapped
                | again, Error others ->
                    let isCompiled = obstacles |> List.forall (fun one -> one.Code <> "not_compiled")
                    let stays = obstacles |> List.exists (fun one -> List.contains one others)
                    // What is right with the new signatures is no error, and what is not is one.
                    if isCompiled then changes, Error(List.distinct (obstacles @ others))
                    elif stays then changes, Error obstacles
                    else again, Error others
        | result -> changes, result

    /// What was made earlier, with its place in the sources.
    let placed (isSwapped: string -> bool) (made: Affected.MadeEarlier list) : Swapped list =
        let known = [ for path in sources.Paths do match sources.Of path with Ok source -> path, defaultArg (sources.Running path) source.Before | Error _ -> () ]
        let placeOf (one: Affected.MadeEarlier) =
            let asValue (path: string, outline: Outline) =
                outline.Items |> List.tryFind (fun item -> item.Kind = Value && Some item.Shown = one.Value) |> Option.map (fun item -> item.Shown, path, item.Line)
            let asField (path: string, outline: Outline) =
                let kind = "the type `" + one.Type.Substring(one.Type.LastIndexOf '.' + 1) + "`"
                let isThere = outline.Namespaces |> Set.exists (fun space -> one.Type.StartsWith(String.Join(".", space), StringComparison.Ordinal))
                outline.Rest |> List.tryFind (fun part -> isThere && part.What = kind) |> Option.map (fun part -> one.Type + "." + one.Field, path, part.Line)
            let asPattern (path: string, outline: Outline) =
                outline.Declared |> List.tryPick (fun declared ->
                    let name = String.Join(".", declared.Path @ [ declared.Name ])
                    if Some name = one.Value then Some(name, path, declared.Line) else None)
            [ asValue; asPattern; asField ] |> List.tryPick (fun found -> List.tryPick found known)
        [ for one in made do
            match placeOf one with
            | Some (name, path, line) when not (isSwapped name) -> { Name = name; File = path; Line = line; Kept = None }
            | _ -> () ]
        |> List.distinct

    /// Whether a file has other bytes than it had when it was last read, or built.
    let isRenewed (path: string, (text: string, hash: string)) =
        match lastRead.TryGetValue path with
        | true, last -> last <> hash
        | _ -> not (sources.Baselines |> List.exists (fun one -> List.contains (path, text) one.Sources))

    /// `listener` is told what of each swap was compiled, before the swap is answered; `made` tells then what was made earlier by what changed.
    member _.Follow(listener: Affected.Exchanged list -> unit, made: unit -> Affected.MadeEarlier list) =
        hear <- listener
        madeEarlier <- made

    /// What of the project's tests is otherwise than it was built. Any thread may call this.
    member internal _.Tests : MainstayDisplay.TestsFinding.SavedTests = tests

    /// The file and line of a test that was compiled since the build, by its class and method as they were compiled. Any thread may call this.
    member _.PlaceOfTest(root: string) : (string * int) option = testPlaces.TryFind root

    /// Reads all sources, which the first swap would wait for.
    member _.ReadAhead() =
        for path in sources.Paths do
            sources.Of path |> ignore

    /// Compares, compiles and writes something, which the first swap would wait for. As for a swap, the session may compile nothing meanwhile.
    member _.WarmUp() =
        let text = "module WarmUp =\n let f (x: int) = x + 1\n"
        referenced.Force() |> ignore
        let texts = [ for baseline in sources.Baselines do for path, text in List.truncate 1 baseline.Sources -> path, text ]
        sources.Changes(texts, Set.empty) |> ignore
        isolated |> Option.iter (fun isolated ->
            isolated.Check([], text).Uses() |> Resolution.mentionsOf (fun _ -> false) [||] |> ignore
            let warmUp (assembly: Assembly) =
                let compiled = assembly.GetTypes() |> Array.find (fun kind -> kind.Name = "WarmUp")
                for baseline in sources.Baselines do baseline.WarmUp(compiled.GetMethod "f")
            Exchange.whileAtGates warmUp (fun () -> isolated.Run([], text + "module AtGate =\n do " + Exchange.gate + "\n")) |> ignore)

    /// The files of the project that are not as they were built.
    member _.Unbuilt() : string list =
        [ for baseline in sources.Baselines do
            for path, text in baseline.Sources do
                if File.Exists path && fst (read path) <> text then path ]

    /// Puts the files in as they are now; of those with an unsaved text, as that is.
    member _.Swap(files: string list, unsaved: Map<string, string>) : Swap =
        let isThere, gone = files |> List.partition (fun path -> unsaved.ContainsKey path || File.Exists path)
        let told (kept: string option) (source: Source, item: Item) : Swapped = { Name = item.Shown; File = source.Path; Line = item.Line; Kept = kept }
        let contents = isThere |> List.map (fun path -> path, (match unsaved.TryFind path with Some text -> hashed text | None -> read path))
        let saved = [ for path, (text, _) in contents -> path, text ]
        let isRenewed = not (List.isEmpty gone) || List.exists isRenewed contents
        for path, (_, hash) in contents do lastRead.[path] <- hash
        let running = isThere @ sources.Paths |> List.map (fun path -> path, sources.Running path) |> Map.ofList
        let changes, result =
            match gone with
            | [] ->
                isCompiled <- false
                let attempted = attempt saved mostAttempts Set.empty
                if isCompiled then taken <- taken + 1L
                attempted
            | gone -> sources.Changes(saved, Set.empty), Error [ for path in gone -> refusal path "gone" (Path.GetFileName path) 1 "the file is gone" ]
        let isOther (path: string) =
            let differs (change: Change) = not (List.isEmpty change.Items && List.isEmpty change.Restored && List.isEmpty (goneFrom (sources.Running change.Source.Path) change))
            changes |> List.exists (fun (other, change) -> other = path && (match change with Ok change -> differs change | Error _ -> true))
        let filesWhere isMeant = [ for path, (_, hash) in contents do if isMeant path then path, hash ]
        match result with
        | Error obstacles -> { Files = filesWhere isOther; Assemblies = []; Swapped = []; Outdated = []; Obstacles = obstacles; IsRenewed = isRenewed }
        | Ok swapped ->
            let removed =
                [ for path, change in changes do
                    match change with
                    | Ok change ->
                        for item in goneFrom (running.TryFind path |> Option.bind id) change do
                            yield told (if item.IsLet then None else Some "removed") (change.Source, item)
                    | Error _ -> () ]
            { Files = filesWhere (fun _ -> true)
              Assemblies = swapped |> List.map (fun (source, _, _) -> source.Baseline.Path) |> List.distinct
              Swapped = [ for source, item, kept in swapped -> told kept (source, item) ] @ removed
              Outdated =
                (if List.isEmpty swapped then []
                 else
                    // What is made again for something else is not told of, and not made earlier either.
                    let compiled = Set.ofList [ for _, change in changes do match change with Ok change -> yield! [ for item, _ in change.Items -> item.Shown ] | Error _ -> () ]
                    // The code runs already, whatever can be told of it.
                    try placed compiled.Contains (madeEarlier ()) with _ -> [])
              Obstacles = []
              IsRenewed = isRenewed }
