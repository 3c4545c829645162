/// Turns the XML documentation of a symbol into its summary as plain text.
module Mainstay.Worker.Documentation

open System
open System.Collections.Generic
open System.IO
open System.Text.RegularExpressions
open Mainstay.Worker.Compat

/// Larger files are not read: they would hold up the answer.
let private fileLimit = 8L * 1024L * 1024L

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

/// What the XML file beside an assembly says, by member; empty where there is no such file or it cannot be read.
let private membersBeside (assembly: string) =
    let path = Path.ChangeExtension(assembly, ".xml")
    match files.TryGetValue path with
    | true, known -> known
    | _ ->
        let file = FileInfo path
        let members = try (if file.Exists && file.Length <= fileLimit then readMembers path else Dictionary()) with _ -> Dictionary()
        files.[path] <- members
        members

/// The summary of what is documented; called by one thread at a time.
let summary (documentation: Documentation) : string option =
    match documentation with
    | Undocumented -> None
    | Inline text -> summaryOf text
    | InAssembly (assembly, memberId) ->
        match (membersBeside assembly).TryGetValue memberId with
        | true, xml -> summaryOf xml
        | _ -> None
