namespace Shop

module Later =
    let callsPlain (x: int) = Basics.plain x
    let readsValue () = Basics.value
    let fromValue = Basics.value + 1
