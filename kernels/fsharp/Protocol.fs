/// The messages of docs/worker-protocol.md, version 1: requests out of JSON, answers into JSON. How they travel is Channel's subject.
module Mainstay.Worker.Protocol

open System
open System.Text.Json
open Mainstay.Worker.Json
open Mainstay.Worker.Limits

/// The version of the protocol spoken here.
let version = 1L

/// A place in the client's code: both count from 1, the column in UTF-16 code units.
type Position = { Line: int; Column: int }

type Diagnostic =
    { Severity: string
      Code: string
      Message: string
      Start: Position
      End: Position }

/// A name that a submission defined.
type Binding =
    { Name: string
      ValueType: string
      Value: string option }

/// An exception that escaped from the client's code.
type Fault =
    { Kind: string
      Message: string
      Stack: string option }

type Outcome =
    | Completed
    | Rejected
    | Raised of Fault
    | Interrupted

/// Something besides its own code that a session's code rests on: an assembly, or a script it loaded.
type Reference =
    { Name: string
      Path: string
      /// Of its content as it was when it came in; empty where that could not be read.
      Hash: string }

type EvalResult =
    { Outcome: Outcome
      /// Of interrupted code: how many bytes of it had run to their end, where that changed the session; else 0.
      Kept: int
      Value: string option
      ValueType: string option
      Bindings: Binding list
      Display: string
      Diagnostics: Diagnostic list
      ChangesState: bool
      UsesLast: bool
      /// All that the session rests on, where that is not what was told last.
      Surroundings: Reference list option
      /// The names of those of it that the code touched; None where that cannot be told.
      Touched: string list option
      Duration: TimeSpan }

type CompletionItem =
    { Label: string
      Kind: string
      Detail: string option
      Documentation: string option }

type MemberItem =
    { Name: string
      Kind: string
      Signature: string option
      Documentation: string option }

/// What a name stands for.
type Explored =
    { Kind: string
      Documentation: string option
      /// The types a type inherits from, the nearest first.
      Bases: string list
      Interfaces: string list
      Members: MemberItem list }

/// Something that was found by its name.
type SymbolItem =
    { Name: string
      /// With what it stands in.
      FullName: string
      Kind: string
      Signature: string option
      Documentation: string option
      /// Where it is; None for what the session defined.
      Assembly: string option }

/// The assemblies of a project, as paths.
type Project =
    { /// Its own.
      Assemblies: string list
      /// What they need.
      References: string list
      /// The assemblies of shared frameworks that they run on beside the worker's own.
      Frameworks: string list
      /// The folders in which native libraries are looked for.
      Natives: string list
      /// What its own assemblies are built from, in the order of the builds.
      Sources: string list
      /// What is defined for the conditional code of its own assemblies, by their paths, as far as that is known.
      Symbols: Map<string, string list>
      /// The assemblies of which names are opened.
      Opened: string list
      /// Whether their modules are opened too, beside those that open themselves.
      OpensModules: bool
      /// How often its code may be exchanged in one worker; None where that has no limit.
      MostSwaps: int64 option
      /// The folder in which their code looks for its own files.
      Folder: string option
      /// The folder of the project's file.
      Directory: string option }

/// A test that could be run.
type TestItem =
    { Name: string
      Framework: string
      /// Where it is; None for what the session defined.
      Assembly: string option
      Categories: string list
      /// Why it would not be run, where it would not.
      Skipped: string option
      /// None where only running it tells.
      Cases: int option }

/// What is asked of the tests that reach lines.
type CoverageQuestion =
    { /// The file that is meant, or the end of its path; all of them without it.
      File: string option
      /// The declaration that is meant, or the end of its name.
      Name: string option
      /// What the code was at some times: the tests are wanted that reach what has changed since.
      Since: string list }

/// Tests that begin at the same code.
type CoveringTests =
    { Assembly: string option
      Names: string list
      /// Where their code begins.
      Roots: string list
      /// Whether the lines are those that ran with them, and not those that they may reach.
      IsMeasured: bool }

/// Lines of a file that the same tests reach.
type CoveredLines =
    { First: int
      Last: int
      /// How many of them have code.
      Count: int
      /// The declaration that they are of.
      Name: string
      /// Which of the sets of tests reaches them.
      Set: int
      /// Whether the saved lines are not those that run.
      IsMoved: bool }

