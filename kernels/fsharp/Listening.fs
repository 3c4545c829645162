/// What the process listens on: the code of a session that was reset may serve on, since a reset keeps the process.
module Mainstay.Worker.Listening

open System
open System.Collections.Generic
open System.Globalization
open System.IO
open System.Net

/// The numbers that the kernel gives to the sockets of this process.
let private ownSockets () : HashSet<string> =
    let sockets = HashSet<string>()
    for path in Directory.GetFiles "/proc/self/fd" do
        // One may be gone by now.
        match (try Compat.linkTarget path with _ -> None) with
        | Some target when target.StartsWith "socket:[" -> sockets.Add(target.Substring(8).TrimEnd ']') |> ignore
        | _ -> ()
    sockets

/// Each group of four bytes of an address stands in the order of this machine, in hexadecimal.
let private addressOf (text: string) : IPAddress =
    let word (index: int) = BitConverter.GetBytes(UInt32.Parse(text.Substring(8 * index, 8), NumberStyles.HexNumber, CultureInfo.InvariantCulture))
    IPAddress(Array.collect word [| 0 .. text.Length / 8 - 1 |])

/// `127.0.0.1:5000`, of a line of `/proc/net/tcp` that is about a socket which listens.
let private endPointOf (own: HashSet<string>) (line: string) : string option =
    match line.Split([| ' ' |], StringSplitOptions.RemoveEmptyEntries) with
    | fields when fields.Length > 9 && fields.[3] = "0A" && own.Contains fields.[9] ->
        let place = fields.[1].Split ':'
        Some(string (IPEndPoint(addressOf place.[0], Int32.Parse(place.[1], NumberStyles.HexNumber, CultureInfo.InvariantCulture))))
    | _ -> None

/// The addresses with their ports; none where the system does not tell.
let endPoints () : string list =
    try
        let own = ownSockets ()
        [ "/proc/self/net/tcp"; "/proc/self/net/tcp6" ]
        |> List.filter File.Exists
        |> List.collect (File.ReadAllLines >> List.ofArray)
        |> List.choose (endPointOf own)
        |> List.distinct
    with _ -> []
