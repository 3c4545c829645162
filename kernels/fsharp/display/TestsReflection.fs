/// What the frameworks have in common to those who know them by names alone: attributes, members, calls, results that come later.
module internal MainstayDisplay.TestsReflection

open System
open System.Collections
open System.Collections.Generic
open System.Globalization
open System.Reflection
open System.Threading
open System.Threading.Tasks
open Microsoft.FSharp.Reflection
open MainstayDisplay.TestsModel

/// Something that holds tests: a class or a module; all that stands at the session's prompt is one too.
type Holder =
    { Name: string
      /// None for the session's prompt, whose members are of many types.
      Kind: Type option
      Assembly: string option
      Methods: MethodInfo list
      Properties: PropertyInfo list }

let publicMembers = BindingFlags.Public ||| BindingFlags.Static ||| BindingFlags.Instance ||| BindingFlags.FlattenHierarchy
let private staticMembers = BindingFlags.Public ||| BindingFlags.NonPublic ||| BindingFlags.Static ||| BindingFlags.FlattenHierarchy

/// The name of a test, as its method has it.
let nameOf (holder: Holder) (m: MemberInfo) = if holder.Name = "" then m.Name else holder.Name + "." + m.Name

/// Whether a type is the one of this name, or comes from it.
let rec isOf (name: string) (kind: Type) : bool = not (isNull kind) && (kind.FullName = name || isOf name kind.BaseType)

let isAnyOf (names: string list) (kind: Type) = names |> List.exists (fun name -> isOf name kind)

let private ownAttributes (owner: MemberInfo) : CustomAttributeData list = try List.ofSeq (owner.GetCustomAttributesData()) with _ -> []

let rec private typeAttributes (kind: Type) : CustomAttributeData list =
    if isNull kind || kind = typeof<obj> then [] else ownAttributes kind @ typeAttributes kind.BaseType

/// The attributes of a member, with those it inherits. Reading them makes none of them.
let attributesOf (owner: MemberInfo) : CustomAttributeData list =
    match owner with
    | :? Type as kind -> typeAttributes kind
    | :? MethodInfo as m ->
        let first = try m.GetBaseDefinition() with _ -> m
        if first.DeclaringType = m.DeclaringType then ownAttributes m else ownAttributes m @ ownAttributes first
    | _ -> ownAttributes owner

let holderAttributes (holder: Holder) : CustomAttributeData list =
    match holder.Kind with
    | Some kind -> attributesOf kind
    | None -> []

let ofKind (names: string list) (attributes: CustomAttributeData list) = attributes |> List.filter (fun one -> isAnyOf names one.AttributeType)

let tryKind (names: string list) (attributes: CustomAttributeData list) = attributes |> List.tryFind (fun one -> isAnyOf names one.AttributeType)

let rec private valueOf (argument: CustomAttributeTypedArgument) : obj =
    match argument.Value with
    | :? IReadOnlyCollection<CustomAttributeTypedArgument> as items ->
        let array = Array.CreateInstance(argument.ArgumentType.GetElementType(), items.Count)
        items |> Seq.iteri (fun index item -> array.SetValue(valueOf item, index))
        box array
    | value when argument.ArgumentType.IsEnum -> Enum.ToObject(argument.ArgumentType, value)
    | value -> value

/// What an attribute was made with; what stands for any number of values is told one by one.
let argumentsOf (attribute: CustomAttributeData) : obj list =
    let isOpen (parameter: ParameterInfo) = parameter.IsDefined(typeof<ParamArrayAttribute>, false)
    Seq.zip (attribute.Constructor.GetParameters()) attribute.ConstructorArguments
    |> Seq.collect (fun (parameter, argument) ->
        match valueOf argument with
        | :? Array as values when isOpen parameter -> List.ofSeq (Seq.cast<obj> values)
        | value -> [ value ])
    |> List.ofSeq

/// A property that an attribute was given.
let propertyOf (name: string) (attribute: CustomAttributeData) : obj option =
    attribute.NamedArguments |> Seq.tryFind (fun one -> one.MemberName = name) |> Option.map (fun one -> valueOf one.TypedValue)

let textOf (value: obj) : string = match value with null -> "" | value -> string value

