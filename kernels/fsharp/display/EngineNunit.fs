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

let engine (load: string -> Assembly) (assembly: Assembly) : Engine =
    let framework = load "nunit.framework"
    let own (name: string) = typeIn framework ("NUnit.Framework." + name)

    // Filters name tests by ids that are of one loading.
    let loaded =
        lazy (
            let runner = make (own "Api.NUnitTestAssemblyRunner") [ make (own "Api.DefaultTestAssemblyBuilder") [] ]
            let settings = Dictionary<string, obj>(dict [ ("NumberOfTestWorkers", box 0) ])
            runner, call runner "Load" [ assembly; settings ])

    let find () =
        leaves (snd loaded.Value)
        |> List.map (fun test ->
            { Name = text test "FullName"
              Categories = categoriesOf test
              Skipped = reasonOf test
              IsExplicit = isExplicit test
              Key = box (text test "Id") })

    let filterOf (meant: EngineCase list option) =
        match meant with
        | None -> (own "Internal.TestFilter").GetField("Empty", BindingFlags.Public ||| BindingFlags.Static).GetValue null
        | Some cases ->
            let ids = cases |> List.map (fun case -> "<id>" + SecurityElement.Escape(string case.Key) + "</id>")
            callStatic (own "Internal.TestFilter") "FromXml" [ "<filter><or>" + String.Join("", ids) + "</or></filter>" ]

    let run (meant: EngineCase list option) (tell: Progress -> unit) (token: CancellationToken) =
        let runner = fst loaded.Value
        let finished (result: obj) =
            let test = get result "Test"
            let ended (name: string) =
                let took = match get result "Duration" with :? float as seconds -> TimeSpan.FromSeconds seconds | _ -> TimeSpan.Zero
                tell (Ended(name, categoriesOf test, outcomeOf result, took, text result "Output"))
            if not (isSuite test) then ended (text test "FullName")
            else
                let state = get result "ResultState"
                match text state "Status", text state "Site" with
                | "Failed", ("SetUp" | "TearDown" as site) -> ended (text test "FullName" + (if site = "SetUp" then " (beginning)" else " (ending)"))
                | _ -> ()
        let listener =
            implementing (own "Interfaces.ITestListener") (fun m arguments ->
                match m.Name with
                | "TestStarted" -> if not (isSuite arguments.[0]) then tell (Began(text arguments.[0] "FullName"))
                | "TestFinished" -> finished arguments.[0]
                | _ -> ()
                null)
        let stop () = call runner "StopRun" (if framework.GetName().Version.Major < 5 then [ false ] else []) |> ignore
        use _stopping = token.Register(fun () -> try stop () with _ -> ())
        call runner "Run" [ listener; filterOf meant ] |> ignore

    { Framework = "NUnit"; Assembly = assembly.GetName().Name; Find = find; Run = run }
