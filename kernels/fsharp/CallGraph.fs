/// Which code of a project's assemblies may run which other: a graph of what their IL mentions, read backwards, from what has changed to the
/// tests that reach it. It rather says too much than too little; reflection and injected dependencies are no edges of it.
///
/// One rule stands for closures, state machines, interface calls and generic code: whoever mentions a type, by making one, as a local, as a
/// generic argument or as a base, reaches its virtual methods. Whoever calls a virtual method reaches those that override it.
module Mainstay.Worker.CallGraph

open System
open System.Collections.Generic
open System.IO
open System.Reflection
open System.Reflection.Metadata
open System.Reflection.Metadata.Ecma335
open System.Reflection.PortableExecutable
open System.Text.RegularExpressions
open Mainstay.Worker.CodeReading

/// Attributes of methods that a test framework calls around the tests of a class.
let private aroundTests = Regex(@"(SetUp|TearDown|Initialize|Cleanup|Before|After)\w*Attribute$", RegexOptions.CultureInvariant)

/// A type's name as the source has it: `Shop.CartModule+Inner` is `Shop.Cart.Inner`.
let sourceName (name: string) : string =
    let plain (part: string) =
        let part = match part.IndexOf '`' with -1 -> part | at -> part.Substring(0, at)
        if part.EndsWith("Module", StringComparison.Ordinal) && part.Length > 6 then part.Substring(0, part.Length - 6) else part
    String.Join(".", name.Replace('+', '.').Split '.' |> Array.map plain)

/// How the method is called that gives a property of the source.
let private getter = "get_"

/// How the method is called that stores into a property of the source.
let private setter = "set_"

/// The name by which the source calls a method.
let private sourceShort (short: string) : string = if short.StartsWith(getter, StringComparison.Ordinal) then short.Substring getter.Length else short

/// The name by which the source knows a method of a type: a constructor has that of its type.
let private sourceMember (owner: string) (short: string) : string =
    match short with
    | ".ctor"
    | ".cctor" -> sourceName owner
    | _ ->
        // A method that stands for one of an interface has the name of that before its own.
        let short = short.Substring(short.LastIndexOf '.' + 1)
        let short = if short.StartsWith(setter, StringComparison.Ordinal) then short.Substring setter.Length else sourceShort short
        sourceName owner + "." + short

/// A name that the compiler made, as those of closures and state machines are.
let private isMade (name: string) =
    name.IndexOfAny [| '@'; '$' |] >= 0 || name.StartsWith("<", StringComparison.Ordinal) || name.Contains "+<"

/// What stands for a type: that its virtual methods may run, that somebody makes one, and that its values are read.
let private typeNode (name: string) = "T:" + name
let private madeNode (name: string) = "N:" + name
let private valuesNode (name: string) = "S:" + name

let private ownerOf (memberName: string) = memberName.Substring(0, memberName.IndexOf("::", StringComparison.Ordinal))

