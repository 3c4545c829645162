/// Expecto, by its own evaluation, whose printers tell what happens.
module internal MainstayDisplay.EngineExpecto

open System
open System.Reflection
open System.Threading
open Microsoft.FSharp.Reflection
open MainstayDisplay.EngineCalls
open MainstayDisplay.TestsModel

let private everyMember = BindingFlags.Public ||| BindingFlags.NonPublic ||| BindingFlags.Static

/// Whether something of this type is a test of Expecto's, or several.
let isOfTests (kind: Type) : bool =
    let isTest (kind: Type) = kind.FullName = "Expecto.Test"
    isTest kind
    || (kind.IsArray && isTest (kind.GetElementType()))
    || (kind.IsGenericType && List.contains (kind.GetGenericTypeDefinition()) [ typedefof<list<_>>; typedefof<seq<_>> ] && isTest (kind.GetGenericArguments().[0]))

let private nameOf (labels: obj) = String.Join(".", labels :?> string list)

/// A function of as many arguments as its type takes, which is known by name only.
let rec private functionOf (kind: Type) (given: obj list) (work: obj list -> obj) : obj =
    FSharpValue.MakeFunction(kind, fun argument ->
        let given = given @ [ argument ]
        let result = snd (FSharpType.GetFunctionElements kind)
        if FSharpType.IsFunction result then functionOf result given work else work given)

/// A record like another one, but for some of its fields.
let private recordWith (changed: string -> Type -> obj option) (record: obj) : obj =
    let kind = record.GetType()
    let values = FSharpType.GetRecordFields kind |> Array.map (fun field -> changed field.Name field.PropertyType |> Option.defaultWith (fun () -> field.GetValue record))
    FSharpValue.MakeRecord(kind, values)

/// How many objects are looked at for where the code of a test begins.
let private rootLimit = 64

/// What a type is to a search for where the code of a test begins.
type private Part =
    { IsFunction: bool
      /// Whether objects of it are looked at for others.
      IsFollowed: bool
      Fields: FieldInfo list }

let private partOf: Type -> Part =
    foundOnce (fun kind ->
        let rec isFunction (kind: Type) = not (isNull kind) && ((kind.IsGenericType && kind.GetGenericTypeDefinition() = typedefof<FSharpFunc<_, _>>) || isFunction kind.BaseType)
        let isAsync = kind.IsGenericType && kind.GetGenericTypeDefinition() = typedefof<Async<_>>
        { IsFunction = isFunction kind
          IsFollowed = isFunction kind || isAsync || kind.Name.Contains "@" || FSharpType.IsUnion kind
          Fields =
            kind.GetFields(BindingFlags.Instance ||| BindingFlags.Public ||| BindingFlags.NonPublic)
            |> Seq.filter (fun field -> not field.FieldType.IsPrimitive && not field.FieldType.IsPointer)
            |> List.ofSeq })

/// The types of the functions that a test consists of: its own, and those that it was made of.
let private rootsOf (test: obj) : string list =
    let fieldsOf (value: obj) =
        (partOf (value.GetType())).Fields
        |> List.map (fun field -> field.GetValue value)
        |> List.filter (fun value -> not (isNull value) && (partOf (value.GetType())).IsFollowed)
    let rec from (seen: obj list) (left: obj list) =
        match left with
        | [] -> seen
        | _ when seen.Length >= rootLimit -> seen
        | one :: rest when seen |> List.exists (fun other -> obj.ReferenceEquals(one, other)) -> from seen rest
        | one :: rest -> from (one :: seen) (fieldsOf one @ rest)
    from [] (if isNull test then [] else [ test ])
    |> List.map (fun one -> one.GetType())
    |> List.filter (fun kind -> (partOf kind).IsFunction)
    |> List.map (fun kind -> if kind.IsGenericType then kind.GetGenericTypeDefinition().FullName else kind.FullName)
    |> List.distinct

/// What a failed assertion says, and the stack that Expecto writes under it.
let private failureOf (message: string) : Failure =
    let isFrame (line: string) = line.TrimStart().StartsWith("at ", StringComparison.Ordinal) && line.Contains "("
    let frames, words = message.Replace("\r\n", "\n").Split '\n' |> Array.partition isFrame
    TestsFailure.ofText "Expecto.AssertException" ((String.concat "\n" words).Trim()) (String.concat "\n" frames)

