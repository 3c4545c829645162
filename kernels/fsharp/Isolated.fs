/// Submissions beside those of the session: they see nothing of what its user defined or opened, and the session sees nothing of them. They
/// may use what only a module itself may use, as if they stood in it.
///
/// The service offers neither, so the state that a submission starts from is put in its place by reflection, and so are the rights that it
/// is checked with. Where the service has no such parts an exception says so, and nothing has run.
module Mainstay.Worker.Isolated

open System
open System.Collections.Generic
open Microsoft.FSharp.Reflection
open Mainstay.Worker.Compat
open Mainstay.Worker.Insides

/// Where code stands that a submission is to have the rights of: an assembly, and the path of a module or type in it.
type Standing =
    { Assembly: Referenced
      Path: string list
      /// Whether the code is that of members of the type at this path, and nothing else: it names the type's cases and fields as it likes.
      IsOfType: bool
      /// The fields of the type at this path, with what its constructor keeps, that the code uses by name.
      State: Set<string> }

/// The entity of each name along a path. A namespace is none.
let private along (standing: Standing) : Entity list =
    let named (name: string) (entity: Entity) = entity.DisplayName = name || entity.LogicalName = name
    let rec nested (path: string list) (entity: Entity) =
        match path with
        | [] -> [ entity ]
        | name :: rest ->
            // A module stands before a type of its name, which has nothing in it.
            let found = entity.NestedEntities |> Seq.filter (named name) |> Seq.sortBy (fun one -> not one.IsFSharpModule) |> Seq.tryHead
            entity :: (found |> Option.map (nested rest) |> Option.defaultValue [])
    let starts (entity: Entity) =
        let space = match entity.AccessPath with "global" -> [] | path -> List.ofArray (path.Split '.')
        if List.truncate space.Length standing.Path = space then
            match List.skip space.Length standing.Path with
            | name :: rest when named name entity -> Some(rest, entity)
            | _ -> None
        else None
    standing.Assembly.Contents.Entities
    |> Seq.choose starts
    |> Seq.sortBy (fun (_, entity) -> not entity.IsFSharpModule)
    |> Seq.tryHead
    |> Option.map (fun (rest, entity) -> nested rest entity)
    |> Option.defaultValue []

/// The service's own path of an entity, with which it judges who may use what.
let private pathOf (entity: Entity) : obj =
    let inner = get "Entity" entity
    let parent = get "CompilationPath" inner
    let nesting = parent.GetType().GetMethod("NestedCompPath", anyAccess)
    if isNull nesting then missing (parent.GetType()) "NestedCompPath"
    let kindType = nesting.GetParameters().[1].ParameterType
    let kind =
        if entity.IsFSharpModule then get "ModuleOrNamespaceKind" (get "ModuleOrNamespaceType" inner)
        else
            let case = FSharpType.GetUnionCases(kindType, anyAccess) |> Array.find (fun case -> case.Name = "ModuleOrType")
            FSharpValue.MakeUnion(case, [||], anyAccess)
    nesting.Invoke(parent, [| get "LogicalName" inner; kind |])

let private requiresQualification (standing: Standing) (entity: Entity) : bool =
    (entity.IsFSharpModule || (standing.IsOfType && entity.DisplayName = List.last standing.Path)) && entity.Attributes |> Seq.exists (fun attribute -> attribute.AttributeType.CompiledName = "RequireQualifiedAccessAttribute")

/// Takes the attributes off a module, so that it can be opened though it requires qualified access; gives what puts them back.
let private withoutAttributes (entity: Entity) : unit -> unit =
    let inner = get "Deref" (get "Entity" entity)
    let field = inner.GetType().GetField("entity_attribs@", anyAccess) |> Option.ofObj |> Option.orElseWith (fun () -> Option.ofObj (inner.GetType().GetField("entity_attribs", anyAccess)))
    match field with
    | None -> missing (inner.GetType()) "entity_attribs"
    | Some field ->
        let kept = field.GetValue inner
        let emptyList (list: obj) = list.GetType().GetProperty("Empty", anyAccess).GetValue null
        let none =
            match kept with
            | :? Collections.IEnumerable as list -> emptyList list
            // Later services keep them beside flags of those that they know.
            | both -> Activator.CreateInstance(both.GetType(), anyAccess, null, [| emptyList (get "attribs" both); Enum.ToObject((get "flags" both).GetType(), 0) |], null)
        field.SetValue(inner, none)
        fun () -> field.SetValue(inner, kept)

