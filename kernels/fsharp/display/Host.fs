/// What the worker uses of all this.
module internal MainstayDisplay.Host

/// The forms of a value that nobody asked to be shown: none of them runs any code of the session.
let ofValue (value: obj) : Bundle option =
    try Forms.ofValue (Mainstay.own AtWhatIsThere) (Mainstay.bounds ()) AtWhatIsThere value with _ -> None

/// Gives the settings that code may have changed the values they have at a start.
let restore () =
    Mainstay.maxRows <- 100
    Mainstay.maxColumns <- 20
    Mainstay.maxPoints <- 10000
    TestsChosen.forgetPolicies ()
