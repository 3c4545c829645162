/// Pages of an application that reload by themselves when its code has changed. A small script is added to HTML that the application answers
/// a browser with; it asks a path of the application that nobody can guess, and that tells nothing but how often the code has changed. ASP.NET
/// is known by names alone.
module internal MainstayDisplay.AppReload

open System
open System.IO
open System.Reflection
open System.Security.Cryptography
open System.Text
open System.Threading
open System.Threading.Tasks
open MainstayDisplay.EngineCalls

let private script =
    """(() => {
  const own = new URL(document.currentScript.src), seen = own.searchParams.get("v"), base = own.pathname.replace(/\/reload\.js$/, "");
  let source = null;
  const close = () => { if (source) source.close(); source = null; };
  const changed = version => { if (version !== seen) { close(); location.reload(); } };
  const open = () => {
    if (source || document.hidden) return;
    source = new EventSource(base + "/changes");
    source.onmessage = event => changed(event.data);
    source.onerror = () => { close(); setTimeout(look, 300); };
  };
  // The application has ended, or another has taken its place, which knows nothing of this path.
  const look = async () => {
    try {
      const answer = await fetch(base + "/version", { cache: "no-store" });
      if (answer.status === 404) return location.reload();
      if (answer.ok) { changed(await answer.text()); return open(); }
    } catch { }
    setTimeout(look, 300);
  };
  document.addEventListener("visibilitychange", () => document.hidden ? close() : look());
  addEventListener("pagehide", close);
  open();
})();
"""

/// How often the code of one application has changed, for those who wait for that.
type Reload() =
    let gate = obj ()
    let mutable version = 0
    let mutable isOver = false
    let mutable next = TaskCompletionSource<bool>(TaskCreationOptions.RunContinuationsAsynchronously)

    let turn (change: unit -> unit) =
        let waited =
            lock gate (fun () ->
                change ()
                let waited = next
                next <- TaskCompletionSource<bool>(TaskCreationOptions.RunContinuationsAsynchronously)
                waited)
        waited.TrySetResult true |> ignore

    /// The path below which it is told.
    member val Path =
        (let bytes = Array.zeroCreate<byte> 16
         use random = RandomNumberGenerator.Create()
         random.GetBytes(bytes)
         "/_mainstay/" + String.Join("", bytes |> Array.map (fun one -> one.ToString "x2")))

    member _.Changed() = turn (fun () -> version <- version + 1)

    /// The application ends: nobody waits any more.
    member _.End() = turn (fun () -> isOver <- true)

    /// The version, what tells that there is another, and whether there will be none.
    member _.State : int * Task * bool = lock gate (fun () -> version, next.Task :> Task, isOver)

