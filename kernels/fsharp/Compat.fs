/// The compiler service as the rest of the worker sees it, the same on every SDK. What differs between the SDK 3.1 service and the
/// later ones (symbol FCS_NEW) is here and nowhere else: names of types and members, what is asynchronous, and how an interrupt is wired.
/// The untyped tree is handed out as a plain object, because its shape changes with nearly every SDK (Purity reads it by reflection).
module Mainstay.Worker.Compat

open System
open System.IO
open System.Reflection
open System.Threading
open FSharp.Compiler.Interactive.Shell
#if FCS_NEW
open FSharp.Compiler.CodeAnalysis
open FSharp.Compiler.Diagnostics
open FSharp.Compiler.EditorServices
open FSharp.Compiler.Symbols
open FSharp.Compiler.Text
#else
open FSharp.Compiler
open FSharp.Compiler.SourceCodeServices
open FSharp.Compiler.Text
#endif

type Session = FsiEvaluationSession
type Symbol = FSharpSymbol
type Referenced = FSharpAssembly
type Entity = FSharpEntity
type Member = FSharpMemberOrFunctionOrValue
type Field = FSharpField
type Access = FSharpAccessibility
type DisplayContext = FSharpDisplayContext
type SymbolUse = FSharpSymbolUse

/// A value or function that a submission defined. `Content` is absent for a function.
type DefinedValue =
    { ShownName: string
      LogicalName: string
      TypeText: string
      Line: int
      Column: int
      Content: (obj * Type) option
      /// Where a name lives whose value may change.
      Holder: Type option }

/// Something that a submission defined.
type Definition =
    | DefinedValue of DefinedValue
    | DefinedOther

/// A message of the compiler. Lines count from 1, columns from 0, as the compiler counts them.
type CompilerMessage =
    { Severity: string
      Code: string
      Text: string
      File: string
      StartLine: int
      StartColumn: int
      EndLine: int
      EndColumn: int }

/// Where the documentation of a symbol is: given in its source, or in the XML file beside an assembly.
type Documentation =
    | Undocumented
    | Inline of text: string
    | InAssembly of assemblyPath: string * memberId: string

/// A proposal at a cursor. `Describe` gives its signature as the compiler words it; that costs up to a millisecond.
type Proposal =
    { Name: string
      NameInCode: string
      Kind: string
      Describe: unit -> string * Documentation }

/// What checking a text against a session gave.
type Checked =
    { Messages: CompilerMessage[]
      Propose: int -> string -> Proposal[]
      Uses: unit -> SymbolUse[]
      SymbolsAt: int -> string -> (Symbol * DisplayContext) list
      /// What the session refers to.
      Assemblies: unit -> Referenced list }

