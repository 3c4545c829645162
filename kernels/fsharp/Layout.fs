/// Code without its layout: a text that two pieces of code share only if nothing but blanks, ends of lines and comments is different between
/// them. Pure.
module Mainstay.Worker.Layout

open System
open System.Text
open Mainstay.Worker.Syntax

let private brackets = "()[]{},;`\"'"

/// Whether characters that stand side by side may be of one word, or of one operator.
let private isJoined (last: char) (next: char) =
    let isName (c: char) = Char.IsLetterOrDigit c || c = '_' || c = '\''
    let isOperator (c: char) = not (isName c || brackets.IndexOf c >= 0)
    (isName last && isName next) || (isOperator last && isOperator next)

/// The words and operators of a text, each behind a blank.
let private words (text: string) : StringBuilder =
    let found = StringBuilder()
    let mutable index = 0
    let mutable isApart = true // whether the next cannot be joined to what was found
    while index < text.Length do
        let next = min text.Length (Splitter.afterToken text index)
        let isComment = (next > index + 1 && String.CompareOrdinal(text, index, "//", 0, 2) = 0) || (next > index + 3 && String.CompareOrdinal(text, index, "(*", 0, 2) = 0)
        if isComment || Char.IsWhiteSpace text.[index] then isApart <- true
        else
            if isApart || not (isJoined text.[index - 1] text.[index]) then found.Append ' ' |> ignore
            found.Append(text, index, next - index) |> ignore
            isApart <- false
        index <- next
    found

/// A text without its comments and its layout.
let code (text: string) : string = words(text).ToString()

/// A number by which trees that are structured otherwise are told apart. `isLeftOut` tells of the parts that do not count.
let private structure (isLeftOut: Placed -> bool) (parts: Placed list) : uint64 =
    let mutable hash = 14695981039346656037UL // FNV-1a
    let add (text: string) =
        for c in text do
            hash <- (hash ^^^ uint64 c) * 1099511628211UL
    let rec read (part: Placed) =
        if not (isLeftOut part) then
            add "("
            add part.Union
            add part.Case
            part.Word |> Option.iter add
            part.Flag |> Option.iter (fun flag -> add (if flag then "+" else "-"))
            List.iter read part.Parts
            add ")"
    List.iter read parts
    hash

/// The text of a piece of code, and the parts of the tree that it was read to, without its layout. It has the words of the text, and no others.
let without (isLeftOut: Placed -> bool) (text: string) (parts: Placed list) : string =
    words(text).Append(' ').Append(structure isLeftOut parts).ToString()
