/// What the compiler service keeps to itself, reached by reflection and by name: a service whose parts are called otherwise raises an
/// exception here, and whoever calls goes without what it wanted.
module Mainstay.Worker.Insides

open System
open System.Reflection
open Microsoft.FSharp.Reflection
open Mainstay.Worker.Compat

/// Members of any access, of a type or of its objects.
let anyAccess = BindingFlags.Instance ||| BindingFlags.Static ||| BindingFlags.Public ||| BindingFlags.NonPublic

/// Raises what says that the service has no such part.
let missing (kind: Type) (name: string) = raise (MissingMemberException(kind.FullName, name))

/// The value of a field or property.
let get (name: string) (owner: obj) : obj =
    let kind = owner.GetType()
    match kind.GetField(name, anyAccess), kind.GetProperty(name, anyAccess) with
    | null, null -> missing kind name
    | null, property -> property.GetValue owner
    | field, _ -> field.GetValue owner

/// Sets a field.
let set (name: string) (owner: obj) (value: obj) : unit =
    match owner.GetType().GetField(name, anyAccess) with
    | null -> missing (owner.GetType()) name
    | field -> field.SetValue(owner, value)

/// Calls a method with exactly these arguments, by name.
let callOn (kind: Type) (owner: obj) (name: string) (arguments: (string * obj) list) : obj =
    let takes (parameters: ParameterInfo[]) =
        parameters.Length = List.length arguments
        && parameters |> Array.forall (fun parameter -> arguments |> List.exists (fun (name, _) -> name = parameter.Name))
    let fits (found: MethodInfo) = found.Name = name && takes (found.GetParameters())
    match kind.GetMethods anyAccess |> Array.tryFind fits with
    | None -> missing kind name
    | Some found ->
        let given = found.GetParameters() |> Array.map (fun parameter -> List.find (fst >> (=) parameter.Name) arguments |> snd)
        try
            found.Invoke(owner, given)
        with :? TargetInvocationException as e when not (isNull e.InnerException) -> raise e.InnerException

/// Calls a method of an object with exactly these arguments, by name.
let call (owner: obj) = callOn (owner.GetType()) owner

/// One of the service's types.
let typeNamed (name: string) : Type =
    match typeof<Session>.Assembly.GetType name with
    | null -> raise (TypeLoadException name)
    | kind -> kind

/// What a tuple holds.
let parts (tuple: obj) = FSharpValue.GetTupleFields tuple

/// What a list holds.
let itemsOf (list: obj) = list :?> Collections.IEnumerable |> Seq.cast<obj> |> List.ofSeq

/// A list like that one, of these items.
let listLike (model: obj) (items: obj list) : obj =
    let kind = model.GetType()
    let empty = kind.GetProperty("Empty", anyAccess).GetValue null
    (items, empty) ||> List.foldBack (fun item rest -> kind.GetMethod("Cons", anyAccess).Invoke(null, [| item; rest |]))

/// A union case like that one, with other values in some fields.
let caseWith (changes: (string * obj) list) (value: obj) : obj =
    let case, values = FSharpValue.GetUnionFields(value, value.GetType(), anyAccess)
    let names = case.GetFields() |> Array.map (fun field -> field.Name)
    for name, _ in changes do
        if not (Array.contains name names) then missing (value.GetType()) name
    let changed = Array.map2 (fun name value -> changes |> List.tryFind (fst >> (=) name) |> Option.map snd |> Option.defaultValue value) names values
    FSharpValue.MakeUnion(case, changed, anyAccess)

/// A field of a union case, by its name.
let fieldOfCase (name: string) (value: obj) : obj =
    let case, values = FSharpValue.GetUnionFields(value, value.GetType(), anyAccess)
    match case.GetFields() |> Array.tryFindIndex (fun field -> field.Name = name) with
    | Some index -> values.[index]
    | None -> missing (value.GetType()) name

/// What evaluates a session's code within the service.
type Steps(session: Session) =
    let configuration = get "tcConfigB" session
    let compiler = get "fsiDynamicCompiler" session
    let processor = get "fsiInteractionProcessor" session
    let statics = typeNamed "FSharp.Compiler.DiagnosticsLogger+DiagnosticsThreadStatics"

    /// What the compiler was told.
    member _.Configuration = configuration
    /// What compiles and runs.
    member _.Compiler = compiler
    /// What takes submissions.
    member _.Processor = processor

    /// What the session is now; the next submission starts from it.
    member _.State
        with get () = get "currState" processor
        and set (state: obj) = set "currState" processor state

    /// What the compiler was told, as a compilation takes it.
    member _.Settled() : obj =
        callOn (typeNamed "FSharp.Compiler.CompilerConfig+TcConfig") null "Create" [ "builder", configuration; "validate", box false ]

    /// Does work whose messages go to a logger of its own, which it is given.
    member steps.Logging(work: obj -> 'T) : 'T =
        let kind = typeNamed "FSharp.Compiler.Diagnostics.CompilationDiagnosticLogger"
        let options = get "diagnosticsOptions" (steps.Settled())
        let logger = Activator.CreateInstance(kind, anyAccess, null, [| box "replay"; options; null |], null)
        let current name = statics.GetProperty(name, anyAccess)
        let exchange (name: string) (value: obj) =
            let before = (current name).GetValue null
            (current name).SetValue(null, value)
            before
        let phase = typeNamed("FSharp.Compiler.DiagnosticsLogger+BuildPhase").GetProperty("Interactive", anyAccess).GetValue null
        let loggerBefore = exchange "DiagnosticsLogger" logger
        let phaseBefore = exchange "BuildPhase" phase
        try
            work logger
        finally
            exchange "DiagnosticsLogger" loggerBefore |> ignore
            exchange "BuildPhase" phaseBefore |> ignore

    /// Whether nothing was said to a logger.
    member _.SaysNothing(logger: obj) = (call logger "GetDiagnostics" [] :?> Array).Length = 0

    /// Reads a submission as the session does, from that file; None where there is nothing in it. What is wrong with it is said to the logger.
    member steps.Parse(file: string, text: string, logger: obj) : obj option =
        let indentation = // F# 11 knows of no such option.
            match steps.Configuration.GetType().GetProperty("strictIndentation", anyAccess) with
            | null -> []
            | property -> [ ("strictIndentation", property.GetValue steps.Configuration) ]
        let language = [ "reportLibraryOnlyFeatures", box true; "langVersion", get "langVersion" steps.Configuration; "s", box text ]
        let buffer = callOn (typeNamed "FSharp.Compiler.UnicodeLexing") null "StringAsLexbuf" (language @ indentation)
        let lexer =
            call (get "fsiStdinLexerProvider" steps.Processor) "CreateBufferLexer"
                [ "sourceFileName", box file; "lexbuf", buffer; "diagnosticsLogger", logger ]
        let options = get "diagnosticsOptions" steps.Configuration
        match call steps.Processor "ParseInteraction" [ "diagnosticOptions", options; "tokenizer", lexer ] with
        | null -> None
        | some -> Some(get "Value" some)
