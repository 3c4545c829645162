module Shop.Root

open Shop.Early

let helper (x: int) = x + 1
let total (x: int) = helper x
let pick (x: int) = x + 100

module Inner =
    let pick (x: int) = x + 2
    let uses (x: int) = pick x
