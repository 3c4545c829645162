namespace Shop

module Early =
    let helper (x: int) = x + 1000

    let shadowed (x: int) = "early"
    let origin () = "early"

module Earlier =
    let origin () = "earlier"

module Earliest =
    module List =
        let twice (x: int) = x * 2

type Animal =
    | Cat
    | Dog
