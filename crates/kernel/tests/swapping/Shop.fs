namespace Shop

open System
open Shop.Early

[<Measure>]
type kg

[<Struct>]
type Counter =
    { mutable Count: int }

    member counter.Plus(x: int) = counter.Count + x
    member counter.Bump() = counter.Count <- 1 + counter.Count

[<AutoOpen>]
module State =
    let mutable calls = 0
    let mutable counter = { Count = 0 }

module Basics =
    let plain (x: int) = x + 1
    let private secret (x: int) = x * 2
    let internal inner (x: int) = x * 3
    let usesSecret (x: int) = secret x + inner x

    let counted (x: int) =
        calls <- calls + 1
        x

    let rec even n = if n = 0 then true else odd (n - 1)
    and odd n = if n = 0 then false else even (n - 1)

    let (|Big|Small|) n = if n > 100 then Big else Small
    let size n = match n with Big -> "big" | Small -> "small"
    let (+.) (a: int) (b: int) = a * 10 + b
    let operated a b = a +. b

    [<CompiledName "Renamed">]
    let named (x: int) = x + 5

    let generic (x: 'a) (y: 'b) = sprintf "%A-%A" x y
    let curried (a: int) (b: int, c: string) = sprintf "%d%d%s" a b c
    let unit () = 1
    let units (a: int) () = a
    let lambda = fun (x: int) -> x * 3
    let cases = function 1 -> "one" | _ -> "many"
    let tasks (x: int) = task { return x + 1 }
    let asyncs (x: int) = async { return x + 1 }
    let seqs (n: int) = seq { for i in 1 .. n -> i }
    let captures (x: int) = List.map (fun y -> x + y) [ 1; 2 ]

    let text () =
        """one
two"""

    let conditional () =
#if DEBUG
        "debug"
#else
        "release"
