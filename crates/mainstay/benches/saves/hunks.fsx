/// Counts, over the histories of repositories, which single changes the worker's pure rules would let through without a build.
///
/// Usage: dotnet fsi hunks.fsx [--commits 100] [--each 4] [--seed 1] [--sample 0] GIT ...
///
/// Each GIT is a git directory. Of its newest `--commits` commits that change .fs files and are no merges, each hunk of each changed file
/// (at most `--each` of one file, taken at random; not of AssemblyInfo.fs, which builds write) is applied alone to the version before: it stands for one save. What does not parse then
/// is counted apart, and so is what changes nothing, as comments and blanks do. The table is Markdown. Of each repository `--sample` hunks
/// that are refused go to stderr, each with its obstacles and lines.
#nowarn "3370"
#r "FSharp.Compiler.Service.dll"
#load "../../../../kernels/fsharp/Conditionals.fs"
#load "../../../../kernels/fsharp/Awaits.fs"
#load "../../../../kernels/fsharp/Frameworks.fs"
#load "../../../../kernels/fsharp/Splitter.fs"
#load "../../../../kernels/fsharp/Syntax.fs"
#load "../../../../kernels/fsharp/Layout.fs"
#load "../../../../kernels/fsharp/Outline.fs"
#load "../../../../kernels/fsharp/FileText.fs"
#load "../../../../kernels/fsharp/Bindings.fs"
#load "../../../../kernels/fsharp/Rewritings.fs"
#load "../../../../kernels/fsharp/TypeScope.fs"
#load "../../../../kernels/fsharp/OutlineReader.fs"
#load "../../../../kernels/fsharp/Difference.fs"

open System
open System.Collections.Generic
open System.Diagnostics
open System.IO
open System.Text
open System.Threading
open FSharp.Compiler.CodeAnalysis
open FSharp.Compiler.Diagnostics
open FSharp.Compiler.Text
open Mainstay.Worker

/// A hunk of a difference without context: from which line on it takes how many away, and the lines that it puts there.
type Hunk = { Before: int; Taken: int; Given: string list }

/// One changed file of a commit.
type Edit = { Commit: string; Path: string; Old: string; Hunks: Hunk list }

type Verdict =
    | Unparsed
    | Layout
    /// It is let through; `opens` where what is opened is another, which only the compiler can judge.
    | Free of opens: bool
    | Refused of Difference.Reason list

type Options = { Commits: int; Each: int; Seed: int; Sample: int }

let started (folder: string) (arguments: string list) =
    let start = ProcessStartInfo("git", RedirectStandardInput = true, RedirectStandardOutput = true, UseShellExecute = false)
    start.StandardOutputEncoding <- UTF8Encoding false
    for argument in [ "-C"; folder; "-c"; "core.quotepath=off" ] @ arguments do
        start.ArgumentList.Add argument
    Process.Start start

/// The file edits of a history, the newest first.
let editsOf (folder: string) (commits: int) : Edit seq =
    seq {
        use git = started folder [ "log"; "--no-merges"; "-n"; string commits; "--diff-filter=M"; "--no-renames"; "-p"; "-U0"; "--full-index"; "--format=commit %h"; "--"; "*.fs"; ":!*AssemblyInfo*" ]
        let mutable commit = ""
        let mutable edit: Edit option = None
        let ended () = edit |> Option.map (fun one -> { one with Hunks = one.Hunks |> List.rev |> List.map (fun hunk -> { hunk with Given = List.rev hunk.Given }) }) |> Option.toList
        for line in Seq.initInfinite (fun _ -> git.StandardOutput.ReadLine()) |> Seq.takeWhile (isNull >> not) do
            match edit with
            | _ when line.StartsWith "commit " ->
                yield! ended ()
                edit <- None
                commit <- line.Substring 7
            | _ when line.StartsWith "diff --git " ->
                yield! ended ()
                edit <- Some { Commit = commit; Path = ""; Old = ""; Hunks = [] }
            | Some one when line.StartsWith "index " -> edit <- Some { one with Old = line.Substring(6, 40) }
            | Some one when List.isEmpty one.Hunks && line.StartsWith "+++ b/" -> edit <- Some { one with Path = line.Substring(6).TrimEnd '\t' }
            | Some one when line.StartsWith "@@ -" ->
                let from, taken = match line.Split(' ').[1].Substring(1).Split ',' with [| from; taken |] -> int from, int taken | one -> int one.[0], 1
                edit <- Some { one with Hunks = { Before = (if taken = 0 then from else from - 1); Taken = taken; Given = [] } :: one.Hunks }
            | Some { Hunks = hunk :: others } when line.StartsWith "+" -> edit <- Some { edit.Value with Hunks = { hunk with Given = line.Substring 1 :: hunk.Given } :: others }
            | _ -> ()
        yield! ended ()
    }

/// The texts of a repository's objects.
type Objects(folder: string) =
    let git = started folder [ "cat-file"; "--batch" ]
    let output = git.StandardOutput.BaseStream

    /// The lines of one; the ends of lines are those of Unix.
    member _.Lines(name: string) : string[] option =
        git.StandardInput.WriteLine name
        git.StandardInput.Flush()
        let head = Seq.initInfinite (fun _ -> char (output.ReadByte())) |> Seq.takeWhile ((<>) '\n') |> Seq.toArray |> String
        match head.Split ' ' with
        | [| _; "blob"; size |] ->
            let bytes = Array.zeroCreate (int size + 1)
            output.ReadExactly(bytes, 0, bytes.Length)
            let text = Encoding.UTF8.GetString(bytes, 0, int size).TrimStart('\uFEFF').Replace("\r\n", "\n")
            Some(text.Split '\n')
        | _ -> None

    interface IDisposable with
        member _.Dispose() = git.StandardInput.Close()

