/// Words what a test raised: the message, what was expected and what was there, and where in its author's code it was.
module internal MainstayDisplay.TestsFailure

open System
open System.IO
open System.Text.RegularExpressions
open Microsoft.FSharp.Reflection
open MainstayDisplay.TestsModel

/// The longest message, value and stack that are told, in characters and lines.
let private messageLength, valueLength, stackLines = 8000, 1000, 20

let private cut (limit: int) (text: string) = if text.Length <= limit then text else text.Substring(0, limit) + "…"

/// What frameworks raise to say that a test passed, or is not to be judged.
let private passing = [ "NUnit.Framework.SuccessException" ]
let private skipping =
    [ "NUnit.Framework.IgnoreException"; "NUnit.Framework.InconclusiveException"
      "Microsoft.VisualStudio.TestTools.UnitTesting.AssertInconclusiveException" ]

let private messageOf (e: exn) : string =
    let kind = e.GetType()
    let own =
        if FSharpType.IsExceptionRepresentation kind then
            match FSharpValue.GetExceptionFields e with
            | [| :? string as text |] -> Some text
            | _ -> None
        else None
    (defaultArg own e.Message).Replace("\r\n", "\n")

let private unwrapped (e: exn) : exn =
    let rec go (e: exn) =
        match e with
        | :? AggregateException as all when all.InnerExceptions.Count = 1 -> go all.InnerExceptions.[0]
        | :? Reflection.TargetInvocationException
        | :? TypeInitializationException when not (isNull e.InnerException) -> go e.InnerException
        | e -> e
    go e

let private frameworks = [ "NUnit."; "Xunit."; "Microsoft.VisualStudio.TestTools."; "Microsoft.VisualStudio.TestPlatform."; "Expecto."; "TUnit." ]

let private foreign =
    frameworks
    @ [ "MainstayDisplay."; "Mainstay."; "System.Reflection."; "System.RuntimeMethodHandle."; "System.RuntimeType."; "System.Runtime."
        "System.Threading."; "System.Activator."; "InvokeStub_"; "Microsoft.FSharp.Core."; "Microsoft.FSharp.Control." ]

let private isOwn (frame: string) =
    frame.StartsWith("at ", StringComparison.Ordinal) && not (foreign |> List.exists (fun owner -> frame.Substring(3).StartsWith(owner, StringComparison.Ordinal)))

let private place = Regex(@" in (.+):line (\d+)$", RegexOptions.CultureInvariant)

/// A frame without the name of a file that is not there: code at the prompt has none, and packages name those of whoever built them.
let private withRealFile (frame: string) : string =
    let found = place.Match frame
    if not found.Success || File.Exists found.Groups.[1].Value then frame
    else frame.Substring(0, found.Index) + ", line " + found.Groups.[2].Value

let private framesOf (stack: string) : string list =
    match stack with
    | null -> []
    | stack ->
        stack.Split '\n'
        |> Seq.map (fun line -> line.Trim())
        |> Seq.filter isOwn
        |> Seq.map (fun line -> Regex.Replace(line.Substring 3, @"^FSI_\d+[.+]", "") |> withRealFile)
        |> Seq.truncate stackLines
        |> List.ofSeq

let private placeOf (frames: string list) : (string * int) option =
    frames |> List.tryPick (fun frame ->
        let found = place.Match frame
        if found.Success then Some(found.Groups.[1].Value, int found.Groups.[2].Value) else None)

let private property (name: string) (e: exn) : string option =
    match e.GetType().GetProperty name with
    | null -> None
    | property -> try property.GetValue e |> Option.ofObj |> Option.map (Cells.ofValue AtWhatIsThere) with _ -> None

let private labelled (pattern: string) : string -> string option =
    let expression = Regex(pattern, RegexOptions.CultureInvariant ||| RegexOptions.Multiline ||| RegexOptions.IgnoreCase)
    fun message ->
        let found = expression.Match message
        if found.Success then Some(found.Groups.[1].Value.Trim()) else None

let private expectedIn = labelled @"^\s*expected:[ \t]*(\S.*)$"
let private actualIn = labelled @"^\s*(?:actual|but was):[ \t]*(\S.*)$"
// MSTest's are on one line, in brackets.
let private bracketedExpected = labelled @"\bExpected(?: any value except)?:<(.*?)>\."
let private bracketedActual = labelled @"\bActual:<(.*?)>\."

let private expectedBy (message: string) = [ bracketedExpected; expectedIn ] |> List.tryPick (fun way -> way message)
let private actualBy (message: string) = [ bracketedActual; actualIn ] |> List.tryPick (fun way -> way message)

let private failure (kind: string) (message: string) (stack: string) (expected: string option) (actual: string option) : Failure =
    let frames = framesOf stack
    { Kind = kind
      Message = cut messageLength message
      Expected = expected |> Option.orElse (expectedBy message) |> Option.map (cut valueLength)
      Actual = actual |> Option.orElse (actualBy message) |> Option.map (cut valueLength)
      Stack = frames
      Place = placeOf frames }

let private failureOf (e: exn) : Failure = failure (e.GetType().FullName) (messageOf e) e.StackTrace (property "Expected" e) (property "Actual" e)

/// A failure that an engine tells in words: the type of what was raised, what it says, and the stack.
let ofText (kind: string) (message: string) (stack: string) : Failure = failure kind (message.Replace("\r\n", "\n")) stack None None

/// What stands before the message of what was raised, where an engine writes both as one.
let private raisedKind = Regex(@"^([A-Z]\w*(?:\.\w+)+)\s?: ", RegexOptions.CultureInvariant)

/// The same where the type stands before what it says, unless it is a failed assertion, whose type is given.
let ofMessage (assertion: string) (message: string) (stack: string) : Failure =
    let found = raisedKind.Match message
    if found.Success then ofText found.Groups.[1].Value (message.Substring found.Length) stack
    else ofText assertion message stack

/// Whether it says no more than that the test is not content.
let isAssertion (failure: Failure) : bool = frameworks |> List.exists (fun owner -> failure.Kind.StartsWith(owner, StringComparison.Ordinal))

/// What comes of a test that raised this.
let outcomeOf (raised: exn) : Outcome =
    let e = unwrapped raised
    let is (names: string list) = TestsReflection.isAnyOf names (e.GetType())
    match e with
    | NotRun reason -> Skipped reason
    | e when is passing -> Passed
    | e when is skipping -> Skipped(messageOf e)
    | e -> Failed(failureOf e)
