namespace Shop

module Early =
    let helper (x: int) = x + 1000

    let shadowed (x: int) = "early"

type Animal =
    | Cat
    | Dog
