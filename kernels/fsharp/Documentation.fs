/// Turns the XML documentation of a symbol into its summary as plain text. It is read from the file beside the symbol's assembly, or from
/// the reference pack where the assembly is the framework's own.
module Mainstay.Worker.Documentation

open System
open System.Collections.Generic
open System.IO
open System.Text.RegularExpressions
open Mainstay.Worker.Compat

/// Larger files are not read: they would hold up the answer.
let private fileLimit = 16L * 1024L * 1024L

let private memberPattern = Regex("""<member name="([^"]*)">(.*?)</member>""", RegexOptions.Singleline)
let private summaryPattern = Regex(@"<summary>(.*?)</summary>", RegexOptions.Singleline)
let private referencePattern = Regex("""<(?:see|seealso|paramref|typeparamref)\s+(?:cref|name|langword)="(?:\w:)?([^"]*)"\s*/>""")
let private tagPattern = Regex("<[^>]+>")

let private plain (xml: string) =
    let text = referencePattern.Replace(xml, "$1")
    let text = tagPattern.Replace(text, "")
    Regex.Replace(Net.WebUtility.HtmlDecode text, @"\s+", " ").Trim()

let private summaryOf (xml: string) =
    let found = summaryPattern.Match xml
    match plain (if found.Success then found.Groups.[1].Value else xml) with
    | "" -> None
    | text -> Some text

// The files are written by compilers and regular. An XML reader would also load the system's OpenSSL, which ends the process
// where SDK 3.1 does not find the version it wants.
let private readMembers (path: string) =
    let members = Dictionary<string, string>()
    for found in memberPattern.Matches(File.ReadAllText path) do
        members.[Net.WebUtility.HtmlDecode found.Groups.[1].Value] <- found.Groups.[2].Value
    members

let private files = Dictionary<string, Dictionary<string, string>>()

/// What an XML file says, by member; empty where there is no such file or it cannot be read.
let private membersIn (path: string) =
    match files.TryGetValue path with
    | true, known -> known
    | _ ->
        let file = FileInfo path
        let members = try (if file.Exists && file.Length <= fileLimit then readMembers path else Dictionary()) with _ -> Dictionary()
        files.[path] <- members
        members

/// The type that a member id such as `M:System.String.Join(System.String)` is of, or is: `System.String`.
let private typeOfMember (memberId: string) : string =
    let name = memberId.Substring(memberId.IndexOf ':' + 1)
    let name = match name.IndexOf '(' with -1 -> name | parameters -> name.Substring(0, parameters)
    if memberId.StartsWith("T:", StringComparison.Ordinal) then name
    else
        match name.LastIndexOf '.' with
        | -1 -> name
        | dot -> name.Substring(0, dot)

let private newestVersion (folders: string[]) =
    let version (folder: string) =
        match Version.TryParse((Path.GetFileName folder).Split('-').[0]) with
        | true, version -> version
        | false, _ -> Version()
    folders |> Array.sortBy version |> Array.tryLast

/// The XML files of the reference pack of a shared framework's assembly: `shared/NAME/VERSION/A.dll` has those in
/// `packs/NAME.Ref/VERSION/ref/FRAMEWORK`. None where the assembly is of no shared framework, or its pack is not installed.
let private referencePackOf (assembly: string) : string[] =
    let version = Path.GetDirectoryName assembly
    let framework = Path.GetDirectoryName version
    let shared = Path.GetDirectoryName framework
    if isNull shared || Path.GetFileName shared <> "shared" then [||]
    else
        let packs = Path.Combine(Path.GetDirectoryName shared, "packs", Path.GetFileName framework + ".Ref")
        let line = String.Join(".", (Path.GetFileName version).Split('.') |> Array.truncate 2) + "."
        if not (Directory.Exists packs) then [||]
        else
            let ofLine = Directory.GetDirectories packs |> Array.filter (fun pack -> (Path.GetFileName pack).StartsWith(line, StringComparison.Ordinal))
            match newestVersion ofLine |> Option.map (fun pack -> Path.Combine(pack, "ref")) with
            | Some references when Directory.Exists references ->
                Directory.GetFiles(references, "*.xml", SearchOption.AllDirectories) |> Array.sortBy (fun file -> -(FileInfo file).Length)
            | _ -> [||]

let private packs = Dictionary<string, string[]>()
let private filesOfTypes = Dictionary<string, string>()

/// The XML file of a reference pack that has a type of the framework: which it is in, the implementation's assembly does not tell.
let private fileOfType (assembly: string) (typeName: string) : string =
    match filesOfTypes.TryGetValue typeName with
    | true, known -> known
    | _ ->
        let folder = Path.GetDirectoryName assembly
        if not (packs.ContainsKey folder) then packs.[folder] <- (try referencePackOf assembly with _ -> [||])
        let wanted = "<member name=\"T:" + typeName + "\">"
        let has (file: string) =
            try
                if files.ContainsKey file then files.[file].ContainsKey("T:" + typeName)
                else FileInfo(file).Length <= fileLimit && File.ReadAllText(file).Contains wanted
            with _ -> false
        let file = packs.[folder] |> Array.tryFind has |> Option.defaultValue ""
        filesOfTypes.[typeName] <- file
        file

/// The XML of what is documented, if it is.
let private xmlOf (assembly: string) (memberId: string) : string option =
    let found (members: Dictionary<string, string>) = match members.TryGetValue memberId with true, xml -> Some xml | _ -> None
    match found (membersIn (Path.ChangeExtension(assembly, ".xml"))) with
    | Some xml -> Some xml
    | None ->
        match fileOfType assembly (typeOfMember memberId) with
        | "" -> None
        | file -> found (membersIn file)

/// The summary of what is documented; called by one thread at a time.
let summary (documentation: Documentation) : string option =
    match documentation with
    | Undocumented -> None
    | Inline text -> summaryOf text
    | InAssembly (assembly, memberId) -> xmlOf assembly memberId |> Option.bind summaryOf
