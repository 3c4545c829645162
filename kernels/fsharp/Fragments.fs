/// Compiles a row of submissions at once: as one file, in which each is a module with the number that it has when it is run alone. Most of
/// what a small submission costs it costs as a file of its own.
///
/// The service offers no such thing, so its own steps are called by reflection: by the names of their parameters, so that a service whose
/// steps are others (SDK 3.1 among them) compiles nothing here, and every submission is run alone there. This file can go when a service
/// evaluates several submissions at once.
module Mainstay.Worker.Fragments

open System
open Microsoft.FSharp.Reflection
open Mainstay.Worker.Compat
open Mainstay.Worker.Insides

/// A submission as the interactive parser reads it: its declarations, which are a list, and their range.
type Parsed = private { Declarations: obj; Range: obj }

/// The tree of the declarations, for `Syntax.read`.
let treeOf (parsed: Parsed) : obj = parsed.Declarations

#if FCS_NEW
open FSharp.Compiler.Syntax

/// What a module is called there, with another name. Up to F# 10 that is a list of identifiers, and from F# 11 on a type of that name.
let private renamed (name: Ident) (information: obj) : obj =
    let case, _ = FSharpValue.GetUnionFields(information, information.GetType(), anyAccess)
    if case.GetFields() |> Array.exists (fun field -> field.Name = "longId") then information |> caseWith [ ("longId", box [ name ]) ]
    else
        let some = fieldOfCase "synType" information
        let kind = fieldOfCase "Value" some
        let long = fieldOfCase "longDotId" kind |> caseWith [ ("id", box [ name ]) ]
        information |> caseWith [ ("synType", some |> caseWith [ ("Value", kind |> caseWith [ ("longDotId", long) ]) ]) ]

/// A file like that one, of these modules, with these declarations behind them.
let private fileOf (model: obj) (modules: (Ident * obj) list) (behind: obj list) : ParsedInput =
    let file = fieldOfCase "Item" model
    let space = fieldOfCase "contents" file |> itemsOf |> List.head
    let declarations = fieldOfCase "decls" space
    let moduleModel = itemsOf declarations |> List.head
    let information = fieldOfCase "moduleInfo" moduleModel
    let made =
        modules |> List.map (fun (name, inner) ->
            moduleModel |> caseWith [ "moduleInfo", renamed name information; "decls", inner ])
    let content = space |> caseWith [ ("decls", listLike declarations (made @ behind)) ]
    let qualified = fieldOfCase "qualifiedNameOfFile" file |> caseWith [ ("Item", modules |> List.last |> fst |> box) ]
    let changes =
        [ "fileName", box "stdin"
          "isScript", box true
          "qualifiedNameOfFile", qualified
          "contents", box [ content :?> SynModuleOrNamespace ]
          "flags", box (true, false) ]
    model |> caseWith [ ("Item", caseWith changes file) ] :?> ParsedInput

/// The text of a file that `fileOf` takes for its model.
let private modelText = "namespace global\nmodule Model =\n    ()"

/// Reads a submission as the session does, from that file where it is of one; None where the compiler has anything to say of it, or the
/// service is another.
let read (session: Session) (file: string option) (text: string) : Parsed option =
    try
        let steps = Steps session
        steps.Logging(fun logger ->
            match steps.Parse(defaultArg file anonymousFile, text, logger) with
            | Some definitions when steps.SaysNothing logger ->
                Some { Declarations = fieldOfCase "defns" definitions; Range = fieldOfCase "range" definitions }
            | _ -> None)
    with _ -> None

/// A submission to compile, and which of those before it in the row it uses.
type Member = { Parsed: Parsed; Uses: int list }

/// The submissions as a file. Each opens what it uses of those before it, and at the end all of it is open: the session goes on there.
let private fileFor (steps: Steps) (session: Session) (model: obj) (all: Member list) : Ident list * ParsedInput =
    let range (one: Member) = one.Parsed.Range :?> FSharp.Compiler.Text.range
    let names = all |> List.map (fun one -> Ident("FSI_" + (call steps.Compiler "nextFragmentId" [] :?> string), range one))
    let opening (indices: int list) : obj list =
        if List.isEmpty indices then []
        else
            match indices |> List.map (fun index -> "open " + (List.item index names).idText) |> String.concat "\n" |> read session None with
            | Some parsed -> itemsOf parsed.Declarations
            | None -> missing typeof<Session> "ParseInteraction"
    let modules =
        List.zip names all |> List.map (fun (name, one) ->
            let declarations = one.Parsed.Declarations
            name, listLike declarations (opening one.Uses @ itemsOf declarations))
    [ List.last names ], fileOf model modules (opening [ 0 .. List.length all - 1 ])