let firstText (attribute: CustomAttributeData) : string option =
    argumentsOf attribute |> List.tryHead |> Option.bind (function :? string as text -> Some text | _ -> None)

let propertyText (name: string) (attribute: CustomAttributeData) : string option =
    propertyOf name attribute |> Option.bind (function :? string as text when text <> "" -> Some text | _ -> None)

let propertyOfValue (name: string) (value: obj) : obj option =
    match value.GetType().GetProperty name with
    | null -> None
    | property -> Option.ofObj (property.GetValue value)

let milliseconds (value: obj) : TimeSpan option =
    match value with
    | :? int as count when count > 0 -> Some(TimeSpan.FromMilliseconds(float count))
    | _ -> None

let private waitedFor (task: Task) : obj =
    task.GetAwaiter().GetResult()
    let kind = task.GetType()
    if kind.IsGenericType then kind.GetProperty("Result").GetValue task else null

type private Starter =
    static member Start<'T>(work: Async<'T>, token: CancellationToken) : Task = Async.StartAsTask(work, cancellationToken = token) :> Task

/// What a test gave, waited for where it comes later.
let settled (token: CancellationToken) (result: obj) : obj =
    let definition = match result with null -> null | _ when result.GetType().IsGenericType -> result.GetType().GetGenericTypeDefinition() | _ -> null
    match result with
    | :? Task as task -> waitedFor task
    | :? ValueTask as task -> waitedFor (task.AsTask())
    | result when definition = typedefof<ValueTask<_>> -> waitedFor (result.GetType().GetMethod("AsTask").Invoke(result, [||]) :?> Task)
    | result ->
        // The type of an async computation may be one that comes from it.
        let rec asynchronous (kind: Type) =
            if isNull kind then None
            elif kind.IsGenericType && kind.GetGenericTypeDefinition() = typedefof<Async<_>> then Some(kind.GetGenericArguments().[0])
            else asynchronous kind.BaseType
        match (if isNull result then None else asynchronous (result.GetType())) with
        | Some element ->
            let start = typeof<Starter>.GetMethod("Start", BindingFlags.Static ||| BindingFlags.NonPublic ||| BindingFlags.Public)
            waitedFor (start.MakeGenericMethod(element).Invoke(null, [| result; box token |]) :?> Task)
        | None -> result

let private converted (kind: Type) (value: obj) : obj =
    let bare = match Nullable.GetUnderlyingType kind with null -> kind | bare -> bare
    match value with
    | null -> null
    | value when kind.IsInstanceOfType value -> value
    | value when bare.IsEnum && not (value :? string) -> Enum.ToObject(bare, value)
    | :? string as text when bare.IsEnum -> Enum.Parse(bare, text)
    | :? IConvertible as plain when bare.IsPrimitive || bare = typeof<decimal> || bare = typeof<DateTime> || bare = typeof<string> ->
        Convert.ChangeType(plain, bare, CultureInfo.InvariantCulture)
    | value -> value

let private isAsyncVoid (m: MethodInfo) =
    m.ReturnType = typeof<Void> && ownAttributes m |> List.exists (fun one -> one.AttributeType.FullName = "System.Runtime.CompilerServices.AsyncStateMachineAttribute")

/// Calls a method, and waits for what comes later.
let call (token: CancellationToken) (instance: obj) (m: MethodInfo) (arguments: obj list) : obj =
    let parameters = m.GetParameters()
    let isOptional (parameter: ParameterInfo) = parameter.HasDefaultValue
    if arguments.Length > parameters.Length || parameters |> Seq.skip arguments.Length |> Seq.exists (isOptional >> not) then
        failwithf "it takes %d arguments, and is given %d" parameters.Length arguments.Length
    if isAsyncVoid m then failwith "it is `async void`, whose end nobody can see: it must return a Task"
    let values =
        parameters
        |> Array.mapi (fun index parameter -> if index < arguments.Length then converted parameter.ParameterType arguments.[index] else parameter.DefaultValue)
    let target = if m.IsStatic then null else instance
    m.Invoke(target, BindingFlags.DoNotWrapExceptions, null, values, CultureInfo.InvariantCulture) |> settled token

/// Makes an object.
let construct (kind: Type) (arguments: obj list) : obj =
    Activator.CreateInstance(kind, BindingFlags.DoNotWrapExceptions ||| BindingFlags.Public ||| BindingFlags.NonPublic ||| BindingFlags.Instance, null, Array.ofList arguments, CultureInfo.InvariantCulture)

