/// Tests of MSTest: a class is made anew for each test.
module internal MainstayDisplay.TestsMstest

open System
open System.Reflection
open System.Threading
open MainstayDisplay.TestsModel
open MainstayDisplay.TestsReflection

let private named' (name: string) = "Microsoft.VisualStudio.TestTools.UnitTesting." + name + "Attribute"

let private methodsWith (name: string) (holder: Holder) : MethodInfo list =
    holder.Methods |> List.filter (fun m -> tryKind [ named' name ] (attributesOf m) |> Option.isSome)

let private categoriesOf (attributes: CustomAttributeData list) =
    let properties =
        ofKind [ named' "TestProperty" ] attributes
        |> List.map (fun one -> argumentsOf one |> List.map textOf |> String.concat "=")
    (ofKind [ named' "TestCategory" ] attributes |> List.choose firstText) @ properties

let private skipped (attributes: CustomAttributeData list) : string option =
    tryKind [ named' "Ignore" ] attributes |> Option.map (firstText >> because "ignored")

/// There is no object that tells a test of its run: it is given null.
let private withContext (m: MethodInfo) : obj list = m.GetParameters() |> Seq.map (fun _ -> null) |> List.ofSeq

let private raising (attributes: CustomAttributeData list) (work: unit -> unit) =
    match tryKind [ named' "ExpectedException" ] attributes |> Option.map argumentsOf with
    | Some ((:? Type as kind) :: _) ->
        match (try work (); None with e -> Some e) with
        | Some e when e.GetType() = kind -> ()
        | Some e -> Runtime.ExceptionServices.ExceptionDispatchInfo.Capture(e).Throw()
        | None -> failwithf "it raised nothing, and was expected to raise a %s" kind.FullName
    | Some _
    | None -> work ()

let private rowsOfSource (holder: Holder) (attribute: CustomAttributeData) : obj list list =
    let arguments = argumentsOf attribute
    let elsewhere = arguments |> List.tryPick (function :? Type as kind -> Some kind | _ -> None)
    match arguments with
    | name :: _ -> sourceNamed holder elsewhere (textOf name) [] |> rowsOf |> List.map valuesOfRow
    | [] -> []

let private suiteOf (holder: Holder) : Suite =
    let ofHolder = holderAttributes holder
    let opening = Once(fun () -> for m in methodsWith "ClassInitialize" holder do call CancellationToken.None null m (withContext m) |> ignore)
    let close () =
        if opening.Made.IsSome then methodsWith "ClassCleanup" holder |> List.map (fun m () -> call CancellationToken.None null m [] |> ignore) |> all
    let declaredOf (m: MethodInfo) : Declared option =
        let attributes = attributesOf m
        tryKind [ named' "TestMethod" ] attributes
        |> Option.map (fun test ->
            let limit = tryKind [ named' "Timeout" ] attributes |> Option.bind (fun one -> List.tryHead (argumentsOf one)) |> Option.bind milliseconds
            let run (arguments: obj list) (token: CancellationToken) =
                opening.Value
                let instance = match holder.Kind with Some kind when not m.IsStatic -> construct kind [] | Some _ | None -> null
                let step name = methodsWith name holder |> List.map (fun m () -> call CancellationToken.None instance m [] |> ignore)
                let work () =
                    for prepare in step "TestInitialize" do prepare ()
                    raising attributes (fun () -> call token instance m arguments |> ignore)
                let after () = all (step "TestCleanup" @ [ (fun () -> if not (isNull instance) then dispose instance) ])
                work |> thenAlways after
            let declared: Declared =
                { Name = nameOf holder m
                  Framework = "MSTest"
                  Assembly = holder.Assembly
                  Categories = categoriesOf (attributes @ ofHolder)
                  Skipped = skipped (attributes @ ofHolder)
                  Cases = None
                  CaseName = None
                  Expand = fun () -> [] }
            let caseOf (name: string option) (reason: string option) (arguments: obj list) : Case =
                { Name = (match name with Some name -> declared.Name + ": " + name | None -> named declared.Name arguments)
                  Categories = declared.Categories
                  Skipped = declared.Skipped |> Option.orElse reason
                  TimeLimit = limit
                  Run = run arguments }
            let ofRow (row: CustomAttributeData) = caseOf (propertyText "DisplayName" row) (propertyText "IgnoreMessage" row) (argumentsOf row)
            match ofKind [ named' "DataRow" ] attributes, ofKind [ named' "DynamicData" ] attributes with
            | [], [] -> alone { declared with Name = (match propertyText "DisplayName" test with Some name -> declared.Name + ": " + name | None -> declared.Name) } limit (run [])
            | rows, [] -> { declared with Cases = Some rows.Length; Expand = fun () -> List.map ofRow rows }
            | rows, sources -> { declared with CaseName = (if List.isEmpty rows then Some declared.Name else None); Expand = fun () -> List.map ofRow rows @ (sources |> List.collect (rowsOfSource holder) |> List.map (caseOf None None)) })
    { Name = holder.Name; Declared = holder.Methods |> List.choose declaredOf; Close = close }

/// The tests of the holders of one assembly. A class must be marked; what stands in a module of the session need not.
let suites (holders: Holder list) : Suite list =
    holders
    |> List.filter (fun holder ->
        match holder.Kind with
        | Some kind when holder.Assembly.IsSome || not (isStaticKind kind) -> tryKind [ named' "TestClass" ] (attributesOf kind) |> Option.isSome
        | Some _
        | None -> true)
    |> List.map suiteOf
    |> List.filter (fun suite -> not (List.isEmpty suite.Declared))
