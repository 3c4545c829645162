/// What a test is, and what comes of it, whatever framework it is written for.
module internal MainstayDisplay.TestsModel

open System
open System.Reflection
open System.Runtime.ExceptionServices
open System.Threading

/// One thing to run.
type Case =
    { Name: string
      Categories: string list
      /// Why it is not run, where it is not.
      Skipped: string option
      /// What its author allows it.
      TimeLimit: TimeSpan option
      Run: CancellationToken -> unit }

/// A test as its author declared it.
type Declared =
    { Name: string
      Framework: string
      /// None for what the session's own code defined.
      Assembly: string option
      Categories: string list
      Skipped: string option
      /// How many cases it has; None where only running the session's code tells.
      Cases: int option
      /// What each case is called but for its arguments, where its categories are the test's and running code tells the arguments; else None.
      CaseName: string option
      /// Its cases. This may run the session's code.
      Expand: unit -> Case list }

/// Tests that share what is set up once for all of them.
type Suite =
    { Declared: Declared list
      /// Ends what was set up.
      Close: unit -> unit
      Name: string }

/// Why a test failed.
type Failure =
    { Kind: string
      Message: string
      Expected: string option
      Actual: string option
      Stack: string list
      Place: (string * int) option }

type Outcome =
    | Passed
    | Skipped of reason: string
    | Failed of Failure
    /// It ran longer than it may.
    | TimedOut of limit: TimeSpan

type Ran =
    { Name: string
      Framework: string
      Assembly: string option
      Categories: string list
      Outcome: Outcome
      /// What it wrote to its framework's own output.
      Output: string
      Took: TimeSpan
      /// Where its source stands, as far as that is known.
      Place: (string * int) option }

/// What a test raises to say that it is not to be run.
exception NotRun of reason: string

/// Something that is made once, by whoever needs it first. Whoever comes while it is made, or finds that it could not be, fails.
type Once<'T>(make: unit -> 'T) =
    let gate = obj ()
    let mutable isBegun = false
    let mutable made: Result<'T, exn> option = None

    member _.Value: 'T =
        let isFirst =
            lock gate (fun () ->
                let isFirst = not isBegun
                isBegun <- true
                isFirst)
        if isFirst then made <- Some(try Ok(make ()) with e -> Error e)
        match made with
        | Some (Ok value) -> value
        | Some (Error e) ->
            ExceptionDispatchInfo.Capture(e).Throw()
            raise e
        | None -> failwith "what it needs is still being set up by a test that did not end"

    /// It, where it was made.
    member _.Made: 'T option = match made with Some (Ok value) -> Some value | Some (Error _) | None -> None

/// Which tests are meant.
type Filter =
    { /// In any case; with `*` it is the whole name, without it a part.
      Pattern: string option
      Category: string option }

/// Selects all.
let everyTest: Filter = { Pattern = None; Category = None }

let private isLike (pattern: string) (name: string) =
    if pattern.Contains "*" then
        let expression = "^" + Text.RegularExpressions.Regex.Escape(pattern).Replace("\\*", ".*") + "$"
        Text.RegularExpressions.Regex.IsMatch(name, expression, Text.RegularExpressions.RegexOptions.IgnoreCase ||| Text.RegularExpressions.RegexOptions.Singleline)
    else name.IndexOf(pattern, StringComparison.OrdinalIgnoreCase) >= 0

let private same (one: string) (other: string) = String.Equals(one, other, StringComparison.OrdinalIgnoreCase)

/// Whether a case with this name may be called like that, whatever its arguments are. They count where the pattern names the bracket that they
/// begin with, or is the whole name; whoever means a test is not to wait for the arguments of all others.
let private mayBeLike (pattern: string) (name: string) =
    let isBegun (longer: string) (shorter: string) = longer.StartsWith(shorter, StringComparison.OrdinalIgnoreCase)
    match pattern.IndexOf '*' with
    | -1 -> pattern.Contains "(" || isLike pattern name
    | star ->
        let beginning = pattern.Substring(0, star)
        isBegun name beginning || isBegun beginning name

/// Whether some of a test's cases may be meant, as far as it can be told without finding them out.
let mayHoldMeant (filter: Filter) (declared: Declared) : bool =
    match declared.CaseName with
    | None -> true
    | Some name ->
        Option.forall (fun pattern -> mayBeLike pattern name) filter.Pattern
        && Option.forall (fun category -> List.exists (same category) declared.Categories) filter.Category

let selects (filter: Filter) (name: string) (categories: string list) : bool =
    Option.forall (fun pattern -> isLike pattern name) filter.Pattern
    && Option.forall (fun category -> List.exists (same category) categories) filter.Category

/// A test as the engine of its framework knows it.
type EngineCase =
    { /// As the framework writes it, with the arguments.
      Name: string
      Categories: string list
      /// Why it is not run, where that is known before.
      Skipped: string option
      /// It runs only where it is meant alone.
      IsExplicit: bool
      /// Where its code begins: a method, as `Namespace.Class+Nested::method`, or the types of the functions that it consists of. Empty where
      /// that is not known.
      Roots: string list
      /// What the engine knows it by.
      Key: obj }

/// Where the code of a test begins that is a method of a class.
let methodRoot (kind: string) (method': string) : string list =
    if kind = "" || method' = "" then [] else [ kind + "::" + method' ]

/// Where an engine looks for tests: in a compiled assembly, or in one that code became which was compiled since.
type Source =
    { Assembly: Assembly
      /// The assembly whose tests they are; None for what the session's code defined.
      Name: string option
      /// Whether the assembly has a file.
      HasFile: bool
      /// Whether a member of a class, both by their names, is there: what the session's code has defined again, or failed to, is not.
      IsThere: string -> string -> bool
      /// What a test is called that its framework calls so.
      NameOf: string -> string }

    /// What it is called where something is said of all of it.
    member source.Words = defaultArg source.Name "the session"

/// A compiled assembly. `isThere` tells of a test's class and method, both by their names, whether its source still has it.
let compiledSource (assembly: Assembly) (isThere: string -> string -> bool) : Source =
    { Assembly = assembly; Name = Some(assembly.GetName().Name); HasFile = true; IsThere = isThere; NameOf = id }

/// What an engine tells of a run, one after the other.
type Progress =
    | Began of name: string
    /// A test has ended; something around tests, such as what sets them up, only where it failed.
    | Ended of name: string * categories: string list * outcome: Outcome * took: TimeSpan * output: string

/// The tests of one assembly, by the engine of their framework.
type Engine =
    { Framework: string
      Source: Source
      /// Finds its tests. This may run code of theirs: what gives them their arguments.
      Find: unit -> EngineCase list
      /// Runs these of them; None is all of them, as their author wants them run. It returns when they have ended.
      Run: EngineCase list option -> (Progress -> unit) -> CancellationToken -> unit }