/// Runs an asynchronous computation on the calling thread, whose stack is large; the thread pool's stacks are not, and the type checker recurses.
let private runHere (computation: Async<'T>) : 'T =
    use ended = new ManualResetEventSlim(false)
    let mutable outcome = Unchecked.defaultof<Result<'T, exn>>
    let finish result =
        outcome <- result
        ended.Set()
    Async.StartWithContinuations(computation, Ok >> finish, Error >> finish, (fun cancelled -> finish (Error(cancelled :> exn))))
    ended.Wait()
    match outcome with
    | Ok value -> value
    | Error e -> raise (AggregateException(e.Message, e))

#if FCS_NEW
let messageOf (d: FSharpDiagnostic) =
    { Severity =
        match d.Severity with
        | FSharpDiagnosticSeverity.Error -> "error"
        | FSharpDiagnosticSeverity.Warning -> "warning"
        | FSharpDiagnosticSeverity.Info -> "info"
        | _ -> "hidden"
      Code = d.ErrorNumberText
      Text = d.Message
      File = d.FileName
      StartLine = d.StartLine
      StartColumn = d.StartColumn
      EndLine = d.EndLine
      EndColumn = d.EndColumn }
#else
let messageOf (d: FSharpErrorInfo) =
    { Severity = (match d.Severity with FSharpErrorSeverity.Error -> "error" | FSharpErrorSeverity.Warning -> "warning")
      Code = "FS" + d.ErrorNumber.ToString("0000")
      Text = d.Message
      File = d.FileName
      StartLine = d.StartLineAlternate
      StartColumn = d.StartColumn
      EndLine = d.EndLineAlternate
      EndColumn = d.EndColumn }
#endif

/// The version of the language: that of its core library, which `4.7` or `8.0` is known by.
let languageVersion =
    let version = typeof<list<int>>.Assembly.GetName().Version
    sprintf "%d.%d" version.Major version.Minor

/// The arguments every session starts with.
let private standardArguments =
#if FCS_NEW
    // An interactive session is what makes the service run submissions so that it can abort them.
    [ "fsi"; "--nologo"; "--readline-"; "--gui-" ]
#else
    [ "fsi"; "--nologo"; "--readline-"; "--gui-"; "--noninteractive" ]
#endif

/// The number of the submission that an entity stands in, or is; 0 where that is none of the session's.
let submissionOf (entity: Entity) : int =
    let found = Text.RegularExpressions.Regex.Match(entity.AccessPath + "." + entity.CompiledName, @"FSI_(\d+)")
    if found.Success then int found.Groups.[1].Value else 0

/// The number of the last submission that defined something.
let newestSubmission (session: Session) : int =
    (0, session.CurrentPartialAssemblySignature.Entities) ||> Seq.fold (fun newest entity -> max newest (submissionOf entity))

/// The assemblies that the session's own code became.
let evaluatedAssemblies (session: Session) : Assembly list =
    // Later services make several, and have them under another name.
    let property (name: string) = Option.ofObj (typeof<Session>.GetProperty name) |> Option.map (fun property -> property.GetValue session)
    match property "DynamicAssemblies" |> Option.orElseWith (fun () -> property "DynamicAssembly") with
    | Some (:? (Assembly[]) as assemblies) -> List.ofArray assemblies
    | Some (:? Assembly as assembly) -> [ assembly ]
    | Some _
    | None -> []

/// The numbers of the submissions that defined something and did not fail.
let submissionsOf (session: Session) : Set<int> =
    session.CurrentPartialAssemblySignature.Entities |> Seq.map submissionOf |> Set.ofSeq

/// Whether an assembly has no file, as those have that submissions become. Later services load each from its bytes.
let isInMemory (assembly: Assembly) = assembly.IsDynamic || String.IsNullOrEmpty assembly.Location

/// The class that has the values of the submission that defined a symbol.
let private holderOf (symbol: Member) : Type option =
    symbol.DeclaringEntity |> Option.bind (fun entity ->
        AppDomain.CurrentDomain.GetAssemblies()
        |> Array.rev
        |> Array.filter isInMemory
        |> Array.tryPick (fun assembly -> Option.ofObj (assembly.GetType entity.CompiledName)))

#if FCS_NEW
/// What stands in front of a type in the service's words: `val inline add<^a when ^a: (static member (+): ^a * ^a -> ^a)> : `. A function's
/// type variables, and what they must be, are behind its name where it is inline, and else behind its type.
let private signatureHead = Text.RegularExpressions.Regex(@"^val (?:inline |mutable )*.+?(?:<[^<>]*?(?: when (?<must>.*))?> :|:)\s+")

/// A function's or value's type as the prompt prints it: with the names of its arguments, and what its type variables must be.
let signatureOf (symbol: Member) (context: DisplayContext) : string =
    match (if symbol.IsMember then None else symbol.GetValSignatureText(context, symbol.DeclarationLocation)) with
    | Some text ->
        let line = Text.RegularExpressions.Regex.Replace(text.Trim(), @"\s+", " ")
        let head = signatureHead.Match line
        let must = head.Groups.["must"]
        let written = line.Substring head.Length
        if not head.Success then symbol.FullType.Format context
        elif must.Success then written + " when " + must.Value
        else written
    | None -> symbol.FullType.Format context
#else
let signatureOf (symbol: Member) (context: DisplayContext) : string = symbol.FullType.Format context
#endif

/// What an event of the session announces; None for what the compiler made up itself.
let private definitionOf (event: EvaluationEventArgs) =
    match event.Symbol with
    | :? FSharpMemberOrFunctionOrValue as symbol when symbol.IsCompilerGenerated -> None
    | :? FSharpMemberOrFunctionOrValue as symbol ->
        let place = symbol.DeclarationLocation
        Some(
            DefinedValue
                { ShownName = event.Name
                  LogicalName = symbol.LogicalName
                  TypeText = signatureOf symbol event.SymbolUse.DisplayContext
                  Line = place.StartLine
                  Column = place.StartColumn
                  Content = event.FsiValue |> Option.map (fun value -> value.ReflectionValue, value.ReflectionType)
                  Holder = if symbol.IsMutable then holderOf symbol else None }
        )
    | _ -> Some DefinedOther

/// Where a name stands that was found in a text.
let placeOfUse (found: SymbolUse) =
#if FCS_NEW
    found.Range
#else
    found.RangeAlternate
#endif

/// Where a symbol is declared: in its source, where a signature file has it too.
let declarationOf (symbol: Symbol) = symbol.ImplementationLocation |> Option.orElse symbol.DeclarationLocation

/// Gives the settings that client code may have changed through `fsi` the values they have at a start.
let private restoreSettings () =
    let settings = FSharp.Compiler.Interactive.Settings.fsi
    settings.PrintWidth <- 78
    settings.PrintDepth <- 100
    settings.PrintLength <- 100
    settings.PrintSize <- 10000
    settings.ShowDeclarationValues <- true
    settings.ShowProperties <- true
    settings.ShowIEnumerable <- true
    settings.FloatingPointFormat <- "g10"
    settings.FormatProvider <- Globalization.CultureInfo.InvariantCulture
    // The added printers can be read and replaced by the service only.
    let printers = settings.GetType().GetProperty("AddedPrinters", BindingFlags.Instance ||| BindingFlags.Public ||| BindingFlags.NonPublic)
    if not (isNull printers) then
        printers.SetValue(settings, printers.PropertyType.GetProperty("Empty").GetValue null)

/// Whether client code has added printers, which run when a value is printed.
let hasPrinters () =
    let settings = FSharp.Compiler.Interactive.Settings.fsi
    match settings.GetType().GetProperty("AddedPrinters", BindingFlags.Instance ||| BindingFlags.Public ||| BindingFlags.NonPublic) with
    | null -> true
    | printers ->
        match printers.GetValue settings with
        | :? Collections.IEnumerable as added -> not (Seq.isEmpty (Seq.cast<obj> added))
        | _ -> true

/// Runs code that has these words for its command line, and not the session's own; where there are none, it has those.
let withCommandLine (words: string list) (work: unit -> 'T) : 'T =
    let settings = FSharp.Compiler.Interactive.Settings.fsi
    let own = settings.CommandLineArgs
    if not (List.isEmpty words) then settings.CommandLineArgs <- List.toArray words
    try
        work ()
    finally
        if not (List.isEmpty words) then settings.CommandLineArgs <- own

/// A new session; its own printing goes to `printed` and `complaints`, and it calls `defined` for every definition in the order it prints them.
let createSession (arguments: string list) (printed: TextWriter) (complaints: TextWriter) (defined: Definition -> unit) : Session =
    restoreSettings ()
    let config = FsiEvaluationSession.GetDefaultConfiguration(FSharp.Compiler.Interactive.Settings.fsi, true)
    config.OnEvaluation.Add(definitionOf >> Option.iter defined)
    let commandLine = List.toArray (standardArguments @ arguments)
    let session = FsiEvaluationSession.Create(config, commandLine, new StringReader "", printed, complaints, collectible = false)
    session

#if FCS_NEW
/// Makes an object refer to nothing but texts.
let private empty (owner: obj) =
    for field in owner.GetType().GetFields(BindingFlags.Instance ||| BindingFlags.Public ||| BindingFlags.NonPublic) do
        if not field.FieldType.IsValueType && field.FieldType <> typeof<string> then field.SetValue(owner, null)

/// The service keeps a session that has ended: the handler of the process's end by which its folder of symbols is removed, and the mailbox
/// of one of its caches, which has the context that it was made in, lead to it for as long as the process lives. So what is led to is
/// emptied: 32 MB of the compiler's tables. It can go when an ended session is collected without it.
let private forget (session: Session) =
    try
        match typeof<Session>.GetField("fsiDynamicCompiler", BindingFlags.Instance ||| BindingFlags.NonPublic) with
        | null -> ()
        | field -> empty (field.GetValue session)
        empty session
    with _ -> ()
#else
let private forget (_: Session) = ()
#endif

/// Gives memory that is not in use back to the machine.
let giveBackMemory () =
#if FCS_NEW
    GC.Collect(GC.MaxGeneration, GCCollectionMode.Aggressive, true, true)
#else
    GC.Collect()
#endif

/// Releases what a session holds. Nothing can be asked of it any more.
let endSession (session: Session) =
    match box session with
    | :? IDisposable as disposable -> disposable.Dispose()
    | _ -> ()
    forget session

#if FCS_NEW
let private anyAccess = BindingFlags.Instance ||| BindingFlags.Public ||| BindingFlags.NonPublic

/// Tells the compiler that the SDK of a folder is the session's, which is the one that the compiler is of. Otherwise the first check of code
/// there starts `dotnet --version` and waits for it. Where it cannot be told, that happens.
let tellSdk (folder: string) =
    try
        let assembly = typeof<FSharpChecker>.Assembly
        let sdk = DirectoryInfo(Path.GetDirectoryName assembly.Location).Parent
        let root = sdk.Parent.Parent.FullName
        let host = match Environment.GetEnvironmentVariable "DOTNET_HOST_PATH" with null | "" -> root | path -> Path.GetDirectoryName path
        if sdk.Parent.Name = "sdk" && host = root && File.Exists(Path.Combine(sdk.FullName, "dotnet.dll")) then
            let known =
                assembly.GetType("FSharp.Compiler.FxResolver").GetField("desiredDotNetSdkVersionForDirectoryCache", BindingFlags.Static ||| BindingFlags.Public ||| BindingFlags.NonPublic)
            match known.GetValue null with
            | :? Collections.Concurrent.ConcurrentDictionary<string, Result<string, exn>> as versions -> versions.TryAdd(folder, Ok sdk.Name) |> ignore
            | _ -> ()
    with _ -> ()

let private fieldOf (name: string) (owner: obj) = owner.GetType().GetField(name, anyAccess).GetValue owner

/// Asks the runtime to abort the submission that runs. The service does this itself only inside `Run`, which reads standard input and
/// ends the process with it; so it is called by reflection, and where that fails code that does not wait goes on.
let abortSubmission (session: Session) =
    try
        let execution = fieldOf "fsiInterruptController" session |> fieldOf "controlledExecution"
        execution.GetType().GetMethod("TryAbort", anyAccess).Invoke(execution, [||]) |> ignore
    with _ -> ()
#else
/// The service of SDK 3.1 does not ask for the SDK of a folder.
let tellSdk (_: string) = ()

/// The runtime of SDK 3.1 cannot abort a thread.
let abortSubmission (_: Session) = ()
#endif

/// What a symbolic link points to; None where it is none, and on the runtime of SDK 3.1, which does not tell.
let linkTarget (path: string) : string option =
#if FCS_NEW
    Option.ofObj (FileInfo(path).LinkTarget)
#else
    None
#endif

/// The name the compiler gives to code that is in no file.
let anonymousFile = "input.fsx"

/// Runs one submission. `lines` is how many lines of the client's code stand before it.
/// Gives the value of a lone expression, or the exception that escaped, and the compiler's messages.
let runSubmission (session: Session) (file: string option) (lines: int) (text: string) : Result<(obj * Type) option, exn> * CompilerMessage[] =
    let padded = if lines = 0 then text else String('\n', lines) + text
#if FCS_NEW
    let outcome, messages = session.EvalInteractionNonThrowing(padded, defaultArg file anonymousFile)
#else
    let named =
        match file with
        | Some path -> "# 1 @\"" + path + "\"\n" + padded
        | None -> padded
    let outcome, messages = session.EvalInteractionNonThrowing named
#endif
    let result =
        match outcome with
        | Choice1Of2 (Some value) -> Ok(Some(value.ReflectionValue, value.ReflectionType))
        | Choice1Of2 None -> Ok None
        | Choice2Of2 e -> Error e
    result, Array.map messageOf messages

/// The untyped tree of a text, or None where there is none.
let parse (session: Session) (text: string) : obj option =
    let options = { FSharpParsingOptions.Default with SourceFiles = [| anonymousFile |] }
    let parsed = session.InteractiveChecker.ParseFile(anonymousFile, SourceText.ofString text, options) |> runHere
#if FCS_NEW
    if parsed.ParseHadErrors then None else Some(box parsed.ParseTree)
#else
    if parsed.ParseHadErrors then None else parsed.ParseTree |> Option.map box
#endif

/// The untyped tree of a source file of a project, or the compiler's first complaint of it.
let parseFile (session: Session) (path: string) (text: string) : Result<obj, CompilerMessage> =
    let options = { FSharpParsingOptions.Default with SourceFiles = [| path |] }
    let parsed = session.InteractiveChecker.ParseFile(path, SourceText.ofString text, options) |> runHere
#if FCS_NEW
    let messages, tree = parsed.Diagnostics, Some(box parsed.ParseTree)
#else
    let messages, tree = parsed.Errors, Option.map box parsed.ParseTree
#endif
    match messages |> Array.map messageOf |> Array.tryFind (fun message -> message.Severity = "error"), tree with
    | Some message, _ -> Error message
    | None, Some tree -> Ok tree
    | None, None ->
        Error { Severity = "error"; Code = ""; Text = "it cannot be parsed"; File = path; StartLine = 1; StartColumn = 0; EndLine = 1; EndColumn = 0 }

/// The part of a name that stands at the end of a line, without what qualifies it.
let partialName (line: string) = QuickParse.GetPartialLongNameEx(line, line.Length - 1).PartialIdent

let private kindOf (glyph: FSharpGlyph) =
    match glyph with
    | FSharpGlyph.Class -> "class"
    | FSharpGlyph.Constant -> "constant"
    | FSharpGlyph.Delegate -> "delegate"
    | FSharpGlyph.Enum -> "enum"
    | FSharpGlyph.EnumMember -> "enumMember"
    | FSharpGlyph.Event -> "event"
    | FSharpGlyph.Exception -> "exception"
    | FSharpGlyph.Field -> "field"
    | FSharpGlyph.Interface -> "interface"
    | FSharpGlyph.Method
    | FSharpGlyph.ExtensionMethod -> "method"
    | FSharpGlyph.Module -> "module"
    | FSharpGlyph.NameSpace -> "namespace"
    | FSharpGlyph.Property -> "property"
    | FSharpGlyph.Struct -> "struct"
    | FSharpGlyph.Typedef
    | FSharpGlyph.Type -> "type"
    | FSharpGlyph.Union -> "union"
    | FSharpGlyph.Variable -> "value"
    | _ -> "other"

#if FCS_NEW
let private documentationOf (doc: FSharpXmlDoc) =
    match doc with
    | FSharpXmlDoc.FromXmlText text -> Inline(String.concat "\n" text.UnprocessedLines)
    | FSharpXmlDoc.FromXmlFile (assembly, memberId) -> InAssembly(assembly, memberId)
    | _ -> Undocumented

/// Tagged text is an array of parts up to SDK 10, and a type of its own after it.
let private plainText (description: obj) =
    match description with
    | :? (TaggedText[]) as parts -> parts |> Array.map (fun part -> part.Text) |> String.concat ""
    | other -> string other

let private describe (ToolTipText elements) =
    elements
    |> List.tryPick (function
        | ToolTipElement.Group (first :: _) -> Some(plainText (box first.MainDescription), documentationOf first.XmlDoc)
        | _ -> None)
    |> Option.defaultValue ("", Undocumented)

let private proposalOf (item: DeclarationListItem) =
    { Name = item.NameInList
      NameInCode = item.NameInCode
      Kind = kindOf item.Glyph
      Describe = fun () -> describe item.Description }

/// The fields of a union case.
let fieldsOfCase (case: FSharpUnionCase) = List.ofSeq case.Fields

/// Of symbols from assemblies the service gives only the id under which the XML file has them.
let private documentedBy (doc: FSharpXmlDoc) (assembly: string option) (memberId: string) =
    match documentationOf doc, assembly with
    | Inline text, _ when not (String.IsNullOrWhiteSpace text) -> Inline text
    | InAssembly (path, memberId), _ -> InAssembly(path, memberId)
    | _, Some path when memberId <> "" -> InAssembly(path, memberId)
    | _ -> Undocumented

/// Where the documentation of a symbol is.
let symbolDocumentation (symbol: Symbol) =
    match symbol with
    | :? Entity as e -> documentedBy e.XmlDoc e.Assembly.FileName e.XmlDocSig
    | :? Member as m -> documentedBy m.XmlDoc m.Assembly.FileName m.XmlDocSig
    | :? FSharpUnionCase as c -> documentedBy c.XmlDoc c.Assembly.FileName c.XmlDocSig
    | :? FSharpField as f -> documentedBy f.XmlDoc f.Assembly.FileName f.XmlDocSig
    | _ -> Undocumented

/// What the service found out about a text.
let private checkedOf (parsed: FSharpParseFileResults, results: FSharpCheckFileResults, _: FSharpCheckProjectResults) : Checked =
    { Messages = Array.append parsed.Diagnostics results.Diagnostics |> Array.map messageOf |> Array.distinct
      Propose =
        fun line lineText ->
            let name = QuickParse.GetPartialLongNameEx(lineText, lineText.Length - 1)
            results.GetDeclarationListInfo(Some parsed, line, lineText, name).Items |> Array.map proposalOf
      Uses = fun () -> results.GetAllUsesOfAllSymbolsInFile() |> Seq.toArray
      SymbolsAt =
        fun line lineText ->
            let name = QuickParse.GetPartialLongNameEx(lineText, lineText.Length - 1)
            results.GetDeclarationListSymbols(Some parsed, line, lineText, name)
            |> List.concat
            |> List.map (fun used -> used.Symbol, used.DisplayContext)
      Assemblies = fun () -> results.ProjectContext.GetReferencedAssemblies() }

/// Parses and checks a text against the present definitions of the session; nothing runs.
let check (session: Session) (text: string) : Checked = checkedOf (session.ParseAndCheckInteraction text)
#else
let private documentationOf (doc: FSharpXmlDoc) =
    match doc with
    | FSharpXmlDoc.Text text -> Inline text
    | FSharpXmlDoc.XmlDocFileSignature (assembly, memberId) -> InAssembly(assembly, memberId)
    | FSharpXmlDoc.None -> Undocumented

let private describe (FSharpToolTipText elements) =
    elements
    |> List.tryPick (function
        | FSharpToolTipElement.Group (first :: _) -> Some(first.MainDescription, documentationOf first.XmlDoc)
        | _ -> None)
    |> Option.defaultValue ("", Undocumented)

let private proposalOf (item: FSharpDeclarationListItem) =
    { Name = item.Name
      NameInCode = item.NameInCode
      Kind = kindOf item.Glyph
      Describe = fun () -> describe (runHere item.DescriptionTextAsync) }

let private documentedBy (lines: seq<string>) (assembly: string option) (memberId: string) =
    match String.concat "\n" lines, assembly with
    | "", Some path -> InAssembly(path, memberId)
    | "", None -> Undocumented
    | text, _ -> Inline text

/// The fields of a union case.
let fieldsOfCase (case: FSharpUnionCase) = List.ofSeq case.UnionCaseFields

/// Where the documentation of a symbol is.
let symbolDocumentation (symbol: Symbol) =
    match symbol with
    | :? Entity as e -> documentedBy e.XmlDoc e.Assembly.FileName e.XmlDocSig
    | :? Member as m -> documentedBy m.XmlDoc m.Assembly.FileName m.XmlDocSig
    | _ -> Undocumented

/// What the service found out about a text.
let private checkedOf (parsed: FSharpParseFileResults, results: FSharpCheckFileResults, _: FSharpCheckProjectResults) : Checked =
    { Messages = Array.append parsed.Errors results.Errors |> Array.map messageOf |> Array.distinct
      Propose =
        fun line lineText ->
            let name = QuickParse.GetPartialLongNameEx(lineText, lineText.Length - 1)
            (results.GetDeclarationListInfo(Some parsed, line, lineText, name) |> runHere).Items |> Array.map proposalOf
      Uses = fun () -> results.GetAllUsesOfAllSymbolsInFile() |> runHere
      SymbolsAt =
        fun line lineText ->
            let name = QuickParse.GetPartialLongNameEx(lineText, lineText.Length - 1)
            results.GetDeclarationListSymbols(Some parsed, line, lineText, name)
            |> runHere
            |> List.concat
            |> List.map (fun used -> used.Symbol, used.DisplayContext)
      Assemblies = fun () -> results.ProjectContext.GetReferencedAssemblies() }

/// Parses and checks a text against the present definitions of the session; nothing runs.
let check (session: Session) (text: string) : Checked = checkedOf (session.ParseAndCheckInteraction text |> runHere)
#endif

/// The same of what the service itself has given, whatever it calls that.
let checkedBy (results: obj) : Checked = checkedOf (results :?> (FSharpParseFileResults * FSharpCheckFileResults * FSharpCheckProjectResults))

#if FCS_NEW
/// Runs `work` with a session that refers to these assemblies too, and no longer than that: afterwards the session is as it was, and takes
/// another version of one of them as if it had never seen this. The service can refer to something in a submission only, so the steps of one
/// are called by reflection; where that fails, `work` runs without them. No submission may run meanwhile.
let referring (session: Session) (assemblies: string list) (work: unit -> 'T) : 'T =
    let invoke (name: string) (owner: obj) (arguments: obj list) =
        owner.GetType().GetMethod(name, anyAccess).Invoke(owner, List.toArray arguments)
    let kept (owner: obj) =
        [ for field in owner.GetType().GetFields(anyAccess) do
            if not (field.FieldType.IsSubclassOf typeof<Delegate>) then yield (fun value -> field.SetValue(owner, value)), field.GetValue owner ]
    let refer () =
        let processor, compiler = fieldOf "fsiInteractionProcessor" session, fieldOf "fsiDynamicCompiler" session
        let token, place = fieldOf "ctokStartup" session, fieldOf "rangeStdin0" compiler
        let state = processor.GetType().GetField("currState", anyAccess)
        let before = [ processor; fieldOf "tcImports" session; fieldOf "tcConfigB" session ] |> List.collect kept
        let restore () =
            (fieldOf "delayedReferences" compiler :?> Collections.IList).Clear()
            for set, value in before do set value
        try
            for path in assemblies do
                invoke "AddDelayedReference" compiler [ token; path; false; place ] |> ignore
            state.SetValue(processor, invoke "ProcessDelayedReferences" compiler [ token; state.GetValue processor ])
        with _ ->
            restore ()
            reraise ()
        restore
    let restore = if List.isEmpty assemblies then ignore else (try refer () with _ -> ignore)
    try work () finally restore ()

/// What asking for packages gave: the assemblies they have, and the lines that were said about it.
type Packages = { Assemblies: string list; Lines: string list }

/// How long a restore may take that nothing but a check waits for.
let private restoreLimit = TimeSpan.FromSeconds 25.

let private packageManagers = lazy (new FSharp.Compiler.DependencyManager.DependencyProvider())

/// Has packages restored that are named as in `#r "nuget: …"`, with scripts' paths relative to a folder. None where the service has no
/// manager for them.
let restorePackages (folder: string) (packages: string list) : Packages option =
    let provider = packageManagers.Value
    let errors = ResizeArray<string>()
    let report = FSharp.Compiler.DependencyManager.ResolvingErrorReport(fun _ _ text -> errors.Add text)
    // What the methods take besides differs between services.
    let call (name: string) (known: (string * obj) list) =
        let method = provider.GetType().GetMethod(name, anyAccess)
        let valueFor (parameter: ParameterInfo) = known |> List.tryFind (fun (name, _) -> name = parameter.Name) |> Option.map snd |> Option.toObj
        method.Invoke(provider, method.GetParameters() |> Array.map valueFor)
    let manager =
        call "TryFindDependencyManagerByKey" [ "compilerTools", box Seq.empty<string>; "outputDir", box ""; "reportError", box report; "key", box "nuget" ]
    if isNull manager then None
    else
        let known =
            [ "packageManager", manager
              "scriptExt", box ".fsx"
              "packageManagerTextLines", box (packages |> Seq.map (fun package -> "r", package))
              "reportError", box report
              "executionTfm", box (sprintf "net%d.%d" Environment.Version.Major Environment.Version.Minor)
              "executionRid", box Runtime.InteropServices.RuntimeInformation.RuntimeIdentifier
              "implicitIncludeDir", box folder
              "mainScriptName", box "stdin.fsx"
              "fileName", box "stdin.fsx"
              "timeout", box (int restoreLimit.TotalMilliseconds) ]
        match call "Resolve" known with
        | :? FSharp.Compiler.DependencyManager.IResolveDependenciesResult as found ->
            let lines = Seq.concat [ Seq.ofArray found.StdOut; Seq.ofArray found.StdError; Seq.cast errors ]
            Some { Assemblies = (if found.Success then List.ofSeq found.Resolutions else []); Lines = List.ofSeq lines }
        | _ -> Some { Assemblies = []; Lines = List.ofSeq errors }
#else
/// The service of SDK 3.1 has other insides, and no packages.
let referring (_: Session) (_: string list) (work: unit -> 'T) : 'T = work ()

type Packages = { Assemblies: string list; Lines: string list }

let restorePackages (_: string) (_: string list) : Packages option = None
#endif

let private assembler = lazy (FSharpChecker.Create())

/// Makes an assembly as the compiler's own program does with these arguments, the first of which is its name. Gives what is said of it, and
/// whether it is there.
let compile (arguments: string[]) : CompilerMessage[] * bool =
    let said, ending = assembler.Value.Compile(arguments) |> runHere
    // An exit code with older services, and with later ones the exception that ended it, if one did.
    let isOrderly = match box ending with :? int as code -> code = 0 | exceptional -> isNull exceptional
    let messages = said |> Array.map messageOf
    messages, (isOrderly && messages |> Array.forall (fun message -> message.Severity <> "error"))
