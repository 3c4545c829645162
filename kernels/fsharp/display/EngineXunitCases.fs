/// What tests of xUnit an assembly has: those that attributes alone say are found once, since a save changes no attribute of what is loaded, and
/// the others for each run.
module internal MainstayDisplay.EngineXunitCases

open System
open System.Collections
open System.Collections.Generic
open System.Reflection
open System.Runtime.CompilerServices
open MainstayDisplay.TestsModel

/// A test case as xUnit has found it, with the class and the method that it is of.
type Discovered = { Class: string; Method: string; Case: obj }

/// Finds the cases of an assembly, or of a class of it by its name. Those that the same one finds share their collections.
type Finder = string option -> Discovered list

/// What was found in an assembly with a file, in the order in which it was found.
type private Known =
    { Cases: Discovered list
      /// The classes whose cases must be found each time.
      Anew: Set<string>
      Find: Finder }

/// The attributes by which xUnit 3 finds tests whose objects hold nothing and run no code of others.
let private plainOfXunit3 =
    Set.ofList
        [ "Xunit.FactAttribute"; "Xunit.TheoryAttribute"; "Xunit.InlineDataAttribute"; "Xunit.TraitAttribute"; "Xunit.TestClassAttribute"
          "Xunit.CollectionAttribute"; "Xunit.CollectionAttribute`1"; "Xunit.CollectionBehaviorAttribute"; "Xunit.v3.ParallelizationAttribute"
          "Xunit.AssemblyFixtureAttribute"; "Xunit.CaptureConsoleAttribute"; "Xunit.CaptureTraceAttribute" ]

let private fullNameOf (kind: Type) = if kind.IsGenericType then kind.GetGenericTypeDefinition().FullName else kind.FullName

let private implements (face: Type -> bool) (kind: Type) = kind.GetInterfaces() |> Array.exists face

let private isOfXunit3 = implements (fun face -> face.Namespace = "Xunit.v3")

let private isFact (kind: Type) = TestsReflection.isOf "Xunit.FactAttribute" kind || implements (fun face -> face.FullName = "Xunit.v3.IFactAttribute") kind

/// Whether an attribute says what tests are without code of others that would have to run for it, and without a value that a test could change.
let private saysAll (data: CustomAttributeData) : bool =
    let kind = data.AttributeType
    let isTrait = implements (fun face -> face.FullName = "Xunit.Sdk.ITraitAttribute") kind
    let hasArray () =
        data.ConstructorArguments |> Seq.exists (fun all ->
            match all.Value with
            | :? IEnumerable as all when not (all :? string) ->
                all |> Seq.cast<CustomAttributeTypedArgument> |> Seq.exists (fun one -> one.Value :? IEnumerable && not (one.Value :? string))
            | _ -> false)
    if isOfXunit3 kind && not (plainOfXunit3.Contains(fullNameOf kind)) then false
    elif isFact kind then kind.FullName = "Xunit.FactAttribute" || kind.FullName = "Xunit.TheoryAttribute"
    elif kind.FullName = "Xunit.InlineDataAttribute" then not (hasArray ())
    elif TestsReflection.isOf "Xunit.Sdk.DataAttribute" kind then false
    elif isTrait then kind.FullName = "Xunit.TraitAttribute" || kind.FullName = "Xunit.AssemblyTraitAttribute"
    elif TestsReflection.isOf "Xunit.CollectionBehaviorAttribute" kind then
        data.ConstructorArguments |> Seq.forall (fun one -> one.ArgumentType <> typeof<string> && one.ArgumentType <> typeof<Type>)
    else true

let private isPlain (found: MemberInfo) : bool = Seq.forall saysAll (found.GetCustomAttributesData())

/// The attributes of a type, and those of the types that it inherits from.
let rec private attributesOf (kind: Type) : CustomAttributeData list =
    if isNull kind then [] else List.ofSeq (kind.GetCustomAttributesData()) @ attributesOf kind.BaseType

/// Whether an attribute says of which collection tests are.
let private isOfCollection (data: CustomAttributeData) : bool =
    fullNameOf(data.AttributeType).StartsWith("Xunit.CollectionAttribute", StringComparison.Ordinal)
    || implements (fun face -> face.FullName = "Xunit.v3.ICollectionAttribute") data.AttributeType