/// Whether a method can be called on nothing.
let isStaticKind (kind: Type) = kind.IsAbstract && kind.IsSealed

/// Ends an object that wants to be ended.
let dispose (value: obj) : unit =
    match value with
    | :? IAsyncDisposable as disposable -> settled CancellationToken.None (box (disposable.DisposeAsync())) |> ignore
    | :? IDisposable as disposable -> disposable.Dispose()
    | _ -> ()

/// Runs something, and then what must be done in any case. What was raised first is what is told.
let thenAlways (after: unit -> unit) (work: unit -> unit) : unit =
    let raised = try work (); None with e -> Some e
    match raised with
    | None -> after ()
    | Some e ->
        (try after () with _ -> ())
        Runtime.ExceptionServices.ExceptionDispatchInfo.Capture(e).Throw()

/// Does one thing after the other even where one fails; what was raised first is what is told.
let rec all (steps: (unit -> unit) list) : unit =
    match steps with
    | [] -> ()
    | first :: rest -> first |> thenAlways (fun () -> all rest)

/// What a static member holds or gives that is named as the source of a test's arguments.
let sourceNamed (holder: Holder) (elsewhere: Type option) (name: string) (arguments: obj list) : obj =
    let inKind (kind: Type) =
        match kind.GetProperty(name, staticMembers), kind.GetField(name, staticMembers) with
        | null, null ->
            match kind.GetMethods staticMembers |> Array.tryFind (fun m -> m.Name = name && m.GetParameters().Length >= arguments.Length) with
            | Some m -> Some(call CancellationToken.None null m arguments)
            | None -> None
        | null, field -> Some(field.GetValue null)
        | property, _ -> Some(property.GetValue null)
    let atPrompt () =
        match holder.Properties |> List.tryFind (fun property -> property.Name = name) with
        | Some property -> Some(property.GetValue null)
        | None -> holder.Methods |> List.tryFind (fun m -> m.Name = name) |> Option.map (fun m -> call CancellationToken.None null m arguments)
    let found =
        match elsewhere, holder.Kind with
        | Some kind, _
        | None, Some kind -> inKind kind
        | None, None -> atPrompt ()
    match found with
    | Some value -> value
    | None -> failwithf "there is no static member `%s` to take its arguments from" name

let private isRow (value: obj) = value :? (obj[]) || (not (isNull value) && FSharpType.IsTuple(value.GetType()))

/// The values of a row that something gave: an array, a tuple, or one value alone.
let valuesOfRow (row: obj) : obj list =
    match row with
    | :? (obj[]) as values -> List.ofArray values
    | row when isRow row -> List.ofArray (FSharpValue.GetTupleFields row)
    | row -> [ row ]

let rowsOf (source: obj) : obj list =
    match source with
    | :? IEnumerable as rows -> List.ofSeq (Seq.cast<obj> rows)
    | null -> failwith "the source of its arguments is null"
    | other -> failwithf "the source of its arguments is a %s, and no sequence" (other.GetType().FullName)

/// The longest argument that a name tells.
let private argumentLength = 50

let private told (value: obj) =
    let text =
        match value with
        | null -> "null"
        | :? string as text -> "\"" + text + "\""
        | value -> Cells.ofValue AtWhatIsThere value
    let text = text.Replace("\r", "").Replace("\n", "\\n")
    if text.Length <= argumentLength then text else text.Substring(0, argumentLength) + "…"

/// A name with what the test is given.
let named (name: string) (arguments: obj list) : string = name + "(" + (arguments |> List.map told |> String.concat ", ") + ")"

/// A declared test that has only itself as its case.
let alone (declared: Declared) (limit: TimeSpan option) (run: CancellationToken -> unit) : Declared =
    let case: Case = { Name = declared.Name; Categories = declared.Categories; Skipped = declared.Skipped; TimeLimit = limit; Run = run }
    { declared with Cases = Some 1; Expand = fun () -> [ case ] }

/// A reason, where the author gave none.
let because (what: string) (reason: string option) : string =
    match reason with
    | Some text when text.Trim() <> "" -> text
    | Some _
    | None -> what
