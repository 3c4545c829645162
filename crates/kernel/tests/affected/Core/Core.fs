namespace Core

module Base =
    let low (x: int) : int = x + 1
    let unused (x: int) : int = x