/// What the type checker makes of a file: the state with it, its attributes, and its implementation.
let private check (steps: Steps) (settled: obj) (before: obj) (input: ParsedInput) (prefix: Ident list) (logger: obj) =
    let phased = typeNamed "FSharp.Compiler.DiagnosticsLogger+PhasedDiagnostic"
    let checking () =
        callOn (typeNamed "FSharp.Compiler.ParseAndCheckInputs") null "CheckClosedInputSet" [
            "ctok", null
            "checkForErrors", box (fun () -> not (steps.SaysNothing logger))
            "tcConfig", settled
            "tcImports", get "tcImports" steps.Compiler
            "tcGlobals", get "tcGlobals" steps.Compiler
            "prefixPathOpt", box (Some prefix)
            "tcState", get "tcState" before
            "eagerFormat", FSharpValue.MakeFunction(FSharpType.MakeFunctionType(phased, phased), id)
            "inputs", box [ input ]
        ]
    match parts (lock (get "tcLockObject" steps.Compiler) checking) with
    | [| state; attributes; implementations; environment |] ->
        call state "NextStateAfterIncrementalFragment" [ ("tcEnvAtEndOfLastInput", environment) ], attributes, implementations
    | _ -> missing typeof<Session> "CheckClosedInputSet"

let private caseOf (value: obj) : string = (FSharpValue.GetUnionFields(value, value.GetType(), anyAccess) |> fst).Name

/// The modules in what a file holds; what else is there only opens names.
let rec private modulesIn (contents: obj) : obj list =
    match caseOf contents with
    | "TMDefs" -> fieldOfCase "defs" contents |> itemsOf |> List.collect modulesIn
    | "TMDefRec" -> [ contents ]
    | "TMDefOpens" -> []
    | other -> missing (contents.GetType()) other

/// The implementation of a file as those of its modules.
let private apart (implementations: obj) (count: int) : obj list =
    match itemsOf implementations with
    | [ whole ] ->
        let contents = fieldOfCase "contents" whole
        let modules = modulesIn contents
        if List.length modules <> count then missing (contents.GetType()) "defs"
        modules |> List.map (fun one ->
            let only = contents |> caseWith [ ("defs", listLike (fieldOfCase "defs" contents) [ one ]) ]
            listLike implementations [ whole |> caseWith [ ("contents", only) ] ])
    | _ -> missing (implementations.GetType()) "Item"

/// Generates the code of what was checked, loads and runs it, and announces what each of the submissions defined.
let private generate (steps: Steps) (settled: obj) (before: obj) (prefix: Ident list) (state, attributes, implementations) (each: obj list) announced logger =
    let generator = get "ilxGenerator" before
    match
        parts (
            call steps.Compiler "ProcessTypedImpl" [
                "diagnosticsLogger", logger
                "optEnv", get "optEnv" before
                "tcState", state
                "tcConfig", settled
                "isInteractiveItExpr", box false
                "topCustomAttrs", attributes
                "prefixPath", box prefix
                "isIncrementalFragment", box true
                "declaredImpls", implementations
                "ilxGenerator", generator
            ]
        )
    with
    | [| code; optimizations; name |] ->
        let processed =
            call steps.Compiler "ProcessCodegenResults" [
                "ctok", null
                "diagnosticsLogger", logger
                "istate", before
                "optEnv", optimizations
                "tcState", state
                "tcConfig", settled
                "prefixPath", box prefix
                "showTypes", box true
                "isIncrementalFragment", box true
                "fragName", name
                "declaredImpls", implementations
                "ilxGenerator", generator
                "codegenResults", code
                "m", box (List.head prefix).idRange
            ]
        let mutable after = (parts processed).[0]
        each |> List.iteri (fun index implementation ->
            after <- (parts (call steps.Compiler "processContents" [ "istate", after; "declaredImpls", implementation ])).[0]
            announced index)
        call steps.Processor "setCurrState" [ ("s", after) ] |> ignore
    | _ -> missing typeof<Session> "ProcessTypedImpl"

/// Compiles and runs submissions as one, and tells whether it did. Where it did not the session has nothing of them. Nothing of them ran then,
/// unless their running is what failed. `announced` is called with the index of each when its definitions have been announced.
let run (session: Session) (all: Member list) (announced: int -> unit) : bool =
    try
        let steps = Steps session
        let before, number = steps.State, get "fragmentId" steps.Compiler
        let settled = steps.Settled()
        let model = parse session modelText |> Option.defaultWith (fun () -> missing typeof<Session> "ParseFile")
        let checkedFile =
            steps.Logging(fun logger ->
                try
                    let prefix, file = fileFor steps session model all
                    let state, _, implementations as found = check steps settled before file prefix logger
                    // What the compiler has something to say of is run alone, where it is told.
                    if steps.SaysNothing logger then Some(prefix, found, apart implementations (List.length all)) else None
                with _ -> None)
        match checkedFile with
        | None ->
            set "fragmentId" steps.Compiler number
            false
        | Some (prefix, found, each) ->
            steps.Logging(generate steps settled before prefix found each announced)
            true
    with _ -> false
#else
/// A submission to compile, and which of those before it in the row it uses.
type Member = { Parsed: Parsed; Uses: int list }

let read (_: Session) (_: string option) (_: string) : Parsed option = None

let run (_: Session) (_: Member list) (_: int -> unit) : bool = false
#endif
