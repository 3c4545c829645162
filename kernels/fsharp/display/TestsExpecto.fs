/// Tests of Expecto: values that are trees of tests.
module internal MainstayDisplay.TestsExpecto

open System
open System.Collections
open System.Reflection
open System.Threading
open Microsoft.FSharp.Reflection
open MainstayDisplay.TestsModel
open MainstayDisplay.TestsReflection

let private marks = [ "Expecto.TestsAttribute"; "Expecto.FTestsAttribute"; "Expecto.PTestsAttribute" ]
let private everything = BindingFlags.Public ||| BindingFlags.NonPublic

/// How its author sees a test: what is pending is not run, and where something is focused nothing else is.
type private Focus =
    | Normal
    | Pending
    | Focused

type private Leaf =
    { Labels: string list
      Focus: Focus
      Code: obj }

let private caseOf (value: obj) : string * obj list =
    let case, fields = FSharpValue.GetUnionFields(value, value.GetType(), everything)
    case.Name, List.ofArray fields

let private focusOf (value: obj) = match fst (caseOf value) with "Focused" -> Focused | "Pending" -> Pending | _ -> Normal

/// What stands further in is what it stands in says, except that what is pending stays so.
let private within (outer: Focus) (inner: Focus) =
    match outer, inner with
    | Pending, _
    | _, Pending -> Pending
    | Focused, _
    | _, Focused -> Focused
    | Normal, Normal -> Normal

let rec private leaves (mayEnumerate: IEnumerable -> bool) (labels: string list) (focus: Focus) (test: obj) : Leaf list =
    match caseOf test with
    | "TestCase", [ code; state ] -> [ { Labels = labels; Focus = within focus (focusOf state); Code = code } ]
    | "TestList", [ (:? IEnumerable as tests); state ] when mayEnumerate tests ->
        tests |> Seq.cast<obj> |> Seq.collect (leaves mayEnumerate labels (within focus (focusOf state))) |> List.ofSeq
    | "TestList", _ -> raise (NotRun "it is a list that is not there yet")
    | "TestLabel", [ label; inner; state ] -> leaves mayEnumerate (labels @ [ textOf label ]) (within focus (focusOf state)) inner
    | "Sequenced", [ _; inner ] -> leaves mayEnumerate labels focus inner
    | name, _ -> failwithf "it is a test of a form that is not known here: %s" name

let private applied (func: obj) (argument: obj) : obj =
    // A closure has the method several times where it takes more than one argument at a time.
    let m = func.GetType().GetMethods() |> Array.find (fun m -> m.Name = "Invoke" && m.GetParameters().Length = 1)
    m.Invoke(func, BindingFlags.DoNotWrapExceptions, null, [| argument |], null)

let private run (code: obj) (token: CancellationToken) : unit =
    match caseOf code with
    | "Sync", [ test ] -> applied test null |> ignore
    | "SyncWithCancel", [ test ] -> applied test (box token) |> ignore
    | "Async", [ test ] -> settled token test |> ignore
    | "AsyncFsCheck", [ own; _; test ] ->
        let config =
            match own with
            | null -> test.GetType().BaseType.GetGenericArguments().[0].GetProperty("defaultConfig", BindingFlags.Public ||| BindingFlags.Static).GetValue null
            | some -> propertyOfValue "Value" some |> Option.toObj
        applied test config |> settled token |> ignore
    | name, _ -> raise (NotRun("a test of the form " + name + " is not known here"))

let private isThere (tests: IEnumerable) =
    let kind = tests.GetType()
    kind.IsArray || kind.IsGenericType && kind.GetGenericTypeDefinition() = typedefof<list<_>>

let private casesOf (name: string) (found: Leaf list) : Case list =
    found
    |> List.map (fun leaf ->
        { Name = (if List.isEmpty leaf.Labels then name else String.concat "." leaf.Labels)
          Categories = []
          Skipped = (match leaf.Focus with Pending -> Some "pending" | Normal | Focused -> None)
          TimeLimit = None
          Run = run leaf.Code })