/// The engine for what `root` finds: the test that has all others in it.
let private engineOf (load: string -> Assembly) (source: Source) (find: (string -> Type) -> obj option) : Engine =
    let expecto = load "Expecto"
    let own (name: string) = typeIn expecto ("Expecto." + name)
    let evaluation = own "Impl"

    let root = lazy (find own)

    let cases () =
        let ofTest (test: obj) =
            callStatic (own "TestModule") "toTestCodeList" [ test ] :?> System.Collections.IEnumerable
            |> Seq.cast<obj>
            |> Seq.map (fun one ->
                { Name = nameOf (get one "name")
                  Categories = []
                  Skipped = (match get (get one "state") "IsPending" with :? bool as isPending when isPending -> Some "pending" | _ -> None)
                  IsExplicit = false
                  Roots = rootsOf (get one "test")
                  Key = null })
            |> List.ofSeq
        root.Value |> Option.map ofTest |> Option.defaultValue []

    let only (meant: EngineCase list) (test: obj) =
        let names = meant |> List.map (fun case -> case.Name) |> set
        let isMeant (labels: string list) = names.Contains(nameOf labels)
        let filter = callStatic (own "TestModule") "filter" [ "."; isMeant ]
        if isNull filter || own "Test" = filter.GetType().BaseType then filter else call filter "Invoke" [ test ]

    let printer (tell: Progress -> unit) =
        let ended (name: obj) (outcome: Outcome) (took: obj) =
            tell (Ended(string name, [], outcome, (match took with :? TimeSpan as took -> took | _ -> TimeSpan.Zero), ""))
            box (async.Return())
        let raised (e: exn) = Failed(TestsFailure.ofText (e.GetType().FullName) e.Message e.StackTrace)
        let silent = (own "Impl+TestPrinters").GetProperty("silent", everyMember).GetValue null
        silent |> recordWith (fun name kind ->
            match name with
            | "beforeEach" -> Some(functionOf kind [] (fun given -> tell (Began(string given.[0])); box (async.Return())))
            | "passed" -> Some(functionOf kind [] (fun given -> ended given.[0] Passed given.[1]))
            | "ignored" -> Some(functionOf kind [] (fun given -> ended given.[0] (Skipped(string given.[1])) null))
            | "failed" -> Some(functionOf kind [] (fun given -> ended given.[0] (Failed(failureOf (string given.[1]))) given.[2]))
            | "exn" -> Some(functionOf kind [] (fun given -> ended given.[0] (raised (given.[1] :?> exn)) given.[2]))
            | _ -> None)

    let run (meant: EngineCase list option) (tell: Progress -> unit) (token: CancellationToken) =
        let evaluate (test: obj) =
            let writer = own "Logging.ANSIOutputWriter"
            let level = writer.GetMethod("setColourLevel", everyMember).GetParameters().[0].ParameterType
            callStatic writer "setColourLevel" [ level.GetProperty("Colour0", everyMember).GetValue null ] |> ignore
            let configuration = (own "Impl+ExpectoConfig").GetProperty("defaultConfig", everyMember).GetValue null
            let printer = printer tell
            let configuration =
                configuration |> recordWith (fun name _ ->
                    match name with
                    | "printer" -> Some printer
                    | "runInParallel" -> Some(box false)
                    | _ -> None)
            let work = callStatic evaluation "evalTestsWithCancel" [ token; configuration; test; false ]
            let wait = typeof<Async>.GetMethod("RunSynchronously").MakeGenericMethod(work.GetType().GetGenericArguments())
            wait.Invoke(null, BindingFlags.DoNotWrapExceptions, null, [| work; null; null |], null) |> ignore
        root.Value |> Option.iter (match meant with None -> evaluate | Some meant -> only meant >> evaluate)

    { Framework = "Expecto"; Source = source; Find = cases; Run = run }

let private valueOf (found: obj) = match found with null -> None | some -> Some(get some "Value")

/// The engine for the tests of an assembly.
let engine (load: string -> Assembly) (source: Source) : Engine =
    engineOf load source (fun own -> callStatic (own "Impl") "testFromAssemblyWithFilter" [ (fun (_: Type) -> true); source.Assembly ] |> valueOf)

/// The engine for the tests that these members of the session's code are; what one of them focuses is focused among all.
let engineOfMembers (members: MemberInfo list) (load: string -> Assembly) (source: Source) : Engine =
    engineOf load source (fun own ->
        // Versions have it in different places.
        let discovery = try own "Impl+TestDiscovery" with :? TypeLoadException -> own "Impl"
        let found = members |> List.choose (fun m -> callStatic discovery "testFromMember" [ m ] |> valueOf)
        let listed = callStatic discovery "listToTestListOption" [ listOf (own "Test") found ]
        valueOf listed)
