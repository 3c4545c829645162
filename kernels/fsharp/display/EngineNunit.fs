/// NUnit 3 and later, by the programming interface that its own runners use.
module internal MainstayDisplay.EngineNunit

open System
open System.Collections.Generic
open System.Reflection
open System.Security
open System.Threading
open MainstayDisplay.EngineCalls
open MainstayDisplay.TestsModel

let private isSuite (test: obj) = match get test "IsSuite" with :? bool as isSuite -> isSuite | _ -> false

let rec private leaves (test: obj) : obj list = if isSuite test then items test "Tests" |> List.collect leaves else [ test ]

let rec private categoriesOf (test: obj) : string list =
    if isNull test then []
    else
        let own = match get test "Properties" with null -> [] | properties -> call properties "get_Item" [ "Category" ] :?> System.Collections.IEnumerable |> Seq.cast<obj> |> Seq.map string |> List.ofSeq
        List.distinct (own @ categoriesOf (get test "Parent"))

let rec private isExplicit (test: obj) : bool = not (isNull test) && (text test "RunState" = "Explicit" || isExplicit (get test "Parent"))

let private reasonOf (test: obj) : string option =
    match text test "RunState" with
    | "Ignored"
    | "Skipped" ->
        let reasons = match get test "Properties" with null -> [] | properties -> call properties "get_Item" [ "_SKIPREASON" ] :?> System.Collections.IEnumerable |> Seq.cast<obj> |> List.ofSeq
        Some(match reasons with first :: _ -> string first | [] -> "ignored")
    | _ -> None

let private outcomeOf (result: obj) : Outcome =
    let state = get result "ResultState"
    let message = text result "Message"
    match text state "Status" with
    | "Passed" -> Passed
    | "Failed" -> Failed(TestsFailure.ofMessage "NUnit.Framework.AssertionException" message (text result "StackTrace"))
    | status ->
        let word = match text state "Label" with "" -> status | label -> label
        Skipped(if message = "" then word.ToLowerInvariant() else message)

let engine (load: string -> Assembly) (source: Source) : Engine =
    let framework = load "nunit.framework"
    let own (name: string) = typeIn framework ("NUnit.Framework." + name)

    // Filters name tests by ids that are of one loading.
    let loaded =
        lazy (
            let runner = make (own "Api.NUnitTestAssemblyRunner") [ make (own "Api.DefaultTestAssemblyBuilder") [] ]
            let settings = Dictionary<string, obj>(dict [ ("NumberOfTestWorkers", box 0) ])
            runner, call runner "Load" [ source.Assembly; settings ])

    let isThere (test: obj) = source.IsThere (text test "ClassName") (text test "MethodName")

    let find () =
        leaves (snd loaded.Value)
        |> List.filter isThere
        |> List.map (fun test ->
            { Name = source.NameOf(text test "FullName")
              Categories = categoriesOf test
              Skipped = reasonOf test
              IsExplicit = isExplicit test
              Roots = methodRoot (text test "ClassName") (text test "MethodName")
              Key = box (text test "Id") })

    let filterOf (meant: EngineCase list option) =
        let anyOf (ids: string list) = "<or>" + (ids |> List.map (fun id -> "<id>" + SecurityElement.Escape id + "</id>") |> String.concat "") + "</or>"
        let filter (xml: string) = callStatic (own "Internal.TestFilter") "FromXml" [ "<filter>" + xml + "</filter>" ]
        match meant with
        | Some cases -> filter (anyOf (cases |> List.map (fun case -> string case.Key)))
        | None ->
            match leaves (snd loaded.Value) |> List.filter (isThere >> not) with
            | [] -> (own "Internal.TestFilter").GetField("Empty", BindingFlags.Public ||| BindingFlags.Static).GetValue null
            | hidden -> filter ("<not>" + anyOf (hidden |> List.map (fun test -> text test "Id")) + "</not>")

    let run (meant: EngineCase list option) (tell: Progress -> unit) (token: CancellationToken) =
        let runner = fst loaded.Value
        let nameOf (test: obj) = source.NameOf(text test "FullName")
        let finished (result: obj) =
            let test = get result "Test"
            let ended (name: string) =
                let took = match get result "Duration" with :? float as seconds -> TimeSpan.FromSeconds seconds | _ -> TimeSpan.Zero
                tell (Ended(name, categoriesOf test, outcomeOf result, took, text result "Output"))
            if not (isSuite test) then ended (nameOf test)
            else
                let state = get result "ResultState"
                match text state "Status", text state "Site" with
                | "Failed", ("SetUp" | "TearDown" as site) -> ended (nameOf test + (if site = "SetUp" then " (beginning)" else " (ending)"))
                | _ -> ()
        let listener =
            implementing (own "Interfaces.ITestListener") (fun m arguments ->
                match m.Name with
                | "TestStarted" -> if not (isSuite arguments.[0]) then tell (Began(nameOf arguments.[0]))
                | "TestFinished" -> finished arguments.[0]
                | _ -> ()
                null)
        let stop () = call runner "StopRun" (if framework.GetName().Version.Major < 5 then [ false ] else []) |> ignore
        use _stopping = token.Register(fun () -> try stop () with _ -> ())
        call runner "Run" [ listener; filterOf meant ] |> ignore

    { Framework = "NUnit"; Source = source; Find = find; Run = run }
