/// Calls what an assembly has with made-up arguments, and writes what came of it, a line for each call: two assemblies that are made of the same
/// sources give the same lines. It knows nothing of the assembly, and so tells old code from new in any repository.
module Probe =
    open System
    open System.Collections.Generic
    open System.IO
    open System.Reflection
    open System.Text.RegularExpressions
    open System.Threading.Tasks
    open Microsoft.FSharp.Reflection

    let everything = BindingFlags.Public ||| BindingFlags.NonPublic ||| BindingFlags.DeclaredOnly

    type Made =
        static member Async<'a>(value: 'a) : Async<'a> = async { return value }
        static member Task<'a>(value: 'a) : Task<'a> = Task.FromResult value
        static member ValueTask<'a>(value: 'a) : ValueTask<'a> = ValueTask<'a>(value)
        static member List<'a>(values: obj list) : 'a list = [ for value in values -> unbox<'a> value ]
        static member Run<'a>(work: Async<'a>) : obj = box (Async.RunSynchronously(work, 500))
        static member Awaited<'a>(work: ValueTask<'a>) : Task = work.AsTask() :> Task

    let generic (name: string) (t: Type) (arguments: obj[]) =
        typeof<Made>.GetMethod(name).MakeGenericMethod([| t |]).Invoke(null, arguments)

    /// Some values of a type.
    let rec samples (depth: int) (t: Type) : obj list =
        let is (definition: Type) = t.IsGenericType && t.GetGenericTypeDefinition() = definition
        let inner () = t.GetGenericArguments().[0]
        let less = samples (depth - 1)
        let first (t: Type) = match less t with value :: _ -> value | [] -> null
        if t = typeof<int> then [ box 3; box 0; box -7 ]
        elif t = typeof<string> then [ box "a <b> & c-D"; box ""; box "12" ]
        elif t = typeof<bool> then [ box true; box false ]
        elif t = typeof<float> then [ box 2.5; box 0.0 ]
        elif t = typeof<char> then [ box 'x'; box '<' ]
        elif t = typeof<obj> then [ box 5; box "o" ]
        elif t = typeof<unit> then [ null ]
        elif t = typeof<Type> then [ box typeof<int>; box typeof<option<string>>; box typeof<Map<string, int>> ]
        elif t = typeof<exn> then [ box (InvalidOperationException "made") ]
        elif t.IsEnum then [ for value in Enum.GetValues t -> value ] |> List.truncate 3
        elif t = typeof<Task> then [ box Task.CompletedTask ]
        elif is typedefof<Async<_>> then less (inner ()) |> List.map (fun value -> generic "Async" (inner ()) [| value |])
        elif is typedefof<Task<_>> then less (inner ()) |> List.map (fun value -> generic "Task" (inner ()) [| value |])
        elif is typedefof<ValueTask<_>> then less (inner ()) |> List.map (fun value -> generic "ValueTask" (inner ()) [| value |])
        elif is typedefof<list<_>> || is typedefof<seq<_>> then
            let all = less (inner ())
            [ generic "List" (inner ()) [| box all |]; generic "List" (inner ()) [| box (List.truncate 1 all) |]; generic "List" (inner ()) [| box ([]: obj list) |] ]
        elif t.IsArray then
            let all = less (t.GetElementType())
            [ for count in [ List.length all; 1; 0 ] do
                  let made = Array.CreateInstance(t.GetElementType(), min count (List.length all))
                  all |> List.truncate count |> List.iteri (fun at value -> made.SetValue(value, at))
                  yield box made ]
        elif FSharpType.IsFunction t then
            let _, result = FSharpType.GetFunctionElements t
            less result |> List.truncate 2 |> List.map (fun value -> FSharpValue.MakeFunction(t, fun _ -> value))
        elif FSharpType.IsTuple t then
            let parts = FSharpType.GetTupleElements t |> Array.map less
            [ for at in 0..1 -> FSharpValue.MakeTuple(parts |> Array.map (fun part -> part.[min at (List.length part - 1)]), t) ]
        elif depth <= 0 then [ (if t.IsValueType then Activator.CreateInstance t else null) ]
        elif FSharpType.IsRecord(t, true) then
            let fields = FSharpType.GetRecordFields(t, true) |> Array.map (fun field -> less field.PropertyType)
            [ for at in 0..1 -> FSharpValue.MakeRecord(t, fields |> Array.map (fun field -> field.[min at (List.length field - 1)]), true) ]
        elif FSharpType.IsUnion(t, true) then
            [ for case in FSharpType.GetUnionCases(t, true) |> Array.truncate 8 ->
                  FSharpValue.MakeUnion(case, case.GetFields() |> Array.map (fun field -> first field.PropertyType), true) ]
        elif t.IsValueType then [ Activator.CreateInstance t ]
        elif not t.IsAbstract && not (isNull (t.GetConstructor(Type.EmptyTypes))) then
            try [ Activator.CreateInstance t ] with _ -> [ null ]
        else [ null ]

    let plain (text: string) =
        let text = Regex.Replace(text, @"@\d+(-\d+)*|FSI_\d+|`\d+", "")
        if text.Length > 400 then text.Substring(0, 400) else text.Replace("\n", "\\n").Replace("\r", "")

    let rec failure (error: exn) =
        match error with
        | :? TargetInvocationException | :? AggregateException when not (isNull error.InnerException) -> failure error.InnerException
        | _ -> plain (sprintf "raised %s: %s" (error.GetType().Name) error.Message)

    /// What a value is, as text: functions are called and computations run.
    let rec render depth (value: obj) : string =
        if isNull value then "null"
        else
            let t = value.GetType()
            let rec whole (t: Type) = if isNull t then null elif t.IsGenericType then t else whole t.BaseType
            if depth <= 0 then plain (t.Name)
            elif FSharpType.IsFunction t then
                let rec function' (t: Type) = if t.IsGenericType && t.GetGenericTypeDefinition() = typedefof<int -> int> then t else function' t.BaseType
                let known = function' t
                let given = known.GetGenericArguments().[0]
                samples 2 given |> List.truncate 2
                |> List.map (fun argument ->
                    try render (depth - 1) (known.GetMethod("Invoke", [| given |]).Invoke(value, [| argument |])) with error -> failure error)
                |> String.concat " ; " |> sprintf "fun(%s)"
            elif value :? Task then
                let work = value :?> Task
                if not (work.Wait 500) then "running"
                else
                    let result = t.GetProperty "Result"
                    if isNull result then "done" else render (depth - 1) (result.GetValue value)
            elif t.IsGenericType && t.GetGenericTypeDefinition() = typedefof<Async<_>> then
                render (depth - 1) (generic "Run" (t.GetGenericArguments().[0]) [| value |])
            elif t.IsGenericType && t.GetGenericTypeDefinition() = typedefof<ValueTask<_>> then
                render depth (generic "Awaited" (t.GetGenericArguments().[0]) [| value |])
            elif FSharpType.IsTuple t then FSharpValue.GetTupleFields value |> Array.map (render (depth - 1)) |> String.concat ", "
            elif FSharpType.IsUnion(t, true) && not (value :? System.Collections.IEnumerable) then
                let case, fields = FSharpValue.GetUnionFields(value, t, true)
                plain (sprintf "%s(%s)" case.Name (fields |> Array.map (render (depth - 1)) |> String.concat ", "))
            elif FSharpType.IsRecord(t, true) then
                FSharpValue.GetRecordFields(value, true) |> Array.map (render (depth - 1)) |> String.concat "; " |> plain
            elif value :? string then plain ("\"" + (value :?> string) + "\"")
            elif value :? System.Collections.IEnumerable then
                (value :?> System.Collections.IEnumerable) |> Seq.cast<obj> |> Seq.truncate 6 |> Seq.map (render (depth - 1)) |> String.concat "; "
                |> sprintf "[%s]" |> plain
            else plain (value.ToString())

    let limited (work: unit -> string) =
        let running = Task.Run(fun () -> try work () with error -> failure error)
        if running.Wait 3000 then running.Result else "does not end"

    let closed (call: MethodInfo) =
        if not call.IsGenericMethodDefinition then Some call
        else
            let count = call.GetGenericArguments().Length
            try Some(call.MakeGenericMethod(Array.init count (fun at -> if at % 2 = 0 then typeof<int> else typeof<string>))) with _ -> None

    let calls (owner: Type) =
        [ for call in owner.GetMethods(everything ||| BindingFlags.Static ||| BindingFlags.Instance) do
              let isNoise = call.Name.Contains "@" || call.Name.StartsWith "set_" || call.Name.StartsWith "exit" || call.Name = "GetHashCode"
              match (if isNoise || call.IsAbstract then None else closed call) with
              | None -> ()
              | Some call ->
                  let parameters = call.GetParameters() |> Array.map (fun parameter -> parameter.ParameterType)
                  if not (parameters |> Array.exists (fun t -> t.IsByRef || t.IsPointer || t.ContainsGenericParameters)) then
                      let name =
                          sprintf "%s.%s(%s)" owner.FullName call.Name (parameters |> Array.map (fun t -> t.ToString()) |> String.concat ",")
                      let owners = if call.IsStatic then [ null ] else samples 2 owner |> List.truncate 2
                      if call.IsStatic || not (owners |> List.forall isNull) then
                          for at in 0..2 do
                              let outcome =
                                  limited (fun () ->
                                      let pick (all: obj list) = all.[at % List.length all]
                                      let given = parameters |> Array.map (samples 3 >> pick)
                                      render 4 (call.Invoke(pick owners, given)))
                              yield sprintf "%s#%d\t%s" name at outcome ]

    /// Writes the lines of an assembly into a file; types whose names match a pattern are left out.
    let write (assembly: Assembly) (without: string) (path: string) =
        let types =
            (try assembly.GetTypes() with :? ReflectionTypeLoadException as error -> error.Types |> Array.filter (isNull >> not))
            |> Array.filter (fun t ->
                not (t.FullName.Contains "@") && not (t.FullName.StartsWith "<") && not t.ContainsGenericParameters && not t.IsInterface
                && not (t.IsSubclassOf typeof<Delegate>) && not (without <> "" && Regex.IsMatch(t.FullName, without)))
        let lines = [| for t in types do yield! (try calls t with error -> [ sprintf "%s\t%s" t.FullName (failure error) ]) |]
        File.WriteAllLines(path, Array.sort lines)
        lines.Length

    /// The same for an assembly that is loaded, by its name.
    let loaded (name: string) (without: string) (path: string) =
        let named = AppDomain.CurrentDomain.GetAssemblies() |> Array.filter (fun assembly -> assembly.GetName().Name = name && not assembly.IsDynamic)
        write (if named.Length = 0 then Assembly.Load(AssemblyName name) else Array.last named) without path
