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

/// Finds the cases of an assembly, or of a class of it by its name. What cases have in common, those have that the same one finds.
type Finder = string option -> Discovered list

/// What was found in an assembly with a file, in the order in which it was found.
type private Known =
    { Cases: Discovered list
      /// The classes whose cases must be found each time.
      Anew: Set<string>
      Find: Finder }

let private known = ConditionalWeakTable<Assembly, Known>()

let private implements (face: string) (kind: Type) = kind.GetInterfaces() |> Array.exists (fun one -> one.FullName = face)

let private isFact (kind: Type) = TestsReflection.isOf "Xunit.FactAttribute" kind || implements "Xunit.v3.IFactAttribute" kind

/// What says of which collection tests are, where code of others does not.
let private isCollectionKnown (data: CustomAttributeData) =
    data.AttributeType.FullName = "Xunit.CollectionBehaviorAttribute"
    && data.ConstructorArguments |> Seq.forall (fun one -> one.ArgumentType <> typeof<string> && one.ArgumentType <> typeof<Type>)

/// Whether an attribute says what tests are without code of others that would have to run for it, and without a value that a test could change.
/// Interfaces of xUnit 3 stand beside the classes and interfaces of xUnit 2.
let private saysAll (data: CustomAttributeData) : bool =
    let kind = data.AttributeType
    let hasArray () =
        data.ConstructorArguments |> Seq.exists (fun all ->
            match all.Value with
            | :? IEnumerable as all when not (all :? string) ->
                all |> Seq.cast<CustomAttributeTypedArgument> |> Seq.exists (fun one -> one.Value :? IEnumerable && not (one.Value :? string))
            | _ -> false)
    if isFact kind then kind.FullName = "Xunit.FactAttribute" || kind.FullName = "Xunit.TheoryAttribute"
    elif TestsReflection.isOf "Xunit.Sdk.DataAttribute" kind || implements "Xunit.v3.IDataAttribute" kind then kind.FullName = "Xunit.InlineDataAttribute" && not (hasArray ())
    elif implements "Xunit.Sdk.ITraitAttribute" kind || implements "Xunit.v3.ITraitAttribute" kind then kind.FullName = "Xunit.TraitAttribute" || kind.FullName = "Xunit.AssemblyTraitAttribute"
    elif TestsReflection.isOf "Xunit.CollectionBehaviorAttribute" kind || implements "Xunit.v3.ICollectionBehaviorAttribute" kind then isCollectionKnown data
    else not (implements "Xunit.v3.ITestFrameworkAttribute" kind)

/// Whether what an attribute has for a parameter is given to the test as it stands there: nothing converts it, and no test can change it.
let private isGivenAsIs (parameter: ParameterInfo) : bool =
    let kind = parameter.ParameterType
    kind.IsPrimitive || kind.IsEnum || List.contains kind [ typeof<string>; typeof<decimal>; typeof<obj>; typeof<Type> ]

/// Whether the tests of a class are what its attributes say, and those of the classes below it.
let rec private isDeclared (kind: Type) : bool =
    let all = BindingFlags.Public ||| BindingFlags.NonPublic ||| BindingFlags.Static ||| BindingFlags.Instance ||| BindingFlags.DeclaredOnly
    let isDeclaredBy (m: MethodInfo) =
        let attributes = List.ofSeq (m.GetCustomAttributesData())
        let isTest = attributes |> List.exists (fun data -> isFact data.AttributeType)
        List.forall saysAll attributes && (not isTest || Array.forall isGivenAsIs (m.GetParameters()))
    isNull kind
    || kind = typeof<obj>
    || (try
            Seq.forall saysAll (kind.GetCustomAttributesData()) && Array.forall isDeclaredBy (kind.GetMethods all) && isDeclared kind.BaseType
        with _ -> false)

/// Of so many classes at most the cases are found one class after the other, which takes two threads each; of more, with all others.
let private mostAnew = 16

/// Finds all cases, and keeps what attributes alone say.
let private findAll (assembly: Assembly) (find: Finder) : Discovered list =
    let cases = find None
    if (try Seq.forall saysAll (assembly.GetCustomAttributesData()) with _ -> false) then
        let classes = try List.ofArray (assembly.GetExportedTypes()) with _ -> []
        let anew = classes |> List.filter (isDeclared >> not) |> List.map (fun kind -> kind.FullName) |> Set.ofList
        if not (List.isEmpty classes) && anew.Count <= mostAnew then known.AddOrUpdate(assembly, { Cases = cases; Anew = anew; Find = find })
    cases

/// The cases that are known, with those found anew in the places of their classes, or behind all.
let private findAnew (known: Known) : Discovered list =
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
let casesOf (source: Source) (finder: unit -> Finder) : Discovered list =
    match known.TryGetValue source.Assembly with
    | true, known when source.HasFile -> findAnew known
    | _ when source.HasFile -> findAll source.Assembly (finder ())
    | _ -> finder () None
