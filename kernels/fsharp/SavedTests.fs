/// Tests that were saved since their assembly was built: they run from where they were compiled, where that is the same for them.
module Mainstay.Worker.SavedTests

open System
open System.Reflection
open Mainstay.Worker.Changes
open Mainstay.Worker.Difference
open Mainstay.Worker.Outline
open MainstayDisplay.TestsFinding

/// The frameworks whose engines find tests also in what was compiled since the build, as their namespaces begin.
let private frameworks = [ "Xunit"; "NUnit.Framework"; "FsCheck" ]

/// Attributes of other methods with which NUnit does something around each test of their class.
let private aroundTests = Set.ofList [ "SetUpAttribute"; "TearDownAttribute"; "OneTimeSetUpAttribute"; "OneTimeTearDownAttribute" ]

/// Attributes that the compiler gives a module.
let private ofModule = Set.ofList [ "CompilationMappingAttribute"; "AutoOpenAttribute"; "RequireQualifiedAccessAttribute"; "CompilationRepresentationAttribute" ]

/// Attributes of an assembly that say how many of its tests run at once, which is one here.
let private ofOrder = Set.ofList [ "CollectionBehaviorAttribute"; "ParallelizationAttribute"; "ParallelizableAttribute"; "LevelOfParallelismAttribute"; "NonParallelizableAttribute" ]

/// Whether an attribute of an assembly is nothing to a single test. Builds of xUnit 3 register what reports on them.
let private isOfRuns (attribute: Type) = ofOrder.Contains attribute.Name || attribute.Name.StartsWith("Register", StringComparison.Ordinal)

let private attributesOf (found: MemberInfo) : Type list = [ for one in found.GetCustomAttributesData() -> one.AttributeType ]

let private isOfFramework (attribute: Type) =
    let space = if isNull attribute.Namespace then "" else attribute.Namespace
    frameworks |> List.exists (fun one -> space = one || space.StartsWith(one + ".", StringComparison.Ordinal))

/// What an assembly has for all of its tests, which those that were compiled beside it are without.
let private aroundAll (assembly: Assembly) : Type option =
    let ofAssembly = [ for one in assembly.GetCustomAttributesData() -> one.AttributeType ]
    let isSetUp (kind: Type) = attributesOf kind |> List.tryFind (fun one -> one.Name = "SetUpFixtureAttribute")
    ofAssembly
    |> List.tryFind (fun one -> isOfFramework one && not (isOfRuns one))
    |> Option.orElseWith (fun () -> assembly.GetTypes() |> Array.tryPick isSetUp)

/// Why a test that the build has not, or has otherwise, would not run as it will when it is built; None where it is no test. `compiled` is the
/// type that it was compiled in.
let obstacle (assembly: Assembly) (item: Item) (compiled: Type option) : string option =
    let methods = BindingFlags.Static ||| BindingFlags.Instance ||| BindingFlags.Public ||| BindingFlags.NonPublic
    let own = compiled |> Option.bind (fun kind -> kind.GetMethods methods |> Array.tryFind (fun one -> one.Name = item.CompiledNames.Head))
    match own, Replaced.moduleOf assembly item.Scope with
    | _ when not (isTest item) -> None
    | Some own, Some owner ->
        let isOwn (name: string) = item.Attributes |> List.exists (fun (one, _) -> one + "Attribute" = name)
        let stranger = attributesOf own |> List.tryFind (fun one -> isOwn one.Name && not (isOfFramework one))
        let ofOwner = attributesOf owner |> List.tryFind (fun one -> not (ofModule.Contains one.Name))
        let ofAll = aroundAll assembly
        let around = owner.GetMethods methods |> Seq.collect attributesOf |> Seq.tryFind (fun one -> aroundTests.Contains one.Name)
        (match stranger, ofOwner, around |> Option.orElse ofAll with
         | Some one, _, _ -> Some("it is new, and whoever looks for `" + one.Name + "` does not find it in what was built")
         | _, Some one, _ -> Some("it is new, and its module has the attribute `" + one.Name + "`, which may concern its tests")
         | _, _, Some one -> Some("it is new, and something runs around the tests of its module or assembly (`" + one.Name + "`)")
         | None, None, None -> None)
    | _ -> Some "it is new, and what it stands in is not found in what was built"

/// What a test's class is called in its assembly.
let private classOf (assembly: Assembly) (scope: Scope) : string =
    match Replaced.moduleOf assembly scope with
    | Some kind -> kind.FullName
    | None -> String.Join(".", scope.Namespace @ [ String.Join("+", scope.Modules) ])

/// What of the project's tests is otherwise than it was built, and where the tests are that were compiled since: each by its class and method there.
let internal read (sources: Sources) : SavedTests * Map<string, string * int> =
    let tests = [ for one in sources.Additions do if isTest one.Item then match one.Kind with Some kind -> yield one, kind | None -> () ]
    let added =
        [ for one, kind in tests ->
            { Assembly = one.Of.Baseline.Name
              Class = classOf one.Of.Baseline.Assembly one.Item.Scope
              Method = one.Item.CompiledNames.Head
              Kind = kind } ]
    let isGone (source: Source) (outline: Outline) (item: Item) =
        sources.IsReplaced(source.Path, item) || not (outline.Items |> List.exists (fun one -> one.Key = item.Key))
    let gone =
        [ for path in sources.Paths do
            match sources.Running path with
            | None -> ()
            | Some outline ->
                match sources.Of path with
                | Ok source ->
                    for item in source.Before.Items do
                        if isTest item && isGone source outline item then
                            yield source.Baseline.Name, classOf source.Baseline.Assembly item.Scope, item.CompiledNames.Head
                | Error _ -> () ]
    let places = Map.ofList [ for one, kind in tests -> kind.FullName + "::" + one.Item.CompiledNames.Head, (one.Of.Path, one.Item.Line) ]
    { Added = added; Gone = Set.ofList gone }, places
