/// `#r "framework: Microsoft.AspNetCore.App"`: the assemblies of a shared framework that is installed beside the runtime. The compiler has no
/// manager for them, so the directive is taken out of the code, and what it stands for is referred to one by one.
module Mainstay.Worker.Frameworks

open System
open System.IO
open System.Reflection
open System.Text
open System.Text.RegularExpressions

/// Code without the directives, which are blanks in it, and what they stand for: a line each that refers to an assembly.
type Resolved = { Code: string; References: string list }

let private directive = Regex(@"\G#r[ \t]+@?""[ \t]*framework[ \t]*:[ \t]*([^""\r\n]*?)[ \t]*""", RegexOptions.CultureInvariant)

/// Where the runtime is, and where the shared frameworks are.
let private runtime = Path.GetDirectoryName typeof<obj>.Assembly.Location
let shared = Path.GetFullPath(Path.Combine(runtime, "..", ".."))

let private versionOf (folder: string) : Version option =
    match Version.TryParse((Path.GetFileName folder).Split('-').[0]) with
    | true, version -> Some version
    | _ -> None

let private isManaged (path: string) =
    try
        AssemblyName.GetAssemblyName path |> ignore
        true
    with _ -> false

/// The assemblies of the newest version that this runtime loads; None where there is none of that name.
let assembliesOf (name: string) : string list option =
    let folder = Path.Combine(shared, name)
    let isName = name <> "" && name |> Seq.forall (fun c -> Char.IsLetterOrDigit c || c = '.') && not (name.StartsWith ".")
    let own = versionOf runtime
    let isOfLine (version: Version) = own |> Option.forall (fun own -> own.Major = version.Major && own.Minor = version.Minor)
    if not isName || not (Directory.Exists folder) then None
    else
        Directory.GetDirectories folder
        |> Seq.choose (fun folder -> versionOf folder |> Option.map (fun version -> version, folder))
        |> Seq.filter (fst >> isOfLine)
        |> Seq.sortBy fst
        |> Seq.tryLast
        |> Option.map (fun (_, folder) ->
            // The runtime's own are there already.
            let isNew (path: string) = not (File.Exists(Path.Combine(runtime, Path.GetFileName path)))
            Directory.GetFiles(folder, "*.dll") |> Array.filter isNew |> Array.filter isManaged |> Array.sort |> List.ofArray)

let private installed () = Directory.GetDirectories shared |> Array.map Path.GetFileName |> Array.sort |> String.concat ", "

/// Whether only blanks stand before an index on its line.
let private startsLine (code: string) (index: int) =
    let lineStart = if index = 0 then 0 else code.LastIndexOf('\n', index - 1) + 1
    String.IsNullOrWhiteSpace(code.Substring(lineStart, index - lineStart))

/// The code without the directives; `afterToken` gives the index after the token at an index. One that names what is not installed stays
/// and says so: the compiler repeats it, in its place.
let resolve (afterToken: string -> int -> int) (code: string) : Resolved =
    if not (code.Contains "framework") then { Code = code; References = [] }
    else
        let resolved, references = StringBuilder(), ResizeArray<string>()
        let rec go index =
            if index < code.Length then
                let found = if code.[index] = '#' && startsLine code index then directive.Match(code, index) else Match.Empty
                if found.Success then
                    let name = found.Groups.[1].Value
                    match assembliesOf name with
                    | Some paths ->
                        references.AddRange(paths |> List.map (fun path -> "#r @\"" + path + "\""))
                        resolved.Append(' ', found.Length) |> ignore
                    | None -> resolved.Append("#r \"no shared framework " + name + " is installed for this runtime; there are " + installed () + "\"") |> ignore
                    go (index + found.Length)
                else
                    let next = afterToken code index
                    resolved.Append(code, index, next - index) |> ignore
                    go next
        go 0
        { Code = resolved.ToString(); References = List.ofSeq references }
