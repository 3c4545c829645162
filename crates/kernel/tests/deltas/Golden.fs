/// Deltas of a fixed assembly for fixed changes: what they consist of, and that code which runs all the time calls the new bodies. Prints both; the
/// test in Rust compares that with what is stored.
module Golden

open System
open System.IO
open System.Reflection
open System.Reflection.Emit
open System.Reflection.Metadata
open System.Runtime.Loader
open System.Threading
open Mainstay.Worker.Deltas
open Target

let assembly = typeof<Point>.Assembly

/// What stands for methods with parameters, of types or of their own.
type New =
    static member Added(x: int, y: string) = x + y.Length
    static member Generic<'a, 'b>(x: 'a, y: 'b list) : int = y.Length * 10 + typeof<'a>.Name.Length
    static member Wide(a: int, b: int64, c: string, d: int[], e: obj, f: float) : int = a + int b + c.Length + d.Length + unbox<int> e + int f
    static member Get<'t>(box: Box<'t>) = typeof<'t>.Name.Length
    static member Pair<'t, 'u>(box: Box<'t>, other: 'u) = typeof<'t>.Name.Length * 100 + typeof<'u>.Name.Length
    static member Sum(point: byref<Point>) = point.X + 1000

/// The dynamic assemblies, which the runtime does not find by itself.
let submitted = Collections.Generic.Dictionary<string, Assembly>()

/// A method in a dynamic assembly that answers a number, as a submission has it.
let answering (number: int) : MethodInfo =
    let name = sprintf "Submitted%d" submitted.Count
    let dynamicAssembly = AssemblyBuilder.DefineDynamicAssembly(AssemblyName name, AssemblyBuilderAccess.Run)
    submitted.Add(name, dynamicAssembly)
    let kind = dynamicAssembly.DefineDynamicModule(name).DefineType("Answers", TypeAttributes.Public)
    let code = kind.DefineMethod("answer", MethodAttributes.Public ||| MethodAttributes.Static, typeof<int>, Type.EmptyTypes).GetILGenerator()
    code.Emit(OpCodes.Ldc_I4, number)
    code.Emit OpCodes.Ret
    kind.CreateType().GetMethod "answer"

let changes = Generations(File.ReadAllBytes assembly.Location)
let dump = Dump.Dump(File.ReadAllBytes assembly.Location)
let mutable number = 0

/// Puts bodies into the assembly; gives what the delta consists of.
let put (redirections: Redirection list) (isBuilt: bool) : string list =
    number <- number + 1
    let id = Guid(number, 0s, 0s, [| 0uy; 0uy; 0uy; 0uy; 0uy; 0uy; 0uy; 0uy |])
    let delta, again = changes.Next(id, redirections), changes.Next(id, redirections)
    if delta.Metadata <> again.Metadata || delta.Code <> again.Code then failwith "the same change gives other bytes"
    MetadataUpdater.ApplyUpdate(assembly, ReadOnlySpan<byte> delta.Metadata, ReadOnlySpan<byte> delta.Code, ReadOnlySpan<byte>())
    delta.Applied()
    dump.Next(delta, isBuilt)

let every = BindingFlags.Public ||| BindingFlags.Static ||| BindingFlags.Instance

let method (kind: Type) (name: string) = kind.GetMethod(name, every)

let plain = method (assembly.GetType "Target.Plain")

let instead name = Calls(method typeof<New> name)

let show (title: string) (lines: string list) =
    printfn "## %s" title
    for line in lines do
        printfn "%s" line

/// Code that calls what changes all the time, on a thread of its own.
type Hot(call: unit -> int) =
    let mutable last = -1
    let mutable isDone = false
    let thread =
        Thread((fun () ->
            while not (Volatile.Read &isDone) do
                Volatile.Write(&last, call ())),
            IsBackground = true)
    do thread.Start()
    /// Whether it comes to call what answers this; it may be within the older body for a moment.
    member _.Sees(number: int) = SpinWait.SpinUntil((fun () -> Volatile.Read &last = number), 10000)
    member _.Stop() =
        Volatile.Write(&isDone, true)
        thread.Join()

