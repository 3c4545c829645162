/// What the hosts of test engines have in common: they know a framework by names alone, as the version that the tests refer to.
module internal MainstayDisplay.EngineCalls

open System
open System.Collections
open System.Collections.Concurrent
open System.Reflection
open System.Reflection.Emit
open System.Runtime.CompilerServices
open System.Threading

let private everyMember = BindingFlags.Public ||| BindingFlags.NonPublic ||| BindingFlags.Instance ||| BindingFlags.Static

let private ownPublic = BindingFlags.Public ||| BindingFlags.Instance ||| BindingFlags.Static

/// The type of an assembly with this full name.
let typeIn (assembly: Assembly) (name: string) : Type = assembly.GetType(name, true)

/// What reflection finds of a type, found once.
let foundOnce (find: Type -> 'T when 'T: not struct) : Type -> 'T =
    let known = ConditionalWeakTable<Type, 'T>()
    fun kind -> known.GetValue(kind, ConditionalWeakTable<Type, 'T>.CreateValueCallback find)

/// What reflection finds of a type by a name, found once.
let private foundOnceByName (find: Type -> string -> 'T) : Type -> string -> 'T =
    let known = foundOnce (fun _ -> ConcurrentDictionary<string, 'T>())
    fun kind name -> (known kind).GetOrAdd(name, find kind)

let private propertyNamed: Type -> string -> PropertyInfo option =
    foundOnceByName (fun kind name ->
        match kind.GetProperty(name, everyMember) with
        | null -> kind.GetInterfaces() |> Array.tryPick (fun face -> Option.ofObj (face.GetProperty(name, everyMember)))
        | property -> Some property)

/// What a property of an object has, be it its class's or an interface's; null where there is none.
let get (owner: obj) (name: string) : obj =
    if isNull owner then null
    else propertyNamed (owner.GetType()) name |> Option.map (fun property -> property.GetValue owner) |> Option.toObj

/// The same as text; empty where there is none.
let text (owner: obj) (name: string) : string =
    match get owner name with
    | null -> ""
    | value -> string value

/// The items of a property that has several; none where there is no such property.
let items (owner: obj) (name: string) : obj list =
    match get owner name with
    | :? IEnumerable as items -> List.ofSeq (Seq.cast<obj> items)
    | _ -> []

/// What a field of an object has; null where there is none.
let field (owner: obj) (name: string) : obj =
    match (if isNull owner then null else owner.GetType().GetField(name, everyMember)) with
    | null -> null
    | field -> field.GetValue owner

let private takes (m: MethodBase) (arguments: obj[]) : bool =
    let parameters = m.GetParameters()
    let fits (parameter: ParameterInfo, argument: obj) =
        match argument with
        | null -> not parameter.ParameterType.IsValueType || not (isNull (Nullable.GetUnderlyingType parameter.ParameterType))
        | argument -> parameter.ParameterType.IsInstanceOfType argument
    parameters.Length >= arguments.Length
    && parameters |> Seq.skip arguments.Length |> Seq.forall (fun parameter -> parameter.IsOptional)
    && Seq.zip parameters arguments |> Seq.forall fits

/// Of those that take the arguments the one with the fewest parameters, and all its arguments.
let private chosen (candidates: 'M list when 'M :> MethodBase) (arguments: obj list) : ('M * obj[]) option =
    let arguments = Array.ofList arguments
    match candidates |> List.filter (fun m -> takes m arguments) |> List.sortBy (fun m -> m.GetParameters().Length) with
    | [] -> None
    | first :: _ ->
        let left = first.GetParameters() |> Array.skip arguments.Length |> Array.map (fun _ -> Type.Missing)
        Some(first, Array.append arguments left)

let private methodsNamed: Type -> string -> MethodInfo list =
    foundOnceByName (fun kind name ->
        let isNamed (m: MethodInfo) = not m.IsGenericMethodDefinition && (m.Name = name || m.Name.EndsWith("." + name, StringComparison.Ordinal))
        let all = Seq.append (kind.GetMethods everyMember) (kind.GetInterfaces() |> Seq.collect (fun face -> face.GetMethods everyMember))
        all |> Seq.filter isNamed |> List.ofSeq)

let private invoke (kind: Type) (instance: obj) (name: string) (arguments: obj list) : obj =
    match chosen (methodsNamed kind name) arguments with
    | Some (m, arguments) -> m.Invoke(instance, BindingFlags.DoNotWrapExceptions ||| BindingFlags.OptionalParamBinding, null, arguments, null)
    | None -> failwithf "%s has no `%s` that takes these %d arguments" kind.FullName name arguments.Length

/// Calls a method of an object, be it its class's or an interface's.
let call (instance: obj) (name: string) (arguments: obj list) : obj = invoke (instance.GetType()) instance name arguments

let callStatic (kind: Type) (name: string) (arguments: obj list) : obj = invoke kind null name arguments

/// Makes an object.
let make (kind: Type) (arguments: obj list) : obj =
    let constructors = kind.GetConstructors everyMember |> Seq.filter (fun one -> not one.IsStatic) |> List.ofSeq
    match chosen constructors arguments with
    | Some (one, arguments) -> one.Invoke(BindingFlags.DoNotWrapExceptions ||| BindingFlags.OptionalParamBinding, null, arguments, null)
    | None -> failwithf "a %s is not made of these %d arguments" kind.FullName arguments.Length

/// Waits for what a task or a value task gives; null where it gives nothing.
let waitFor (work: obj) : obj = TestsReflection.settled CancellationToken.None work

let private hasInterface: Type -> string -> bool = foundOnceByName (fun kind name -> kind.GetInterfaces() |> Array.exists (fun face -> face.Name = name))

/// Whether an object is of an interface with this name.
let isA (name: string) (value: obj) : bool = hasInterface (value.GetType()) name

/// An object of an interface that is known by name only.
let implementing (face: Type) (answer: MethodInfo -> obj[] -> obj) : obj =
    let made = typeof<DispatchProxy>.GetMethod("Create", [||]).MakeGenericMethod(face, typeof<MainstayDisplay.Stand>).Invoke(null, [||])
    (made :?> MainstayDisplay.Stand).Answer <- answer
    made

/// An object of an interface of properties, which have these values by their names.
let having (face: Type) (values: (string * obj) list) : obj =
    let known = dict (values |> List.map (fun (name, value) -> "get_" + name, value))
    implementing face (fun m _ -> match known.TryGetValue m.Name with | true, value -> value | false, _ -> null)

/// An interface that has all that others have. Those may be internal to their assemblies.
let combined (faces: Type list) : Type =
    let name = "Mainstay.Combined." + Guid.NewGuid().ToString "N"
    let assembly = AssemblyBuilder.DefineDynamicAssembly(AssemblyName name, AssemblyBuilderAccess.Run)
    let modul = assembly.DefineDynamicModule name
    // The runtime knows the attribute by its name.
    let access = modul.DefineType("System.Runtime.CompilerServices.IgnoresAccessChecksToAttribute", TypeAttributes.Public, typeof<Attribute>)
    let made = access.DefineConstructor(MethodAttributes.Public, CallingConventions.Standard, [| typeof<string> |])
    made.GetILGenerator().Emit OpCodes.Ret
    let access = access.CreateTypeInfo().AsType()
    for owner in faces |> List.map (fun face -> face.Assembly.GetName().Name) |> List.distinct do
        assembly.SetCustomAttribute(CustomAttributeBuilder(access.GetConstructor [| typeof<string> |], [| box owner |]))
    let face = modul.DefineType("ICombined", TypeAttributes.Public ||| TypeAttributes.Interface ||| TypeAttributes.Abstract)
    for one in faces do face.AddInterfaceImplementation one
    face.CreateTypeInfo().AsType()

type private Calling<'A, 'R>(work: obj -> obj) =
    member _.Invoke(argument: 'A) : 'R = unbox<'R> (work (box argument))

/// A delegate of one argument, of a type that is known by name only.
let delegateOf (kind: Type) (work: obj -> obj) : obj =
    let calling = Activator.CreateInstance(typedefof<Calling<_, _>>.MakeGenericType(kind.GetGenericArguments()), work)
    box (Delegate.CreateDelegate(kind, calling, "Invoke"))

/// An array of a type that is known by name only.
let arrayOf (kind: Type) (values: obj list) : obj =
    let array = Array.CreateInstance(kind, values.Length)
    values |> List.iteri (fun index value -> array.SetValue(value, index))
    box array

/// A list of F# of a type that is known by name only.
let listOf (kind: Type) (values: obj list) : obj =
    let listed = typedefof<list<_>>.MakeGenericType kind
    let cons = listed.GetMethod "Cons"
    List.foldBack (fun value rest -> cons.Invoke(null, [| value; rest |])) values (listed.GetProperty("Empty").GetValue null)

/// The public static method with this name and the fewest parameters of whatever public type of an assembly.
let staticMethods (assembly: Assembly) (name: string) : MethodInfo list =
    assembly.GetExportedTypes()
    |> Seq.collect (fun kind -> kind.GetMethods ownPublic)
    |> Seq.filter (fun m -> m.IsStatic && m.Name = name)
    |> Seq.sortBy (fun m -> m.GetParameters().Length)
    |> List.ofSeq
