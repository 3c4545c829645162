namespace MainstayDisplay

open System
open System.ComponentModel
open System.Reflection

/// Prints what a test of xUnit writes with the helper it was given. It is public because the runtime makes a class that comes from it.
[<EditorBrowsable(EditorBrowsableState.Never)>]
type TestOutput() =
    inherit DispatchProxy()

    override _.Invoke(m: MethodInfo, arguments: obj[]) : obj =
        let text =
            match arguments with
            | [| text |] -> string text
            | [| format; (:? (obj[]) as values) |] -> String.Format(string format, values)
            | _ -> ""
        match m.Name with
        | "WriteLine" -> Console.WriteLine text
        | "Write" -> Console.Write text
        | _ -> ()
        if m.ReturnType = typeof<string> then box "" else null
