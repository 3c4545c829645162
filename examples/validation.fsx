// Three computation expression builders, each in a dozen lines, working together on one form:
//   result { }      stops at the first problem
//   validate        an applicative that collects every problem
//   state { }       threads a value, here a generator of identifiers, without mutation

// ---- Result ----------------------------------------------------------------------------------

type ResultBuilder() =
    member __.Return value = Ok value
    member __.ReturnFrom(result: Result<'T, 'E>) = result
    member __.Bind(result, next) = Result.bind next result
    member __.Zero() = Ok()
    member __.Delay(body: unit -> Result<'T, 'E>) = body
    member __.Run(body: unit -> Result<'T, 'E>) = body ()
    member __.Combine(first: Result<unit, 'E>, rest: unit -> Result<'T, 'E>) = Result.bind rest first

    member this.While(condition, body: unit -> Result<unit, 'E>) =
        if condition () then this.Bind(body (), fun () -> this.While(condition, body)) else this.Zero()

    member this.TryFinally(body: unit -> Result<'T, 'E>, cleanUp) =
        try
            body ()
        finally
            cleanUp ()

    member this.Using(resource: 'R when 'R :> System.IDisposable, body: 'R -> Result<'T, 'E>) =
        this.TryFinally((fun () -> body resource), (fun () -> resource.Dispose()))

    member this.For(items: seq<'T>, body: 'T -> Result<unit, 'E>) =
        this.Using(items.GetEnumerator(), fun enumerator ->
            this.While((fun () -> enumerator.MoveNext()), (fun () -> body enumerator.Current)))

let result = ResultBuilder()

// ---- Validation ------------------------------------------------------------------------------

type Validation<'T, 'E> = Result<'T, 'E list>

module Validation =
    /// Where both sides failed, both lists of problems are kept, in order.
    let apply (f: Validation<'A -> 'B, 'E>) (x: Validation<'A, 'E>) : Validation<'B, 'E> =
        match f, x with
        | Ok f, Ok x -> Ok(f x)
        | Error first, Error second -> Error(first @ second)
        | Error problems, _ -> Error problems
        | _, Error problems -> Error problems

    let ofResult outcome : Validation<'T, 'E> = Result.mapError List.singleton outcome

    /// All of the list's values, or all of its problems.
    let sequence (items: Validation<'T, 'E> list) : Validation<'T list, 'E> =
        let cons head tail = head :: tail
        List.foldBack (fun item rest -> apply (Result.map cons item) rest) items (Ok [])

let (<!>) f x = Result.map f x
let (<*>) f x = Validation.apply f x

// ---- State -----------------------------------------------------------------------------------

type State<'S, 'T> = State of ('S -> 'T * 'S)

module State =
    let run (State step) initial = step initial
    let get<'S> : State<'S, 'S> = State(fun s -> s, s)
    let put next = State(fun _ -> (), next)

type StateBuilder() =
    member __.Return value = State(fun s -> value, s)
    member __.ReturnFrom(state: State<'S, 'T>) = state
    member __.Zero() = State(fun s -> (), s)
    member __.Delay(body: unit -> State<'S, 'T>) = State(fun s -> State.run (body ()) s)

    member __.Bind(state, next) =
        State(fun s ->
            let value, after = State.run state s
            State.run (next value) after)

    member this.Combine(first: State<'S, unit>, rest: State<'S, 'T>) = this.Bind(first, fun () -> rest)

    member this.For(items: seq<'T>, body: 'T -> State<'S, unit>) =
        items |> Seq.fold (fun before item -> this.Combine(before, body item)) (this.Zero())

let state = StateBuilder()

// ---- The form --------------------------------------------------------------------------------

type Problem =
    | Missing of field: string
    | TooLong of field: string * limit: int
    | NotANumber of field: string * text: string
    | OutOfRange of field: string * value: int * low: int * high: int
    | BadAddress of text: string

let explain problem =
    match problem with
    | Missing field -> sprintf "%s is missing" field
    | TooLong(field, limit) -> sprintf "%s is longer than %d characters" field limit
    | NotANumber(field, text) -> sprintf "%s is not a number: %s" field text
    | OutOfRange(field, value, low, high) -> sprintf "%s must be between %d and %d, not %d" field low high value
    | BadAddress text -> sprintf "not an e-mail address: %s" text

type Member = { Name: string; Age: int; Email: string }

type Form = Map<string, string>

// The types end a submission here: up to F# 5 the interactive compiler cannot load a struct such
// as Result whose argument is a type of the same submission.
;;

let required field (form: Form) =
    match Map.tryFind field form with
    | Some text when text.Trim() <> "" -> Ok(text.Trim())
    | _ -> Error(Missing field)

let atMost limit field (text: string) = if text.Length <= limit then Ok text else Error(TooLong(field, limit))

let number field (text: string) =
    match System.Int32.TryParse text with
    | true, value -> Ok value
    | _ -> Error(NotANumber(field, text))

let between low high field value =
    if low <= value && value <= high then Ok value else Error(OutOfRange(field, value, low, high))

// Within one field the first problem is enough: what follows would make no sense.
let name form =
    result {
        let! text = required "name" form
        return! atMost 12 "name" text
    }

let age form =
    result {
        let! text = required "age" form
        let! years = number "age" text
        return! between 18 120 "age" years
    }

let email form =
    result {
        let! text = required "email" form
        match text.Split('@') with
        | [| user; host |] when user <> "" && host.Contains "." -> return text.ToLowerInvariant()
        | _ -> return! Error(BadAddress text)
    }

// Across fields every problem counts: nobody likes to be told of them one at a time.
let newMember form =
    let create name age email = { Name = name; Age = age; Email = email }
    create
    <!> Validation.ofResult (name form)
    <*> Validation.ofResult (age form)
    <*> Validation.ofResult (email form)

let form name age email : Form =
    [ "name", name; "age", age; "email", email ] |> List.filter (fun (_, text) -> text <> "-") |> Map.ofList

let forms =
    [ form "Ada" "36" "Ada@Example.org"
      form "Grace" "85" "grace@navy.example"
      form "Wolfeschlegelstein" "n/a" "-"
      form "  " "7" "nobody@nowhere"
      form "Alan" "41" "alan@bletchley.example" ]

for entry in forms do
    match newMember entry with
    | Ok person -> printfn "welcome %s (%d, %s)" person.Name person.Age person.Email
    | Error problems ->
        printfn "rejected:"
        problems |> List.iter (explain >> printfn "  - %s")

match forms |> List.map newMember |> Validation.sequence with
| Ok members -> printfn "all %d are valid" members.Length
| Error problems -> printfn "%d problems in %d forms" problems.Length forms.Length

// Loops work inside the builder too, and stop where the first form fails.
let visited = ref 0

let firstFailure =
    result {
        for entry in forms do
            visited.Value <- visited.Value + 1
            let! _ = newMember entry
            ()
        return "no failure"
    }

match firstFailure with
| Ok text -> printfn "%s" text
| Error problems -> printfn "stopped at form %d with %d problem(s)" visited.Value problems.Length

// ---- Numbering the members without a mutable counter -----------------------------------------

let nextId prefix =
    state {
        let! (counters: Map<string, int>) = State.get
        let n = 1 + (Map.tryFind prefix counters |> Option.defaultValue 0)
        do! State.put (Map.add prefix n counters)
        return sprintf "%s-%03d" prefix n
    }

let rec enrol (members: Member list) =
    state {
        match members with
        | [] -> return []
        | person :: rest ->
            let! id = nextId (person.Name.Substring(0, 1))
            let! others = enrol rest
            return (id, person.Name) :: others
    }

let skip prefix count =
    state {
        for _ in 1..count do
            let! _ = nextId prefix
            ()
    }

let accepted = forms |> List.choose (fun entry -> match newMember entry with Ok person -> Some person | Error _ -> None)

let enrolled, counters =
    State.run
        (state {
            do! skip "G" 9
            return! enrol accepted
         })
        Map.empty

for id, name in enrolled do
    printfn "%s %s" id name

for entry in counters do
    printfn "%s counted to %d" entry.Key entry.Value