/// A declaration that calls another, or is called.
type CallingDeclaration =
    { Name: string
      /// Its file and line, where they are known.
      Place: (string * int) option }

/// Which tests reach which lines.
type Coverage =
    { /// What the code is at present.
      Code: string
      /// The policies of tests that the session's code has set, by category.
      Policies: (string * string) list
      Tests: CoveringTests list
      /// How many tests there are besides, of which it is not known what they reach.
      Unknown: int
      /// What each assembly with tests, and all that it needs, is now.
      Assemblies: (string * string) list
      /// The tests that reach what has changed since the code was what a mark says, by the mark; not for one of another process.
      Changed: (string * int list) list
      /// Sets of tests, by their numbers.
      Sets: int list list
      Files: (string * CoveredLines list) list
      Callers: CallingDeclaration list
      Callees: CallingDeclaration list
      Notes: string list }

type Hello =
    { WorkingDirectory: string
      /// What the process's environment lacks, where it was started before it was known for whom.
      Variables: (string * string) list
      References: string list
      Arguments: string list
      Project: Project option
      /// Scripts that run before the session's own code.
      Profiles: string list }

/// A namespace or module that was not opened.
type Unopened =
    { Name: string
      Reason: string
      /// Whether it is not meant to be.
      IsMeant: bool }

/// A script that ran before the session's own code.
type ProfileRun =
    { Path: string
      Diagnostics: Diagnostic list
      Error: string option
      Output: string
      Duration: TimeSpan }

/// What a session has brought in before its own code.
type Begun =
    { /// The assemblies that could not be loaded, and why.
      Failed: (string * string) list
      Opened: string list
      Unopened: Unopened list
      Profiles: ProfileRun list
      /// The addresses on which code from before a reset still listens.
      Listens: string list
      /// What its code rests on.
      References: Reference list }

/// Code that a replay goes on with.
type Upcoming =
    { Job: string
      Code: string
      /// The file it is from.
      File: string option }

/// Code that is asked about.
type CodeText =
    { Code: string
      /// The file it is from.
      File: string option }

/// What code does when it runs, as far as that matters to running it again.
type Description =
    { /// The names that it gives a meaning.
      Defines: string list
      /// Whether it gives more names a meaning, which are not known.
      DefinesOthers: bool
      /// The names of the scripts that it loads, with those that these load.
      Loads: string list
      /// Why it must not run twice in one process.
      RunsOnce: string option }

/// A declaration that runs as its file has it now.
type Swapped =
    { Name: string
      File: string
      /// Where it stands; lines count from 1.
      Line: int
      /// What of its older version stays with those who have it: `value`, `closures` or `run`.
      Kept: string option }

/// Why what changed in a file does not run.
type Obstacle =
    { File: string
      /// A stable word for the reason.
      Code: string
      /// What changed, by its name.
      Name: string
      Line: int
      /// The reason, for people.
      Reason: string }

/// What came of putting changed files into the code that runs. Where there are obstacles, nothing has changed.
type Swap =
    { /// The SHA-256 of each file as it was read.
      Files: (string * string) list
      /// The assemblies whose code changed, as the session calls them.
      Assemblies: string list
      Swapped: Swapped list
      /// The values that may have been made with what was swapped before it was, and stay as they are.
      Outdated: Swapped list
      Obstacles: Obstacle list
      /// Whether a file has other bytes than it had when it was last read, or built.
      IsRenewed: bool }

type Request =
    | Hello of Hello
    /// Get ready for a session that is not known yet, and is likely to have these arguments.
    | StandBy of arguments: string list
    /// Make an assembly in this folder, as the compiler's program does with these arguments.
    | Compile of folder: string * arguments: string list
    /// `commandLine` is what the code has for `fsi.CommandLineArgs`; where it is empty, that is the session's own.
    | Eval of job: string * code: string * file: string option * commandLine: string list * isWithheld: bool
    /// What is to be evaluated next: it may be compiled together.
    | Upcoming of Upcoming list
    /// What these do when they run.
    | Describe of CodeText list
    /// Have the project's code run as these files have it now; of a file with a text, as that has it; with `isAll`, as all files have it
    /// that are not as they were built.
    | Swap of files: string list * texts: (string * string) list * isAll: bool
    | Check of code: string * file: string option
    | Complete of code: string * cursor: Position
    | Explore of name: string
    | Search of text: string * limit: int
    | Values
    | Tests of pattern: string option * category: string option
    | Coverage of CoverageQuestion
    /// Run the tests that run by themselves, one at a time, and tell which lines each ran. The process is for nothing else from then on.
    | Measure of policies: string * limitMs: int * timeoutMs: int
    /// What another worker has measured of the same project, when the session's code was what a mark says.
    | TakeMeasured of code: string * Measurement.Measurement
    | Review of code: string
    | Interrupt of eval: int64
    /// The answer to an ask; none where nobody gives one.
    | Answer of ask: Guid * text: string option
    /// What was shown with this mark has arrived.
    | Displayed of mark: int64
    | Reset