/// What of ASP.NET's requests and answers is used.
type private Http(contextType: Type) =
    let property (owner: Type) (name: string) = owner.GetProperty name
    let request, response, aborted = property contextType "Request", property contextType "Response", property contextType "RequestAborted"
    let ofRequest, ofResponse = property request.PropertyType, property response.PropertyType
    let verb, path, asked = ofRequest "Method", ofRequest "Path", ofRequest "Headers"
    let status, kind, length, body = ofResponse "StatusCode", ofResponse "ContentType", ofResponse "ContentLength", ofResponse "Body"
    let given, hasStarted = ofResponse "Headers", ofResponse "HasStarted"
    let onStarting = response.PropertyType.GetMethod("OnStarting", [| typeof<Func<obj, Task>>; typeof<obj> |])
    let header = property asked.PropertyType "Item"
    let named (headers: obj) (name: string) = string (header.GetValue(headers, [| box name |]))
    let answer (context: obj) = response.GetValue context

    member _.Verb(context: obj) = string (verb.GetValue(request.GetValue context))
    member _.Path(context: obj) = string (path.GetValue(request.GetValue context))
    member _.Asked(context: obj, name: string) = named (asked.GetValue(request.GetValue context)) name
    member _.Aborted(context: obj) = aborted.GetValue context :?> CancellationToken
    member _.Status with get (context: obj) = status.GetValue(answer context) :?> int
    member _.Kind with get (context: obj) = string (kind.GetValue(answer context))
    member _.SetKind(context: obj, value: string) = kind.SetValue(answer context, value)
    member _.SetStatus(context: obj, value: int) = status.SetValue(answer context, value)
    member _.Given(context: obj, name: string) = named (given.GetValue(answer context)) name
    member _.Body(context: obj) = body.GetValue(answer context) :?> Stream
    member _.HasStarted(context: obj) = hasStarted.GetValue(answer context) :?> bool
    member _.Start(context: obj) = call (answer context) "StartAsync" [] :?> Task

    /// The length is not known any more, and nobody keeps the page.
    member _.Extend(context: obj) =
        length.SetValue(answer context, null)
        let headers = given.GetValue(answer context)
        for name in [ "ETag"; "Last-Modified" ] do call headers "Remove" [ box name ] |> ignore
        header.SetValue(headers, Activator.CreateInstance(header.PropertyType, [| box "no-store" |]), [| box "Cache-Control" |])

    member _.SetHeader(context: obj, name: string, value: string) =
        header.SetValue(given.GetValue(answer context), Activator.CreateInstance(header.PropertyType, [| box value |]), [| box name |])

    member _.OnStarting(context: obj, work: unit -> unit) =
        let starting = Func<obj, Task>(fun _ -> work (); Task.CompletedTask)
        onStarting.Invoke(answer context, [| starting; null |]) |> ignore

let private write (http: Http) (context: obj) (text: string) : Async<unit> =
    async {
        let bytes, body = Encoding.UTF8.GetBytes text, http.Body context
        do! body.WriteAsync(bytes, 0, bytes.Length, http.Aborted context) |> Async.AwaitTask
        do! body.FlushAsync(http.Aborted context) |> Async.AwaitTask
    }

let rec private follow (reload: Reload) (http: Http) (context: obj) (gone: Task) : Async<unit> =
    async {
        let version, next, isOver = reload.State
        if not isOver && not gone.IsCompleted then
            do! write http context (sprintf "data: %d\n\n" version)
            let! _ = Task.WhenAny(next, gone) |> Async.AwaitTask
            do! follow reload http context gone
    }

/// Answers what the script asks.
let private tell (reload: Reload) (http: Http) (context: obj) (what: string) : Async<unit> =
    async {
        http.SetHeader(context, "Cache-Control", "no-store")
        match what with
        | "/reload.js" ->
            http.SetKind(context, "text/javascript; charset=utf-8")
            do! write http context script
        | "/version" ->
            let version, _, _ = reload.State
            http.SetKind(context, "text/plain; charset=utf-8")
            do! write http context (string version)
        | "/changes" ->
            http.SetKind(context, "text/event-stream")
            let gone = TaskCompletionSource<bool>(TaskCreationOptions.RunContinuationsAsynchronously)
            use _leaving = http.Aborted(context).Register(fun () -> gone.TrySetResult true |> ignore)
            do! follow reload http context (gone.Task :> Task)
        | _ -> http.SetStatus(context, 404)
    }

/// Whether a browser asks for a page to show, and not for a part of one.
let private isForPage (http: Http) (context: obj) =
    let destination = http.Asked(context, "Sec-Fetch-Dest")
    http.Asked(context, "Accept").IndexOf("text/html", StringComparison.OrdinalIgnoreCase) >= 0
    && (destination = "" || destination = "document" || destination = "iframe" || destination = "frame")

/// Whether the answer is HTML to whose end something can be added.
let private isHtml (http: Http) (context: obj) =
    let kind = (http.Kind context).ToLowerInvariant()
    let status = http.Status context
    kind.StartsWith("text/html", StringComparison.Ordinal)
    && not (kind.Contains("utf-16"))
    && http.Given(context, "Content-Encoding") = ""
    && status >= 200 && status <> 204 && status <> 205 && status <> 304

