/// A worker that is started ahead of the session it is for. It runs beforehand what the first requests of any session would wait for, in
/// a session that ends with that, and has a second one ready that has run nothing. When it is handed over it becomes as if it had been
/// started for the session that takes it.
module Mainstay.Worker.Standby

open System
open System.IO
open System.Runtime.InteropServices
open Mainstay.Worker.Evaluator
open Mainstay.Worker.Protocol

/// What .NET keeps of the environment is a copy, which child processes get. Native code reads the process's own.
[<DllImport("libc")>]
extern int private setenv(string name, string value, int replaces)

/// A session that was made ahead and has run nothing.
type Standby =
    { Arguments: string list
      Session: Evaluator }

/// Code of many kinds, so that what compiles, runs and prints it is there.
let private codes =
    [ "1 + 1"
      "let squared x = x * x\n[ 1; 2 ] |> List.map squared"
      "type Shape = { Side: int } with member shape.Area = shape.Side * shape.Side\nprintfn \"%d %s\" 1 (string 2.5)"
      "type Tree = Leaf | Node of Tree * Tree\nlet rec depth tree = match tree with Leaf -> 0 | Node (a, b) -> 1 + max (depth a) (depth b)"
      "let task = async { return 1 }\n{| Name = sprintf \"%A\" [ (1, \"a\") ]; Sum = Seq.sum (seq { 1 .. 3 }) |}"
      "unknown 1"
      "failwith \"warm-up\"" ]

let private beginning (arguments: string list) : Hello =
    { WorkingDirectory = Environment.CurrentDirectory
      Variables = []
      References = []
      Arguments = arguments
      Project = None
      Profiles = [] }

let private run (session: Evaluator) =
    for code in codes do
        session.Evaluate(0L, "", code, None, [], false, (fun () -> true)) |> ignore
    Intellisense.check session "let text: string = 1" None |> ignore
    Intellisense.warmUp session

/// What code prints meanwhile is nobody's.
let private unheard (work: unit -> unit) =
    let output, error = Console.Out, Console.Error
    Console.SetOut TextWriter.Null
    Console.SetError TextWriter.Null
    try
        work ()
    finally
        Console.SetOut output
        Console.SetError error

/// Runs what first requests need, and makes a session with these arguments. Takes no more memory than that needs afterwards.
let prepare (arguments: string list) : Standby =
    Compat.tellSdk Environment.CurrentDirectory
    let warm = Evaluator(beginning arguments, new StringWriter())
    try unheard (fun () -> run warm) finally warm.End()
    let standby = { Arguments = arguments; Session = Evaluator(beginning arguments, new StringWriter()) }
    // The first finds what the second can give back.
    Compat.giveBackMemory ()
    Compat.giveBackMemory ()
    standby

/// Gives the process the variables of the session that it is handed to.
let give (variables: (string * string) list) =
    for name, value in variables do
        Environment.SetEnvironmentVariable(name, value)
        setenv (name, value, 1) |> ignore

/// The session that was made ahead, as one that begins with this; None where it is another.
let takenBy (wanted: Hello) (standby: Standby) : Evaluator option =
    // The language cannot say every folder's name.
    let isFitting = standby.Arguments = wanted.Arguments && List.isEmpty wanted.References && not (wanted.WorkingDirectory.Contains "\"")
    if isFitting then
        standby.Session.BeginWith wanted
        Some standby.Session
    else None
