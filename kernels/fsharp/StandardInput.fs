/// The process's own standard input. `Console.OpenStandardInput` reads it below every place where another input could stand, so a pipe
/// stands there while code runs that may open it, and is filled once a thread waits for it. Which threads wait, and for what, Linux tells
/// in `/proc`; elsewhere the stream stays empty.
module Mainstay.Worker.StandardInput

open System
open System.Globalization
open System.IO
open System.IO.Pipes
open System.Runtime.InteropServices
open System.Text
open System.Threading

/// How long it takes at most until a thread that waits is seen.
let private pause = TimeSpan.FromMilliseconds 20.

/// The number of the system call `read`, as `/proc` writes it.
let private read =
    match RuntimeInformation.ProcessArchitecture with
    | Architecture.X64 -> Some "0"
    | Architecture.Arm64 -> Some "63"
    | _ -> None

[<DllImport("libc")>]
extern int private dup2(int from, int onto)

[<DllImport("libc")>]
extern nativeint private readlink(string path, byte[] buffer, nativeint size)

/// What a descriptor of this process stands for, in the system's words: `pipe:[4711]`.
let private target (descriptor: int) : string =
    let buffer = Array.zeroCreate 256
    let length = int (readlink("/proc/self/fd/" + string descriptor, buffer, nativeint buffer.Length))
    Encoding.UTF8.GetString(buffer, 0, max 0 length)

/// What the thread of this folder waits to read, if it does: `0 0x1a …` is a `read` of descriptor 26.
let private awaitedBy (task: string) : string option =
    try
        match File.ReadAllText(Path.Combine(task, "syscall")).Split ' ' with
        | parts when parts.Length > 1 && Some parts.[0] = read ->
            Some(target (Int32.Parse(parts.[1].Substring 2, NumberStyles.HexNumber)))
        | _ -> None
    with _ -> None // The thread has ended.

let private isAwaited (pipe: string) =
    Directory.GetDirectories "/proc/self/task" |> Array.exists (fun task -> awaitedBy task = Some pipe)

let private isTold = lazy (read.IsSome && File.Exists "/proc/self/syscall")

/// Puts another file in the place of the standard input.
let private replaceBy (file: SafeHandle) = dup2(int (file.DangerousGetHandle()), 0) |> ignore

/// Does work during which the standard input is what `provide` gives, as UTF-8. That is called once, when it is first read.
let during (provide: unit -> string) (work: unit -> 'T) : 'T =
    if not isTold.Value then work ()
    else
        let input = new AnonymousPipeServerStream(PipeDirection.Out, HandleInheritability.None)
        replaceBy input.ClientSafePipeHandle
        input.DisposeLocalCopyOfClientHandle()
        let ended = new ManualResetEventSlim(false)
        let pipe = target 0
        let rec fill () =
            if not (ended.Wait pause) then
                if isAwaited pipe then
                    let bytes = Encoding.UTF8.GetBytes(provide ())
                    input.Write(bytes, 0, bytes.Length)
                else fill ()
        let watch () =
            try
                try
                    fill ()
                with :? IOException -> () // Nobody reads it any more.
            finally
                input.Dispose()
        Thread(watch, IsBackground = true, Name = "standard input").Start()
        try
            work ()
        finally
            ended.Set()
            use nothing = File.OpenRead "/dev/null"
            replaceBy nothing.SafeFileHandle