type FailureCode =
    | BadRequest
    | NotFound
    | Internal

/// A request that could not be served.
type Failure =
    { Id: int64 option
      Code: FailureCode
      Message: string }

let private badRequest id message = Error { Id = id; Code = BadRequest; Message = message }

/// The answer as text: what code reads is nothing else.
let private decodeAnswer (element: JsonElement) : string option =
    match element.TryGetProperty "value" with
    | true, value when value.ValueKind = JsonValueKind.String -> Some(value.GetString())
    | true, value when value.ValueKind <> JsonValueKind.Null -> Some(value.GetRawText())
    | _ -> None

let private decodeProject (element: JsonElement) : Project option =
    match element.TryGetProperty "project" with
    | true, project when project.ValueKind = JsonValueKind.Object ->
        Some
            { Assemblies = texts "assemblies" project
              References = texts "references" project
              Frameworks = texts "frameworks" project
              Natives = texts "natives" project
              Sources = texts "sources" project
              Symbols =
                objects "symbols" project
                |> List.choose (fun one -> tryText "assembly" one |> Option.map (fun path -> path, texts "names" one))
                |> Map.ofList
              Opened = texts "opened" project
              OpensModules = flag "opensModules" project
              MostSwaps = tryInteger "mostSwaps" project
              Folder = tryText "folder" project
              Directory = tryText "directory" project }
    | _ -> None

let private decodeUpcoming (element: JsonElement) : Upcoming list =
    objects "evals" element |> List.choose (fun eval ->
        match tryText "job" eval, tryText "code" eval with
        | Some job, Some code -> Some { Job = job; Code = code; File = tryText "file" eval }
        | _ -> None)

let private decodeCodes (element: JsonElement) : CodeText list =
    objects "codes" element |> List.map (fun one -> { Code = defaultArg (tryText "code" one) ""; File = tryText "file" one })

