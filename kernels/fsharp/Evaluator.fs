/// The interactive session: creates it, runs submissions in it one after the other, and words what came of them. Which thread calls
/// is Program's subject; this code expects one thread with a large stack.
module Mainstay.Worker.Evaluator

open System
open System.Collections.Generic
open System.Diagnostics
open System.IO
open System.Text
open System.Text.RegularExpressions
open System.Threading
open Mainstay.Worker.Compat
open Mainstay.Worker.Diagnostics
open Mainstay.Worker.Faults
open Mainstay.Worker.Names
open Mainstay.Worker.Protocol
open Mainstay.Worker.Splitter
open Mainstay.Worker.Surroundings
open Mainstay.Worker.Turns

/// The stack of a thread that parses, checks or runs client code, in bytes. Only what is used of it takes memory.
let stackSize = 256 * 1024 * 1024

/// How long the end of the process waits for what is to be told of the code that brought it about.
let private leavingLimit = TimeSpan.FromSeconds 2.

/// What every session has besides the language's own: the module `Mainstay`.
let private preloaded = "-r:" + typeof<MainstayDisplay.Bounds>.Assembly.Location

let private announced definition =
    match definition with
    | DefinedValue value -> Printed.Named(value.ShownName, value.Content.IsSome)
    | DefinedOther -> Printed.Other

/// What running one submission gave.
type private Ran =
    { Outcome: Outcome
      Display: string
      Value: string option
      ValueType: string option
      /// The value itself.
      Content: obj option
      Bindings: Binding list
      Diagnostics: Diagnostic list
      /// What it touched of the session's surroundings; None where that cannot be told.
      Touched: string list option
      ChangesState: bool }

let private nothingRan =
    { Outcome = Completed
      Display = ""
      Value = None
      ValueType = None
      Content = None
      Bindings = []
      Diagnostics = []
      Touched = Some []
      ChangesState = false }

/// A submission whose code runs.
type private UnderWay =
    { Job: string
      File: string option
      Submission: Submission
      /// What was said of those that the job ran before it.
      Before: Diagnostic list }

/// A submission of upcoming code that only defines.
type private PlainOne =
    { Of: Upcoming
      Parsed: Fragments.Parsed
      Plain: Plain.Plain
      Words: HashSet<string> }

/// What is known of a submission from its text.
type private Nature =
    | ChangesNothing
    | MayChange
    /// It runs tests, or starts or stops the application, and does nothing else.
    | IsCommand

/// Starts the analysis of a submission beside its evaluation, on a thread of its own because it needs a large stack too.
let private analyse (own: Names) (session: Session) (text: string) : Lazy<Nature> =
    let mutable nature = MayChange
    let analysed () =
        if Purity.isCommand own (parse session) text then IsCommand
        elif Purity.changesState own (parse session) text then MayChange
        else ChangesNothing
    let thread = Thread((fun () -> nature <- analysed ()), stackSize, IsBackground = true)
    thread.Start()
    lazy (thread.Join(); nature)

/// What those who choose tests are told of the project's code.
let private followed (swapping: Swapping.Swapping) (affected: Affected.Affected) : MainstayDisplay.TestsChosen.Code =
    let changes (names: string list, reaching: string list list -> bool list) : MainstayDisplay.TestsChosen.Changes =
        { Names = names; Reaching = reaching }
    { Mark = (fun () -> affected.Mark)
      Since = (fun mark -> affected.Since mark |> Option.map changes)
      Reaching = (fun name -> affected.Reaching name)
      PlaceOf = (fun roots -> try List.tryPick swapping.PlaceOfTest roots |> Option.orElseWith (fun () -> affected.PlaceOf roots) with _ -> None) }

let private touchedBy (ran: Ran list) : string list option =
    if ran |> List.exists (fun one -> one.Touched.IsNone) then None
    else Some(ran |> List.collect (fun one -> defaultArg one.Touched []) |> List.distinct)

