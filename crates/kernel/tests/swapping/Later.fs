namespace Shop

module Later =
    let callsPlain (x: int) = Basics.plain x
    let callsCurried () = Basics.curried 1 (2, "c")
    let readsValue () = Basics.value
    let fromValue = Basics.value + 1
