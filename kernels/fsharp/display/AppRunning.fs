/// The application of a session's project: one at a time, on a thread of its own, so that evals go on beside it and share its state.
module internal MainstayDisplay.AppRunning

open System
open System.Collections.Generic
open System.Diagnostics
open System.IO
open System.Reflection
open System.Threading
open MainstayDisplay.AppHosts
open MainstayDisplay.AppReload

/// What of a project matters to its application.
type Project =
    { /// Its assemblies, its own last.
      Assemblies: unit -> Assembly list
      /// The folder of the project's file.
      Directory: string option }

/// How an application ended.
type Ending =
    | Stopped
    | Completed of exitCode: int option
    | Failed of exn

/// An application that runs, for those who are told of it.
type Running =
    { Name: string
      Entry: string option
      Arguments: string list
      Addresses: string list
      Job: string option }

type News =
    | Started of Running
    | Ended of Ending

// What the worker sets.
let mutable project: Project = { Assemblies = (fun () -> []); Directory = None }
let mutable tell: News -> unit = ignore
let mutable job: unit -> string option = fun () -> None
let mutable endPoints: unit -> string list = fun () -> []
let mutable startLimit = TimeSpan.FromSeconds 30.
let mutable stopLimit = TimeSpan.FromSeconds 10.
let mutable reloadsPages = true

/// How often it is looked whether an application without a host has begun to listen.
let private interval = TimeSpan.FromMilliseconds 50.

let private failWith (reason: string) = raise (ApplicationFailed(reason, null))

/// What the application is to find in the environment while it builds its host, as if it were the process's own program.
let private variables (name: string) : (string * string) list =
    let isSet (variable: string) = not (String.IsNullOrEmpty(Environment.GetEnvironmentVariable variable))
    [ if not (isSet "DOTNET_APPLICATIONNAME" || isSet "ASPNETCORE_APPLICATIONNAME") then yield "DOTNET_APPLICATIONNAME", name
      if not (isSet "DOTNET_ENVIRONMENT" || isSet "ASPNETCORE_ENVIRONMENT") then yield "DOTNET_ENVIRONMENT", "Development"
      match project.Directory with
      | Some folder when not (isSet "DOTNET_CONTENTROOT" || isSet "ASPNETCORE_CONTENTROOT") -> yield "DOTNET_CONTENTROOT", folder
      | _ -> () ]

