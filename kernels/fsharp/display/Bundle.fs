// What a value looks like: the same thing in several forms, each under its MIME type. Whoever can show nothing else shows `text/plain`.
namespace MainstayDisplay

open System.Runtime.CompilerServices

[<assembly: InternalsVisibleTo("mainstay-fsharp-worker")>]
do ()

/// One form.
type Data =
    | Text of string
    /// As it is written.
    | Json of string
    | Bytes of byte[]

/// The forms of one thing, by MIME type.
type Bundle = (string * Data) list

/// How much of a value is looked at.
type internal Bounds = { Rows: int; Columns: int; Points: int }

/// Whether showing a value may run code of the session: enumerate a lazy sequence, ask an object how it looks.
type internal Looking =
    /// No: what is there already is all that is looked at.
    | AtWhatIsThere
    /// Yes; `Noted` is called before it does.
    | Closely of noted: (unit -> unit)

module internal Markup =
    /// Text as a part of HTML or SVG, also between quotes.
    let escaped (text: string) : string =
        text.Replace("&", "&amp;").Replace("<", "&lt;").Replace(">", "&gt;").Replace("\"", "&quot;").Replace("'", "&#39;")

module internal JsonText =
    let private escape (c: char) =
        match c with
        | '"' -> "\\\""
        | '\\' -> "\\\\"
        | '\n' -> "\\n"
        | '\r' -> "\\r"
        | '\t' -> "\\t"
        | c when c < ' ' -> sprintf "\\u%04x" (int c)
        | c -> string c

    // Half of a surrogate pair is legal in a .NET string and not in JSON.
    let private wellFormed (value: string) =
        let encoding = System.Text.Encoding.UTF8
        encoding.GetString(encoding.GetBytes value)

    let text (value: string) : string = "\"" + String.collect escape (wellFormed value) + "\""

    /// JSON has no number for these: they are null.
    let number (value: float) : string =
        if System.Double.IsNaN value || System.Double.IsInfinity value then "null"
        else value.ToString("R", System.Globalization.CultureInfo.InvariantCulture)

    let array (items: seq<string>) : string = "[" + String.concat "," items + "]"

    let object (members: seq<string * string>) : string =
        "{" + String.concat "," (members |> Seq.map (fun (name, value) -> text name + ":" + value)) + "}"
