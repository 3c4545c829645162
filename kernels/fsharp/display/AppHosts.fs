/// The hosts that an application builds (`Microsoft.Extensions.Hosting`, on which ASP.NET stands), which are known by names alone. A host says
/// over a diagnostic listener that it is built, as ASP.NET's own tests and `dotnet ef` learn of it.
module internal MainstayDisplay.AppHosts

open System
open System.Collections
open System.Collections.Generic
open System.Diagnostics
open System.Threading
open System.Threading.Tasks
open MainstayDisplay.EngineCalls

/// A host that is built.
type Host(host: obj) =
    let face = host.GetType().GetInterfaces() |> Array.find (fun one -> one.FullName = "Microsoft.Extensions.Hosting.IHost")
    let services = get host "Services" :?> IServiceProvider
    let lifetime = services.GetService(face.Assembly.GetType("Microsoft.Extensions.Hosting.IHostApplicationLifetime", true))
    let token (name: string) = get lifetime name :?> CancellationToken

    member val Started = token "ApplicationStarted"
    member val Stopping = token "ApplicationStopping"
    member val Stopped = token "ApplicationStopped"

    member this.Runs = this.Started.IsCancellationRequested && not this.Stopped.IsCancellationRequested

    /// Asks it to stop; whoever runs it sees to that.
    member _.AskToStop() = call lifetime "StopApplication" [] |> ignore

    /// Stops it, within a time.
    member _.Stop(limit: TimeSpan) =
        use limited = new CancellationTokenSource(limit)
        try (call host "StopAsync" [ box limited.Token ] :?> Task).Wait(limit) |> ignore with _ -> ()

    /// The addresses that its server listens on; none where it has no server.
    member _.Addresses : string list =
        let abstractions = "Microsoft.AspNetCore.Hosting.Server.Abstractions"
        let server = AppReload.typeNamed abstractions "Microsoft.AspNetCore.Hosting.Server.IServer" |> Option.map services.GetService
        let feature = AppReload.typeNamed abstractions "Microsoft.AspNetCore.Hosting.Server.Features.IServerAddressesFeature"
        match server, feature with
        | Some server, Some feature when not (isNull server) ->
            match call (get server "Features") "get_Item" [ box feature ] with
            | null -> []
            | found -> items found "Addresses" |> List.map string
        | _ -> []

/// What is to be done when code builds hosts.
type Heard =
    { /// With the builder, before.
      Building: obj -> unit
      Built: Host -> unit }

/// Whose code runs: what other code of the process builds is none of the application's.
let private hearing = AsyncLocal<Heard option>()

let private hear (name: string) (value: obj) =
    match hearing.Value with
    | Some heard when not (isNull value) ->
        match name with
        | "HostBuilding" -> (try heard.Building value with _ -> ()) // The application is more than what is added to it.
        | "HostBuilt" -> heard.Built(Host value)
        | _ -> ()
    | _ -> ()

let private subscribed =
    lazy
        (let events =
            { new IObserver<KeyValuePair<string, obj>> with
                member _.OnNext event = hear event.Key event.Value
                member _.OnError _ = ()
                member _.OnCompleted() = () }
         let listeners =
            { new IObserver<DiagnosticListener> with
                member _.OnNext listener = if listener.Name = "Microsoft.Extensions.Hosting" then listener.Subscribe(events) |> ignore
                member _.OnError _ = ()
                member _.OnCompleted() = () }
         DiagnosticListener.AllListeners.Subscribe listeners)

/// Runs code, and hears of the hosts that it builds.
let during (heard: Heard) (work: unit -> 'T) : 'T =
    subscribed.Force() |> ignore
    hearing.Value <- Some heard
    try work () finally hearing.Value <- None
