/// What a source file declares, piece by piece and with the text of each: what the difference of two versions of a file is taken of. Pure.
module Mainstay.Worker.Outline

open System
open System.Collections.Generic
open System.Text.RegularExpressions
open Mainstay.Worker.Syntax

/// A namespace with the modules in it that a declaration stands in, as the source names them, the outermost first.
type Scope =
    { Namespace: string list
      Modules: string list }

    /// The whole path.
    member scope.Path = scope.Namespace @ scope.Modules

/// What stands in the place of some characters of a line.
type Rewriting =
    { Line: int
      Column: int
      Length: int
      Text: string }

/// How code applies a function that it names.
type Applied =
    /// To an argument that stands apart, as in `f x`.
    | Apart
    /// To one that stands right behind it, as in `f(x)`, and ends there: a line, and a column from 0.
    | Closely of endLine: int * endColumn: int
    /// To nothing, as in `List.map f`.
    | Unapplied

/// Where code names a function that `let` binds in its type.
type LetUse =
    { Function: string
      Place: Place
      Applied: Applied }

/// What makes a member of a type a function of its own, or a function that `let` binds in a type.
type MemberOf =
    { /// The type's name, without what it takes.
      Type: string
      /// The names of the type's own parameters, such as `'a`.
      Parameters: string list
      IsStatic: bool
      /// Whether `let` binds it: only its type's code sees it. A group of `let rec … and …` is one.
      IsLet: bool
      /// Whether it takes no arguments and so is a property.
      IsProperty: bool
      /// Whether it takes `()` alone.
      TakesUnit: bool
      /// What the member calls its object; `_` where it does not.
      Self: string
      /// Which of the members of that name it is, from 0; -1 where `let` binds it, as an interface may have a member of that name.
      Ordinal: int
      /// What it uses of what is built with each object: arguments of the type's constructor, and values that `let` binds in it.
      State: Set<string>
      /// How it names that where it is a member that is compiled beside its type: through its object.
      StateNames: Rewriting list
      /// The functions that it uses and that `let` binds in the type.
      LetUses: LetUse list
      /// A name that it uses and that only the type's own code can see, otherwise than as such state or such a function; none where it uses none.
      Hidden: string option
      /// Whether something that it makes may keep such a function: a function without a name, an object, or a computation.
      KeepsLets: bool
      /// Whether it calls its base type's members as such.
      CallsBase: bool
      /// Where what follows the member's name begins: a line, and a column from 0.
      AfterName: int * int
      /// Whether its type takes it from another one, a base or an interface.
      IsTaken: bool
      /// Of what its type takes from another one: the arguments that have no type of their own, each with its number from
      /// 0 and its place; that of the only one without parentheses is told apart.
      Untyped: (int * Place * bool) list }

type Kind =
    | Function
    | Value
    | Member of MemberOf

/// What two versions of one declaration have in common.
type Key =
    { Path: string list
      /// The type of a member, how many parameters that has, and which of the members of that name it is.
      Member: (string * int * int) option
      Names: string list }

/// From where a declaration can be seen.
type Reach =
    | Everywhere
    | InAssembly
    /// Within its module alone, or a module around it.
    | InModule

/// What makes names visible to a declaration.
type Opening =
    /// As the file says it.
    | Opens of text: string
    /// The module that it stands in, with what stands above it there.
    | Own of path: string list