/// The graph of one session's assemblies. Not for several threads at once.
type CallGraph() =
    let ids = Dictionary<string, int>(StringComparer.Ordinal)
    let names = List<string>()
    let callers = List<List<int>>() // of each node
    let tokens = Dictionary<struct (string * int), int>() // the methods of assemblies, by their tokens
    let definitions = Dictionary<int, struct (string * int)>() // the same by the methods
    let methods = Dictionary<string, List<int>>(StringComparer.Ordinal) // by their names without signature
    let owned = Dictionary<int, struct (string * string)>() // the type of each method, and its short name
    let shorts = Dictionary<string, List<int>>(StringComparer.Ordinal) // by the last part of their names
    let bases = Dictionary<string, string list>(StringComparer.Ordinal)
    let virtuals = Dictionary<string, List<Defined>>(StringComparer.Ordinal) // of a type
    let stored = Dictionary<int, int list>() // what getters of values read
    let getters = Dictionary<int, int>() // the getters of what is stored
    let making = List<List<int>>() // of each node, what is stored that was made by it
    let roundabout = HashSet<struct (int * int)>() // edges, from callee to caller, that stand for all that makes the values of a file
    let storing = Dictionary<int, (int * int) list>() // what the code that makes values stores them in, each with where in that code
    let valueNames = Dictionary<int, string>() // of what values are stored in
    let mutable edges = 0

    let nodeOf (name: string) : int =
        match ids.TryGetValue name with
        | true, id -> id
        | _ ->
            let id = names.Count
            ids.[name] <- id
            names.Add name
            callers.Add(List<int>(2))
            making.Add(List<int>(0))
            id

    /// `caller` may run or read `callee`.
    let add (callee: string) (caller: string) =
        callers.[nodeOf callee].Add(nodeOf caller)
        edges <- edges + 1

    let enter (index: Dictionary<string, List<'T>>) (name: string) (value: 'T) =
        match index.TryGetValue name with
        | true, all -> all.Add value
        | _ -> index.[name] <- List<'T>([ value ])

    /// All types that one comes from, or implements. A type may stand among its own, as an argument of an interface.
    let ancestors (name: string) : string list =
        let rec collect (seen: Set<string>) (left: string list) =
            match left with
            | [] -> seen
            | one :: rest when seen.Contains one -> collect seen rest
            | one :: rest -> collect (seen.Add one) ((match bases.TryGetValue one with | true, direct -> direct | _ -> []) @ rest)
        (collect Set.empty [ name ]).Remove name |> List.ofSeq

    let addRoundabout (callee: string) (caller: string) =
        add callee caller
        roundabout.Add(struct (nodeOf callee, nodeOf caller)) |> ignore

    let addMention (caller: string) (mention: Mention) =
        match mention with
        | Method name -> add name caller
        | Type name -> add (typeNode name) caller
        | StaticField name ->
            add name caller
            addRoundabout (valuesNode (ownerOf name)) caller

    /// What is stored was made by what the code before that mentions.
    let addStore (maker: string) (store: Store) =
        addRoundabout maker store.Field
        let id = nodeOf store.Field
        for mention in List.distinct store.Before do
            match mention with
            | Method name
            | StaticField name -> making.[nodeOf name].Add id
            | Type name -> making.[nodeOf (typeNode name)].Add id

    /// Names in the arguments of attributes are those of members of the class, or of types.
    let addWords (owner: string) (found: Defined) (members: Dictionary<string, List<string>>) =
        for attribute in found.Attributes do
            if aroundTests.IsMatch attribute.Kind then add found.Name (madeNode owner)
            for word in attribute.Words do
                match members.TryGetValue word with
                | true, all -> for one in all do if one <> found.Name then add one found.Name
                | _ -> ()
                if bases.ContainsKey word then
                    add (typeNode word) found.Name
                    add (madeNode word) found.Name

    let addMethod (assembly: string) (owner: string) (found: Defined) =
        let id = nodeOf found.Name
        tokens.[struct (assembly, found.Token)] <- id
        definitions.[id] <- struct (assembly, found.Token)
        owned.[id] <- struct (owner, found.Short)
        enter methods (owner + "::" + found.Short) id
        enter shorts (sourceShort found.Short) id
        if found.IsVirtual then
            add found.Name (typeNode owner)
            enter virtuals owner found
        match found.Short with
        | ".ctor" ->
            add found.Name (madeNode owner)
            for name in found.Takes do
                add (madeNode name) (madeNode owner)
                add (typeNode name) (madeNode owner)
        | ".cctor" ->
            add found.Name (madeNode owner)
            add found.Name (valuesNode owner)
        | _ -> ()
        for mention in found.Mentions do addMention found.Name mention
        if found.Short.StartsWith(getter, StringComparison.Ordinal) then
            stored.[id] <- found.Mentions |> List.choose (function StaticField name -> Some(nodeOf name) | Method _ | Type _ -> None)
            for field in stored.[id] do
                getters.[field] <- id
                valueNames.[field] <- sourceMember owner found.Short
        // A function that assigns to a value is no part of it.
        if (isMade owner || isMade found.Short || found.Short = ".cctor") && not (List.isEmpty found.Stores) then
            storing.[id] <- found.Stores |> List.map (fun store -> store.At, nodeOf store.Field)
        for store in found.Stores do addStore found.Name store

    let addType (assembly: string) (kind: DefinedType) =
        bases.[kind.Type] <- kind.Bases
        for one in kind.Bases do
            add (typeNode one) (typeNode kind.Type)
            add (madeNode one) (madeNode kind.Type)
        for found in kind.Methods do addMethod assembly kind.Type found
        for body, declaration in kind.Implements do add body declaration

    /// What takes the whole of the types to be told: who overrides what, and what attributes name.
    let join (all: DefinedType list) =
        for kind in all do
            let members = Dictionary<string, List<string>>(StringComparer.Ordinal)
            for found in kind.Methods do enter members (sourceShort found.Short) found.Name
            for found in kind.Methods do addWords kind.Type found members
            let above = ancestors kind.Type
            for found in kind.Methods do
                for ancestor in above do
                    match virtuals.TryGetValue ancestor with
                    | true, declared when found.IsVirtual ->
                        for one in declared do
                            if one.Short = found.Short then add found.Name one.Name
                    | _ -> ()
        // Who names a member of a type that has it from its base means that of the base.
        for name in List.ofSeq ids.Keys do
            match name.IndexOf("::", StringComparison.Ordinal) with
            | at when at > 0 && bases.ContainsKey(name.Substring(0, at)) && not (owned.ContainsKey ids.[name]) ->
                for ancestor in ancestors (name.Substring(0, at)) do
                    let inherited = ancestor + name.Substring at
                    if ids.ContainsKey inherited then add inherited name
            | _ -> ()

    /// How many nodes and edges it has.
    member _.Size = struct (names.Count, edges)

    /// Adds what an assembly of this name defines, or some assemblies that name each other's.
    member _.Add(assemblies: (string * DefinedType list) list) =
        for assembly, all in assemblies do
            for kind in all do addType assembly kind
        join (assemblies |> List.collect snd)

    /// A method of an assembly by its token.
    member _.OfToken(assembly: string, token: int) : int option =
        match tokens.TryGetValue(struct (assembly, token)) with
        | true, id -> Some id
        | _ -> None

    /// A method, and where it gives a value what that is stored in: code beside a value reads it without its getter.
    member _.WithStored(id: int) : int list =
        match stored.TryGetValue id with
        | true, fields -> id :: fields
        | _ -> [ id ]

    /// Whoever runs the one may run the other, as is known otherwise.
    member _.Link(caller: int, callee: int) =
        callers.[callee].Add caller
        edges <- edges + 1

    /// The methods that a word of the source may mean.
    member _.Named(word: string) : int list =
        match shorts.TryGetValue word with
        | true, all -> List.ofSeq all
        | _ -> []

    /// The methods whose name in the source, or the end of it, this is.
    member _.Declared(name: string) : int list =
        let isIt (id: int) =
            let struct (owner, short) = owned.[id]
            let found = sourceName owner + "." + sourceShort short
            found = name || found.EndsWith("." + name, StringComparison.Ordinal)
        match shorts.TryGetValue(name.Substring(name.LastIndexOf '.' + 1)) with
        | true, all -> all |> Seq.filter isIt |> List.ofSeq
        | _ -> []

    /// The nodes at which what is run begins: a method by the names of its class and its own, with all that a framework runs around it, or a type.
    /// None where nothing of that name is known.
    member _.RootsOf(name: string) : int list =
        let known (node: string) = match ids.TryGetValue node with | true, id -> [ id ] | _ -> []
        match name.IndexOf("::", StringComparison.Ordinal) with
        | -1 -> known (typeNode name)
        | at ->
            match methods.TryGetValue name with
            | true, all -> List.ofSeq all @ known (madeNode (name.Substring(0, at))) @ known (typeNode (name.Substring(0, at)))
            | _ -> []

    /// The method at which what is run begins, by its assembly and token.
    member _.DefinitionOf(root: string) : struct (string * int) option =
        match methods.TryGetValue(if root.Contains "::" then root else root + "::Invoke") with
        | true, all ->
            (match definitions.TryGetValue all.[0] with
             | true, found -> Some found
             | _ -> None)
        | _ -> None

    /// How many nodes there are; they are counted from 0.
    member _.Count = names.Count

    /// The nodes that reach one at once.
    member _.CallersOf(node: int) : seq<int> = callers.[node] :> seq<int>

    /// The methods of assemblies, each with its assembly and its token there.
    member _.Methods : seq<struct (string * int) * int> = tokens |> Seq.map (fun entry -> entry.Key, entry.Value)

    /// Whether a node is a method that the source declares by a name.
    member _.IsDeclaration(node: int) : bool =
        match owned.TryGetValue node with
        | true, struct (owner, short) -> not (isMade owner) && not (isMade short)
        | _ -> false

    /// The name of a method or a value in the source; None where it has none.
    member this.SourceName(node: int) : string option =
        match owned.TryGetValue node, valueNames.TryGetValue node with
        | (true, struct (owner, short)), _ when this.IsDeclaration node -> Some(sourceMember owner short)
        | _, (true, name) -> Some name
        | _ -> None

    /// The name of the declaration that a closure or state machine was made of, as far as its own name tells.
    member _.MadeOf(node: int) : string option =
        match owned.TryGetValue node with
        | true, struct (owner, short) ->
            let name = if isMade owner then owner else owner + "+" + short
            (match name.IndexOf '@' with
             | at when at > 0 -> Some(sourceName (name.Substring(0, at)))
             | _ -> None)
        | _ -> None

    /// What the code that makes values stores them in, each with where in that code, in that order.
    member _.StoresOf(node: int) : (int * int) list = match storing.TryGetValue node with | true, all -> all | _ -> []

    /// Whether one method stands for another, of a base or an interface of its type.
    member _.Overrides(node: int, other: int) : bool =
        match owned.TryGetValue node, owned.TryGetValue other with
        | (true, struct (owner, short)), (true, struct (above, declared)) ->
            owner <> above
            && (short = declared || short.EndsWith("." + declared, StringComparison.Ordinal))
            && List.contains above (ancestors owner)
        | _ -> false

    /// Whether a node stands for something that the compiler made of a declaration: a method, a type or what it stores a value in.
    member _.IsMade(node: int) : bool =
        match owned.TryGetValue node with
        | true, struct (owner, short) -> isMade owner || isMade short
        | _ ->
            let name = names.[node]
            let at = name.IndexOf("::", StringComparison.Ordinal)
            not (valueNames.ContainsKey node) && isMade (if at > 0 then name.Substring(0, at) else name)

    /// All nodes that reach one of these. Behind an `ending` it looks no further.
    member _.Reaching(changed: seq<int>, endings: HashSet<int>) : HashSet<int> =
        let reached = HashSet<int>()
        let left = Queue<int>()
        let take (node: int) = if reached.Add node && not (endings.Contains node) then left.Enqueue node
        Seq.iter take changed
        while left.Count > 0 do
            for caller in callers.[left.Dequeue()] do take caller
        reached

    /// The static fields whose value was made by one of these, directly or not, each with whether that is so apart from what objects do when they
    /// are called.
    member _.MadeBy(changed: int list) : (int * bool) list =
        let isDispatch (node: int) = names.[node].StartsWith(typeNode "", StringComparison.Ordinal)
        let reached (isMeant: int -> bool) =
            let reached, fields, left = HashSet<int>(), HashSet<int>(), Queue<int>()
            let take (node: int) = if isMeant node && reached.Add node then left.Enqueue node
            List.iter take changed
            while left.Count > 0 do
                let node = left.Dequeue()
                for caller in callers.[node] do if not (roundabout.Contains(struct (node, caller))) then take caller
                for field in making.[node] do
                    if fields.Add field then take field
            fields
        let directly = reached (isDispatch >> not)
        [ for field in reached (fun _ -> true) -> field, directly.Contains field ]

    /// The type that a static field is of, its name, and the getter by which the source reads it.
    member _.Field(id: int) : string * string * int option =
        let name = names.[id]
        let owner = ownerOf name
        owner, name.Substring(owner.Length + 2), (match getters.TryGetValue id with | true, getter -> Some getter | _ -> None)

    /// The type of a method, and how the source calls it.
    member _.Method(id: int) : string * string = let struct (owner, short) = owned.[id] in owner, sourceShort short

