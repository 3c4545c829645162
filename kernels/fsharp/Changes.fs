/// What is to be compiled when source files of the project are saved: what differs in them from the sources of the loaded assemblies, and what
/// there and in other files may mean something else for it.
module Mainstay.Worker.Changes

open System
open System.Collections.Generic
open System.IO
open System.Reflection
open Mainstay.Worker.Baselines
open Mainstay.Worker.Compat
open Mainstay.Worker.Difference
open Mainstay.Worker.Outline
open Mainstay.Worker.Protocol

let refusal file code name line reason : Obstacle = { File = file; Code = code; Name = name; Line = line; Reason = reason }

/// One file of the project, as the loaded assembly has it.
type Source =
    { Path: string
      Baseline: Baseline
      Before: Outline }

/// What of a file is to be compiled: declarations of its new version, and whether the loaded assembly has none of that name.
type Change =
    { Source: Source
      After: Outline
      Items: (Item * bool) list
      /// The declarations that the build has not, or has with another signature: others are to use these.
      Added: Set<Key>
      /// What is again as it was built.
      Restored: Item list
      /// The names that the file gives and did not give when it was built, and those that it gives no more.
      News: News list
      /// By what the code of a declaration is known that means something else than it did: its text, and the names that make it so.
      RunsAs: Item -> string }

/// A declaration that was compiled and that the build has not, or has with another signature.
type Addition =
    { Of: Source
      Item: Item
      /// The module of the submission that it was compiled in, and the type in that.
      Module: string
      Kind: Type option
      /// Whether what the build has of it runs this too.
      IsRedirected: bool }

/// The values of all, or all errors.
let allOf (results: Result<'T, 'E list> list) : Result<'T list, 'E list> =
    match results |> List.collect (function Error errors -> errors | Ok _ -> []) with
    | [] -> Ok(results |> List.choose (function Ok value -> Some value | Error _ -> None))
    | errors -> Error errors

/// How many functions of other files are compiled anew for a name that is new or gone; a name that more of them mention is left to a build.
let private mostElsewhere = 60

let keyOf (path: string) (item: Item) : Declaration = { File = path; Key = item.Key }

/// What is to be compiled, and what is to run as it was built, with what that takes of the functions that `let` binds in types: nobody else can
/// call these, so whatever is compiled calls one that is compiled with it. `runs` tells of what was compiled before.
let rec private withLets (after: Outline) (runs: Item -> bool) (due: Item list) (restored: Item list) : Item list * Item list =
    let isAmong (items: Item list) (item: Item) = items |> List.exists (fun one -> one.Key = item.Key)
    let uses (item: Item) (used: Item) =
        used.IsLet && used.Key <> item.Key && used.IsOfTypeOf item && (item.OfType.Value.LetUses |> List.exists (fun one -> List.contains one.Function used.Names))
    let lets = List.filter (fun (item: Item) -> item.IsLet) (due @ restored)
    let isStale (item: Item) = runs item && not (isAmong restored item) && lets |> List.exists (uses item)
    let isDue (item: Item) = item.OfType.IsSome && not (isAmong due item) && (due |> List.exists (fun user -> uses user item) || isStale item)
    match after.Items |> List.filter isDue with
    | [] -> due, restored |> List.filter (isAmong due >> not)
    | more -> withLets after runs (due @ more) restored

/// What means something else since a function that `let` binds in its type is new or gone, or is called otherwise, with the names of those.
let private affectedByLets (after: Outline) (difference: Difference) : (Item * string list) list =
    let others = difference.Added @ difference.Removed |> List.filter (fun one -> one.IsLet)
    [ for item in after.Items do
        match [ for one in others do if one.IsOfTypeOf item && one.Key <> item.Key then yield! List.filter item.Words.Contains one.Names ] with
        | [] -> ()
        | names -> item, names ]

/// A file as it is now, beside what was built of it.
type private Version =
    { Of: Source
      Now: Outline
      Difference: Difference }

