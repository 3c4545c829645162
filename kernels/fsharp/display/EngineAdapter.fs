/// Whatever framework has an adapter for the test platform of Visual Studio in the build's folder: MSTest, and any other.
module internal MainstayDisplay.EngineAdapter

open System
open System.Collections.Generic
open System.IO
open System.Reflection
open System.Threading
open MainstayDisplay.EngineCalls
open MainstayDisplay.TestsModel

let private settingsXml =
    "<RunSettings><RunConfiguration><DisableAppDomain>true</DisableAppDomain><DisableParallelization>true</DisableParallelization>"
    + "<CollectSourceInformation>false</CollectSourceInformation></RunConfiguration></RunSettings>"

let private categoriesOf (case: obj) : string list =
    let traits = items case "Traits" |> List.map (fun one -> text one "Name", text one "Value")
    let categories =
        items case "Properties"
        |> List.filter (fun property -> (text property "Id").EndsWith("TestCategory", StringComparison.Ordinal))
        |> List.collect (fun property ->
            match call case "GetPropertyValue" [ property ] with
            | :? (string[]) as names -> List.ofArray names
            | _ -> [])
    let ofTrait (name: string, value: string) = if name = "TestCategory" || name = "Category" then value elif value = "" then name else name + "=" + value
    List.distinct (categories @ List.map ofTrait traits)

/// A test's name with the class it stands in. Where what is displayed says more than the method's name, as that of a row does, it is taken.
let private nameOf (case: obj) (shown: string) : string =
    let full = text case "FullyQualifiedName"
    let method' = full.Substring(full.LastIndexOf '.' + 1)
    if shown = "" || shown = method' || shown = full || full.EndsWith(shown, StringComparison.Ordinal) then full
    elif shown.StartsWith(full, StringComparison.Ordinal) then shown
    elif shown.StartsWith(method', StringComparison.Ordinal) then full.Substring(0, full.Length - method'.Length) + shown
    else full + ": " + shown

let private rootsOf (case: obj) : string list =
    let full = (text case "FullyQualifiedName").Split('(').[0]
    match full.LastIndexOf '.' with
    | -1 -> []
    | at -> methodRoot (full.Substring(0, at)) (full.Substring(at + 1))

let private outcomeOf (assertion: string) (result: obj) : Outcome =
    let message = text result "ErrorMessage"
    match text result "Outcome" with
    | "Passed" -> Passed
    | "Failed" -> Failed(TestsFailure.ofMessage assertion message (text result "ErrorStackTrace"))
    | _ -> Skipped(if message = "" then "not run" else message)

/// `adapter` is the file of the adapter.
let engine (framework: string) (assertion: string) (adapter: string) (load: string -> Assembly) (source: Source) : Engine =
    let platform = load "Microsoft.VisualStudio.TestPlatform.ObjectModel"
    let common = platform.GetExportedTypes()
    let face (name: string) = common |> Array.find (fun kind -> kind.Name = name)
    let types =
        lazy (
            let loaded = load (Path.GetFileNameWithoutExtension adapter)
            try loaded.GetTypes() with :? ReflectionTypeLoadException as e -> e.Types |> Array.filter (isNull >> not))
    let instance (face: Type) =
        types.Value
        |> Array.find (fun kind -> kind.IsClass && not kind.IsAbstract && face.IsAssignableFrom kind && not (isNull (kind.GetConstructor Type.EmptyTypes)))
        |> Activator.CreateInstance
    let settings = implementing (face "IRunSettings") (fun m _ -> if m.Name = "get_SettingsXml" then box settingsXml else null)
    let complaints = List<string>()
    let note (arguments: obj[]) = if string arguments.[0] = "Error" then lock complaints (fun () -> complaints.Add(string arguments.[1]))

    let find () =
        let found = List<EngineCase>()
        let take (case: obj) =
            found.Add { Name = nameOf case (text case "DisplayName"); Categories = categoriesOf case; Skipped = None; IsExplicit = false; Roots = rootsOf case; Key = case }
        let logger = implementing (face "IMessageLogger") (fun _ arguments -> note arguments; null)
        let sink = implementing (face "ITestCaseDiscoverySink") (fun _ arguments -> take arguments.[0]; null)
        let context = having (face "IDiscoveryContext") [ ("RunSettings", settings) ]
        call (instance (face "ITestDiscoverer")) "DiscoverTests" [ [| source.Assembly.Location |]; context; logger; sink ] |> ignore
        if found.Count = 0 && complaints.Count > 0 then failwith (String.Join("\n", complaints))
        List.ofSeq found

    let found = lazy (find ())

    let run (meant: EngineCase list option) (tell: Progress -> unit) (token: CancellationToken) =
        let cases = meant |> Option.defaultWith found.Force |> List.map (fun case -> case.Key)
        let executor = instance (face "ITestExecutor")
        let folder = Path.GetTempPath()
        let context =
            [ "RunSettings", settings; "TestRunDirectory", box folder; "SolutionDirectory", box folder; "KeepAlive", box false; "InIsolation", box false ]
            |> having (face "IRunContext")
        let ended (result: obj) =
            let case = get result "TestCase"
            let name = nameOf case (text result "DisplayName")
            let took = match get result "Duration" with :? TimeSpan as took -> took | _ -> TimeSpan.Zero
            let output = items result "Messages" |> List.map (fun message -> text message "Text") |> String.concat ""
            tell (Ended(name, categoriesOf case, outcomeOf assertion result, took, output))
        let handle =
            implementing (face "IFrameworkHandle") (fun m arguments ->
                match m.Name with
                | "RecordStart" -> tell (Began(nameOf arguments.[0] (text arguments.[0] "DisplayName")))
                | "RecordResult" -> ended arguments.[0]
                | "SendMessage" -> note arguments
                | _ -> ()
                null)
        use _stopping = token.Register(fun () -> try call executor "Cancel" [] |> ignore with _ -> ())
        call executor "RunTests" [ arrayOf (face "TestCase") cases; context; handle ] |> ignore

    { Framework = framework; Source = source; Find = found.Force; Run = run }