/// Has the application answer, and adds the script to a page. The answer is otherwise as it was.
let private extend (reload: Reload) (http: Http) (context: obj) (next: obj -> Task) : Async<unit> =
    async {
        let isExtended = ref false
        let version, _, _ = reload.State
        http.OnStarting(context, fun () ->
            if isHtml http context then
                http.Extend context
                isExtended.Value <- true)
        do! next context |> Async.AwaitTask
        if not (http.HasStarted context) && isHtml http context then
            do! http.Start context |> Async.AwaitTask
        if isExtended.Value then
            // One that has been ended already is as it is.
            try
                do! write http context (sprintf "\n<script src=\"%s/reload.js?v=%d\"></script>\n" reload.Path version)
            with _ -> ()
    }

type private Handler(handle: obj -> Task) =
    member _.Invoke(context: obj) : Task = handle context

let private handling = typeof<Handler>.GetMethod("Invoke", BindingFlags.Instance ||| BindingFlags.Public ||| BindingFlags.NonPublic)

/// The step of an application's pipeline that does this, before all others. `requestDelegate` is the type of the steps.
let private step (reload: Reload) (requestDelegate: Type) (next: obj) : obj =
    let invoke = requestDelegate.GetMethod "Invoke"
    let http = Http(invoke.GetParameters().[0].ParameterType)
    let goOn (context: obj) = invoke.Invoke(next, BindingFlags.DoNotWrapExceptions, null, [| context |], null) :?> Task
    let handle (context: obj) : Task =
        let isGet = http.Verb context = "GET"
        let path = if isGet then http.Path context else ""
        if path.StartsWith(reload.Path + "/", StringComparison.Ordinal) then
            Async.StartImmediateAsTask(tell reload http context (path.Substring reload.Path.Length)) :> Task
        elif isGet && isForPage http context then
            Async.StartImmediateAsTask(extend reload http context goOn) :> Task
        else goOn context
    box (Delegate.CreateDelegate(requestDelegate, Handler(handle), handling))

/// A type of an assembly that is there, or that what is there refers to.
let typeNamed (assembly: string) (name: string) : Type option =
    let loaded = AppDomain.CurrentDomain.GetAssemblies() |> Array.tryFind (fun one -> one.GetName().Name = assembly)
    let found = match loaded with Some _ -> loaded | None -> (try Some(Assembly.Load assembly) with _ -> None)
    found |> Option.bind (fun assembly -> Option.ofObj (assembly.GetType name))

/// Puts the step in front of what an application does with requests.
let private configure (reload: Reload) (next: obj) : obj =
    let configured (builder: obj) =
        match typeNamed "Microsoft.AspNetCore.Http.Abstractions" "Microsoft.AspNetCore.Builder.IApplicationBuilder" with
        | Some face ->
            let add = face.GetMethod "Use"
            let steps = add.GetParameters().[0].ParameterType
            // The application is more than what is added to it.
            let safely (next: obj) = try step reload steps.GenericTypeArguments.[0] next with _ -> next
            add.Invoke(builder, [| delegateOf steps safely |]) |> ignore
        | None -> ()
        call next "Invoke" [ builder ] |> ignore
    box (Action<obj> configured)

/// Has the host that a builder is about to build reload its pages; one without pages is as it was.
let install (reload: Reload) (hostBuilder: obj) : unit =
    let filter = typeNamed "Microsoft.AspNetCore.Hosting.Abstractions" "Microsoft.AspNetCore.Hosting.IStartupFilter"
    let descriptor = typeNamed "Microsoft.Extensions.DependencyInjection.Abstractions" "Microsoft.Extensions.DependencyInjection.ServiceDescriptor"
    match filter, descriptor with
    | Some filter, Some descriptor ->
        let instance = implementing filter (fun _ arguments -> configure reload arguments.[0])
        let add = Action<obj, obj>(fun _ services -> call services "Add" [ make descriptor [ box filter; instance ] ] |> ignore)
        call hostBuilder "ConfigureServices" [ box add ] |> ignore
    | _ -> ()
