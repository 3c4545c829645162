type Person = { Name: string; Age: int }

let older (p: Person) = { p with Age = p.Age + 1 }

let x = 1

let y = "text"

let x = 2

let z = 3 * 4

let add a b = a + b

let addTwo = add 2

type Shape =
    | Circle of radius: float
    | Square of side: float

let area shape =
    match shape with
    | Circle r -> 3.0 * r * r
    | Square s -> s * s

let incomplete shape =
    match shape with
    | Circle r -> r

/// Documented.
let documented (a: int) = a

type C(a: int) =
    member _.A = a
    member this.Twice() = this.A * 2

let mk () = C 3

let mutable counter = 0

counter <- counter + 1

let rec even n = n = 0 || odd (n - 1)
and odd n = n <> 0 && even (n - 1)

let boom (s: string) : int = failwith ("boom " + s)

let a, b = 1, 2

let lst = [1; 2; 3]

let tup = (1, "a", 2.5)

let arr = [| 'a'; 'b' |]

let fn = fun q -> q + 1

let big = 2147483647 * 2

printfn "side"

let after = 5

open System

let now () = DateTime.Now

let inline twice v = v + v

let generic v = [ v; v ]

exception Bad of string

let raiseBad () : int = raise (Bad "x")

module M =
    let inside = 1

let useM = M.inside

let usesShape = area (Square 2.0)

let nested () =
    let rec go n = if n = 0 then 0 else go (n - 1)
    go 10

let s1 = "a\nb"

let neg = -3

type Color = Red = 0 | Green = 1

type Alias = int list

let typed: int64 = 3L

let typed2: int64 = 3

let f2 (a: Alias) : Alias = a

let active (|Even|Odd|) = 1

let (|Pos|Neg|) n = if n > 0 then Pos else Neg

let (+.) a b = a + b

let usesPlus = 1 +. 2

let hidden = let q = 1 in q

let unitv = ()

let f3 () = printfn "called"

type Tree<'a> = Leaf | Branch of Tree<'a> * 'a * Tree<'a>

let rec size tree = match tree with Leaf -> 0 | Branch (l, _, r) -> size l + 1 + size r

type IThing =
    abstract Do: int -> string

let thing () = { new IThing with member _.Do n = string n }

[<Struct>] type V = { X: int }

let lzy = lazy (printfn "no"; 1)

let sq = seq { 1 .. 3 }

let err = undefinedName

let str = sprintf "%d" 3

let o = None

let emptyList = []

let idf x = x

let comp = idf >> idf

let t = typeof<Person>.FullName, typeof<Shape>.FullName, typeof<C>.FullName

boom "now"

raiseBad ()

(C 4).ToString(), box (Circle 1.0) |> string

try boom "x" |> string with e -> e.StackTrace

older { Name = "a"; Age = 3 }

it.Age

x + y.Length + z + after + a + b

let it = 5

let x = 77

let uses = 1

let x' = 5

let withQuote' = 6

type Rec1 = { A: Rec2 option }
and Rec2 = { B: Rec1 option }

let r1 = { A = None }

fn.GetType().FullName, (box documented).GetType().FullName

<@ fun q -> documented q @>

<@ x @>
