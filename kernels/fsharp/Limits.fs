/// Bounds what one answer holds: a client's value or message may be of any size, a frame may not. Texts are counted in UTF-16 code
/// units. In JSON one takes six bytes at most: a result within these limits fits a frame.
module Mainstay.Worker.Limits

open System

/// The longest text that is sent whole.
let private textLimit = 1024 * 1024

/// How much all the texts of one answer may hold together.
let private answerLimit = 8 * textLimit

/// A text of this length is sent whole however full the answer is: names and types are told in any case.
let private shortText = 256

/// How many items of one kind an answer holds.
let itemLimit = 1000

/// What is left of a text that is cut at `limit`, with a mark that says so.
let private cutAt (limit: int) (text: string) : string =
    if text.Length <= limit then text
    else
        let length = if limit > 0 && Char.IsHighSurrogate text.[limit - 1] then limit - 1 else limit
        text.Substring(0, length) + sprintf "… (cut: %d of %d characters)" length text.Length

/// A text that stands alone in its answer, cut where it is too long.
let cut (text: string) : string = cutAt textLimit text

let private sizeOf (data: MainstayDisplay.Data) =
    match data with
    | MainstayDisplay.Text text
    | MainstayDisplay.Json text -> text.Length
    | MainstayDisplay.Bytes bytes -> bytes.Length

/// The forms of something that fit one message: those that do not are left out, the largest first, and a text says so.
let rec boundedBundle (bundle: MainstayDisplay.Bundle) : MainstayDisplay.Bundle =
    if bundle |> Seq.sumBy (snd >> sizeOf >> int64) <= int64 answerLimit then bundle
    else
        let kind, data = bundle |> List.maxBy (snd >> sizeOf)
        let rest = bundle |> List.filter (fun (other, _) -> other <> kind)
        match data with
        | MainstayDisplay.Text text when kind = "text/plain" -> boundedBundle ((kind, MainstayDisplay.Text(cut text)) :: rest)
        | data ->
            let note = sprintf "[%s left out: it is too large to be sent, %d bytes]" kind (sizeOf data)
            let plain = match rest |> List.tryPick (function "text/plain", MainstayDisplay.Text text -> Some text | _ -> None) with Some text -> text + "\n" + note | None -> note
            boundedBundle (("text/plain", MainstayDisplay.Text plain) :: (rest |> List.filter (fun (other, _) -> other <> "text/plain")))

/// The room for texts in one answer. Those taken first are cut last.
type Room() =
    let mutable left = answerLimit

    /// The text, cut where it is too long or the room is used up.
    member _.Take(text: string) : string =
        let taken = cutAt (min textLimit left |> max shortText) text
        left <- max 0 (left - taken.Length)
        taken

    /// The same for a text that may be absent.
    member room.TakeOptional(text: string option) : string option = text |> Option.map room.Take