let private decodeBody (element: JsonElement) (kind: string) : Result<Request, string> =
    let text name = tryText name element
    let required name (make: string -> Request) =
        match text name with
        | Some value -> Ok(make value)
        | None -> Error("`" + kind + "` needs the string `" + name + "`")
    match kind with
    | "hello" ->
        match tryInteger "protocol" element with
        | Some spoken when spoken = version ->
            required "workingDirectory" (fun directory ->
                Hello
                    { WorkingDirectory = directory
                      Variables = pairs "variables" element
                      References = texts "references" element
                      Arguments = texts "arguments" element
                      Project = decodeProject element
                      Profiles = texts "profiles" element })
        | _ -> Error("this worker speaks protocol " + string version + " only")
    | "standBy" -> Ok(StandBy(texts "arguments" element))
    | "compile" -> required "folder" (fun folder -> Compile(folder, texts "arguments" element))
    | "eval" -> required "code" (fun code -> Eval(defaultArg (text "job") "", code, text "file", texts "commandLine" element, flag "isWithheld" element))
    | "upcoming" -> Ok(Upcoming(decodeUpcoming element))
    | "swap" -> Ok(Swap(texts "files" element, pairs "texts" element, flag "isAll" element))
    | "describe" -> Ok(Describe(decodeCodes element))
    | "check" -> required "code" (fun code -> Check(code, text "file"))
    | "complete" ->
        match tryInteger "line" element, tryInteger "column" element with
        | Some line, Some column when line > 0L && column > 0L && line <= int64 Int32.MaxValue && column <= int64 Int32.MaxValue ->
            required "code" (fun code -> Complete(code, { Line = int line; Column = int column }))
        | _ -> Error "`complete` needs `line` and `column`, both counted from 1"
    | "explore" -> required "name" Explore
    | "search" ->
        let limit = tryInteger "limit" element |> Option.map (max 1L >> min (int64 itemLimit) >> int)
        required "text" (fun text -> Search(text, defaultArg limit itemLimit))
    | "values" -> Ok Values
    | "tests" -> Ok(Tests(text "pattern", text "category"))
    | "coverage" -> Ok(Coverage { File = text "file"; Name = text "name"; Since = texts "since" element })
    | "measure" ->
        let isTime time = time > 0L && time <= int64 Int32.MaxValue
        match tryInteger "limitMs" element, tryInteger "timeoutMs" element with
        | Some limit, Some timeout when isTime limit && isTime timeout -> Ok(Measure(defaultArg (text "policies") "", int limit, int timeout))
        | _ -> Error "`measure` needs the positive integers `limitMs` and `timeoutMs`"
    | "takeMeasured" ->
        match element.TryGetProperty "measurement" with
        | true, measurement when measurement.ValueKind = JsonValueKind.Object -> required "code" (fun code -> TakeMeasured(code, Measurement.read measurement))
        | _ -> Error "`takeMeasured` needs the object `measurement`"
    | "review" -> required "code" Review
    | "interrupt" ->
        match tryInteger "eval" element with
        | Some eval -> Ok(Interrupt eval)
        | None -> Error "`interrupt` needs the integer `eval`"
    | "answer" ->
        match Guid.TryParse(defaultArg (text "ask") "") with
        | true, ask -> Ok(Answer(ask, decodeAnswer element))
        | false, _ -> Error "`answer` needs the id `ask`"
    | "displayed" ->
        match tryInteger "mark" element with
        | Some mark -> Ok(Displayed mark)
        | None -> Error "`displayed` needs the integer `mark`"
    | "reset" -> Ok Reset
    | other -> Error("unknown message type `" + other + "`")

/// The request in a frame, with its id.
let decode (frame: byte[]) : Result<int64 * Request, Failure> =
    try
        use document = JsonDocument.Parse(ReadOnlyMemory frame)
        let element = document.RootElement
        if element.ValueKind <> JsonValueKind.Object then badRequest None "a frame holds one JSON object"
        else
            match tryInteger "id" element, tryText "type" element with
            | id, None -> badRequest id "a message needs the string `type`"
            | None, Some _ -> badRequest None "a request needs an integer `id`"
            | Some id, Some kind ->
                match decodeBody element kind with
                | Ok request -> Ok(id, request)
                | Error message -> badRequest (Some id) message
    with
    | :? JsonException as e -> badRequest None ("the frame is no JSON: " + e.Message)
    | :? InvalidOperationException as e -> badRequest None ("the frame holds a malformed string: " + e.Message)

let private message (kind: string) (members: (Utf8JsonWriter -> unit) list) =
    encode (fun writer ->
        writeText "type" kind writer
        for write in members do write writer)

let private writePosition name (position: Position) =
    writeObject name (fun writer ->
        writeInteger "line" (int64 position.Line) writer
        writeInteger "column" (int64 position.Column) writer)

let private writeDiagnostic (diagnostic: Diagnostic) writer =
    writeText "severity" diagnostic.Severity writer
    writeText "code" diagnostic.Code writer
    writeText "message" diagnostic.Message writer
    writePosition "start" diagnostic.Start writer
    writePosition "end" diagnostic.End writer

let private writeBinding (binding: Binding) writer =
    writeText "name" binding.Name writer
    writeText "valueType" binding.ValueType writer
    writeOptionalText "value" binding.Value writer

let private writeFault (fault: Fault) writer =
    writeText "kind" fault.Kind writer
    writeText "message" fault.Message writer
    writeOptionalText "stack" fault.Stack writer

let private outcomeName outcome =
    match outcome with
    | Completed -> "completed"
    | Rejected -> "rejected"
    | Raised _ -> "raised"
    | Interrupted -> "interrupted"

let encodeAttach (token: string) = message "attach" [ writeText "token" token; writeInteger "protocol" version ]