let private bodyIn (file: PEReader) (reader: MetadataReader) (handle: MethodDefinitionHandle) : Body option =
    match reader.GetMethodDefinition(handle).RelativeVirtualAddress with
    | 0 -> None
    | address ->
        let body = file.GetMethodBody address
        Some { Code = body.GetILBytes(); Locals = body.LocalSignature }

/// What assembly files define, with the names of their assemblies.
let ofFiles (paths: string list) : (string * DefinedType list) list =
    let own = paths |> List.map Path.GetFileNameWithoutExtension |> Set.ofList
    [ for path in paths do
        use file = new PEReader(new MemoryStream(File.ReadAllBytes path))
        let reader = file.GetMetadataReader()
        let name = reader.GetString(reader.GetAssemblyDefinition().Name)
        name, read reader (bodyIn file reader) own.Contains ]

/// What an assembly of this process defines, which has no file; None where its code cannot be read.
let ofLoaded (assembly: Assembly) (isOwn: string -> bool) : DefinedType list option =
    let mutable start = Unchecked.defaultof<nativeptr<byte>>
    let mutable length = 0
    if assembly.IsDynamic || not (AssemblyExtensions.TryGetRawMetadata(assembly, &start, &length)) then None
    else
        let reader = MetadataReader(start, length)
        let bodyOf (handle: MethodDefinitionHandle) : Body option =
            let token = MetadataTokens.GetToken(MethodDefinitionHandle.op_Implicit handle: EntityHandle)
            match assembly.ManifestModule.ResolveMethod(token).GetMethodBody() with
            | null -> None
            | body ->
                let locals =
                    match body.LocalSignatureMetadataToken with
                    | 0 -> Unchecked.defaultof<StandaloneSignatureHandle>
                    | token -> MetadataTokens.StandaloneSignatureHandle(token &&& 0xffffff)
                Some { Code = body.GetILAsByteArray(); Locals = locals }
        Some(read reader bodyOf isOwn)