/// The types of an assembly that others do not see.
let private hiddenTypes (assembly: Referenced) : Entity list =
    let isHidden (entity: Entity) = try not (entity.IsNamespace || entity.IsFSharpModule || entity.Accessibility.IsPublic) with _ -> false
    let rec within (entity: Entity) : Entity list =
        let inner = try List.ofSeq entity.NestedEntities |> List.collect within with _ -> []
        if isHidden entity then entity :: inner else inner
    assembly.Contents.Entities |> Seq.collect within |> List.ofSeq

/// Has everybody see a type: a function of a submission may take one that no other submission sees. Gives what hides it again.
let private shown (entity: Entity) : unit -> unit =
    match get "entity_opt_data" (get "Deref" (get "Entity" entity)) with
    | null -> ignore
    | some ->
        let data = get "Value" some
        match data.GetType().GetField("entity_accessibility@", anyAccess) with
        | null -> missing (data.GetType()) "entity_accessibility"
        | field ->
            let kept = field.GetValue data
            field.SetValue(data, caseWith [ "compilationPaths", listLike (fieldOfCase "compilationPaths" kept) [] ] kept)
            fun () -> field.SetValue(data, kept)

/// Has code name a field that a type's constructor has made for itself. Gives what hides it again.
let private named (field: obj) : unit -> unit =
    let kind = field.GetType()
    // A field that cannot be set would be compiled under another name.
    let flags = [ "rfield_secret@", false; "rfield_mutable@", true ] |> List.map (fun (name, value) ->
        match kind.GetField(name, anyAccess) with
        | null -> missing kind name
        | flag -> flag, value)
    let kept = [ for flag, _ in flags -> flag, flag.GetValue field ]
    for flag, value in flags do flag.SetValue(field, value)
    fun () -> for flag, value in kept do flag.SetValue(field, value)

/// The fields of a type with these names that its constructor has made for itself.
let private fieldsOf (entity: Entity) (names: Set<string>) : obj list =
    let isSecret (field: obj) = get "rfield_secret" field :?> bool
    get "AllFieldsArray" (get "Deref" (get "Entity" entity))
    |> itemsOf
    |> List.filter (fun field -> isSecret field && names.Contains(string (get "LogicalName" field)))

/// What was said to a logger.
let private messagesOf (logger: obj) : CompilerMessage[] =
    let create = typeof<Session>.Assembly.GetType("FSharp.Compiler.Diagnostics.FSharpDiagnostic").GetMethods anyAccess |> Array.tryFind (fun found -> found.Name = "CreateFromException")
    let worded (said: obj) =
        match create with
        | None -> missing typeof<Session> "CreateFromException"
        | Some create ->
            let given (parameter: Reflection.ParameterInfo) : obj =
                match parameter.Name with
                | "diagnostic" -> said
                | "suggestNames" -> box true
                | "flatErrors" -> box false
                | "severity" -> get "Severity" said
                | _ -> null
            create.Invoke(null, create.GetParameters() |> Array.map given) |> unbox |> messageOf
    call logger "GetDiagnostics" [] :?> Collections.IEnumerable |> Seq.cast<obj> |> Seq.map worded |> Array.ofSeq

