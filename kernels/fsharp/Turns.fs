/// Keeps type checks off the compiler while a submission is being compiled: the service shares its tables between the two and was not
/// made for both at once. The client's code has begun to run once the assembly that was compiled of it is loaded. Services of which that is not
/// seen do not tell it at all: there a check waits until the submission has lasted long enough to be past its compilation.
module Mainstay.Worker.Turns

open System
open System.Diagnostics
open System.Threading

/// How long after its start a submission is taken to be still compiling, where nothing tells.
let private untold = TimeSpan.FromMilliseconds 400.

/// The same where it will be told: directives compile nothing.
let private longest = TimeSpan.FromSeconds 5.

/// Whether an assembly, by its name, is what a submission was compiled to.
let isSubmission (assembly: string) = assembly.StartsWith("FSI-ASSEMBLY", StringComparison.Ordinal)

/// Whose turn it is; one per session.
type Turns() as this =
    let gate = obj ()
    let mutable compiling: Stopwatch option = None // of a submission that was not told to run
    let mutable isOfScripts = false // whether scripts are compiled before it, each of which would tell that it runs
    let mutable evaluating = false
    let mutable checking = false
    let mutable isTold = false // whether it was seen of any submission that it runs
    let loaded = AssemblyLoadEventHandler(fun _ loaded -> if isSubmission (loaded.LoadedAssembly.GetName().Name) then this.Compiled())
    do AppDomain.CurrentDomain.add_AssemblyLoad loaded

    let waitForCompilation () =
        let left () =
            match compiling with
            | Some watch -> (if isTold then longest else untold) - watch.Elapsed
            | None -> TimeSpan.Zero
        while left () > TimeSpan.Zero do
            Monitor.Wait(gate, left () + TimeSpan.FromMilliseconds 1.) |> ignore

    let beginCompiling loadsScripts =
        while checking do
            Monitor.Wait gate |> ignore
        isOfScripts <- loadsScripts
        compiling <- Some(Stopwatch.StartNew())

    /// A submission was compiled. While a check is under way that is one of the check's own.
    member private _.Compiled() =
        lock gate (fun () ->
            if compiling.IsSome && not (checking || isOfScripts) then
                isTold <- true
                compiling <- None
                Monitor.PulseAll gate)

    /// Runs an evaluation, once no check is under way.
    member _.Evaluate(work: unit -> 'T) : 'T =
        lock gate (fun () ->
            beginCompiling false
            evaluating <- true)
        try
            work ()
        finally
            lock gate (fun () ->
                compiling <- None
                evaluating <- false
                Monitor.PulseAll gate)

    /// The evaluation goes on with another submission, once no check is under way.
    member _.Next(loadsScripts: bool) = lock gate (fun () -> if evaluating then beginCompiling loadsScripts)

    /// The evaluation goes on with what compiles nothing.
    member _.NextCompilesNothing() =
        lock gate (fun () ->
            compiling <- None
            Monitor.PulseAll gate)

    /// Runs a check, once no evaluation is compiling, and tells it whether one is under way; if not, none begins before the check has
    /// ended. Only one thread may call this.
    member _.Check(work: bool -> 'T) : 'T =
        let isEvaluating =
            lock gate (fun () ->
                waitForCompilation ()
                checking <- true
                evaluating)
        try
            work isEvaluating
        finally
            lock gate (fun () ->
                checking <- false
                Monitor.PulseAll gate)

    /// Hears no more of what is compiled.
    member _.End() = AppDomain.CurrentDomain.remove_AssemblyLoad loaded
