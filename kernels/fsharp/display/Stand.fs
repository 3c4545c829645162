namespace MainstayDisplay

open System
open System.ComponentModel
open System.Reflection

/// Stands for an object of an interface that is known by name only. It is public because the runtime makes a class that comes from it.
[<EditorBrowsable(EditorBrowsableState.Never)>]
type Stand() =
    inherit DispatchProxy()

    /// What each call of the interface's members answers; null stands for the default of a value.
    member val internal Answer: MethodInfo -> obj[] -> obj = (fun _ _ -> null) with get, set

    override this.Invoke(m: MethodInfo, arguments: obj[]) : obj =
        match this.Answer m arguments with
        | null when m.ReturnType.IsValueType && m.ReturnType <> typeof<Void> -> Activator.CreateInstance m.ReturnType
        | answer -> answer
