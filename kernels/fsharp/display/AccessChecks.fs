namespace System.Runtime.CompilerServices

open System
open System.ComponentModel

/// Marks an assembly for which the runtime does not check what it may use of another one. The runtime knows it by its name alone, and has no
/// type of that name; code that is compiled to replace parts of a project's assembly has it.
[<AttributeUsage(AttributeTargets.Assembly, AllowMultiple = true); EditorBrowsable(EditorBrowsableState.Never)>]
type IgnoresAccessChecksToAttribute(name: string) =
    inherit Attribute()

    /// The name of the other assembly.
    member _.AssemblyName = name
