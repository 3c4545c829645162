/// Which of the tests that are meant run now, and in which order: those that reach a change before the others, those that failed and quick ones
/// first, and each category by its policy.
module internal MainstayDisplay.TestsChosen

open System
open System.Collections.Generic
open System.Diagnostics
open MainstayDisplay.TestsModel

/// What has changed since something, as the worker knows it.
type Changes =
    { /// The declarations, by their names.
      Names: string list
      /// Which of some tests reach them, each told by where its code begins.
      Reaching: string list list -> bool list }

/// What a worker knows of the code that it runs.
type Code =
    { /// What the code is at present: another after each change.
      Mark: unit -> string
      /// What has changed since there was this mark; None where that is not known.
      Since: string -> Changes option
      /// Which of some tests reach a declaration of this name; None where there is none.
      Reaching: string -> (string list list -> bool list) option
      /// Where the source of a test stands, told by where its code begins.
      PlaceOf: string list -> (string * int) option }

/// A worker without a project: nothing changes.
let noCode: Code =
    { Mark = (fun () -> ""); Since = (fun _ -> None); Reaching = (fun _ -> None); PlaceOf = (fun _ -> None) }

/// The code of the session, as the worker sets it.
let mutable code: Code = noCode

/// When tests of a category run by themselves.
type Policy =
    | OnSave
    /// Only where somebody asks for them.
    | OnDemand
    /// As long as all such tests of a run have taken no longer than this.
    | Within of TimeSpan

/// Of several policies of a test the last of these counts.
let private strictness (policy: Policy) =
    match policy with
    | OnSave -> 0
    | Within _ -> 1
    | OnDemand -> 2

/// Reads a policy: `save`, `demand`, or how many milliseconds.
let policyOf (text: string) : Policy option =
    match text, Int32.TryParse text with
    | "save", _ -> Some OnSave
    | "demand", _ -> Some OnDemand
    | _, (true, limit) when limit > 0 -> Some(Within(TimeSpan.FromMilliseconds(float limit)))
    | _ -> None

/// Policies that were set in the session, by category. They count before those that a run is given.
let private ownPolicies = Dictionary<string, Policy>(StringComparer.OrdinalIgnoreCase)

/// Sets the policy of a category for this session.
let setPolicy (category: string) (policy: Policy) = ownPolicies.[category] <- policy

/// The policies that were set, by category, as they are written.
let writtenPolicies () : (string * string) list =
    let written (policy: Policy) =
        match policy with
        | OnSave -> "save"
        | OnDemand -> "demand"
        | Within limit -> string (int limit.TotalMilliseconds)
    [ for entry in ownPolicies -> entry.Key, written entry.Value ]

/// Forgets the policies that were set.
let forgetPolicies () = ownPolicies.Clear()

/// Reads `category=policy;category=policy`.
let policiesOf (text: string) : Map<string, Policy> =
    text.Split ';'
    |> Array.filter ((<>) "")
    |> Array.map (fun part ->
        match part.LastIndexOf '=' with
        | -1 -> invalidArg "policies" ("`" + part + "` must be written as category=policy")
        | at ->
            match policyOf (part.Substring(at + 1)) with
            | Some policy -> part.Substring(0, at).ToLowerInvariant(), policy
            | None -> invalidArg "policies" ("the policy in `" + part + "` must be `save`, `demand` or a number of milliseconds"))
    |> Map.ofArray

/// Which of the tests that are meant are to run.
type Part =
    | All
    /// Those that reach what has changed.
    | Reached of Changes
    /// Those that do not.
    | Rest of Changes

/// What a run is to do beside its filter.
type Choice =
    { Part: Part
      Policies: Map<string, Policy>
      /// The code that it is for: it ends where that is no longer the session's.
      For: string option }

/// Runs all, whatever changes meanwhile.
let everything: Choice = { Part = All; Policies = Map.empty; For = None }

/// How each test ended and how long it took when it last ran in this process.
let private lastRuns = Dictionary<string, bool * TimeSpan>()

let private isBad (outcome: Outcome) = match outcome with Failed _ | TimedOut _ -> true | Passed | Skipped _ -> false

/// Takes note of how a test ended.
let learn (ran: Ran) = lock lastRuns (fun () -> lastRuns.[ran.Name] <- (isBad ran.Outcome, ran.Took))

/// Tests that run together, by one call of their engine.
type Batch =
    { Cases: EngineCase list
      /// Whether only as long as there is time for such tests.
      IsLimited: bool }