/// How many bytes of the code hold the submissions that ran to their end, where one of them changed the session or gave it a value.
let private keptOf (code: string) (submissions: Submission list) (ran: Ran list) =
    let completed = ran |> List.takeWhile (fun one -> one.Outcome = Completed)
    if completed |> List.exists (fun one -> one.ChangesState || one.ValueType.IsSome) then
        let last = submissions |> List.item (List.length completed - 1)
        Encoding.UTF8.GetByteCount(code.Substring(0, last.Stop))
    else 0

/// One session of the language. `Evaluate` is called by one thread; `Interrupt`, `Check` and `Session` by any.
type Evaluator(beginning: Hello, complaints: StringWriter) =
    let mutable hello = beginning
    let printed = new StringWriter()
    let definitions = List<Definition>()
    let turns = Turns()
    let own = Names()
    let thread = SubmissionThread.SubmissionThread stackSize
    let mutable silentThread = 0 // whose definitions are none of the session's
    let mutable isWithholding = false
    let mutable hasEvaluated = false
    let mutable hasNamedInput = false // as a stream, which is costly to watch
    let mutable underWay: UnderWay option = None
    let mutable swapping: Swapping.Swapping option = None
    let mutable affected: Affected.Affected option = None
    let mutable coverage: Coverage.Coverage option = None
    let mutable hidden = Set.empty<int> // the submissions whose definitions are told to nobody

    let session =
        Conditionals.takeFrom hello.Arguments
        let references = hello.References |> List.map (fun path -> "-r:" + path)
        let define definition = if Thread.CurrentThread.ManagedThreadId <> silentThread then definitions.Add definition
        createSession (preloaded :: references @ hello.Arguments) printed complaints define

    let interruption = Interruption.Interruption(fun () -> abortSubmission session)
    let surroundings = Surroundings session
    let restores = Restores.Told()
    let silenced = Silenced.Silenced()
    let bound = Bound.Bindings(fun content -> (session.FormatValue content).Trim('\n'))

    /// What the service prints of what stands for a package or a shared framework is nothing of the client's: the script that it makes of
    /// `#r "nuget: …"` (it is called `Project`, or, where every version is given, by a hash), and each assembly of a framework.
    let withoutGenerated (text: string) =
        let text =
            if text.Contains ".packagemanagement" then
                let text = Regex.Replace(text, @"^\[Loading [^\]]*\.packagemanagement[^\]]*\]\n*", "", RegexOptions.Multiline)
                Regex.Replace(text, @"^(namespace|module) FSI_\d+\.\s*(Project\b|[0-9a-f]{64}).*\n*", "", RegexOptions.Multiline)
            else text
        if text.Contains Frameworks.shared then
            Regex.Replace(text, "^-->.*'" + Regex.Escape Frameworks.shared + @"/[^']*'.*\n*", "", RegexOptions.Multiline)
        else text

    let take (writer: StringWriter) =
        let text = writer.ToString()
        writer.GetStringBuilder().Clear() |> ignore
        text.Replace("\r\n", "\n") |> withoutGenerated |> fun text -> text.Trim('\n')

    let forgetPrinted () =
        take printed |> ignore
        take complaints |> ignore

    do forgetPrinted () // the prompt

    let mutable references: string list = [] // the files of what the session refers to, as far as tests wanted to know
    let mutable directives = 0 // how many submissions that have some have run
    let mutable learned = -1 // how many of them when the references were learned

    let learnReferences () =
        let before = directives
        if learned <> before then
            references <- (check session "").Assemblies() |> List.choose (fun assembly -> assembly.FileName) |> List.filter isForeign
            learned <- before

    do
        MainstayDisplay.TestsFinding.versionOf <- Baselines.versionOf
        MainstayDisplay.TestsFinding.session <- fun () ->
            let submissions = submissionsOf session
            { References = references
              Own = evaluatedAssemblies session
              IsGone = fun number -> hidden.Contains number || not (submissions.Contains number) }

    let outcomeOf (result: Result<(obj * Type) option, exn>) (hasErrors: bool) =
        match result with
        // The compiler takes an interrupt that reaches it for an error of its own.
        | Error _ when interruption.IsRequested -> Interrupted
        | _ when hasErrors -> Rejected
        | Ok _ -> Completed
        | Error e when isCompilerStop e -> Rejected
        | Error e -> Raised(faultOf e)

    let formatted (content: (obj * Type) option) =
        content |> Option.bind (fun (value, kind) -> try Some(session.FormatValue(value, kind).Trim('\n')) with _ -> None)

    /// What a trailing expression gave, which the session defines as `it`.
    let lastValue (valued: (DefinedValue * string option) list) (lone: (obj * Type) option) =
        match valued |> List.tryFindBack (fun (defined, _) -> defined.LogicalName = "it") with
        | Some (it, _) when it.TypeText = "unit" -> None, Some it.TypeText, None
        | Some (it, shown) ->
            let content = if it.Content.IsSome then it.Content else lone
            (if shown.IsSome then shown else formatted content), Some it.TypeText, content |> Option.map fst
        | _ -> None, None, None

    /// What the submission defined, with the values it printed.
    let valuesIn (definitions: Definition list) (display: string) : (DefinedValue * string option) list =
        let defined = definitions |> List.choose (function DefinedValue value -> Some value | DefinedOther -> None)
        List.zip defined (Printed.values (List.map announced definitions) display)

    let bindingOf (defined: DefinedValue, value: string option) : Binding =
        { Name = Bound.nameInCode defined.ShownName; ValueType = defined.TypeText; Value = value }

    let bindingsOf (named: (DefinedValue * string option) list) : Binding list =
        named |> List.sortBy (fun (defined, _) -> defined.Line, defined.Column) |> List.map bindingOf

    /// Runs a submission where an interrupt reaches it: with `call`, that is what it does, and is not compiled.
    let runInterruptibly (job: string option) (file: string option) (call: (unit -> unit) option) (submission: Submission) =
        let run () =
            match call with
            | None -> Blame.under job (fun () -> runSubmission session file (submission.Line - 1) submission.Text)
            | Some call -> (try Blame.under job call; Ok None with e -> Error e), [||]
        match call with
        | None -> turns.Next(submission.Text.Contains "#load")
        | Some _ -> turns.NextCompilesNothing()
        try
            thread.Run(fun () -> interruption.Run run)
            |> Option.defaultWith (fun () -> Error(OperationCanceledException() :> exn), [||])
        finally
            if interruption.IsRequested then thread.Replace()

    /// Of the tasks that a submission defined, those that have failed.
    let failedTasks (submission: Submission) : Diagnostic list =
        let failureOf (defined: DefinedValue) =
            match defined.Content with
            | Some (:? Threading.Tasks.Task as task, _) when task.IsFaulted ->
                let reason = task.Exception.GetBaseException()
                Some(failedTask submission defined.ShownName (defined.Line, defined.Column) (reason.GetType().FullName + ": " + reason.Message))
            | _ -> None
        definitions |> Seq.choose (function DefinedValue value -> failureOf value | DefinedOther -> None) |> List.ofSeq

    /// Runs a submission; gives what came of it without what a restore of packages said, and that as diagnostics.
    let restoring (submission: Submission) (run: unit -> 'T * CompilerMessage[]) =
        if not (Restores.mayRestore submission.Text) then run (), []
        else
            let said = ResizeArray<Restores.Said>()
            let takes (text: string) = match Restores.read text with Some one -> said.Add one; true | None -> false
            let result, messages = UserOutput.withholding takes run
            let isRestore (message: CompilerMessage) = takes message.Text
            let others = messages |> Array.filter (isRestore >> not)
            let news = List.ofSeq said |> Restores.joined |> restores.News |> List.map (restored submission)
            (result, others), news

    let runOne (job: string option) (file: string option) (submission: Submission) : Ran =
        definitions.Clear()
        let call = if own.Gives "Mainstay" then None else TestCalls.read submission.Text
        let before = if not own.HasOthers then None elif call.IsSome then Some(nothingNamed ()) else surroundings.Before submission.Text
        let analysis = if call.IsSome then lazy IsCommand else analyse own session submission.Text
        MainstayDisplay.Sink.hasRunCode <- false
        if submission.Text.Contains "Tests.run" || submission.Text.Contains "Tests.reaching" then (try learnReferences () with _ -> ())
        let (result, messages), restored =
            try
                restoring submission (fun () -> runInterruptibly job file call submission)
            finally
                if call.IsNone && submission.Text.Contains "#" then directives <- directives + 1
        UserOutput.flush ()
        let display = take printed
        let complaint = take complaints
        let nature = analysis.Value
        own.Learn submission.Text
        let messages = silenced.Without messages
        let outcome = outcomeOf result (messages |> Array.exists (fun message -> message.Severity = "error")
                        || restored |> List.exists (fun said -> said.Severity = "error"))
        // What a failed submission printed as defined is not: the session goes back to where it was before.
        if outcome = Completed then silenced.Learn submission.Text
        let valued = if outcome = Completed then valuesIn (List.ofSeq definitions) display else []
        let value, valueType, content =
            // It gives nothing that a later submission could want, and is not run again for it.
            if nature = IsCommand then None, None, None
            else lastValue valued (match result with Ok lone -> lone | Error _ -> None)
        let named = valued |> List.filter (fun (defined, _) -> defined.LogicalName <> "it")
        if isWithholding then bound.Forget named else bound.Learn named
        // A rejected submission may have run in part: what stands before a directive is run before the rest is checked.
        // Printing a sequence evaluates the beginning of it, and showing one too, which may be the session's own code.
        let mayChange =
            match nature with
            | IsCommand -> false
            | MayChange -> true
            | ChangesNothing -> Option.exists Bound.isLazy valueType || MainstayDisplay.Sink.hasRunCode
        let changesState = (outcome <> Rejected || display <> "" || definitions.Count > 0) && mayChange
        let touched =
            if own.HasOthers then
                let run = { Display = display; Changes = changesState; GivesValue = valueType.IsSome; IsComplete = (outcome = Completed) }
                surroundings.After(submission.Text, before, run)
            else Some []
        { Outcome = outcome
          Display = (if nature = IsCommand then "" else display)
          Value = value
          ValueType = valueType
          Content = content
          Bindings = bindingsOf named
          Diagnostics =
            (match restored @ diagnosticsIn file submission messages with
             | _ when outcome = Interrupted -> []
             | [] when outcome = Rejected -> [ unexplained submission complaint ]
             | diagnostics when outcome = Completed -> diagnostics @ failedTasks submission
             | diagnostics -> diagnostics)
          Touched = touched
          ChangesState = changesState }

    let rec runAfter (before: Diagnostic list) (job: string option) (file: string option) (submissions: Submission list) : Ran list =
        match submissions with
        | [] -> []
        | _ when interruption.IsRequested -> [ { nothingRan with Outcome = Interrupted } ]
        | first :: rest ->
            underWay <- job |> Option.map (fun job -> { Job = job; File = file; Submission = first; Before = before })
            let ran = try runOne job file first finally underWay <- None
            if ran.Outcome = Completed then ran :: runAfter (before @ ran.Diagnostics) job file rest else [ ran ]

    let runAll = runAfter []

    let mutable upcoming: Upcoming list = [] // what a replay goes on with
    let apart = HashSet<string>() // those of them that could not be compiled together
    let ahead = Dictionary<string, Upcoming * Ran>() // what of it ran already, by job, and what came of it

    let plainOne (one: Upcoming) : PlainOne option =
        match (if apart.Contains one.Job || not (Plain.mayBePlain one.Code) then [] else split one.Code) with
        | [ only ] when only.Text = one.Code ->
            Fragments.read session one.File one.Code |> Option.bind (fun parsed ->
                Plain.plainOf own (Syntax.read (Fragments.treeOf parsed)) one.Code
                |> Option.map (fun plain -> { Of = one; Parsed = parsed; Plain = plain; Words = Plain.wordsOf one.Code }))
        | _ -> None

    /// The first of what is upcoming that can be compiled together, each with the indices of those before it that it uses: only those whose
    /// types do not depend on that. Where the session has brought something in, what each touches is looked at before any of them runs.
    let togetherNow () : (PlainOne * int list) list =
        let taken = List<PlainOne * int list>()
        let uses (one: PlainOne) =
            [ for index in 0 .. taken.Count - 1 do
                if (fst taken.[index]).Plain.Defines.Overlaps one.Words then index ]
        let takes (one: PlainOne) =
            let used = uses one
            let isTaken = List.isEmpty used || (not own.HasOthers && used |> List.forall (fun index -> (fst taken.[index]).Plain.IsSettled))
            if isTaken then taken.Add(one, used)
            isTaken
        upcoming |> Seq.map plainOne |> Seq.takeWhile (Option.exists takes) |> Seq.iter ignore
        List.ofSeq taken

    /// What came of one of several that were compiled together.
    let ranTogether (one: PlainOne) (named: (DefinedValue * string option) list) (before: Named option) (display: string) : Ran =
        own.Learn one.Of.Code
        bound.Learn named
        { nothingRan with
            Display = display
            Bindings = bindingsOf named
            ChangesState = true
            Touched =
                if own.HasOthers then
                    surroundings.After(one.Of.Code, before, { Display = display; Changes = true; GivesValue = false; IsComplete = true })
                else Some [] }

    /// Runs submissions as one. Where that cannot be, each runs alone.
    let runTogether (all: (PlainOne * int list) list) =
        let before = all |> List.map (fun (one, _) -> if own.HasOthers then surroundings.Before one.Of.Code else None)
        let defined = Array.create (List.length all) []
        definitions.Clear()
        let takeDefined index =
            defined.[index] <- List.ofSeq definitions
            definitions.Clear()
        let members = all |> List.map (fun (one, uses) -> { Fragments.Parsed = one.Parsed; Fragments.Uses = uses })
        let run () = Blame.under (Some (fst all.Head).Of.Job) (fun () -> Fragments.run session members takeDefined)
        let isDone =
            try
                (try thread.Run(fun () -> interruption.Run run) |> Option.defaultValue false with _ -> false)
            finally
                if interruption.IsRequested then thread.Replace()
        let display = take printed
        take complaints |> ignore
        if isDone then
            let displays =
                // What cannot be told apart is all in the first.
                Printed.parts (defined |> Array.map List.length |> List.ofArray) display
                |> Option.defaultValue (display :: List.replicate (List.length all - 1) "")
            for index, (one, _) in List.indexed all do
                let named = valuesIn defined.[index] displays.[index]
                ahead.[one.Of.Job] <- (one.Of, ranTogether one named before.[index] displays.[index])
        else
            for one, _ in all do
                apart.Add one.Of.Job |> ignore

    /// What came of code that a replay goes on with, where it could run with what comes after it.
    let takeAhead (wanted: Upcoming) : Ran option =
        upcoming <- upcoming |> List.skipWhile ((<>) wanted)
        if not (ahead.ContainsKey wanted.Job) && not (List.isEmpty upcoming) && not (hasPrinters ()) then
            let together = togetherNow ()
            if List.length together > 1 then runTogether together
        upcoming <- (match upcoming with [] -> [] | _ :: rest -> rest)
        match ahead.TryGetValue wanted.Job with
        | true, (known, ran) when known = wanted ->
            ahead.Remove wanted.Job |> ignore
            Some ran
        | _ -> None

    let changeDirectory (directory: string) =
        if not (String.IsNullOrEmpty directory) && not (directory.Contains "\"") then
            runSubmission session None 0 ("#silentCd @\"" + directory + "\"") |> ignore
            forgetPrinted ()

    // Relative paths in directives are looked up from the session's directory, which for a file's code is the file's own.
    let runIn (job: string option) (file: string option) (submissions: Submission list) : Ran list =
        match file with
        | None -> runAll job None submissions
        | Some path ->
            changeDirectory (Path.GetDirectoryName path)
            try
                runAll job file submissions
            finally
                changeDirectory hello.WorkingDirectory

    /// Reads what a file of the project declares; None where it has an error of syntax.
    let outlineOf (symbols: Set<string>) (path: string) (text: string) : Outline.Outline option =
        let resolved = Conditionals.resolveWith symbols Splitter.afterToken text
        turns.Check(fun _ ->
            match parseFile session path resolved with
            | Ok tree -> Some(OutlineReader.read resolved tree)
            | Error _ -> None)

    /// Works with the compiler while the session compiles nothing; what is defined by it is none of the session's.
    let quietly (work: unit -> 'T) : 'T =
        turns.Check(fun _ ->
            silentThread <- Thread.CurrentThread.ManagedThreadId
            try
                work ()
            finally
                silentThread <- 0)

    let lastOf (ran: Ran list) = match List.tryLast ran with Some last -> last | None -> nothingRan

    let resultOf (watch: Stopwatch) (code: string) (submissions: Submission list) (ran: Ran list) : EvalResult =
        let last = lastOf ran
        { Outcome = last.Outcome
          Kept = (if last.Outcome = Interrupted then keptOf code submissions ran else 0)
          Value = last.Value
          ValueType = last.ValueType
          Bindings = ran |> List.collect (fun one -> one.Bindings)
          Display = ran |> List.map (fun one -> one.Display) |> List.filter (fun text -> text <> "") |> String.concat "\n"
          Diagnostics = ran |> List.collect (fun one -> one.Diagnostics)
          ChangesState = ran |> List.exists (fun one -> one.ChangesState)
          UsesLast = Purity.usesLast code
          Surroundings = surroundings.News()
          Touched = touchedBy ran
          Duration = watch.Elapsed }

    /// The session of the compiler service, for checks.
    member _.Session = session

    /// What its code bound.
    member _.Bound = bound

    /// Runs a check of this session's compiler when it is safe to.
    member _.Check(work: unit -> 'T) : 'T = turns.Check(fun _ -> work ())

    /// Runs a check of a file's code, or the session's, with what its directives will bring in; packages are restored where they may be.
    member _.CheckAhead(file: string option, mayRestore: bool, code: string, work: Ahead.Seen -> (string -> Checked) -> 'T) : 'T =
        let folder = match file with Some path -> Path.GetDirectoryName path | None -> hello.WorkingDirectory
        let seen = Ahead.look folder mayRestore code
        turns.Check(fun isEvaluating ->
            let seen = if isEvaluating then Ahead.withoutReferences seen else seen
            let checkedBy text =
                let found = check session text
                { found with Messages = silenced.Without found.Messages }
            referring session seen.References (fun () -> work seen checkedBy))

    /// The tests that a filter selects, how many there are, and what is to be said besides.
    member internal evaluator.Tests(filter: MainstayDisplay.TestsModel.Filter) =
        evaluator.Check(fun () ->
            learnReferences ()
            MainstayDisplay.TestsFinding.list filter)

    /// Which tests reach the lines of the project's files. Only the thread of checks may call this.
    member internal evaluator.Coverage(question: CoverageQuestion) : Result<Protocol.Coverage, string> =
        match coverage with
        | None -> Error "the session has loaded no project"
        | Some coverage ->
            evaluator.Check learnReferences
            let found = MainstayDisplay.TestsFinding.find Map.empty
            let cases, others, notes = MainstayDisplay.TestsFinding.cases found
            let tests =
                cases
                |> List.groupBy (fun (assembly, case) -> assembly, case.Roots)
                |> List.map (fun ((assembly, roots), all) -> { Assembly = assembly; Names = all |> List.map (fun (_, case) -> case.Name); Roots = roots; IsMeasured = false })
            match coverage.Read(question, tests, others, found.Assemblies, notes) with
            | Some read -> Ok read
            | None -> Error("the session's project has no code of `" + defaultArg (Option.orElse question.File question.Name) "" + "`")

    /// Runs the tests of the project one at a time, and gives what ran with each. Only the thread of checks may call this.
    member internal evaluator.Measure(policies: string, limit: TimeSpan, timeout: TimeSpan) : Result<Measurement.Measurement, string> =
        match coverage with
        | None -> Error "the session has loaded no project"
        | Some coverage ->
            evaluator.Check learnReferences
            let measuring = Measuring.Measuring coverage.Assemblies
            let run = MainstayDisplay.TestsMeasured.run (MainstayDisplay.TestsChosen.policiesOf policies) limit timeout measuring.Forget measuring.Ran
            Ok
                { Assemblies = measuring.Assemblies
                  Noted = measuring.Noted
                  Tests = run.Measured |> List.map (fun one -> { Assembly = one.Assembly; Roots = one.Roots; Ran = one.Noted })
                  AtFirst = run.AtFirst
                  Notes = measuring.Notes @ run.Notes }

    /// Takes what was measured when the code was what a mark says; gives whether it is of this project's build and of this session.
    member _.TakeMeasured(code: string, measurement: Measurement.Measurement) : bool =
        match coverage with
        | None -> false
        | Some coverage -> coverage.Take(code, measurement)

    /// Whether a symbol was defined by code that is withheld.
    member _.Hides(entity: Entity) = hidden.Contains(submissionOf entity)

    /// Runs the submissions of a job's code in order, up to the first that fails. `file` is the path of the file whose text the code is.
    /// `commandLine` is what it has for its own, where it has one.
    /// `begins` tells whether the eval is to begin at all: one that is not counts as interrupted.
    member _.Evaluate(id: int64, job: string, code: string, file: string option, commandLine: string list, isWithheld: bool, begins: unit -> bool) : EvalResult =
        let watch = Stopwatch.StartNew()
        isWithholding <- isWithheld
        hasEvaluated <- true
        let before = if isWithheld then newestSubmission session else 0
        let submissions = split code
        hasNamedInput <- hasNamedInput || code.Contains "OpenStandardInput"
        let run () =
            match (if isWithheld then None else takeAhead { Job = job; Code = code; File = file }) with
            | Some ran -> [ ran ]
            | None -> Input.during job hasNamedInput (fun () -> runIn (Some job) file submissions)
        let evaluate () = turns.Evaluate(fun () -> Blame.during job isWithheld (fun () -> withCommandLine commandLine run))
        let ran = interruption.During(id, begins, evaluate)
        if isWithheld then hidden <- Set.union hidden (set [ before + 1 .. newestSubmission session ])
        let last = lastOf ran
        if last.Outcome = Completed then last.Content |> Option.bind MainstayDisplay.Host.ofValue |> Option.iter Displays.showValue
        resultOf watch code submissions ran

    /// A replay goes on with these, in this order, each as an eval of its own. Those that only define may run ahead of
    /// theirs, together.
    member _.Expect(evals: Upcoming list) =
        upcoming <- evals
        apart.Clear()
        ahead.Clear()

    /// What these do when they run, as far as that matters to running them again.
    member _.Describe(codes: CodeText list) : Description list =
        let folderOf (file: string option) = match file with Some path -> Path.GetDirectoryName path | None -> hello.WorkingDirectory
        Descriptions.describe own (parse session) surroundings.NameOf folderOf codes

    /// Runs code that the session begins with, and that is of no job.
    member _.Bring(code: string, file: string option) : EvalResult =
        let watch = Stopwatch.StartNew()
        let submissions = split code
        let ran = turns.Evaluate(fun () -> runIn None file submissions)
        resultOf watch code submissions ran

    /// These are there for its code, whether it has used them yet or not.
    member _.RestOn(assemblies: string list) = surroundings.RestOn assemblies

    /// What the session's code rests on.
    member _.Rests : Reference list = surroundings.All

    /// The job whose code runs while the process ends, which is what ends it, and what the compiler says of that code. It tells only of
    /// code that has run, so the code is checked once more.
    member _.Leaving() : (string * Diagnostic list) option =
        underWay |> Option.map (fun run ->
            let mutable warnings = []
            let look () =
                try
                    let text = String('\n', run.Submission.Line - 1) + run.Submission.Text
                    let said = diagnosticsIn run.File run.Submission (check session text).Messages
                    warnings <- said |> List.filter (fun one -> one.Severity <> "error")
                with _ -> ()
            // The thread that calls has a small stack, and waits no longer than an end may take.
            let thread = Thread(look, stackSize, IsBackground = true)
            thread.Start()
            thread.Join leavingLimit |> ignore
            run.Job, run.Before @ warnings)

    /// Asks an eval to stop if it is the one under way.
    member _.Interrupt(eval: int64) = interruption.Interrupt eval

    /// Runs once what a first evaluation needs, so that it need not wait for it; defines nothing. Where one has run already there is
    /// nothing to do.
    member _.WarmUp() =
        if not hasEvaluated then
            turns.Evaluate(fun () ->
                runSubmission session None 0 "let _ = sprintf \"%d\" (List.length [1])" |> ignore
                session.FormatValue([ 1 ], typeof<int list>) |> ignore
                MainstayDisplay.Host.ofValue (box [ (1, "a") ]) |> ignore
                Purity.changesState own (parse session) "1 + 1" |> ignore)
            definitions.Clear()
            forgetPrinted ()

    /// Begins with this. The session was made with the same arguments and has run nothing.
    member _.BeginWith(wanted: Hello) =
        hello <- wanted
        turns.Evaluate(fun () -> changeDirectory wanted.WorkingDirectory)

    /// Takes note of the assemblies of the session's project and of what they are built from, before its names are opened: their code can change
    /// from here on.
    member _.Begin(project: Project) =
        let assemblies = project.Assemblies
        let symbolsOf (assembly: string) =
            match project.Symbols.TryFind assembly with
            | Some names -> Some((Set.ofList names).Add "COMPILED")
            | None when List.length assemblies = 1 -> Some((Conditionals.symbolsIn hello.Arguments).Add "COMPILED")
            | None -> None
        coverage <- None
        directives <- directives + 1
        swapping <- if List.isEmpty assemblies then None else Some(Swapping.Swapping(session, symbolsOf, assemblies, project.Sources, project.MostSwaps))
        affected <- swapping |> Option.map (fun swapping ->
            let affected = Affected.Affected assemblies
            let symbolsOfFile (path: string) =
                Baselines.capture assemblies
                |> List.tryFind (fun one -> one.Sources |> List.exists (fst >> (=) path))
                |> Option.bind (fun one -> symbolsOf one.Path)
                |> Option.defaultValue Set.empty
            let lines = Coverage.Coverage(affected, assemblies, project.Sources, (fun path -> outlineOf (symbolsOfFile path) path))
            coverage <- Some lines
            swapping.Follow((fun exchanged -> affected.Tell exchanged; lines.Tell exchanged), affected.MadeEarlier)
            affected)
        MainstayDisplay.TestsFinding.saved <-
            match swapping with
            | Some swapping -> fun () -> swapping.Tests
            | None -> fun () -> { Added = []; Gone = Set.empty }
        MainstayDisplay.TestsChosen.code <-
            match swapping, affected with
            | Some swapping, Some affected -> followed swapping affected
            | _ -> MainstayDisplay.TestsChosen.noCode

    /// Does once what the first swap would wait for. Only the thread of checks may call this.
    member _.WarmUpSwaps() =
        swapping |> Option.iter (fun swapping ->
            swapping.ReadAhead()
            quietly swapping.WarmUp)

    /// Does once what the first swap and the first choice of tests would wait for. Any thread may call this.
    member _.WarmUpChoice() = affected |> Option.iter (fun affected -> affected.Prepare() |> ignore)

    /// Has the project's code run as these files have it now, of a file with a text as that has it, also while the session runs code. Only the
    /// thread of checks may call this.
    member _.Swap(files: string list, texts: (string * string) list) : Swap =
        match swapping with
        | None ->
            let obstacle file = { File = file; Code = "no_project"; Name = Path.GetFileName file; Line = 1; Reason = "the session has loaded no project" }
            { Files = []; Assemblies = []; Swapped = []; Outdated = []; Obstacles = List.map obstacle files; IsRenewed = true }
        | Some swapping ->
            let swap = quietly (fun () -> swapping.Swap(files, Map.ofList texts))
            { swap with Assemblies = List.map surroundings.NameOf swap.Assemblies }

    /// Has the project's code run as all of its files have it now that are not as they were built. Where they cannot be put in together, those
    /// are that can alone.
    member this.SwapAll() : Swap =
        match swapping |> Option.map (fun swapping -> swapping.Unbuilt()) |> Option.defaultValue [] with
        | [] -> { Files = []; Assemblies = []; Swapped = []; Outdated = []; Obstacles = []; IsRenewed = false }
        | files ->
            let together = this.Swap(files, [])
            if not (List.isEmpty together.Obstacles) && files.Length > 1 then
                for file in files do this.Swap([ file ], []) |> ignore
            together

    /// Releases what the session holds besides its memory.
    member _.End() =
        thread.Replace()
        interruption.End()
        turns.Evaluate(fun () -> endSession session)
        turns.End()
