namespace Shop

/// Something that is sold.
type Item =
    { Name: string
      /// In cents.
      Price: int }

/// What a customer is about to buy.
module Cart =

    /// What all of it costs.
    let total (items: Item list) : int = items |> List.sumBy (fun item -> item.Price)

    /// What it costs with a discount in percent.
    let discounted (discount: int) (items: Item list) : int =
        total items - Money.percent discount (Money.percent discount (total items))