/// One application, from its start to its end.
type private Application(entry: Entry, entryName: string option, arguments: string list) =
    let gate = obj ()
    let hosts = List<Host>()
    let reload = Reload()
    let settled = new ManualResetEventSlim(false) // it listens, or has ended
    let over = new ManualResetEventSlim(false)
    let before = set (endPoints ())
    let owner = job ()
    let mutable returned: Result<int option, exn> option = None
    let mutable isAsked = false
    let mutable isTold = false
    let mutable hasEnded = false
    let mutable left: (string * string) list = [] // the variables that are still to be taken back

    let takeBack () =
        let taken = lock gate (fun () -> let taken = left in left <- []; taken)
        for name, _ in taken do Environment.SetEnvironmentVariable(name, null)

    let all () = lock gate (fun () -> List.ofSeq hosts)

    let addresses () : string list =
        match all () with
        | [] -> endPoints () |> List.filter (before.Contains >> not)
        | hosts -> hosts |> List.collect (fun host -> try host.Addresses with _ -> []) |> List.distinct

    let running () = { Name = entry.Name; Entry = entryName; Arguments = arguments; Addresses = addresses (); Job = owner }

    let ending () =
        match returned with
        | Some (Error e) when not isAsked -> Failed e
        | _ when isAsked -> Stopped
        | Some (Ok code) -> Completed code
        | _ -> Completed None

    /// It is over once its function has returned and none of its hosts runs.
    let lookAt (hasReturned: unit -> bool) =
        let ends () =
            let ends = not hasEnded && hasReturned () && hosts |> Seq.forall (fun host -> not host.Runs)
            hasEnded <- hasEnded || ends
            ends
        if lock gate ends then
            takeBack ()
            reload.End()
            if isTold then tell (Ended(ending ()))
            over.Set()
            settled.Set()

    let look () = lookAt (fun () -> returned.IsSome)

    /// From here on it is told what becomes of it.
    let tellRunning () = lock gate (fun () -> if not hasEnded then isTold <- true; tell (Started(running ())))

    let hasStarted () =
        settled.Set()
        if isTold then tellRunning ()

    let built (host: Host) =
        takeBack ()
        lock gate (fun () -> hosts.Add host)
        host.Started.Register(fun () -> hasStarted ()) |> ignore
        host.Stopping.Register(fun () -> reload.End()) |> ignore
        host.Stopped.Register(fun () -> look ()) |> ignore

    let main () =
        let result =
            try
                let heard = { Building = (fun builder -> if reloadsPages then install reload builder); Built = built }
                Ok(during heard (fun () -> AppEntry.invoke entry (Array.ofList arguments)))
            with e -> Error e
        lock gate (fun () -> returned <- Some result)
        match result with
        | Error _ -> for host in all () do if host.Runs then host.Stop stopLimit
        | Ok _ -> ()
        look ()

    member val Since = DateTime.Now
    member _.Name = entry.Name
    member _.Owner = owner
    member _.IsOver = over.IsSet
    member _.Running = running ()
    member _.IsStopping = all () |> List.exists (fun host -> host.Stopping.IsCancellationRequested)
    member _.CodeChanged() = reload.Changed()

    /// Starts it and waits until it listens, has ended, or time is up; says whether it listens.
    member _.Start() : bool =
        left <- variables entry.Name
        for name, value in left do Environment.SetEnvironmentVariable(name, value)
        Thread(main, IsBackground = true, Name = "application").Start()
        let watch = Stopwatch.StartNew()
        let listens () = List.isEmpty (all ()) && not (List.isEmpty (addresses ()))
        let mutable isListening = false
        while not isListening && not (settled.Wait(interval)) && watch.Elapsed < startLimit do
            isListening <- listens ()
        isListening || settled.IsSet

    /// How it ended, where it has; else it is told that it runs, and from here on what becomes of it.
    member _.Follow() : Ending option =
        tellRunning ()
        if isTold then None else Some(ending ())

    /// Stops it; says whether that came to an end in time.
    member _.Stop(limit: TimeSpan) : bool =
        let half = TimeSpan.FromTicks(limit.Ticks / 2L)
        isAsked <- true
        if List.isEmpty (all ()) && not over.IsSet then
            isAsked <- false
            failWith (entry.Name + " has no host that could be told to stop; stop the session, which ends it with its process")
        for host in all () do host.AskToStop()
        if not (over.Wait(half)) then
            // Nobody who runs it heeds that.
            for host in all () do if host.Runs then host.Stop half
            // Its hosts have stopped and its function waits for something else: nothing of it serves any more.
            if not (over.Wait(interval)) then lookAt (fun () -> true)
        over.Wait(half)

let mutable private current: Application option = None

let private alive () = current |> Option.filter (fun one -> not one.IsOver)

let private words (running: Running) =
    match running.Addresses with
    | [] -> "it listens on nothing yet"
    | addresses -> String.Join(", ", addresses)

let private start (entryName: string option) (arguments: string list) : string =
    let entry = AppEntry.find (project.Assemblies()) entryName
    let application = Application(entry, entryName, arguments)
    current <- Some application
    application.Start() |> ignore
    match application.Follow() with
    | None ->
        let running = application.Running
        sprintf "%s runs: %s" running.Name (words running)
    | Some (Failed e) -> raise (ApplicationFailed(sprintf "%s failed: %s" entry.Name e.Message, e))
    | Some (Completed (Some code)) when code <> 0 -> failWith (sprintf "%s came to its end with exit code %d" entry.Name code)
    | Some (Completed _ | Stopped) -> entry.Name + " came to its end"

/// Starts the application, unless one runs; says what runs, and where it listens.
let run (entryName: string option) (arguments: string list) : string =
    match alive () with
    | None -> start entryName arguments
    | Some application when application.IsStopping -> failWith (application.Name + " is still stopping; start it again when it has stopped")
    | Some application ->
        let running = application.Running
        tell (Started running)
        sprintf "%s runs already, since %s: %s" running.Name (application.Since.ToString("HH:mm:ss")) (words running)

/// Stops the application within a time; says that it is stopped.
let stop (limit: TimeSpan option) : string =
    match alive () with
    | None -> "no application runs"
    | Some application ->
        let limit = defaultArg limit stopLimit
        if application.Stop limit then
            current <- None
            application.Name + " is stopped"
        else
            failWith (
                sprintf "%s has not stopped within %.0f ms; stop it again with more time, or stop the session, which ends it with its process"
                    application.Name limit.TotalMilliseconds
            )

/// The job whose application runs.
let owner () : string option = alive () |> Option.bind (fun application -> application.Owner)

/// Whether an application runs.
let isRunning () : bool = alive () |> Option.isSome

/// Code of the project runs as it was saved: pages of the application reload.
let codeChanged () = alive () |> Option.iter (fun application -> application.CodeChanged())