let checker = FSharpChecker.Create(keepAssemblyContents = false)

/// What a debug build defines; what a project defines besides is not known.
let symbols = Set.ofList [ "DEBUG"; "TRACE" ]

let outlineOf (text: string) : Outline.Outline option =
    let resolved = Conditionals.resolveWith symbols Splitter.afterToken text
    let options = { FSharpParsingOptions.Default with SourceFiles = [| "Saved.fs" |] }
    let parsed = checker.ParseFile("Saved.fs", SourceText.ofString resolved, options, cache = false) |> Async.RunSynchronously
    if parsed.Diagnostics |> Array.exists (fun one -> one.Severity = FSharpDiagnosticSeverity.Error) then None
    else Some(OutlineReader.read resolved (box parsed.ParseTree))

let applied (lines: string[]) (hunk: Hunk) : string =
    String.Join("\n", Seq.concat [ Seq.truncate hunk.Before lines; Seq.ofList hunk.Given; Seq.skip (hunk.Before + hunk.Taken) lines ])

let verdict (before: Outline.Outline) (after: Outline.Outline) : Verdict =
    let found = Difference.between (fun _ -> false) [] before after
    match found.Obstacles with
    | _ :: _ as obstacles -> Refused obstacles
    | [] when not (List.isEmpty found.Reopened) -> Free true
    | [] when List.isEmpty found.Changed && List.isEmpty found.Added && List.isEmpty found.Removed && before.Opens.Length = after.Opens.Length -> Layout
    | [] -> Free false

/// All hunks of a repository, each with what comes of it.
let judged (options: Options) (folder: string) : (Edit * string[] * Hunk * Verdict) list =
    use objects = new Objects(folder)
    let random = Random options.Seed
    let outlines = Dictionary<string, Outline.Outline option>()
    let outlineOnce (key: string) (text: string) =
        match outlines.TryGetValue key with
        | true, known -> known
        | _ ->
            let read = outlineOf text
            if outlines.Count > 200 then outlines.Clear()
            outlines.[key] <- read
            read
    [ for edit in editsOf folder options.Commits do
        let chosen = if edit.Hunks.Length <= options.Each then edit.Hunks else edit.Hunks |> List.sortBy (fun _ -> random.Next()) |> List.truncate options.Each
        match objects.Lines edit.Old with
        | None -> ()
        | Some lines ->
            match outlineOnce edit.Old (String.Join("\n", lines)) with
            | None -> for hunk in chosen do edit, lines, hunk, Unparsed
            | Some before ->
                for hunk in chosen do
                    edit, lines, hunk, (match outlineOf (applied lines hunk) with Some after -> verdict before after | None -> Unparsed) ]

let nameOf (folder: string) =
    let own = Path.GetFileName folder
    (if own = "repo" || own = ".git" then Path.GetFileName(Path.GetDirectoryName folder) else own).Replace('+', '/')

let row (name: string) (verdicts: Verdict list) =
    let count isOne = verdicts |> List.filter isOne |> List.length
    let all = count (function Free _ | Refused _ -> true | _ -> false)
    let share part = if all = 0 then "" else sprintf "%.1f %%" (100.0 * float part / float all)
    let codes =
        verdicts
        |> List.choose (function Refused(first :: _) -> Some first.Code | _ -> None)
        |> List.countBy id
        |> List.sortByDescending snd
        |> List.map (fun (code, part) -> sprintf "`%s` %s" code (share part))
    printfn "| %s | %d | %s | %s | %d, %d | %s |" name all (share (count (function Free _ -> true | _ -> false))) (share (count ((=) (Free true))))
        (count ((=) Layout)) (count ((=) Unparsed)) (String.Join(", ", codes))

let show (edit: Edit, lines: string[], hunk: Hunk, reasons: Difference.Reason list) =
    eprintfn "\n## %s %s:%d" edit.Commit edit.Path (hunk.Before + 1)
    for one in reasons do eprintfn "%s %s: %s" one.Code one.Name one.Words
    for line in lines |> Seq.skip hunk.Before |> Seq.truncate hunk.Taken do
        eprintfn "- %s" line
    for line in hunk.Given do
        eprintfn "+ %s" line

let rec read (options: Options) (folders: string list) (arguments: string list) =
    match arguments with
    | "--commits" :: count :: more -> read { options with Commits = int count } folders more
    | "--each" :: count :: more -> read { options with Each = int count } folders more
    | "--seed" :: number :: more -> read { options with Seed = int number } folders more
    | "--sample" :: count :: more -> read { options with Sample = int count } folders more
    | folder :: more -> read options (folder :: folders) more
    | [] -> options, List.rev folders

let main () =
    let options, folders = read { Commits = 100; Each = 4; Seed = 1; Sample = 0 } [] (List.tail (List.ofArray fsi.CommandLineArgs))
    printfn "| repository | hunks | no build | opens changed | layout, unparsed | first obstacle |\n|---|---|---|---|---|---|"
    let random = Random options.Seed
    let verdicts = folders |> List.collect (fun folder ->
        let hunks = judged options folder
        let verdicts = [ for _, _, _, one in hunks -> one ]
        row (nameOf folder) verdicts
        hunks
        |> List.choose (fun (edit, lines, hunk, one) -> match one with Refused reasons -> Some(edit, lines, hunk, reasons) | _ -> None)
        |> List.sortBy (fun _ -> random.Next())
        |> List.truncate options.Sample
        |> List.iter show
        verdicts)
    row "all" verdicts

// A tree is read as deeply as it is nested.
let thread = Thread(main, 256 * 1024 * 1024)
thread.Start()
thread.Join()