#endif

    let place () = __LINE__, __SOURCE_FILE__
    let value = List.sum [ 1; 2 ]
    let private hiddenValue = 7
    let making (x: int) = x
    let usesValues () = value * 10 + hiddenValue
    let functions = [ plain ]
    let byrefs (x: byref<int>) = x <- x + 1
    let measured (x: float<kg>) = x * 2.0
    let made<'T when 'T: (new: unit -> 'T)> () = (new 'T()).GetType().Name
    let compared (x: 'a when 'a: comparison) (y: 'a) = compare x y
    let spans (x: ReadOnlySpan<char>) = x.Length
    let optional (x: int option) (y: int voption) = Option.defaultValue 0 x + ValueOption.defaultValue 0 y
    let structs (struct (a: int, b: string)) = struct (b, a)
    let animal (x: int) = (if x > 0 then Cat else Dog).ToString()
    let helped (x: int) = helper x
    let shadows (x: int) = shadowed x
    let thrown (x: int) = if x > 0 then failwith "boom" else x
    let inline inlined (x: int) = x + 9
    let usesInlined (x: int) = inlined x

    [<Literal>]
    let Fixed = 4

    let anonymous (x: int) = box {| P = x |}
    let anonymousPlain (x: int) = {| Q = x |}
    let anonymousUsed () = (anonymousPlain 1).Q
    let anonymousTested (x: obj) = match x with :? {| P: int |} as it -> it.P | _ -> 0
    let aware () = "here"
    let original () = origin ()
    let increments () =
        counter.Count <- counter.Count + 1
        counter.Count

    let shadowed (x: int) = "later"

type Math() =
    static member Abs(x: int) = x + 1000

module Uses =
    let absolute (x: int) = Math.Abs x

[<RequireQualifiedAccess>]
module Strict =
    let private inner x = x + 1
    let outer (x: int) = inner x

    module private Deep =
        let deepest (x: int) = x - 1

    let viaDeep (x: int) = Deep.deepest x

module rec Mutual =
    let first (x: int) = if x = 0 then "first" else second (x - 1)
    let second (x: int) = if x = 0 then "second" else first (x - 1)

module Split =
    let above (x: int) = x + 1
    let helper (x: int) = x + 5

    open System.Globalization
    open Shop.Early

    let late (x: int) = helper x

    let below (x: int) = x.ToString CultureInfo.InvariantCulture

type Basket(start: int) =
    let mutable total = start
    let add x = total <- total + x

    member _.Add(x: int) =
        add x
        total

    member this.Twice(x: int) = this.Add x + this.Add x
    member _.Pure(x: int) = x * 2
    member _.Curried (x: int) (y: int) = x * y
    member _.Unit() = 1
    member _.Property = 5
    static member Static(x: int) = x * 3
    static member Zero = 0
    static member (+.) (_: Basket, right: int) = right + 1
    member _.Optional(x: int, ?more: int list) = x + List.length (defaultArg more [])
    member _.Gives(x: int) : int -> int = fun y -> x + y
    member _.GivesCases(x: int) : int -> int =
        function
        | 0 -> x
        | y -> x * y
    member _.Over(x: int) = "int"
    member _.Over(x: string) = "string"
    override _.ToString() = "basket"
    member _.Based() = "the base"

    interface IDisposable with
        member _.Dispose() = ()

type Point =
    { X: int
      Y: int }

    member point.Sum = point.X + point.Y
    static member Origin = { X = 0; Y = 0 }

type Shape =
    | Round of int
    | Square of int

    member shape.Words = match shape with Round r -> sprintf "round %d" r | Square s -> sprintf "square %d" s

type Box<'a>(value: 'a) =
    member _.Value = value
    member this.Shown(prefix: string) = sprintf "%s%A" prefix this.Value
    member this.With(other: 'b) = sprintf "%A,%A" this.Value other

module Rounding =
    [<AutoOpen>]
    module Auto =
        let auto (x: float) = x

    let rounded (x: float) = round x

type A() =
    member a.ToB = B(a)

and B(a: A) =
    member _.Of = a

type Pair() =
    member _.Kind = "one"

type Pair<'a>() =
    member _.Kind = "two"

[<RequireQualifiedAccess>]
type Level =
    | Low
    | High

    member level.Words = match level with Low -> "low" | High -> "high"

type internal Inner = { Depth: int }

module InnerUses =
    type private Hidden = { Width: int }
    let internal depth (inner: Inner) = inner.Depth
    let private width (hidden: Hidden) = hidden.Width
    let asks (x: int) = depth { Depth = x }, width { Width = x }

module Inlines =
    let inline double (x: ^T) = x + x
    let inline quadruple (x: ^T) = double (double x)
    let usesQuadruple (x: int) = quadruple x
    let inline private hiddenly (x: int) = x + 1
    let usesHiddenly (x: int) = hiddenly x
    let inline held (x: int) = x
    let heldValue = held 1

type Account(owner: string, start: int) =
    let mutable balance = start
    let history = Collections.Generic.List<int>()
    let place = { Count = 1 }
    let note (x: int) = history.Add x

    member _.Owner = owner
    member _.Put(x: int) =
        balance <- balance + x
        history.Add x
        balance

    member _.Last = history.[history.Count - 1]
    member _.Local(owner: string) = owner
    member this.Others(all: Account list) = List.length all
    member _.Named() = String.Join(separator = "-", value = [| owner |])
    member _.Reader = fun () -> balance
    member _.Place = place.Count
    member _.Noted(x: int) = note x
    member _.Plain = 1

    interface IComparable with
        member _.CompareTo _ = balance

    interface Collections.Generic.IComparer<string> with
        member _.Compare(one, other) = one.Length - other.Length

module Generics =
    let none<'a> : 'a list = []
    let nothing = []
    let counts () = List.length none<int> + List.length<int> nothing

module Slashes =
    let (<//>) (a: string) (b: string) = a + "/" + b
    let root = "a" <//> "b"

type Shadowing(label: string, count: int, size: int) =
    let label (text: string) : string = label + text
    let doubled () = count * 2
    let count = 10
    member _.size = size
    member _.Labelled = label "x"
    member _.Doubled = doubled ()
    member _.Count = count
    member _.Sizes(all: Shadowing list) = List.map (fun (one: Shadowing) -> one.size) all

type Numbers(x: int) =
    member _.Size = 1
    static member inline Doubled(x: int) = x + x

    interface Collections.Generic.IEnumerable<int> with
        member _.GetEnumerator() : Collections.Generic.IEnumerator<int> = (Seq.singleton x).GetEnumerator()

    interface Collections.IEnumerable with
        member _.GetEnumerator() : Collections.IEnumerator = ((Seq.singleton x) :> Collections.IEnumerable).GetEnumerator()

type Till<'a>(name: string, start: int) =
    static let kind () = typeof<'a>.Name
    let mutable total = start
    let entries = Collections.Generic.List<'a>()
    let prefix = name + ":"

    let put x =
        total <- total + x
        total

    let noted (entry: 'a) =
        entries.Add entry
        prefix + string entries.Count

    let shown (x: 'b) (y: 'a) = sprintf "%A/%A/%d" x y total
    let rec even n = n = 0 || odd (n - 1)
    and odd n = n <> 0 && even (n - 1)
    let offset = fun (x: int) -> x + start
    /// Deletes nothing.
    let raised (x: byref<int>) (by: int) = x <- x + by + start
    let rise (x: int) = x * 2
    let deep (x: int) = put x + rise x
    let count () = entries.Count
    let both () = (1, entries.Count)
    let added' (x: int) = x + start
    let Dispose () = total <- 0
    let sized (x: int) = match x with
                         | 0 -> "none"
                         | _ -> "some"

    let opening (x: int) = x + 1
    let opened = opening start
    let wanted = if start > 0 then ValueSome(struct (start, name)) else ValueNone

    member _.Total = total
    member _.Put(x: int) = put x
    member _.PutAll(all: int list) = all |> List.map put |> List.sum
    member _.Noted(entry: 'a) = noted(entry).Length
    member _.Shown(y: 'a) = shown 'c' y + shown (Some 1) y
    member _.Even(x: int) = even x, odd x
    member _.Offset(x: int) = offset x
    member _.Deep(x: int) = deep x
    member _.Opened = opened
    member _.Count = count ()
    member _.Again() = [ () ] |> List.map count |> List.head
    member _.Both() = both ()
    member _.Added(x: int) = added' x
    member _.Sized(x: int) = sized(x).Substring 0
    member _.Wanted = match wanted with ValueSome(struct (x, _)) -> x | ValueNone -> 0

    member _.Raised(x: int) =
        let mutable raising = x
        raised &raising 1
        raising

    static member Kind = kind ()

    interface IDisposable with
        member _.Dispose() = Dispose ()

type Taxes() =
    static let rate = 2
    /// What the static let takes.
    static let taxed (x: int) = x * 2
    static let rec down (x: int) = if x = 0 then 0 else down (x - 1)
    static let rated (x: int) = x * rate
    member _.Twice(x: int) = taxed (taxed x)
    static member Taxed(x: int) = taxed x
    static member Down(x: int) = down x
    static member Rated(x: int) = rated x

[<AbstractClass>]
type Reading() =
    abstract Read: source: byref<int> * more: Collections.Generic.List<int> -> int

type TwiceReading() =
    inherit Reading()

    override _.Read(source, more) =
        source <- source + more.Count
        source * 2

    override _.GetHashCode() = base.GetHashCode()

    member this.Of(x: int) =
        let mutable source = x
        this.Read(&source, Collections.Generic.List [ 1 ]), source
