namespace Shop

/// Amounts of money, in cents.
module Money =

    /// An amount as people write it: `2.50`.
    let euros (cents: int) : string = sprintf "%d.%02d" (cents / 100) (cents % 100)

    /// A part of an amount, in percent, rounded down.
    let percent (part: int) (cents: int) : int = cents * part / 100