/// A value marked as tests.
type private Marked =
    { Name: string
      Assembly: string option
      Read: unit -> obj
      Outer: Focus }

let private markOf (holder: Holder) (m: MemberInfo) (read: unit -> obj) : Marked option =
    let mark (attributes: CustomAttributeData list) =
        tryKind marks attributes
        |> Option.map (fun one -> match one.AttributeType.Name with "FTestsAttribute" -> Focused | "PTestsAttribute" -> Pending | _ -> Normal)
    mark (attributesOf m) |> Option.map (fun focus -> { Name = nameOf holder m; Assembly = holder.Assembly; Read = read; Outer = focus })

let private markedProperties (read: PropertyInfo -> unit -> obj) (holder: Holder) : Marked list =
    holder.Properties |> List.choose (fun property -> markOf holder property (read property))

let private markedValues: Holder -> Marked list =
    markedProperties (fun property () -> property.GetValue(null, BindingFlags.DoNotWrapExceptions, null, null, null))

let private markedMethods (holder: Holder) : Marked list =
    holder.Methods
    |> List.filter (fun m -> m.IsStatic && m.GetParameters().Length = 0)
    |> List.choose (fun m -> markOf holder m (fun () -> call CancellationToken.None null m []))

let private markedFields (holder: Holder) : Marked list =
    match holder.Kind with
    | Some kind ->
        kind.GetFields(BindingFlags.Public ||| BindingFlags.Static)
        |> Seq.choose (fun field -> markOf holder field (fun () -> field.GetValue null))
        |> List.ofSeq
    | None -> []

/// The tests of the holders of one assembly.
let suites (holders: Holder list) : Suite list =
    let all = holders |> List.collect (fun holder -> markedValues holder @ markedMethods holder @ markedFields holder)
    // Whether one of the values has something focused is known when all have been read.
    let read = all |> List.map (fun one -> one, Once(fun () -> leaves (fun _ -> true) [] one.Outer (one.Read())))
    let isAnyFocused = lazy (read |> List.exists (fun (_, once) -> try once.Value |> List.exists (fun leaf -> leaf.Focus = Focused) with _ -> false))
    let onlyFocused (found: Leaf list) (cases: Case list) =
        if not isAnyFocused.Value then cases
        else
            List.zip found cases
            |> List.map (fun (leaf, case) ->
                match leaf.Focus with
                | Normal -> { case with Skipped = Some "other tests are focused" }
                | Focused
                | Pending -> case)
    let declaredOf (one: Marked, once: Once<Leaf list>) : Declared list =
        let declared: Declared =
            { Name = one.Name
              Framework = "Expecto"
              Assembly = one.Assembly
              Categories = []
              Skipped = None
              Cases = None
              CaseName = None
              Expand = fun () -> casesOf one.Name once.Value |> onlyFocused once.Value }
        [ declared ]
    match List.collect declaredOf read with
    | [] -> []
    | some -> [ { Name = "Expecto"; Declared = some; Close = ignore } ]

/// The field that a property only hands on; none where reading it runs any other code.
let private fieldBehind (property: PropertyInfo) : FieldInfo option =
    let getter = property.GetMethod
    match getter.GetMethodBody().GetILAsByteArray() with
    // ldsfld and its field, ret.
    | [| 0x7Euy; _; _; _; _; 0x2Auy |] as code -> Some(getter.Module.ResolveField(BitConverter.ToInt32(code, 1)))
    | _ -> None

/// The tests in the values of a holder whose code has run already, told without running any; None where only running it tells them.
let there (holder: Holder) : Case list option =
    let read (property: PropertyInfo) () =
        match fieldBehind property with
        | Some field -> field.GetValue null
        | None -> raise (NotRun "its value is made when it is asked for")
    try Some(markedProperties read holder |> List.collect (fun one -> leaves isThere [] one.Outer (one.Read()) |> casesOf one.Name))
    with _ -> None