let thirtyGenerations () =
    let hot = Hot(fun () -> Plain.number ())
    let mutable seen = if hot.Sees 0 then 0 else -1
    for generation in 1..30 do
        let lines = put [ { Old = plain "number"; New = Calls(answering generation) } ] false
        if generation = 1 || generation = 30 then show (sprintf "generation %d of one method" generation) lines
        if seen = generation - 1 && hot.Sees generation then seen <- generation
    show "as it was built" (put [ { Old = plain "number"; New = AsBuilt } ] true)
    printfn "a hot caller saw all up to %d, and the built one again: %b" seen (hot.Sees 0)
    hot.Stop()

let manyAtOnce () =
    let kind = assembly.GetType "Target.Many"
    let all = [ for at in 0..39 -> method kind (sprintf "m%d" at) ]
    let sum () = all |> List.sumBy (fun one -> one.Invoke(null, [||]) :?> int)
    let hot = Hot(fun () -> Many.m0 () + Many.m20 () + Many.m39 ())
    let before = sum ()
    let lines = put [ for at, one in List.indexed (List.rev all) -> { Old = one; New = Calls(answering (39 - at)) } ] false
    printfn "## many at once\n%d lines, %d of methods, in the order of their rows: %b" lines.Length (lines |> List.filter (fun line -> line.StartsWith "method") |> List.length) ((lines |> List.filter (fun line -> line.StartsWith "method") |> List.map (fun line -> line.Split(' ').[1])) = [ for at in 0..39 -> sprintf "m%d" at ])
    printfn "sum %d, then %d; a hot caller sees %b" before (sum ()) (hot.Sees 59)
    hot.Stop()

let generics () =
    let box, text = Box 1, Box "a"
    let hot = Hot(fun () -> Plain.generic 1 [ "a"; "b" ] + box.Get() * 1000 + text.Pair 2.0 * 10000)
    let before = hot.Sees 0
    let boxed = typedefof<Box<_>>
    show
        "generic methods, and those of generic types and structures"
        (put
            [ { Old = plain "generic"; New = instead "Generic" }
              { Old = plain "added"; New = instead "Added" }
              { Old = plain "wide"; New = instead "Wide" }
              { Old = method boxed "Get"; New = instead "Get" }
              { Old = method boxed "Pair"; New = instead "Pair" }
              { Old = method typeof<Point> "Sum"; New = instead "Sum" } ]
            false)
    printfn "a hot caller saw 0 and then the new ones: %b, %b" before (hot.Sees(20 + 5 + 5000 + 6060000))
    hot.Stop()
    printfn "%d %d %d %d" (Plain.generic "a" [ 1 ]) (Plain.added 2 "abc") (Plain.wide 1 2L "abc" [| 0; 0 |] (box.Value) 5.0) ({ X = 7 }.Sum())
    printfn "%d %d %d" (text.Get()) (box.Pair "b") (Box(struct (1, 2)).Get())

/// What the runtime says of a delta for another load of the assembly.
let refusal (title: string) (path: string) (context: AssemblyLoadContext) =
    let other = context.LoadFromAssemblyPath path
    let image = File.ReadAllBytes path
    let old = (other.GetType "Target.Plain").GetMethod "number"
    let delta = Generations(image).Next(Guid(1, 0s, 0s, Array.zeroCreate 8), [ { Old = old; New = Calls(answering 1) } ])
    try
        MetadataUpdater.ApplyUpdate(other, ReadOnlySpan<byte> delta.Metadata, ReadOnlySpan<byte> delta.Code, ReadOnlySpan<byte>())
        printfn "%s: taken, answers %O" title (old.Invoke(null, [||]))
    with error -> printfn "%s: %s, answers %O" title (error.GetType().Name) (old.Invoke(null, [||]))

[<EntryPoint>]
let main arguments =
    AppDomain.CurrentDomain.add_AssemblyResolve (fun _ asked ->
        match submitted.TryGetValue(AssemblyName(asked.Name).Name) with
        | true, found -> found
        | _ -> null)
    thirtyGenerations ()
    manyAtOnce ()
    generics ()
    printfn "## what the runtime refuses"
    refusal "a build for release" arguments.[0] (AssemblyLoadContext "release")
    refusal "a collectible context" assembly.Location (AssemblyLoadContext("collectible", true))
    refusal "a second load" assembly.Location (AssemblyLoadContext "second")
    0
