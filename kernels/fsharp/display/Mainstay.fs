/// Shows values as more than text: tables, charts, pictures, HTML. What is shown is part of what the code put out.
[<RequireQualifiedAccess>]
module Mainstay

open System
open MainstayDisplay

/// A value that says how it looks as HTML. `Mainstay.display` asks it.
type IHtml =
    abstract Html: string

/// Something that looks as it was told to.
[<Sealed; StructuredFormatDisplay("{Words}")>]
type Rich internal (bundle: Bundle) =
    member internal _.Bundle = bundle

    /// What it is, in words.
    member _.Words: string =
        match bundle |> List.tryPick (function "text/plain", Text text -> Some text | _ -> None), bundle with
        | Some text, _ -> text
        | None, (kind, Text text) :: _ -> sprintf "%s, %d characters" kind text.Length
        | None, (kind, Json text) :: _ -> sprintf "%s, %d characters" kind text.Length
        | None, (kind, Bytes bytes) :: _ -> sprintf "%s, %d bytes" kind bytes.Length
        | None, [] -> "nothing"

    override this.ToString() = this.Words

/// How a chart marks its points.
type Mark =
    | Line
    | Bar
    | Scatter

/// A chart; `{ Mainstay.line xs ys with Title = "speed" }` is the same one with a title.
[<StructuredFormatDisplay("{Words}")>]
type Chart =
    { Mark: Mark
      Title: string
      /// What stands at the x axis.
      X: string
      /// What stands at the y axis.
      Y: string
      /// Each a number, or something else that is written there, and how high it is.
      Points: (obj * float) list }

    member internal chart.Plot: Plot.Plot =
        let place (x: obj) =
            match x with
            | null -> Plot.Named ""
            | x when Cells.isNumeric (x.GetType()) -> Plot.At(Cells.toFloat x)
            | x -> Plot.Named(Cells.ofValue (Closely Sink.noteCode) x)
        { Mark = (match chart.Mark with Line -> Plot.Line | Bar -> Plot.Bar | Scatter -> Plot.Scatter)
          Title = chart.Title
          X = chart.X
          Y = chart.Y
          Points = chart.Points |> List.map (fun (x, y) -> place x, y) }

    /// What it is, in words.
    member chart.Words: string =
        match Plot.bundle chart.Plot with
        | (_, Text text) :: _ -> text
        | _ -> ""

    override chart.ToString() = chart.Words

/// How many rows of a table are shown at most.
let mutable maxRows = 100

/// How many columns of a table are shown at most.
let mutable maxColumns = 20

/// How many numbers, and points of a chart, are looked at at most.
let mutable maxPoints = 10000

let internal bounds () : Bounds = { Rows = max 0 maxRows; Columns = max 1 maxColumns; Points = max 1 maxPoints }

let internal own (looking: Looking) (value: obj) : Bundle option =
    match value, looking with
    | (:? Rich as rich), _ -> Some rich.Bundle
    | (:? Chart as chart), _ -> Some(Plot.bundle chart.Plot)
    | (:? IHtml as html), Closely noted ->
        noted ()
        Some [ ("text/html", Text html.Html) ]
    | _ -> None