/// The definitions of collections that such an attribute names by their types.
let private definitionsIn (data: CustomAttributeData) : Type list =
    List.ofArray (data.AttributeType.GetGenericArguments()) @ [ for one in data.ConstructorArguments do match one.Value with :? Type as kind -> kind | _ -> () ]

/// Whether what an assembly's tests have in common is what attributes say: those of the assembly, and those of collections and their definitions,
/// which are read once for all tests that a finder finds.
let private isCommonPlain (assembly: Assembly) : bool =
    let ofTypes = assembly.GetTypes() |> Array.map attributesOf |> List.ofArray
    let isDefinition = List.exists (fun (data: CustomAttributeData) -> data.AttributeType.FullName = "Xunit.CollectionDefinitionAttribute")
    let collections = ofTypes |> List.collect (List.filter isOfCollection)
    let definitions = List.filter isDefinition ofTypes @ (collections |> List.collect definitionsIn |> List.distinct |> List.map attributesOf)
    Seq.forall saysAll (assembly.GetCustomAttributesData()) && List.forall (List.forall saysAll) (collections :: definitions)

/// Whether what an attribute has for a parameter is given to the test as it stands there: nothing converts it, and no test can change it.
let private isGivenAsIs (parameter: ParameterInfo) : bool =
    let kind = parameter.ParameterType
    kind.IsPrimitive || kind.IsEnum || List.contains kind [ typeof<string>; typeof<decimal>; typeof<obj>; typeof<Type> ]

/// Whether the tests of a class are what its attributes say, and those of what it inherits from.
let rec private isDeclared (kind: Type) : bool =
    let all = BindingFlags.Public ||| BindingFlags.NonPublic ||| BindingFlags.Static ||| BindingFlags.Instance ||| BindingFlags.DeclaredOnly
    let isDeclaredBy (m: MethodInfo) =
        let isTest = m.GetCustomAttributesData() |> Seq.exists (fun data -> isFact data.AttributeType)
        isPlain m && (not isTest || Array.forall isGivenAsIs (m.GetParameters()))
    isNull kind
    || kind = typeof<obj>
    || (isPlain kind && Array.forall isDeclaredBy (kind.GetMethods all) && isDeclared kind.BaseType && Array.forall isDeclared (kind.GetInterfaces()))

/// Of so many classes at most the cases are found one class after the other; of more, with all others.
let private mostAnew = 16

/// What is known of the tests of assemblies, to the engine of one framework.
type KnownCases() =
    let known = ConditionalWeakTable<Assembly, Known>()

    /// Finds all cases, and keeps what attributes alone say.
    let findAll (assembly: Assembly) (find: Finder) : Discovered list =
        let cases = find None
        let isDeclared (kind: Type) = try isDeclared kind with _ -> false
        if (try isCommonPlain assembly with _ -> false) then
            let classes = try List.ofArray (assembly.GetExportedTypes()) with _ -> []
            let hasTests (kind: Type) = not kind.IsInterface && (kind.IsSealed || not kind.IsAbstract)
            let anew = classes |> List.filter (fun kind -> hasTests kind && not (isDeclared kind)) |> List.map (fun kind -> kind.FullName) |> Set.ofList
            if not (List.isEmpty classes) && anew.Count <= mostAnew then known.AddOrUpdate(assembly, { Cases = cases; Anew = anew; Find = find })
        cases

    /// The cases that are known, with those found anew in the places of their classes, or behind all.
    let findAnew (known: Known) : Discovered list =
        let left = Dictionary<string, Discovered list>()
        for owner in known.Anew do left.[owner] <- known.Find(Some owner)
        let take (one: Discovered) =
            match left.TryGetValue one.Class with
            | true, cases ->
                left.[one.Class] <- []
                cases
            | _ -> [ one ]
        let inPlace = known.Cases |> List.collect take
        inPlace @ List.concat left.Values

    /// The cases of the tests of a source; `finder` makes what finds them.
    member _.Of(source: Source, finder: unit -> Finder) : Discovered list =
        match known.TryGetValue source.Assembly with
        | true, known when source.HasFile -> findAnew known
        | _ when source.HasFile -> findAll source.Assembly (finder ())
        | _ -> finder () None
