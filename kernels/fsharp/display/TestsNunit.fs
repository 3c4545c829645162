/// Tests of NUnit: a class is made once for all of its tests, and each is set up and torn down.
module internal MainstayDisplay.TestsNunit

open System
open System.Reflection
open System.Threading
open MainstayDisplay.TestsModel
open MainstayDisplay.TestsReflection

let private named' (name: string) = "NUnit.Framework." + name + "Attribute"
let private test = [ named' "Test"; named' "TestCase"; named' "TestCaseSource"; named' "Theory" ]

let private methodsWith (names: string list) (holder: Holder) : MethodInfo list =
    holder.Methods
    |> List.filter (fun m -> tryKind (names |> List.map named') (attributesOf m) |> Option.isSome)
    // What a class comes from is set up before it.
    |> List.sortBy (fun m -> match holder.Kind with Some kind when kind.IsSubclassOf m.DeclaringType -> 0 | Some _ | None -> 1)

let private categoriesOf (attributes: CustomAttributeData list) =
    ofKind [ named' "Category" ] attributes
    |> List.map (fun one ->
        match firstText one with
        | Some name -> name
        | None -> one.AttributeType.Name.Replace("Attribute", ""))

/// Why something is not to be run.
let private skipped (attributes: CustomAttributeData list) : string option =
    match tryKind [ named' "Ignore" ] attributes, tryKind [ named' "Explicit" ] attributes with
    | Some ignored, _ -> Some(because "ignored" (firstText ignored |> Option.orElse (propertyText "Reason" ignored)))
    | None, Some only -> Some(because "explicit" (firstText only |> Option.map (fun reason -> "explicit: " + reason)))
    | None, None -> None

/// A row of arguments, and what else its source says of it.
type private Row =
    { Arguments: obj list
      Name: string option
      Expected: obj option
      Skipped: string option
      Categories: string list }

let private plainRow (arguments: obj list) = { Arguments = arguments; Name = None; Expected = None; Skipped = None; Categories = [] }

let private ofTestCase (attribute: CustomAttributeData) : Row =
    let reason = propertyText "Ignore" attribute |> Option.orElse (propertyText "IgnoreReason" attribute)
    let isIgnored = match propertyOf "Ignore" attribute, propertyOf "Ignored" attribute with (Some (:? bool as flag)), _ | _, Some (:? bool as flag) -> flag | _ -> false
    { Arguments = argumentsOf attribute
      Name = propertyText "TestName" attribute
      Expected = propertyOf "ExpectedResult" attribute |> Option.orElse (propertyOf "Result" attribute)
      Skipped = (match reason with Some _ -> reason | None when isIgnored -> Some "ignored" | None -> None)
      Categories = propertyText "Category" attribute |> Option.map (fun names -> names.Split ',' |> List.ofArray) |> Option.defaultValue [] }

/// What a source gave: an array, one value, or an object of NUnit's that holds a row.
let private ofItem (item: obj) : Row =
    if isNull item || not (isOf "NUnit.Framework.TestCaseData" (item.GetType()) || isOf "NUnit.Framework.TestCaseParameters" (item.GetType())) then
        plainRow (valuesOfRow item)
    else
        let property name = propertyOfValue name item
        let has = match property "HasExpectedResult" with Some (:? bool as has) -> has | _ -> false
        let isIgnored = match property "Ignored" with Some (:? bool as flag) -> flag | _ -> (match property "RunState" with Some state -> string state = "Ignored" | None -> false)
        let text name = property name |> Option.bind (function :? string as text -> Some text | _ -> None)
        { Arguments = (match property "Arguments" with Some (:? (obj[]) as values) -> List.ofArray values | _ -> [])
          Name = text "TestName"
          Expected = if has then Some(property "ExpectedResult" |> Option.orElse (property "Result") |> Option.toObj) else None
          Skipped = if isIgnored then Some(because "ignored" (text "IgnoreReason")) else None
          Categories = [] }

let private rowsOfSource (holder: Holder) (attribute: CustomAttributeData) : Row list =
    let rows elsewhere name = sourceNamed holder elsewhere name [] |> rowsOf |> List.map ofItem
    match argumentsOf attribute with
    | (:? Type as kind) :: (:? string as name) :: _ -> rows (Some kind) name
    | (:? Type as kind) :: _ -> construct kind [] |> rowsOf |> List.map ofItem
    | name :: _ -> rows None (textOf name)
    | [] -> []

/// All that can be made of the values that each parameter may have.
let private combined (m: MethodInfo) : obj list list option =
    let valuesOf (parameter: ParameterInfo) =
        parameter.GetCustomAttributesData()
        |> Seq.tryFind (fun one -> isOf (named' "Values") one.AttributeType)
        |> Option.map argumentsOf
    let values = m.GetParameters() |> Array.map valuesOf |> List.ofArray
    if List.isEmpty values || List.exists Option.isNone values then None
    else Some(List.foldBack (fun options rows -> options |> Option.get |> List.collect (fun value -> rows |> List.map (fun row -> value :: row))) values [ [] ])

/// What a test must raise, where its author says so.
let private wanted (attributes: CustomAttributeData list) : (exn -> bool) option =
    tryKind [ named' "ExpectedException" ] attributes
    |> Option.map (fun attribute ->
        match argumentsOf attribute with
        | (:? Type as kind) :: _ -> fun e -> e.GetType() = kind
        | (:? string as name) :: _ -> fun e -> e.GetType().FullName = name
        | _ -> fun _ -> true)

let private check (expected: obj option) (given: obj) =
    match expected with
    | Some expected when not (Object.Equals(expected, given)) ->
        let told = Cells.ofValue AtWhatIsThere
        failwithf "Expected: %s\nBut was:  %s" (told expected) (told given)
    | Some _
    | None -> ()

let private raising (wanted: (exn -> bool) option) (work: unit -> unit) =
    match wanted with
    | None -> work ()
    | Some isWanted ->
        match (try work (); None with e -> Some e) with
        | Some e when isWanted e -> ()
        | Some e -> Runtime.ExceptionServices.ExceptionDispatchInfo.Capture(e).Throw()
        | None -> failwith "it raised nothing, and was expected to"

/// The tests of a class that was made with these arguments.
let private suiteOf (holder: Holder) (given: obj list) : Suite =
    let withNone (names: string list) (instance: obj) = for m in methodsWith names holder do call CancellationToken.None instance m [] |> ignore
    let ending (names: string list) (instance: obj) = methodsWith names holder |> List.rev |> List.map (fun m () -> call CancellationToken.None instance m [] |> ignore) |> all
    let instance =
        Once(fun () ->
            let made = match holder.Kind with Some kind when not (isStaticKind kind) -> construct kind given | Some _ | None -> null
            withNone [ "OneTimeSetUp"; "TestFixtureSetUp" ] made
            made)
    let close () =
        instance.Made |> Option.iter (fun made ->
            (fun () -> ending [ "OneTimeTearDown"; "TestFixtureTearDown" ] made) |> thenAlways (fun () -> if not (isNull made) then dispose made))
    let title = if List.isEmpty given then holder else { holder with Name = named holder.Name given }
    let ofHolder = holderAttributes holder
    let declaredOf (m: MethodInfo) : Declared option =
        let attributes = attributesOf m
        if tryKind test attributes |> Option.isNone then None
        else
            let limit = tryKind [ named' "Timeout"; named' "CancelAfter" ] attributes |> Option.bind (fun one -> List.tryHead (argumentsOf one)) |> Option.bind milliseconds
            let expected = wanted attributes
            let run (row: Row) (token: CancellationToken) =
                let made = instance.Value
                let work () =
                    withNone [ "SetUp" ] made
                    raising expected (fun () -> call token made m row.Arguments |> check row.Expected)
                work |> thenAlways (fun () -> ending [ "TearDown" ] made)
            let declared: Declared =
                { Name = nameOf title m
                  Framework = "NUnit"
                  Assembly = holder.Assembly
                  Categories = categoriesOf (attributes @ ofHolder)
                  Skipped = skipped (attributes @ ofHolder)
                  Cases = None
                  CaseName = None
                  Expand = fun () -> [] }
            let caseOf (row: Row) : Case =
                let place = declared.Name.Substring(0, declared.Name.Length - m.Name.Length)
                { Name = (match row.Name with Some name -> place + name | None -> named declared.Name row.Arguments)
                  Categories = declared.Categories @ row.Categories
                  Skipped = declared.Skipped |> Option.orElse row.Skipped
                  TimeLimit = limit
                  Run = run row }
            let rows, sources = ofKind [ named' "TestCase" ] attributes, ofKind [ named' "TestCaseSource" ] attributes
            match rows, sources with
            | [], [] ->
                match combined m with
                | Some values -> Some { declared with Cases = Some values.Length; Expand = fun () -> values |> List.map (plainRow >> caseOf) }
                | None ->
                    let expected = tryKind [ named' "Test" ] attributes |> Option.bind (propertyOf "ExpectedResult")
                    Some(alone declared limit (run { plainRow [] with Expected = expected }))
            | rows, [] -> Some { declared with Cases = Some rows.Length; Expand = fun () -> rows |> List.map (ofTestCase >> caseOf) }
            | rows, sources ->
                let all () = List.map ofTestCase rows @ List.collect (rowsOfSource holder) sources
                Some { declared with Expand = fun () -> all () |> List.map caseOf }
    { Name = title.Name; Declared = holder.Methods |> List.choose declaredOf; Close = close }

/// The tests of the holders of one assembly.
let suites (holders: Holder list) : Suite list =
    holders
    |> List.collect (fun holder ->
        match ofKind [ named' "TestFixture" ] (holderAttributes holder) |> List.map argumentsOf with
        | [] -> [ suiteOf holder [] ]
        | some -> some |> List.distinct |> List.map (suiteOf holder))
    |> List.filter (fun suite -> not (List.isEmpty suite.Declared))