let private bundleOf (value: 'a) : Bundle =
    let looking = Closely Sink.noteCode
    match Forms.ofValue (own looking) (bounds ()) looking (box value) with
    | Some bundle -> bundle
    | None ->
        match box value with
        | :? string as text -> [ ("text/plain", Text text) ]
        | other -> [ ("text/plain", Text(Sink.format other typeof<'a>)) ]

/// Shows a value in all the forms that its type has: sequences of records or tuples, maps and data tables as tables, sequences of
/// numbers as a line, bytes of a picture as the picture, charts drawn, all else as text.
let display (value: 'a) : unit = Sink.show None (bundleOf value)

/// The longest name of a display, in bytes.
let private longestName = 256

/// Shows a value under a name: what was shown under it before is replaced.
let displayAs (name: string) (value: 'a) : unit =
    if String.IsNullOrEmpty name || Seq.exists Char.IsControl name || Text.Encoding.UTF8.GetByteCount name > longestName then
        invalidArg "name" (sprintf "it must have 1 to %d bytes, and no control characters" longestName)
    Sink.show (Some name) (bundleOf value)

/// HTML. It is shown apart from the page around it.
let html (markup: string) : Rich = Rich [ ("text/html", Text markup) ]

/// A drawing in SVG.
let svg (markup: string) : Rich = Rich [ ("image/svg+xml", Text markup) ]

/// Text in Markdown.
let markdown (text: string) : Rich = Rich [ "text/plain", Text text; "text/markdown", Text text ]

/// The bytes of a picture: PNG, JPEG, GIF, WebP or SVG.
let image (bytes: byte[]) : Rich =
    match Forms.ofImage bytes with
    | Some bundle -> Rich bundle
    | None -> invalidArg "bytes" "they are no PNG, JPEG, GIF, WebP or SVG"

/// Asks for a password, or another secret, whoever is attached to the session. It is shown to nobody and kept nowhere: what the code that
/// asks for it prints or gives is kept without it, and a session that is rebuilt does not have it.
let password (prompt: string) : string =
    if String.IsNullOrWhiteSpace prompt then invalidArg "prompt" "it must say what is asked for"
    match Sink.askSecret prompt with
    | Some secret -> secret
    | None -> raise (IO.EndOfStreamException "nobody answered with a secret")

let private isMime (kind: string) =
    match kind.Split '/' with
    | [| first; second |] -> [ first; second ] |> List.forall (fun part -> part <> "" && part |> Seq.forall (fun c -> c > ' ' && c < '\127'))
    | _ -> false

/// Anything that is written as text, under its MIME type, such as `mime "application/geo+json" map`.
let mime (kind: string) (value: string) : Rich =
    if not (isMime kind) then invalidArg "kind" "it must be a MIME type, such as `text/html` or `application/geo+json`"
    if kind = "application/json" || kind.EndsWith("+json", StringComparison.Ordinal) then
        let json = try Text.Json.JsonDocument.Parse value with e -> invalidArg "value" ("it must be JSON: " + e.Message)
        json.Dispose()
        Rich [ (kind, Json value) ]
    else Rich [ (kind, Text value) ]

let private chartOf (mark: Mark) (xs: seq<'x>) (ys: seq<'y>) : Chart =
    let isThere (items: obj) = items :? Array || items.GetType().IsGenericType && items.GetType().GetGenericTypeDefinition() = typedefof<list<_>>
    if not (isThere (box xs) && isThere (box ys)) then Sink.noteCode ()
    let points = Seq.zip xs ys |> Seq.truncate (bounds ()).Points |> Seq.map (fun (x, y) -> box x, Cells.toFloat (box y))
    { Mark = mark; Title = ""; X = ""; Y = ""; Points = List.ofSeq points }

/// A line through points.
let line (xs: seq<'x>) (ys: seq<'y>) : Chart = chartOf Line xs ys

/// A bar for each name.
let bar (xs: seq<'x>) (ys: seq<'y>) : Chart = chartOf Bar xs ys

/// Points.
let scatter (xs: seq<'x>) (ys: seq<'y>) : Chart = chartOf Scatter xs ys

/// The tests of xUnit, NUnit, MSTest and Expecto that the session's code defined, and those of the assemblies it refers to.
[<AbstractClass; Sealed>]
type Tests private () =
    /// Runs them one after the other and shows what comes of them. A pattern is a part of a name, or with `*` the whole of it; a category
    /// is named whole, a trait as `name=value`. A test has 60 seconds unless it is said otherwise, or its author said less. Those of
    /// assemblies that are as an earlier run said, `name=fingerprint;name=fingerprint`, are not run. While the run goes on, results are shown
    /// together that come within `progressMs` (100 unless it is said otherwise); with 0 all of them are shown in the end.
    ///
    /// With `part` only those run that reach what has changed since the code was `since`, as an earlier run said (`"reached"`), or only the
    /// others (`"rest"`). `policies` say of categories when their tests run, `category=save;category=demand;category=MILLISECONDS`; a category
    /// without one runs always. Where `code` is given, the run ends as soon as the session's code is another; an empty one is that of now.
    static member run
        (
            ?pattern: string,
            ?category: string,
            ?timeoutMs: int,
            ?changedSince: string,
            ?progressMs: int,
            ?part: string,
            ?since: string,
            ?code: string,
            ?policies: string
        ) : unit =
        let limit = defaultArg timeoutMs 60000
        if limit <= 0 then invalidArg "timeoutMs" "a test needs a time of one millisecond at least"
        let interval =
            match progressMs with
            | None -> TestsProgress.usualInterval
            | Some 0 -> Limited.forever
            | Some milliseconds when milliseconds > 0 -> TimeSpan.FromMilliseconds(float milliseconds)
            | Some _ -> invalidArg "progressMs" "it must be 0 or more"
        let filter: TestsModel.Filter = { Pattern = pattern; Category = category }
        let known =
            (defaultArg changedSince "").Split ';'
            |> Array.choose (fun part -> match part.LastIndexOf '=' with -1 -> None | at -> Some(part.Substring(0, at), part.Substring(at + 1)))
            |> Map.ofArray
        let name = "tests-" + Guid.NewGuid().ToString "N"
        let live = TestsProgress.LiveResults(interval, Sink.show (Some name))
        let choice: TestsChosen.Choice =
            let changes = TestsChosen.code.Since(defaultArg since "")
            let unknown (isReached: bool) : TestsChosen.Changes = { Names = []; Reaching = List.map (fun _ -> isReached) }
            { Part =
                (match part, changes with
                 | None, _ -> TestsChosen.All
                 // What is not known to have changed may all have.
                 | Some "reached", None -> TestsChosen.Reached(unknown true)
                 | Some "rest", None -> TestsChosen.Rest(unknown true)
                 | Some "reached", Some changes -> TestsChosen.Reached changes
                 | Some "rest", Some changes -> TestsChosen.Rest changes
                 | Some other, _ -> invalidArg "part" ("it must be `reached` or `rest`, not `" + other + "`"))
              Policies = TestsChosen.policiesOf (defaultArg policies "")
              For = (match code with Some "" -> Some(TestsChosen.code.Mark()) | given -> given) }
        let run = TestsRunning.run live choice filter known (TimeSpan.FromMilliseconds(float limit))
        live.End(TestsReport.summary run)
        // The report has a name only where it replaces what was shown while the run went on.
        Sink.show (if live.IsShown then Some name else None) (TestsReport.bundle run)

    /// The tests that reach a declaration of the session's project, by the calls that its code has: a function, value or member, as `Module.name`.
    /// Nothing of the session's own code runs for it, but what gives tests their arguments.
    static member reaching(name: string) : string list =
        let cases = (TestsFinding.find Map.empty).Engines |> List.collect (fun found -> found.Engine.Find())
        match TestsChosen.code.Reaching name with
        | None -> invalidArg "name" ("the session's project has no code of `" + name + "`: it is inline, or of something else")
        | Some reaching ->
            List.zip cases (reaching (cases |> List.map (fun case -> case.Roots)))
            |> List.filter snd
            |> List.map (fun (case, _) -> case.Name)

    /// Sets when tests of a category run in `mainstay test --watch`: with `"save"` whenever something is saved, with `"demand"` only where
    /// somebody asks for them, with a number of milliseconds as long as all such tests of a run have not taken longer.
    static member policy(category: string, policy: string) : unit =
        match TestsChosen.policyOf policy with
        | Some known -> TestsChosen.setPolicy category known
        | None -> invalidArg "policy" "it must be `save`, `demand` or a number of milliseconds"

/// The application of the session's project, such as a web application. It runs in the session, on a thread of its own: code shares its state,
/// and what is saved runs in it.
[<AbstractClass; Sealed>]
type App private () =
    /// Starts the project's program with these arguments, unless it runs already, and says where it listens.
    static member run([<ParamArray>] arguments: string[]) : unit = Console.Out.WriteLine(AppRunning.run None (List.ofArray arguments))

    /// The same from another function, which takes the arguments or nothing; it is given by its full name.
    static member runFrom(entry: string, [<ParamArray>] arguments: string[]) : unit =
        Console.Out.WriteLine(AppRunning.run (Some entry) (List.ofArray arguments))

    /// Stops it in order. It has so long as the settings say, unless it is said otherwise.
    static member stop(?timeoutMs: int) : unit =
        if defaultArg timeoutMs 1 <= 0 then invalidArg "timeoutMs" "an application needs a time of one millisecond at least"
        Console.Out.WriteLine(AppRunning.stop (timeoutMs |> Option.map (fun limit -> TimeSpan.FromMilliseconds(float limit))))