let encodeProgress (id: int64) (phase: string) (done': int) (total: int) =
    message "progress" [ writeInteger "id" id; writeText "phase" phase; writeInteger "done" (int64 done'); writeInteger "total" (int64 total) ]

let private runtime = Runtime.InteropServices.RuntimeInformation.FrameworkDescription

let private writeEnvironment (references: Reference list) =
    let writeReference (reference: Reference) writer =
        writeText "name" reference.Name writer
        writeText "path" reference.Path writer
        if reference.Hash <> "" then writeText "hash" reference.Hash writer
    writeObject "environment" (fun writer ->
        writeText "runtime" runtime writer
        writeObjects "references" references writeReference writer)

/// The diagnostics that are sent: where there are too many, errors before all else.
let private sent (diagnostics: Diagnostic list) =
    if List.length diagnostics <= itemLimit then diagnostics
    else
        let errors, others = diagnostics |> List.partition (fun diagnostic -> diagnostic.Severity = "error")
        List.truncate itemLimit (errors @ others)

let private bounded (room: Room) (diagnostics: Diagnostic list) : Diagnostic list =
    sent diagnostics |> List.map (fun diagnostic -> { diagnostic with Message = room.Take diagnostic.Message })

let private writeBegun (begun: Begun) =
    let writeFailed (path: string, error: string) writer =
        writeText "path" path writer
        writeText "error" error writer
    let writeUnopened (one: Unopened) writer =
        writeText "name" one.Name writer
        writeText "reason" one.Reason writer
        if one.IsMeant then writeFlag "isMeant" true writer
    let writeProfile (ran: ProfileRun) writer =
        writeText "path" ran.Path writer
        writeObjects "diagnostics" (bounded (Room()) ran.Diagnostics) writeDiagnostic writer
        writeOptionalText "error" (ran.Error |> Option.map cut) writer
        if ran.Output <> "" then writeText "output" ran.Output writer
        writeInteger "durationMs" (int64 ran.Duration.TotalMilliseconds) writer
    writeObject "startup" (fun writer ->
        writeObjects "failed" (List.truncate itemLimit begun.Failed) writeFailed writer
        writeTexts "opened" (List.truncate itemLimit begun.Opened) writer
        writeObjects "unopened" (List.truncate itemLimit begun.Unopened) writeUnopened writer
        writeObjects "profiles" (List.truncate itemLimit begun.Profiles) writeProfile writer
        if not (List.isEmpty begun.Listens) then writeTexts "listens" (List.truncate itemLimit begun.Listens) writer)

let encodeReady (id: int64) (languageVersion: string) (begun: Begun) =
    message "ready" [
        writeInteger "id" id
        writeText "kernel" "fsharp"
        writeText "version" languageVersion
        writeText "runtime" runtime
        writeInteger "pid" (int64 (Diagnostics.Process.GetCurrentProcess().Id))
        writeTexts "capabilities" [ "check"; "complete"; "explore"; "interrupt"; "reset"; "review"; "search"; "tests"; "values" ]
        writeEnvironment begun.References
        writeBegun begun
    ]

/// The result as it is sent. What tells most about the outcome has the first claim to the room.
let private boundedResult (result: EvalResult) : EvalResult =
    let room = Room()
    let boundedFault (fault: Fault) : Fault =
        { Kind = room.Take fault.Kind; Message = room.Take fault.Message; Stack = room.TakeOptional fault.Stack }
    let boundedBinding (binding: Binding) : Binding =
        { Name = room.Take binding.Name; ValueType = room.Take binding.ValueType; Value = room.TakeOptional binding.Value }
    let outcome = match result.Outcome with Raised fault -> Raised(boundedFault fault) | other -> other
    let value = room.TakeOptional result.Value
    let valueType = room.TakeOptional result.ValueType
    let display = room.Take result.Display
    let diagnostics = bounded room result.Diagnostics
    { result with
        Outcome = outcome
        Value = value
        ValueType = valueType
        Display = display
        Diagnostics = diagnostics
        Bindings = result.Bindings |> List.truncate itemLimit |> List.map boundedBinding }

let encodeResult (id: int64) (whole: EvalResult) =
    let result = boundedResult whole
    message "result" [
        writeInteger "id" id
        writeFlag "success" (result.Outcome = Completed)
        writeText "outcome" (outcomeName result.Outcome)
        writeOptionalText "value" result.Value
        writeOptionalText "valueType" result.ValueType
        writeObjects "bindings" result.Bindings writeBinding
        writeText "display" result.Display
        writeObjects "diagnostics" result.Diagnostics writeDiagnostic
        (match result.Outcome with Raised fault -> writeObject "error" (writeFault fault) | _ -> ignore)
        (if result.Kept > 0 then writeInteger "kept" (int64 result.Kept) else ignore)
        writeFlag "changesState" result.ChangesState
        writeFlag "usesLast" result.UsesLast
        (match result.Surroundings with Some references -> writeEnvironment references | None -> ignore)
        (match result.Touched with Some names -> writeTexts "touched" names | None -> ignore)
        writeInteger "durationMs" (int64 result.Duration.TotalMilliseconds)
    ]

let encodeDiagnostics (id: int64) (diagnostics: Diagnostic list) =
    message "diagnostics" [ writeInteger "id" id; writeObjects "diagnostics" (bounded (Room()) diagnostics) writeDiagnostic ]

let encodeCompletions (id: int64) (items: CompletionItem list) (start: Position) =
    let writeItem (item: CompletionItem) writer =
        writeText "label" item.Label writer
        writeText "kind" item.Kind writer
        writeOptionalText "detail" item.Detail writer
        writeOptionalText "documentation" item.Documentation writer
    message "completions" [ writeInteger "id" id; writeObjects "items" items writeItem; writePosition "start" start ]

let encodeMembers (id: int64) (name: string) (explored: Explored) =
    let writeMember (item: MemberItem) writer =
        writeText "name" item.Name writer
        writeText "kind" item.Kind writer
        writeOptionalText "signature" item.Signature writer
        writeOptionalText "documentation" item.Documentation writer
    message "members" [
        writeInteger "id" id
        writeText "name" name
        writeText "kind" explored.Kind
        writeOptionalText "documentation" explored.Documentation
        writeTexts "bases" explored.Bases
        writeTexts "interfaces" explored.Interfaces
        writeObjects "members" explored.Members writeMember
    ]

let encodeSymbols (id: int64) (items: SymbolItem list) (found: int) =
    let writeItem (item: SymbolItem) writer =
        writeText "name" item.Name writer
        writeText "fullName" item.FullName writer
        writeText "kind" item.Kind writer
        writeOptionalText "signature" item.Signature writer
        writeOptionalText "documentation" item.Documentation writer
        writeOptionalText "assembly" item.Assembly writer
    message "symbols" [ writeInteger "id" id; writeObjects "items" items writeItem; writeInteger "found" (int64 found) ]

let encodeValues (id: int64) (bindings: Binding list) =
    message "values" [ writeInteger "id" id; writeObjects "bindings" bindings writeBinding ]

let encodeTests (id: int64) (items: TestItem list) (found: int) (notes: string list) =
    let writeItem (item: TestItem) writer =
        writeText "name" item.Name writer
        writeText "framework" item.Framework writer
        writeOptionalText "assembly" item.Assembly writer
        writeTexts "categories" item.Categories writer
        writeOptionalText "skipped" item.Skipped writer
        (match item.Cases with Some cases -> writeInteger "cases" (int64 cases) writer | None -> ())
    message "tests" [
        writeInteger "id" id
        writeObjects "items" items writeItem
        writeInteger "found" (int64 found)
        writeTexts "notes" notes
    ]

let private writeNumbers (name: string) (numbers: int list) (writer: Utf8JsonWriter) =
    writer.WriteStartArray name
    for number in numbers do writer.WriteNumberValue number
    writer.WriteEndArray()

let private writeCalling (one: CallingDeclaration) writer =
    writeText "name" one.Name writer
    match one.Place with
    | Some (file, line) ->
        writeText "file" file writer
        writeInteger "line" (int64 line) writer
    | None -> ()

let encodeCoverage (id: int64) (coverage: Coverage) =
    let writeTests (tests: CoveringTests) writer =
        writeOptionalText "assembly" tests.Assembly writer
        writeTexts "names" tests.Names writer
        if tests.IsMeasured then writeFlag "isMeasured" true writer
    let writeChanged (mark: string, tests: int list) writer =
        writeText "since" mark writer
        writeNumbers "tests" tests writer
    let writeLines (lines: CoveredLines) (writer: Utf8JsonWriter) =
        writeInteger "first" (int64 lines.First) writer
        writeInteger "last" (int64 lines.Last) writer
        writeInteger "count" (int64 lines.Count) writer
        writeText "name" lines.Name writer
        writeInteger "set" (int64 lines.Set) writer
        if lines.IsMoved then writer.WriteBoolean("isMoved", true)
    let writeFile (path: string, lines: CoveredLines list) writer =
        writeText "path" path writer
        writeObjects "lines" lines writeLines writer
    message "coverage" [
        writeInteger "id" id
        writeText "code" coverage.Code
        writeObject "policies" (fun writer -> for category, policy in coverage.Policies do writeText category policy writer)
        writeObjects "tests" coverage.Tests writeTests
        writeInteger "unknown" (int64 coverage.Unknown)
        writeObject "assemblies" (fun writer -> for name, fingerprint in coverage.Assemblies do writeText name fingerprint writer)
        writeObjects "changed" coverage.Changed writeChanged
        writeObjects "sets" coverage.Sets (fun tests -> writeNumbers "tests" tests)
        writeObjects "files" coverage.Files writeFile
        writeObjects "callers" (List.truncate itemLimit coverage.Callers) writeCalling
        writeObjects "callees" (List.truncate itemLimit coverage.Callees) writeCalling
        writeTexts "notes" coverage.Notes
    ]

let encodeMeasured (id: int64) (measurement: Measurement.Measurement) =
    message "measured" [ writeInteger "id" id; writeObject "measurement" (Measurement.write measurement) ]

let encodeMeasuredTaken (id: int64) (isTaken: bool) = message "measuredTaken" [ writeInteger "id" id; writeFlag "isTaken" isTaken ]

/// What is suggested for code, and how many suggestions more there are; where it was not parsed, what the compiler says of it.
let encodeReview (id: int64) (isParsed: bool) (remarks: Diagnostic list) (left: int) =
    message "review" [
        writeInteger "id" id
        (fun writer -> writer.WriteBoolean("isParsed", isParsed))
        writeObjects "remarks" (bounded (Room()) remarks) writeDiagnostic
        writeInteger "leftOut" (int64 left)
    ]

let encodeDescriptions (id: int64) (descriptions: Description list) =
    let writeDescription (one: Description) (writer: Utf8JsonWriter) =
        writeTexts "defines" one.Defines writer
        writer.WriteBoolean("definesOthers", one.DefinesOthers)
        writeTexts "loads" one.Loads writer
        writeOptionalText "runsOnce" one.RunsOnce writer
    message "descriptions" [ writeInteger "id" id; writeObjects "descriptions" descriptions writeDescription ]

let encodeSwapped (id: int64) (swap: Swap) =
    let room = Room()
    let writeSwapped (one: Swapped) writer =
        writeText "name" (room.Take one.Name) writer
        writeText "file" one.File writer
        writeInteger "line" (int64 one.Line) writer
        one.Kept |> Option.iter (fun kept -> writeText "kept" kept writer)
    let writeObstacle (one: Obstacle) writer =
        writeText "file" one.File writer
        writeText "code" one.Code writer
        writeText "name" (room.Take one.Name) writer
        writeInteger "line" (int64 one.Line) writer
        writeText "reason" (room.Take one.Reason) writer
    message "swapped" [
        writeInteger "id" id
        writeObject "files" (fun writer -> for path, hash in swap.Files do writeText path hash writer)
        writeTexts "assemblies" swap.Assemblies
        writeObjects "swapped" (List.truncate itemLimit swap.Swapped) writeSwapped
        writeObjects "outdated" (List.truncate itemLimit swap.Outdated) writeSwapped
        writeObjects "obstacles" (List.truncate itemLimit swap.Obstacles) writeObstacle
        writeFlag "isRenewed" swap.IsRenewed
    ]

let encodeStandsBy (id: int64) =
    message "standsBy" [
        writeInteger "id" id
        writeInteger "pid" (int64 (Diagnostics.Process.GetCurrentProcess().Id))
    ]

/// Of too many diagnostics those come first that stand first, and errors before others. A file is none where the message is of none.
let encodeCompiled (id: int64) (isMade: bool) (said: (string option * Diagnostic) list) =
    let errors, others = said |> List.partition (fun (_, diagnostic) -> diagnostic.Severity = "error")
    let writeSaid (file: string option, diagnostic: Diagnostic) writer =
        writeDiagnostic { diagnostic with Message = cut diagnostic.Message } writer
        writeOptionalText "file" file writer
    message "compiled" [
        writeInteger "id" id
        writeFlag "isMade" isMade
        writeObjects "diagnostics" (List.truncate itemLimit (errors @ others)) writeSaid
    ]

let encodeInterrupted (id: int64) = message "interrupted" [ writeInteger "id" id ]

/// What code asks for.
type Wanted =
    /// A part of its input, as `mainstay_model::ask::InputRead` knows it.
    | Input of title: string
    /// What is shown to nobody and kept nowhere.
    | Secret

/// Asks for a text.
let encodeAsks (ask: Guid) (job: string) (prompt: string) (wanted: Wanted) =
    message "asks" [
        writeText "ask" (string ask)
        writeText "job" job
        writeText "prompt" prompt
        writeObject "schema" (fun writer ->
            writeText "type" "string" writer
            match wanted with
            | Input title -> writeText "title" title writer
            | Secret -> writer.WriteBoolean("writeOnly", true))
    ]

let private writeForm (kind: string, data: MainstayDisplay.Data) (writer: Utf8JsonWriter) =
    match data with
    | MainstayDisplay.Text text -> writeText kind text writer
    | MainstayDisplay.Bytes bytes -> writer.WriteBase64String(kind, ReadOnlySpan<byte> bytes)
    | MainstayDisplay.Json text ->
        use document = JsonDocument.Parse text
        writer.WritePropertyName kind
        document.RootElement.WriteTo writer

/// Shows the forms of something, maybe under a name; `job` is whose code does, where that is not the running one.
let encodeDisplay (job: string option) (mark: int64 option) (name: string option) (isValue: bool) (bundle: MainstayDisplay.Bundle) =
    message "display" [
        writeOptionalText "job" job
        (match mark with Some mark -> writeInteger "mark" mark | None -> ignore)
        writeOptionalText "name" name
        (if isValue then writeFlag "isValue" true else ignore)
        writeObject "data" (fun writer -> for form in boundedBundle bundle do writeForm form writer)
    ]

/// What code of a job prints that is not the running one.
let encodeOutput (job: string) (isError: bool) (text: string) =
    message "output" [ writeText "job" job; writeText "stream" (if isError then "stderr" else "stdout"); writeText "text" text ]

let encodeEnding (job: string) (reason: string) = message "ending" [ writeText "job" job; writeText "reason" (cut reason) ]

/// An application that runs.
type RunningApplication =
    { Name: string
      /// The function it began with, where one was named.
      Entry: string option
      Arguments: string list
      Addresses: string list
      /// The job that started it.
      Job: string option }

type ApplicationEnding =
    | EndedByStop
    | EndedByItself of exitCode: int option
    | EndedByFailure of reason: string

type ApplicationState =
    | Running of RunningApplication
    | Ended of ApplicationEnding

/// The application of the project runs, or runs no more; `pid` is the process's.
let encodeApplication (pid: int) (state: ApplicationState) =
    message "application" [
        match state with
        | Running one ->
            let room = Room()
            yield writeText "state" "started"
            yield writeText "name" (cut one.Name)
            yield writeOptionalText "entry" one.Entry
            yield writeTexts "arguments" (one.Arguments |> List.map room.Take)
            yield writeTexts "addresses" (List.truncate itemLimit one.Addresses)
            yield writeInteger "pid" (int64 pid)
            yield writeOptionalText "job" one.Job
        | Ended ending ->
            yield writeText "state" "ended"
            match ending with
            | EndedByStop -> yield writeText "ending" "stopped"
            | EndedByItself code ->
                yield writeText "ending" "completed"
                match code with
                | Some code -> yield writeInteger "exitCode" (int64 code)
                | None -> ()
            | EndedByFailure reason ->
                yield writeText "ending" "failed"
                yield writeText "message" (cut reason)
    ]

/// Code of the job that runs ends the process by itself; what the compiler said of it goes along, since no result will tell.
let encodeLeaving (job: string) (diagnostics: Diagnostic list) =
    message "ending" [ writeText "job" job; writeObjects "diagnostics" (bounded (Room()) diagnostics) writeDiagnostic ]

let encodeFailed (failure: Failure) =
    let code =
        match failure.Code with
        | BadRequest -> "bad_request"
        | NotFound -> "not_found"
        | Internal -> "internal"
    message "failed" [
        (match failure.Id with Some id -> writeInteger "id" id | None -> ignore)
        writeText "code" code
        writeText "message" (cut failure.Message)
    ]
