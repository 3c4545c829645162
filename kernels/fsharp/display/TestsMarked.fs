/// Which members of the session's code its author has marked as tests, and for which framework. None of that code runs to find out.
module internal MainstayDisplay.TestsMarked

open System
open System.Reflection
open MainstayDisplay.TestsModel
open MainstayDisplay.TestsReflection

/// The assemblies that frameworks have their attributes in.
let libraries : (string * string) list =
    [ "xunit.core", "xUnit"
      "xunit.v3.core", "xUnit"
      "nunit.framework", "NUnit"
      "Expecto", "Expecto"
      "Microsoft.VisualStudio.TestPlatform.TestFramework", "MSTest"
      "Microsoft.VisualStudio.QualityTools.UnitTestFramework", "MSTest"
      "MSTest.TestFramework", "MSTest"
      "TUnit.Core", "TUnit" ]

let private nameOfLibrary (library: Assembly) = library.GetName().Name

/// Whether an assembly is that of a framework.
let isLibrary (assembly: Assembly) = libraries |> List.exists (fun (name, _) -> name = nameOfLibrary assembly)

let rec private chain (kind: Type) : Type list = if isNull kind then [] else kind :: chain kind.BaseType

/// The framework's assembly that an attribute is of, be it one of its own or one that an extension made of those.
let private libraryOf (attribute: CustomAttributeData) : Assembly option =
    try
        chain attribute.AttributeType @ List.ofArray (attribute.AttributeType.GetInterfaces())
        |> List.map (fun kind -> kind.Assembly)
        |> List.tryFind isLibrary
    with _ -> None

/// A member of the session's code that a framework may want to know of.
type Marked =
    { Holder: Holder
      Member: MemberInfo
      Library: Assembly }

    member marked.Framework : string = libraries |> List.find (fun (name, _) -> name = nameOfLibrary marked.Library) |> snd

let marked (holders: Holder list) : Marked list =
    let members (holder: Holder) =
        let fields =
            match holder.Kind with
            | Some kind -> kind.GetFields(BindingFlags.Public ||| BindingFlags.Static) |> Seq.map (fun field -> field :> MemberInfo) |> List.ofSeq
            | None -> []
        (holder.Methods |> List.map (fun m -> m :> MemberInfo)) @ (holder.Properties |> List.map (fun property -> property :> MemberInfo)) @ fields
    holders
    |> List.collect (fun holder -> members holder |> List.map (fun m -> holder, m))
    |> List.collect (fun (holder, m) ->
        attributesOf m |> List.choose libraryOf |> List.distinct |> List.map (fun library -> { Holder = holder; Member = m; Library = library }))

/// The class that a member is listed under by its framework.
let kindOf (marked: Marked) : Type = match marked.Holder.Kind with Some kind -> kind | None -> marked.Member.DeclaringType

let private xunitCategories (attributes: CustomAttributeData list) =
    ofKind [ "Xunit.TraitAttribute" ] attributes
    |> List.choose (fun one ->
        match argumentsOf one with
        | [ name; value ] when textOf name = "Category" -> Some(textOf value)
        | [ name; value ] -> Some(textOf name + "=" + textOf value)
        | _ -> None)

/// A test of xUnit as it is declared; none where the member is no test.
let private ofXunit (marked: Marked) : Declared option =
    let attributes = attributesOf marked.Member
    tryKind [ "Xunit.FactAttribute" ] attributes
    |> Option.map (fun fact ->
        let isData (one: CustomAttributeData) = isAnyOf [ "Xunit.Sdk.DataAttribute"; "Xunit.v3.DataAttribute" ] one.AttributeType
        let rows, others = attributes |> List.filter isData |> List.partition (fun one -> one.AttributeType.FullName = "Xunit.InlineDataAttribute")
        let takesNothing = match marked.Member with :? MethodInfo as m -> m.GetParameters().Length = 0 | _ -> true
        let cases = if not (List.isEmpty others) then None elif not (List.isEmpty rows) then Some rows.Length elif takesNothing then Some 1 else None
        let name = propertyText "DisplayName" fact |> Option.defaultValue (nameOf marked.Holder marked.Member)
        { Name = name
          Framework = "xUnit"
          Assembly = None
          Categories = xunitCategories (attributes @ holderAttributes marked.Holder)
          Skipped = propertyText "Skip" fact
          Cases = cases
          CaseName = Some name
          Expand = fun () -> [] })

/// A value of tests of Expecto as it is declared.
let private ofExpecto (marked: Marked) : Declared option =
    tryKind [ "Expecto.TestsAttribute"; "Expecto.FTestsAttribute"; "Expecto.PTestsAttribute" ] (attributesOf marked.Member)
    |> Option.map (fun mark ->
        { Name = nameOf marked.Holder marked.Member
          Framework = "Expecto"
          Assembly = None
          Categories = []
          Skipped = (if mark.AttributeType.Name = "PTestsAttribute" then Some "pending" else None)
          Cases = None
          CaseName = None
          Expand = fun () -> [] })

/// The tests among them that an engine finds when it runs them, as they are declared.
let declared (all: Marked list) : Declared list =
    all |> List.choose (fun one ->
        match one.Framework with
        | "xUnit" -> ofXunit one
        | "Expecto" -> ofExpecto one
        | _ -> None)
