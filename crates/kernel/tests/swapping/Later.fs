namespace Shop

module Later =
    let callsPlain (x: int) = Basics.plain x
    let callsCurried () = Basics.curried 1 (2, "c")
    let readsValue () = Basics.value
    let fromValue = Basics.value + 1
    let callsInline () = Inlines.quadruple 1
    let inline doublyInlined (x: int) = Basics.inlined x * 2
    let usesDoubly (x: int) = doublyInlined x
    let isApart (x: int) = x

type Meter() =
    static let held = Basics.making 2
    let start = Basics.making 1
    member _.Start = start
    member _.Held = held

module Meters =
    let meter = Meter()
    let lazily = lazy (Basics.making 3)
    let calls = fun (x: int) -> Basics.making x