/// The sources of a session's project: as they were built, and as they run. `symbolsOf` gives what conditional compilation of an
/// assembly knows, where that is known, and `order` has the sources in the order of the build.
type Sources(session: Session, symbolsOf: string -> Set<string> option, assemblies: string list, order: string list, opened: Opened.Names) =
    let baselines = capture assemblies
    let outlines = Dictionary<string, Source>()
    let running = Dictionary<string, Outline>() // the files that were put in, as they are now
    let news = Dictionary<string, News list>() // the names in which these differ from the build
    let additions = Dictionary<Declaration, Addition>()

    let outlineOf (baseline: Baseline) (path: string) (text: string) : Result<Outline, Obstacle> =
        let outline (resolved: string) = parseFile session path resolved |> Result.map (OutlineReader.read resolved)
        match symbolsOf baseline.Path with
        | None when text.Contains "#if " ->
            Error(refusal path "conditional_source" (Path.GetFileName path) 1 "it has conditional code, and what is defined for it in its project is not known")
        | symbols ->
            match outline (Conditionals.resolveWith (defaultArg symbols Set.empty) Splitter.afterToken text) with
            | Ok found -> Ok found
            | Error (message: CompilerMessage) -> Error(refusal path "syntax_error" (Path.GetFileName path) message.StartLine message.Text)

    let sourceOf (path: string) : Result<Source, Obstacle> =
        match outlines.TryGetValue path with
        | true, source -> Ok source
        | _ ->
            let found = baselines |> List.choose (fun one -> one.Sources |> List.tryFind (fst >> (=) path) |> Option.map (fun (_, text) -> one, text))
            match found with
            | _ :: _ :: _ -> Error(refusal path "shared_source" (Path.GetFileName path) 1 "several assemblies are built from it")
            | [] -> Error(refusal path "unknown_source" (Path.GetFileName path) 1 "the build that is loaded was not made from this file, or from another version of it than was there when the session started")
            | [ (baseline, text) ] ->
                outlineOf baseline path text |> Result.map (fun outline ->
                    let source = { Path = path; Baseline = baseline; Before = outline }
                    outlines.[path] <- source
                    source)

    let paths = [ for baseline in baselines do for path, _ in baseline.Sources -> path ]

    let placeOf (path: string) = order |> List.tryFindIndex ((=) path)

    let isBefore (path: string) (other: string) = match placeOf path, placeOf other with Some place, Some later -> place < later | _ -> false

    let runningOf (source: Source) : Outline =
        match running.TryGetValue source.Path with
        | true, outline -> outline
        | _ -> source.Before

    let newsOf (path: string) = match news.TryGetValue path with | true, found -> found | _ -> []

    /// What has to be compiled of a file: what is not as it runs now, what the build has not, and what mentions that. And what is to run as it
    /// was loaded again. `news` has the names that files have otherwise than the build, or
    /// had so far.
    let toCompile (source: Source) (after: Outline) (difference: Difference) (news: News list) (remade: Item list) : Item list * Item list =
        let isRemade (item: Item) = remade |> List.exists (fun one -> one.Key = item.Key)
        let keys (items: Item list) = items |> List.map (fun item -> item.Key) |> Set.ofList
        let isChanged, isAffected, isAdded = (keys difference.Changed).Contains, (keys (List.map fst difference.Affected)).Contains, (keys difference.Added).Contains
        let differs (item: Item) = isChanged item.Key || isAffected item.Key || isAdded item.Key
        let mentionsNews (item: Item) = news |> List.exists (fun one -> canMeanWithin item one.Name)
        let runs (item: Item) = source.Baseline.Current.TryGetValue(keyOf source.Path item)
        let isDue (item: Item) =
            match item.Kind, runs item with
            | Value, _ when isRemade item -> true
            | Value, (true, running) -> running.Text <> item.Text || (isAdded item.Key && not (additions.ContainsKey(keyOf source.Path item)))
            | _, (true, running) when isChanged item.Key && not (isAffected item.Key || isAdded item.Key || mentionsNews item) -> running.Text <> item.Text
            | _, _ -> differs item
        let isRestored (item: Item) = item.Kind <> Value && not (differs item) && fst (runs item)
        withLets after (runs >> fst) (List.filter isDue after.Items) (List.filter isRestored after.Items)

    /// What may mean something else since something else is opened before it: declarations, with what is opened, and what keeps all of it from
    /// being put in.
    let reopenedIn (path: string) (difference: Difference) : (Item * string list) list * Obstacle list =
        let meets (words: Set<string>) (names: Set<string>) = not (Set.isEmpty (Set.intersect words names))
        let isMeant (one: Reopened) (context: Opening list, opening: string) =
            match opened.Of(context, opening) with
            | Some names -> meets one.Words names || one.After |> List.exists (fun later -> meets (wordsIn later) names)
            | None -> true
        let found = [ for one in difference.Reopened do match one.Opens |> List.filter (isMeant one) with [] -> () | opens -> one, List.map snd opens ]
        let ofItem (one: Reopened, opens: string list) = match one.Item with Some item when item.Kind <> Value && not item.IsInline -> Some(item, opens) | _ -> None
        let refused (one: Reopened, opens: string list) =
            match ofItem (one, opens) with
            | Some _ -> None
            | None -> Some(refusal path "opened" one.What one.Line ("it may mean something else with or without `" + opens.Head + "`"))
        let items = List.choose ofItem found
        let ofItems = items |> List.collect (fun (item, _) -> obstaclesOf item) |> List.map (fun one -> refusal path one.Code one.Name one.Line one.Words)
        items, List.choose refused found @ ofItems

    /// A version of a file. `resigned` has what is known to have another signature beside that for which this is so already, and `elsewhere` the
    /// names that other files have otherwise than the build.
    let versionBeside (elsewhere: News list) (resigned: Set<Declaration>) (source: Source) (now: Outline) : Version =
        let isResigned (key: Key) = let one = { File = source.Path; Key = key } in resigned.Contains one || additions.ContainsKey one
        { Of = source; Now = now; Difference = between isResigned elsewhere source.Before now }

    let versionWith = versionBeside []

    let versionOf (resigned: Set<Declaration>) (path: string, text: string) : Result<Version, Obstacle list> =
        let alone result = result |> Result.mapError List.singleton
        alone (sourceOf path) |> Result.bind (fun source ->
            alone (outlineOf source.Baseline path text) |> Result.map (versionWith resigned source))

    /// The files, other than these, that mention a name which one of these has new or no more, and those that mention such a name of them.
    let rec withMentions (versions: Version list) : Version list =
        let isThere (path: string) = versions |> List.exists (fun one -> one.Of.Path = path)
        let mentions (source: Source) (version: Version) =
            let names = newsOf version.Of.Path @ version.Difference.News
            not (List.isEmpty names)
            && not (isBefore source.Path version.Of.Path)
            && (let affected, fixedOnes = affectedIn (runningOf source) (fun _ -> false) names in not (List.isEmpty affected && List.isEmpty fixedOnes))
        let found =
            [ for path in paths do
                if not (isThere path) then
                    match sourceOf path with
                    | Ok source when versions |> List.exists (mentions source) -> versionWith Set.empty source (runningOf source)
                    | _ -> () ]
        if List.isEmpty found then versions else withMentions (versions @ found)

    /// The names that other files have otherwise than the build and that one can mean, each with its file; `versions` are those that are not as they run.
    let newsElsewhere (versions: Version list) (path: string) : (string * News) list =
        [ for other in paths do
            if other <> path && not (isBefore path other) then
                let news =
                    match versions |> List.tryFind (fun one -> one.Of.Path = other) with
                    | Some one -> one.Difference.News
                    | None -> newsOf other
                for one in seenElsewhere news do other, one ]

    /// The versions, and those of the files that mention names of them. What contains something of another file that is another function now is
    /// another one itself.
    let rec withContaining (resigned: Set<Declaration>) (versions: Version list) : Version list =
        let all = withMentions versions
        let again =
            [ for version in all do
                let isAdded (item: Item) = version.Difference.Added |> List.exists (fun one -> one.Key = item.Key)
                match version.Now.Items |> List.filter (fun item -> item.IsInline && not (isAdded item)) with
                | [] -> false, version
                | inlines ->
                    let elsewhere = List.map snd (newsElsewhere all version.Of.Path)
                    if inlines |> List.exists (fun item -> elsewhere |> List.exists (fun one -> canMeanWithin item one.Name)) then
                        true, versionBeside elsewhere resigned version.Of version.Now
                    else false, version ]
        if List.exists fst again then withContaining resigned (List.map snd again) else all

    let isExpectoTest (version: Version) (item: Item) =
        let owner () =
            match additions.TryGetValue(keyOf version.Of.Path item) with
            | true, one -> one.Kind
            | _ -> Replaced.moduleOf version.Of.Baseline.Assembly item.Scope
        item.Kind = Value && owner () |> Option.exists (fun owner -> Replaced.isExpectoTest owner item)

    /// The tests of Expecto's that mention what is otherwise in another file.
    let mentioningTests (versions: Version list) (version: Version) : Item list =
        let elsewhere = List.map snd (newsElsewhere versions version.Of.Path)
        if List.isEmpty elsewhere then []
        else version.Now.Items |> List.filter (fun item -> elsewhere |> List.exists (fun one -> canMeanWithin item one.Name) && isExpectoTest version item)

    /// The tests of Expecto's that are not what runs.
    let changedTests (version: Version) : Item list =
        let isChanged (item: Item) =
            match version.Of.Baseline.Current.TryGetValue(keyOf version.Of.Path item) with
            | true, running -> running.Text <> item.Text
            | _ -> version.Difference.Changed |> List.exists (fun changed -> changed.Key = item.Key)
        version.Now.Items |> List.filter (fun item -> isChanged item && isExpectoTest version item)

    /// Whether a value of a file may hold a test, which may be one of another file.
    let mayHold (version: Version) (item: Item) (owner: Version, test: Item) =
        let isShown = owner.Of.Path = version.Of.Path || (test.Reach <> InModule && not (isBefore version.Of.Path owner.Of.Path))
        isShown && namesOf owner.Now test |> List.exists (canMeanWithin item)

    /// The tests of Expecto's that hold one of these, in whatever file, directly or through others.
    let rec holding (versions: Version list) (tests: (Version * Item) list) : (Version * Item) list =
        let isAmong (version: Version) (item: Item) = tests |> List.exists (fun (owner, one) -> owner.Of.Path = version.Of.Path && one.Key = item.Key)
        let found =
            [ for version in versions do
                for item in version.Now.Items do
                    if item.Kind = Value && not (isAmong version item) && List.exists (mayHold version item) tests && isExpectoTest version item then version, item ]
        if List.isEmpty found then [] else found @ holding versions (tests @ found)

    /// The other files that one of these tests may be held in, as they run, as far as they can be read.
    let holders (versions: Version list) (tests: (Version * Item) list) : Version list =
        let mayHold (path: string) = tests |> List.exists (fun (owner, _) -> not (isBefore path owner.Of.Path))
        [ for path in paths do
            if mayHold path && versions |> List.forall (fun one -> one.Of.Path <> path) then
                match sourceOf path with
                | Ok source -> versionWith Set.empty source (runningOf source)
                | Error _ -> () ]

    /// The versions, and those of the files that have to compile something for them; and the tests of Expecto's that are made again, each with its
    /// version and with what keeps it from that.
    let rec withTests (resigned: Set<Declaration>) (versions: Version list) : Version list * (Version * Item * Obstacle list) list =
        let versions = withContaining resigned versions
        let mentioning = [ for version in versions do for item in mentioningTests versions version -> version, item ]
        let tests = [ for version in versions do for item in changedTests version -> version, item ] @ mentioning
        let remade = mentioning @ (if List.isEmpty tests then [] else holding (versions @ holders versions tests) tests)
        let isNew (version: Version) = versions |> List.forall (fun one -> one.Of.Path <> version.Of.Path)
        match remade |> List.map fst |> List.filter isNew |> List.distinctBy (fun one -> one.Of.Path) with
        | _ :: _ as more -> withTests resigned (versions @ more)
        | [] ->
            let refused (version: Version, item: Item) =
                let isOther (owner: Version, test: Item) = owner.Of.Path <> version.Of.Path || test.Key <> item.Key
                match tests @ remade |> List.filter (fun one -> isOther one && mayHold version item one) with
                // Where no place is known, it could be made before what it holds.
                | held when List.isEmpty (obstaclesOf item) && ((placeOf version.Of.Path).IsSome || held |> List.forall (fun (owner, _) -> owner.Of.Path = version.Of.Path)) -> []
                | (owner, test) :: _ -> [ refusal owner.Of.Path "held" test.Shown test.Line (item.Shown + " holds it, which is not made again") ]
                | [] -> [ refusal version.Of.Path "held" item.Shown item.Line "it holds what has changed elsewhere, and is not made again" ]
            versions, [ for version, item in remade -> version, item, refused (version, item) ]

    /// The new names of a file that other files mention which cannot be read.
    let mentionedUnread (version: Version) : Obstacle list =
        let path, news = version.Of.Path, version.Difference.News
        [ for baseline in baselines do
            for other, text in baseline.Sources do
                match sourceOf other with
                | Error _ when not (List.isEmpty news) && not (isBefore other path) ->
                    for reason in mentionedIn (Path.GetFileName other) (wordsIn text) news -> refusal path reason.Code reason.Name reason.Line reason.Words
                | _ -> () ]

    /// What is to be compiled of a file, where these have changed.
    let changeOf (versions: Version list) (tests: (Version * Item * Obstacle list) list) (version: Version) : Result<Change, Obstacle list> =
        let source, difference = version.Of, version.Difference
        let path = source.Path
        let isAdded (item: Item) = difference.Added |> List.exists (fun one -> one.Key = item.Key)
        let isCompiled (item: Item) = isAdded item || difference.Changed |> List.exists (fun one -> one.Key = item.Key)
        let elsewhere = newsElsewhere versions path
        let ownTests = tests |> List.filter (fun (owner, _, _) -> owner.Of.Path = path)
        let remade = ownTests |> List.map (fun (_, item, _) -> item)
        let held = ownTests |> List.collect (fun (_, _, obstacles) -> obstacles) |> List.truncate 1
        let isRemade (item: Item) = remade |> List.exists (fun one -> one.Key = item.Key)
        let mentioning, fixedOnes = affectedIn version.Now (fun item -> isCompiled item || isRemade item) (List.map snd elsewhere)
        // What contains one of these is told of, and what is made again for one, though its text is as it was.
        let named =
            [ for item in remade @ List.filter (fun item -> item.IsInline) difference.Added do
                match [ for one in difference.News @ List.map snd elsewhere do if one.Of.Key <> item.Key && canMeanWithin item one.Name then one.Name.Name ] with
                | [] -> ()
                | names -> item, names ]
        let ofNews (found: News, reason: Reason) =
            let other = elsewhere |> List.tryPick (fun (other, one) -> if one = found then Some other else None)
            refusal (defaultArg other path) reason.Code reason.Name reason.Line (if other.IsSome then reason.Words + " (" + Path.GetFileName path + ")" else reason.Words)
        let notModifiable = [ for code, reason in Option.toList source.Baseline.Obstacle -> refusal path code source.Baseline.Name 1 reason ]
        let tooMany =
            if List.length mentioning <= mostElsewhere then []
            else [ refusal path "name" (Path.GetFileName path) 1 (string (List.length mentioning) + " functions of it mention a name that another file has new or no more") ]
        let reopened, refused = if List.isEmpty difference.Obstacles then reopenedIn path difference else [], []
        let difference = { difference with Affected = difference.Affected @ mentioning @ named @ reopened @ affectedByLets version.Now difference }
        let own = [ for found in difference.Obstacles -> refusal path found.Code found.Name found.Line found.Words ]
        match notModifiable @ own @ List.map ofNews fixedOnes @ held @ mentionedUnread version @ tooMany @ refused with
        | [] ->
            let affected =
                difference.Affected
                |> List.groupBy (fun (item, _) -> item.Key)
                |> List.map (fun (key, all) -> key, String.Join(" ", all |> List.collect snd |> List.distinct))
                |> Map.ofList
            let runsAs (item: Item) = match affected.TryFind item.Key with Some names -> item.Text + "\n" + names | None -> item.Text
            let due, restored = toCompile source version.Now difference (difference.News @ List.map snd elsewhere @ List.collect newsOf paths) remade
            let ofState (item: Item) = Replaced.stateObstacle source.Baseline.Assembly item |> Option.map (refusal path "constructor_state" item.Shown item.Line)
            let ofExtension (item: Item) = if isAdded item && item.IsMember then Replaced.extensionObstacle source.Baseline.Assembly item |> Option.map (refusal path "member" item.Shown item.Line) else None
            // What is compiled only since other code of its type is.
            let ofOthers = due |> List.filter (fun item -> not (isCompiled item)) |> List.collect obstaclesOf |> List.map (fun one -> refusal path one.Code one.Name one.Line one.Words)
            match List.choose ofState due @ List.choose ofExtension due @ ofOthers with
            | _ :: _ as all -> Error all
            | [] -> Ok { Source = source; After = version.Now; Items = [ for item in due -> item, isAdded item ]; Added = Set.ofList [ for item in difference.Added -> item.Key ]; Restored = restored; News = difference.News; RunsAs = runsAs }
        | all -> Error all

    member _.Baselines = baselines

    /// All that is known of the project's files, in the order of the build.
    member _.Paths = paths

    member _.Of(path: string) = sourceOf path

    /// Where a file stands in the order of the build.
    member _.Place(path: string) = placeOf path

    /// Whether a file is built before another, as far as that is known.
    member _.IsBefore(path: string, other: string) = isBefore path other

    /// Whether a signature file says what of it others see.
    member _.HasSignature(path: string) = List.contains (path + "i") order

    /// A file as it runs, where that is not as it was built.
    member _.Running(path: string) : Outline option = match running.TryGetValue path with | true, outline -> Some outline | _ -> None

    /// The names in which the running version of a file differs from the build.
    member _.News(path: string) = newsOf path

    /// What was compiled that the build has not.
    member _.Additions : Addition list = List.ofSeq additions.Values

    /// Whether an assembly of the project refers to another, by its name.
    member _.Refers(from: Baseline, name: string) : bool =
        let rec refers (assembly: Assembly) =
            assembly.GetReferencedAssemblies() |> Array.exists (fun one ->
                one.Name = name || (baselines |> List.exists (fun other -> other.Name = one.Name && refers other.Assembly)))
        refers from.Assembly

    /// Whether something else is used in the place of a declaration of the build.
    member _.IsReplaced(path: string, item: Item) : bool = additions.ContainsKey(keyOf path item)

    /// Whether what the build has of a declaration is not what runs, since that has another signature.
    member _.IsResigned(source: Source, item: Item) : bool =
        match additions.TryGetValue(keyOf source.Path item) with
        | true, one -> not one.IsRedirected && source.Before.Items |> List.exists (fun old -> old.Key = item.Key)
        | _ -> false

    /// The declarations of which what keeps changes from being put in may be that they have another signature.
    member _.MayBeResigned(changes: Change list, obstacles: Obstacle list) : Set<Declaration> =
        let changed = [ for change in changes do for item, isAdded in change.Items do if not (item.IsMember || isAdded) then change, item ]
        let isSaid (item: Item) = obstacles |> List.exists (fun one -> one.Code = "signature" && one.Name = item.Shown && one.Line = item.Line)
        let users = [ for change in changes do for user, _ in change.Items -> change.Source.Path, user ]
        let isComplained (path: string, user: Item) =
            obstacles |> List.exists (fun one -> one.Code = "not_compiled" && one.File = path && user.Line <= one.Line && one.Line <= user.EndLine)
        // Those who are not compiled with the older signature; where it is not known which, anybody may be.
        let users = match List.filter isComplained users with [] -> users | complained -> complained
        let isMentioned (change: Change, item: Item) =
            let names = namesOf change.After item
            users |> List.exists (fun (path, user) -> (path <> change.Source.Path || user.Key <> item.Key) && List.exists (canMeanWithin user) names)
        let has code = obstacles |> List.exists (fun one -> one.Code = code)
        if obstacles |> List.exists (fun one -> not (List.contains one.Code [ "signature"; "not_compiled" ])) then Set.empty
        else Set.ofList [ for change, item in changed do if isSaid item || (has "not_compiled" && isMentioned (change, item)) then keyOf change.Source.Path item ]

    /// What is to be compiled where these files were saved, with their texts: of each of them, and of other files for it; in the order of the build.
    /// `resigned` has declarations in them that are known to have another signature.
    member _.Changes(saved: (string * string) list, resigned: Set<Declaration>) : (string * Result<Change, Obstacle list>) list =
        let versions = saved |> List.map (fun (path, text) -> path, versionOf resigned (path, text))
        let refused = [ for path, version in versions do match version with Error obstacles -> path, Error obstacles | Ok _ -> () ]
        let all, tests = withTests resigned (versions |> List.choose (fun (_, version) -> match version with Ok one -> Some one | Error _ -> None))
        refused @ [ for version in all -> version.Of.Path, changeOf all tests version ] |> List.sortBy (fst >> placeOf)

    /// Takes note of what runs now, and of what was compiled for it that the build has not.
    member _.Remember(changes: Change list, compiled: Addition list) =
        for change in changes do
            let path = change.Source.Path
            running.[path] <- change.After
            news.[path] <- change.News
            for one in List.ofSeq additions.Keys do
                if one.File = path && not (change.Added.Contains one.Key) then additions.Remove one |> ignore
        for one in compiled do
            additions.[keyOf one.Of.Path one.Item] <- one
