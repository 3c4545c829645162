/// Tests of xUnit: a class is made anew for each, what they share is given to its constructor.
module internal MainstayDisplay.TestsXunit

open System
open System.Collections.Generic
open System.Reflection
open System.Threading
open System.Threading.Tasks
open MainstayDisplay.EngineCalls
open MainstayDisplay.TestsModel
open MainstayDisplay.TestsReflection

let private fact = [ "Xunit.FactAttribute" ]
let private trait' = [ "Xunit.TraitAttribute" ]
let private data = [ "Xunit.Sdk.DataAttribute"; "Xunit.v3.DataAttribute"; "Xunit.InlineDataAttribute"; "Xunit.MemberDataAttribute"; "Xunit.ClassDataAttribute" ]

/// What a test writes with the helper it was given is printed.
let private helper (face: Type) : obj =
    implementing face (fun m arguments ->
        let text =
            match arguments with
            | [| text |] -> string text
            | [| format; (:? (obj[]) as values) |] -> String.Format(string format, values)
            | _ -> ""
        match m.Name with
        | "WriteLine" -> Console.WriteLine text
        | "Write" -> Console.Write text
        | _ -> ()
        if m.ReturnType = typeof<string> then box "" else null)

let private isHelper (kind: Type) = kind.IsInterface && (kind.FullName = "Xunit.Abstractions.ITestOutputHelper" || kind.FullName = "Xunit.ITestOutputHelper")

let private lifetime (name: string) (value: obj) =
    match interfacesOf "Xunit.IAsyncLifetime" (value.GetType()) with
    | face :: _ ->
        let all = face :: List.ofSeq (face.GetInterfaces())
        match all |> List.tryPick (fun one -> Option.ofObj (one.GetMethod name)) with
        | Some m -> m.Invoke(value, [||]) |> settled CancellationToken.None |> ignore
        | None -> ()
    | [] -> ()

let private ended (value: obj) : unit =
    let isAsync = not (List.isEmpty (interfacesOf "Xunit.IAsyncLifetime" (value.GetType())))
    let plain () =
        match value with
        | :? IDisposable as disposable when isAsync -> disposable.Dispose()
        | _ -> if not isAsync then dispose value
    all [ (fun () -> lifetime "DisposeAsync" value); plain ]

/// What classes share: each made when the first of them needs it.
type private Fixtures(kinds: Type list) =
    let made = kinds |> List.map (fun kind -> kind, Once(fun () -> let value = construct kind [] in lifetime "InitializeAsync" value; value))

    member _.TryFind(kind: Type) = made |> List.tryFind (fun (known, _) -> kind.IsAssignableFrom known) |> Option.map (fun (_, once) -> once.Value)
    member _.Open() = made |> List.iter (fun (_, once) -> once.Value |> ignore)
    member _.Close() = made |> List.rev |> List.choose (fun (_, once) -> once.Made) |> List.map (fun value () -> ended value) |> all

let private fixtureKinds (face: string) (kind: Type) = interfacesOf face kind |> List.map (fun face -> face.GetGenericArguments().[0])

let private made (fixtures: Fixtures list) (kind: Type) : obj =
    let argument (parameter: ParameterInfo) =
        if isHelper parameter.ParameterType then helper parameter.ParameterType
        else
            match fixtures |> List.tryPick (fun some -> some.TryFind parameter.ParameterType) with
            | Some value -> value
            | None -> failwithf "its class takes a %s, which is no fixture of it" parameter.ParameterType.Name
    match kind.GetConstructors() with
    | [| one |] -> construct kind (one.GetParameters() |> Seq.map argument |> List.ofSeq)
    | some -> failwithf "its class has %d public constructors, and xUnit wants one" some.Length

let private categoriesOf (attributes: CustomAttributeData list) =
    ofKind trait' attributes
    |> List.map (fun one ->
        match argumentsOf one with
        | [ name; value ] when textOf name = "Category" -> textOf value
        | [ name; value ] -> textOf name + "=" + textOf value
        | _ -> "")

let private rowOf (row: obj) : obj list =
    match (if isNull row then [] else interfacesOf "Xunit.ITheoryDataRow" (row.GetType())) with
    | face :: _ -> valuesOfRow (face.GetMethod("GetData").Invoke(row, [||]))
    | [] -> valuesOfRow row

/// The rows that one attribute gives.
let private rowsOfData (holder: Holder) (m: MethodInfo) (attribute: CustomAttributeData) : obj list list =
    let kind = attribute.AttributeType
    if isOf "Xunit.InlineDataAttribute" kind then [ argumentsOf attribute ]
    elif isOf "Xunit.MemberDataAttribute" kind then
        match argumentsOf attribute with
        | name :: arguments ->
            let elsewhere = propertyOf "MemberType" attribute |> Option.bind (function :? Type as kind -> Some kind | _ -> None)
            sourceNamed holder elsewhere (textOf name) arguments |> settled CancellationToken.None |> rowsOf |> List.map rowOf
        | [] -> []
    elif isOf "Xunit.ClassDataAttribute" kind then
        match argumentsOf attribute with
        | (:? Type as source) :: _ -> construct source [] |> rowsOf |> List.map rowOf
        | _ -> []
    else
        match kind.GetMethod("GetData", [| typeof<MethodInfo> |]) with
        | null -> failwithf "what the attribute %s gives is not known here" kind.FullName
        | getData -> getData.Invoke(TestsReflection.made attribute, [| box m |]) |> rowsOf |> List.map rowOf