/// Chooses for one run, and counts what it leaves.
type Chooser(choice: Choice, filter: Filter) =
    let mutable found, chosen, onDemand, overBudget = 0, 0, 0, 0
    let mutable isOvertaken = false
    let places = Dictionary<string, string list>()
    let limited = Stopwatch()
    let mutable limit = TimeSpan.Zero

    let hasPolicies = not (Map.isEmpty choice.Policies) || (choice.For.IsSome && ownPolicies.Count > 0)

    let policyOf (case: EngineCase) : Policy =
        let ofCategory (category: string) =
            if filter.Category |> Option.exists (fun asked -> String.Equals(asked, category, StringComparison.OrdinalIgnoreCase)) then None
            else
                match ownPolicies.TryGetValue category with
                | true, policy -> Some policy
                | _ -> choice.Policies.TryFind(category.ToLowerInvariant())
        if not hasPolicies then OnSave
        else case.Categories |> List.choose ofCategory |> List.sortByDescending strictness |> List.tryHead |> Option.defaultValue OnSave

    let isReached (cases: EngineCase list) : (EngineCase * bool) list =
        match choice.Part with
        | All -> cases |> List.map (fun case -> case, true)
        | Reached changes -> List.zip cases (changes.Reaching(cases |> List.map (fun case -> case.Roots)))
        | Rest changes -> List.zip cases (changes.Reaching(cases |> List.map (fun case -> case.Roots)) |> List.map not)

    let lastRun (case: EngineCase) = match lastRuns.TryGetValue case.Name with | true, run -> run | _ -> false, TimeSpan.Zero

    /// Quick ones first; what has never run keeps its place before them.
    let ordered (cases: EngineCase list) = lock lastRuns (fun () -> List.sortBy (lastRun >> snd) cases)

    let isWhole = not hasPolicies && (match choice.Part with All -> true | Reached _ | Rest _ -> false)

    let inOrder (cases: EngineCase list) : Batch list =
        let meant = isReached cases |> List.filter snd |> List.map (fun (case, _) -> case, policyOf case)
        let isSlow = function _, Within _ -> true | _ -> false
        let slow, others = meant |> List.filter (fun (_, policy) -> policy <> OnDemand) |> List.partition isSlow
        for _, policy in slow do match policy with Within budget -> limit <- max limit budget | _ -> ()
        chosen <- chosen + slow.Length + others.Length
        onDemand <- onDemand + meant.Length - slow.Length - others.Length
        let failed, rest = lock lastRuns (fun () -> others |> List.map fst |> List.partition (lastRun >> fst))
        [ { Cases = ordered failed; IsLimited = false }; { Cases = ordered rest; IsLimited = false }; { Cases = ordered (List.map fst slow); IsLimited = true } ]
        |> List.filter (fun batch -> not (List.isEmpty batch.Cases))

    /// Chooses of the tests of an engine. Where nothing says otherwise they are all together, as their author has them.
    member _.Batches(cases: EngineCase list) : Batch list =
        for case in cases do places.[case.Name] <- case.Roots
        found <- found + cases.Length
        if not isWhole then inOrder cases
        else
            chosen <- chosen + cases.Length
            [ { Cases = cases; IsLimited = false } ] |> List.filter (fun batch -> not (List.isEmpty batch.Cases))

    /// Tests that no engine knows, so that nobody knows what they reach: they count as reaching it.
    member _.TakesUnknown(count: int) : bool =
        found <- found + count
        let isTaken = match choice.Part with Rest _ -> false | All | Reached _ -> true
        if isTaken then chosen <- chosen + count
        isTaken

    /// Whether the run ends here.
    member _.MustStop(isLimited: bool) : bool =
        isOvertaken <- isOvertaken || choice.For |> Option.exists (fun mark -> code.Mark() <> mark)
        isOvertaken || (isLimited && limited.Elapsed >= limit)

    /// Tests that were chosen and did not run.
    member _.Leave(count: int) =
        chosen <- chosen - count
        if not isOvertaken then overBudget <- overBudget + count

    /// Counts the time of tests that have a limited one.
    member _.During(isLimited: bool, work: unit -> 'T) : 'T =
        if isLimited then limited.Start()
        try
            work ()
        finally
            if isLimited then limited.Stop()

    member _.Choice = choice
    member _.Found = found
    member _.Chosen = chosen
    member _.OnDemand = onDemand
    member _.OverBudget = overBudget
    member _.IsOvertaken = isOvertaken

    /// A result with the place of its test.
    member _.Placed(ran: Ran) : Ran =
        match places.TryGetValue ran.Name with
        | true, roots -> { ran with Place = code.PlaceOf roots }
        | _ -> ran

    /// Where all that was found is to run, nothing says how.
    member _.IsWhole = isWhole