/// A declaration that can be replaced alone.
type Item =
    { Scope: Scope
      Kind: Kind
      /// What the source calls it; a group of `let rec … and …` has several.
      Names: string list
      /// The names in the assembly.
      CompiledNames: string list
      /// Where it stands: lines from 1, the last one included, a column from 0.
      Line: int
      EndLine: int
      Column: int
      /// The text by which two versions are compared; of what is not to be replaced for its layout, without that.
      Text: string
      /// The words in it, but for those of comments.
      Words: Set<string>
      /// The attributes on it, each as its name and what it was given.
      Attributes: (string * string) list
      /// What it reads otherwise as where it is compiled alone.
      Rewritten: Rewriting list
      /// The names that its arguments have in all of it.
      Arguments: Set<string>
      /// The texts of the functions and objects without a name that it hands to methods, which may keep them.
      HandedOver: string list
      /// Whether it has computation expressions, makes anonymous records, and names their types.
      HasComputation: bool
      MakesAnonymous: bool
      NamesAnonymous: bool
      /// What makes names visible to it, in the order in which a later one hides those of an earlier one.
      Openings: Opening list
      /// Whether names declared further down are visible to it anyway.
      IsRecursiveScope: bool
      /// Whether its callers contain it, so that another version is for them as another function.
      IsInline: bool
      Reach: Reach
      /// Why it cannot be replaced, whatever changes in it.
      Fixed: string option }

    member item.Key: Key =
        { Path = item.Scope.Path
          Member = (match item.Kind with Member one -> Some(one.Type, one.Parameters.Length, one.Ordinal) | Function | Value -> None)
          Names = item.Names }

    /// What makes it a part of its type; None where it stands in a module.
    member item.OfType = match item.Kind with Member one -> Some one | Function | Value -> None

    /// Whether it is a member, and not bound by `let`.
    member item.IsMember = item.OfType |> Option.exists (fun one -> not one.IsLet)

    /// Whether `let` binds it in a type.
    member item.IsLet = item.OfType |> Option.exists (fun one -> one.IsLet)

    /// Whether both are of one type.
    member item.IsOfTypeOf(other: Item) =
        match item.OfType, other.OfType with
        | Some one, Some own -> item.Scope = other.Scope && one.Type = own.Type && one.Parameters.Length = own.Parameters.Length
        | _ -> false

    /// Its full name, for people.
    member item.Shown =
        let within = match item.Kind with Member one -> [ one.Type ] | Function | Value -> []
        String.Join(".", item.Scope.Path @ within @ [ String.Join(", ", item.Names) ])

/// What cannot be replaced alone: a type without its members, an open, an attribute, code that runs when the program starts.
type Rest =
    { /// What it is, in the words of the language.
      What: string
      Line: int
      /// From which line on it is seen: of types that are declared together, that of the first.
      From: int
      /// The text by which two versions are compared, without its layout.
      Text: string
      /// What makes names visible to it, as for a declaration; empty where it mentions none.
      Openings: Opening list }

/// A name that a file declares.
type Declared =
    { Name: string
      /// The namespaces and modules that show it to what stands in them.
      Path: string list
      Line: int
      /// Whether it is a member of a type that stands elsewhere.
      IsExtension: bool }

/// One file.
type Outline =
    { /// The text without what conditional compilation leaves out, in lines.
      Lines: string[]
      /// The lines that begin inside a string.
      InString: Set<int>
      Items: Item list
      Rest: Rest list
      /// Its namespaces.
      Namespaces: Set<string list>
      /// The modules that open themselves.
      AutoOpen: Set<string list>
      /// Every name that the file declares.
      Declared: Declared list
      /// The lines of what is opened behind a declaration of the same module.
      LateOpens: (string list * int) list
      /// All that it opens, each with the module that it stands in.
      Opens: (string * int) list }

/// Whether a path of namespaces and modules is that of the other, or of one around it.
let isAround (outer: string list) (path: string list) : bool = List.truncate outer.Length path = outer

let private word = Regex(@"``[^`]+``|[\p{L}_][\w']*|[!%&*+\-./<=>?@^|~]+", RegexOptions.CultureInvariant)

/// The methods that a computation expression calls without naming them.
let builderMembers =
    Set.ofList
        [ "Bind"; "BindReturn"; "Bind2"; "MergeSources"; "Source"; "Delay"; "Run"; "Zero"; "Return"; "ReturnFrom"; "Combine"; "Using"; "For"; "While"
          "TryWith"; "TryFinally"; "Yield"; "YieldFrom" ]

/// The names, operators, keywords and other words of a text; those of strings too.
let wordsIn (text: string) : Set<string> =
    word.Matches text |> Seq.cast<Match> |> Seq.map (fun found -> found.Value.Trim '`') |> Set.ofSeq
