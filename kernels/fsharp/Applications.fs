/// The application of the session's project, as the worker serves it: what it begins with, and who is told of it.
module Mainstay.Worker.Applications

open System
open System.Diagnostics
open System.Reflection
open MainstayDisplay
open Mainstay.Worker.Protocol

/// Takes the settings as the daemon gives them: how long a start and a stop may take in milliseconds, and whether pages reload.
let configure (settings: string) =
    match (match settings with null -> [||] | text -> text.Split ';') with
    | [| start; stop; reload |] ->
        let limit (text: string) (usual: TimeSpan) =
            match Int64.TryParse text with
            | true, milliseconds when milliseconds >= 0L -> TimeSpan.FromMilliseconds(float (min milliseconds (int64 Int32.MaxValue)))
            | _ -> usual
        AppRunning.startLimit <- limit start AppRunning.startLimit
        AppRunning.stopLimit <- limit stop AppRunning.stopLimit
        AppRunning.reloadsPages <- reload <> "false"
    | _ -> ()

/// Why an application ended, for people.
let private reasonOf (e: exn) = e.GetType().FullName + ": " + e.Message

let private stateOf (news: AppRunning.News) : ApplicationState =
    match news with
    | AppRunning.Started running ->
        Running
            { Name = running.Name
              Entry = running.Entry
              Arguments = running.Arguments
              Addresses = running.Addresses
              Job = running.Job }
    | AppRunning.Ended AppRunning.Stopped -> Ended(EndedByStop)
    | AppRunning.Ended (AppRunning.Completed code) -> Ended(EndedByItself code)
    | AppRunning.Ended (AppRunning.Failed e) -> Ended(EndedByFailure(reasonOf e))

/// A session begins, with this project. An application that runs goes on.
let install (send: byte[] -> unit) (project: Project option) =
    let pid = Process.GetCurrentProcess().Id
    let assemblies () =
        match project with
        | Some project -> project.Assemblies |> List.map Assembly.LoadFrom
        | None -> []
    AppRunning.project <- { Assemblies = assemblies; Directory = project |> Option.bind (fun one -> one.Directory) }
    // What code that is withheld has started is stored nowhere either: it is not started again.
    let isHidden (news: AppRunning.News) =
        match news with
        | AppRunning.Started running -> running.Job |> Option.exists Blame.isWithheld
        | AppRunning.Ended _ -> false
    AppRunning.tell <- fun news -> if not (isHidden news) then send (encodeApplication pid (stateOf news))
    AppRunning.job <- Blame.job
    AppRunning.endPoints <- Listening.endPoints

/// The job whose application ends the process, where no other code does.
let leaving () : string option = AppRunning.owner ()