/// Does work whose code is compiled without optimization, as the project's is: a function that changes later must not have been compiled
/// into what calls it.
let private unoptimized (configuration: obj) (work: unit -> 'T) : 'T =
    let property = configuration.GetType().GetProperty("optSettings", anyAccess)
    if isNull property then missing (configuration.GetType()) "optSettings"
    let kept = property.GetValue configuration
    let isChoice (name: string) = name = "localOptUser" || name = "crossAssemblyOptimizationUser"
    let fields = FSharpType.GetRecordFields(kept.GetType(), anyAccess)
    if not (fields |> Array.exists (fun field -> field.Name = "localOptUser")) then missing (kept.GetType()) "localOptUser"
    let values = fields |> Array.map (fun field -> if isChoice field.Name then box (Some false) else field.GetValue kept)
    property.SetValue(configuration, FSharpValue.MakeRecord(kept.GetType(), values, anyAccess))
    try
        work ()
    finally
        property.SetValue(configuration, kept)

/// What the service finds out about a text in a state of the session's. The session's own state is not touched for it: code that runs may end
/// meanwhile, and change that.
let private checkFrom (steps: Steps) (session: Session) (state: obj) (text: string) : Checked =
    let resolver =
        match session.GetType().GetFields anyAccess |> Array.tryFind (fun field -> field.Name.StartsWith("legacyReferenceResolver", StringComparison.Ordinal)) with
        | None -> missing (session.GetType()) "legacyReferenceResolver"
        | Some field -> field.GetValue session
    let arguments = [ "legacyReferenceResolver", resolver; "istate", state; "text", box text; "keepAssemblyContents", null ]
    let begun = call steps.Processor "ParseAndCheckInteraction" arguments
    let cancellable = typeNamed "Internal.Utilities.Library.Cancellable"
    let run = match cancellable.GetMethod("runWithoutCancellation", anyAccess) with null -> missing cancellable "runWithoutCancellation" | run -> run
    checkedBy (run.MakeGenericMethod(begun.GetType().GetGenericArguments()).Invoke(null, [| begun |]))

/// The submissions of one session that are beside its own. They start from what the session is when this is made.
type Isolated(session: Session) =
    let steps = Steps session
    let mutable state = steps.State
    let hidden = Dictionary<string, Entity list>() // the types of assemblies, by their names

    let hiddenIn (assembly: Referenced) : Entity list =
        match hidden.TryGetValue assembly.SimpleName with
        | true, found -> found
        | _ ->
            let found = try hiddenTypes assembly with _ -> []
            hidden.[assembly.SimpleName] <- found
            found

    let environmentOf (state: obj) = get "TcEnvFromImpls" (get "tcState" state)

    let pathsField (environment: obj) =
        match environment.GetType().GetField("eInternalsVisibleCompPaths@", anyAccess) with
        | null -> missing (environment.GetType()) "eInternalsVisibleCompPaths"
        | field -> field

    /// Compiles and runs what was read, from the state there is; None where the compiler did not take it.
    let evaluate (logger: obj) (definitions: obj) : obj option =
        let arguments =
            [ "ctok", null
              "diagnosticsLogger", logger
              "istate", state
              "showTypes", box false
              "isInteractiveItExpr", box false
              "defs", fieldOfCase "defns" definitions ]
        try
            Some (parts (call steps.Compiler "EvalParsedDefinitions" arguments)).[0]
        // What it raises after it has said something is about that. Warnings are no reason.
        with _ when messagesOf logger |> Array.exists (fun message -> message.Severity = "error") -> None

    /// Does work whose code has the rights of code that stands there; it is given what puts the usual rights into another environment.
    let entitled (standings: Standing list) (work: (obj -> unit) -> 'T) : 'T =
        let standing = standings |> List.map (fun one -> one, along one)
        let entities = List.collect snd standing
        let qualified = standing |> List.collect (fun (one, along) -> along |> List.filter (requiresQualification one))
        let hidden = standings |> List.map (fun one -> one.Assembly) |> List.distinctBy (fun one -> one.SimpleName) |> List.collect hiddenIn
        let environment = environmentOf state
        let field = pathsField environment
        let kept = field.GetValue environment
        let undo = List<unit -> unit>([ fun () -> field.SetValue(environment, kept) ])
        try
            field.SetValue(environment, listLike kept (List.map pathOf entities @ itemsOf kept))
            for entity in qualified |> List.distinctBy (fun entity -> entity.FullName) do
                undo.Add(withoutAttributes entity)
            for entity in hidden do
                undo.Add(shown entity)
            for one, along in standing do
                match List.tryLast along with
                | Some kind when not (Set.isEmpty one.State) -> for found in fieldsOf kind one.State do undo.Add(named found)
                | _ -> ()
            work (fun environment -> (pathsField environment).SetValue(environment, kept))
        finally
            for one in Seq.rev undo do try one () with _ -> ()

    /// Runs a submission with the rights of code that stands there; says whether it did, and what the compiler says. What it defines is
    /// seen by later ones of this kind. The session may run code meanwhile, but compile none.
    member _.Run(standings: Standing list, text: string) : bool * CompilerMessage[] =
        entitled standings (fun withUsualRights ->
            steps.Logging(fun logger ->
                let isError (message: CompilerMessage) = message.Severity = "error"
                let after = unoptimized steps.Configuration (fun () -> steps.Parse(anonymousFile, text, logger) |> Option.bind (evaluate logger))
                let messages = messagesOf logger
                match after with
                | Some after when not (Array.exists isError messages) ->
                    withUsualRights (environmentOf after)
                    state <- after
                    true, messages
                | _ -> false, messages))

    /// Checks a submission as `Run` would compile it; nothing runs. The session may compile and check nothing meanwhile.
    member _.Check(standings: Standing list, text: string) : Checked =
        entitled standings (fun _ ->
            try
                checkFrom steps session state text
            with :? MissingMemberException | :? TypeLoadException ->
                // A service that offers no other state than the session's own, for which another is put there.
                let ofSession = steps.State
                steps.State <- state
                try
                    check session text
                finally
                    // Code that has ended meanwhile has put its own there.
                    if obj.ReferenceEquals(steps.State, state) then steps.State <- ofSession)