let private isInline (attribute: CustomAttributeData) = isOf "Xunit.InlineDataAttribute" attribute.AttributeType

let private isOwn (attribute: Type) = attribute.FullName = "Xunit.FactAttribute" || isOf "Xunit.TheoryAttribute" attribute

/// Whether what it gives is for whoever knows its attribute: a property to be checked, for instance.
let private givesValue (m: MethodInfo) =
    let isAsync = m.ReturnType.IsGenericType && m.ReturnType.GetGenericTypeDefinition() = typedefof<Async<_>>
    not (m.ReturnType = typeof<Void> || m.ReturnType = typeof<ValueTask> || typeof<Task>.IsAssignableFrom m.ReturnType || isAsync)

let private declaredOf (fixtures: Fixtures list) (holder: Holder) (m: MethodInfo) : Declared option =
    let attributes = attributesOf m
    tryKind fact attributes
    |> Option.map (fun fact ->
        let run (arguments: obj list) (token: CancellationToken) =
            for some in fixtures do some.Open()
            match holder.Kind with
            | Some kind when not m.IsStatic ->
                let instance = made fixtures kind
                let work () =
                    lifetime "InitializeAsync" instance
                    call token instance m arguments |> ignore
                work |> thenAlways (fun () -> ended instance)
            | Some _
            | None -> call token null m arguments |> ignore
        let declared: Declared =
            { Name = nameOf holder m
              Framework = "xUnit"
              Assembly = holder.Assembly
              Categories = categoriesOf (attributes @ holderAttributes holder)
              Skipped = propertyText "Skip" fact
              Cases = None
              CaseName = None
              Expand = fun () -> [] }
        let limit = propertyOf "Timeout" fact |> Option.bind milliseconds
        let sources = ofKind data attributes
        let kind = fact.AttributeType
        if not (List.isEmpty sources) then
            let name = defaultArg (propertyText "DisplayName" fact) declared.Name
            let caseOf (source: CustomAttributeData) (arguments: obj list) : Case =
                { Name = named name arguments
                  Categories = declared.Categories
                  Skipped = declared.Skipped |> Option.orElse (propertyText "Skip" source)
                  TimeLimit = limit
                  Run = run arguments }
            let areInline = List.forall isInline sources
            { declared with
                Cases = (if areInline then Some sources.Length else None)
                CaseName = (if areInline then None else Some name)
                Expand = fun () -> sources |> List.collect (fun source -> rowsOfData holder m source |> List.map (caseOf source)) }
        elif m.GetParameters().Length > 0 || not (isOwn kind) && givesValue m then
            let unknown (_: CancellationToken) =
                if isOwn kind then failwith "it has parameters, and nothing gives it arguments"
                else raise (NotRun("what the attribute " + kind.FullName + " makes of it is not known here"))
            alone declared limit unknown
        else alone { declared with Name = defaultArg (propertyText "DisplayName" fact) declared.Name } limit (run []))

/// The tests of the holders of one assembly.
let suites (holders: Holder list) : Suite list =
    let collections = Dictionary<string, Fixtures>()
    let nameOfCollection (attribute: CustomAttributeData) =
        match argumentsOf attribute with
        | (:? Type as kind) :: _ -> Some kind.FullName
        | name :: _ -> Some(textOf name)
        | [] -> None
    for holder in holders do
        match holder.Kind, tryKind [ "Xunit.CollectionDefinitionAttribute" ] (holderAttributes holder) with
        | Some kind, Some attribute ->
            let kinds = fixtureKinds "Xunit.ICollectionFixture`1" kind
            collections.[defaultArg (nameOfCollection attribute) kind.FullName] <- Fixtures kinds
        | _ -> ()
    let suiteOf (holder: Holder) =
        let shared =
            tryKind [ "Xunit.CollectionAttribute" ] (holderAttributes holder)
            |> Option.bind nameOfCollection
            |> Option.bind (fun name -> match collections.TryGetValue name with | true, some -> Some some | _ -> None)
        let own = Fixtures(match holder.Kind with Some kind -> fixtureKinds "Xunit.IClassFixture`1" kind | None -> [])
        { Name = holder.Name; Declared = holder.Methods |> List.choose (declaredOf (own :: Option.toList shared) holder); Close = own.Close }
    let closing = { Name = "collections"; Declared = []; Close = fun () -> collections.Values |> Seq.map (fun some () -> some.Close()) |> List.ofSeq |> all }
    match holders |> List.map suiteOf |> List.filter (fun suite -> not (List.isEmpty suite.Declared)) with
    | [] -> []
    | some -> some @ [ closing ]
