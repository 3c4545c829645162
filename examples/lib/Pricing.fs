/// Prices and discounts, compiled to a DLL: what inventory.fsx takes in with `#r`.
namespace Examples.Pricing

/// An amount in cents; a class, so that scripts see it as any other .NET type.
type Money(cents: int64) =
    member _.Cents = cents

    static member Zero = Money 0L
    static member (+)(a: Money, b: Money) = Money(a.Cents + b.Cents)
    static member (*)(a: Money, factor: int) = Money(a.Cents * int64 factor)

    override _.Equals other =
        match other with
        | :? Money as money -> money.Cents = cents
        | _ -> false

    override _.GetHashCode() = hash cents

    override _.ToString() =
        let sign = if cents < 0L then "-" else ""
        sprintf "%s%d.%02d" sign (abs cents / 100L) (abs cents % 100L)

/// A reduction by quantity: `Percent` off from `From` pieces on.
type Tier = { From: int; Percent: int }

module Discount =
    /// The best tier that a quantity reaches.
    let best (tiers: Tier list) quantity =
        tiers |> List.filter (fun tier -> quantity >= tier.From) |> List.sortByDescending (fun tier -> tier.Percent) |> List.tryHead

    /// Rounds half a cent away from the customer.
    let apply percent (money: Money) = Money((money.Cents * int64 (100 - percent) + 50L) / 100L)

    let price tiers (unitPrice: Money) quantity =
        let full = unitPrice * quantity
        match best tiers quantity with
        | Some tier -> apply tier.Percent full
        | None -> full
