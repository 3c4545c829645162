/// The connection to the daemon: one socket that carries length-prefixed frames. What the frames say is Protocol's subject.
module Mainstay.Worker.Channel

open System
open System.Buffers.Binary
open System.Net.Sockets

/// The largest frame either side sends, in bytes.
let frameLimit = 64 * 1024 * 1024

/// What came in over the channel.
type Received =
    | Frame of byte[]
    | TooLarge of length: uint32
    | Closed

let private openSocket (address: string) : Socket =
    match address.IndexOf ':' with
    | -1 -> failwith ("MAINSTAY_WORKER_ADDRESS is neither unix:path nor tcp:host:port: " + address)
    | colon ->
        let rest = address.Substring(colon + 1)
        match address.Substring(0, colon) with
        | "unix" ->
            let socket = new Socket(AddressFamily.Unix, SocketType.Stream, ProtocolType.Unspecified)
            socket.Connect(UnixDomainSocketEndPoint rest)
            socket
        | "tcp" ->
            let separator = rest.LastIndexOf ':'
            let socket = new Socket(SocketType.Stream, ProtocolType.Tcp)
            socket.NoDelay <- true
            socket.Connect(rest.Substring(0, separator).Trim('[', ']'), int (rest.Substring(separator + 1)))
            socket
        | other -> failwith ("MAINSTAY_WORKER_ADDRESS has the unknown scheme " + other)

/// A connection that many threads may send on and one receives from.
type Channel(address: string) =
    let socket = openSocket address
    let sending = obj ()
    let header = Array.zeroCreate<byte> 4

    let rec fill (buffer: byte[]) offset count =
        count = 0
        || (match socket.Receive(buffer, offset, count, SocketFlags.None) with
            | 0 -> false
            | received -> fill buffer (offset + received) (count - received))

    // Past the length of a frame that is not wanted the next one can be read as usual.
    let rec discard (scratch: byte[]) (count: uint32) =
        count = 0u
        || (let part = int (min count (uint32 scratch.Length))
            fill scratch 0 part && discard scratch (count - uint32 part))

    let rec sendAll (buffer: byte[]) offset =
        if offset < buffer.Length then
            sendAll buffer (offset + socket.Send(buffer, offset, buffer.Length - offset, SocketFlags.None))

    /// Sends one frame. A daemon that is gone is noticed by `Receive`, so a failure to send is not reported here.
    member _.Send(body: byte[]) =
        let frame = Array.zeroCreate<byte> (4 + body.Length)
        BinaryPrimitives.WriteInt32BigEndian(Span<byte> frame, body.Length)
        Buffer.BlockCopy(body, 0, frame, 4, body.Length)
        lock sending (fun () -> try sendAll frame 0 with :? SocketException -> ())

    /// Waits for the next frame.
    member _.Receive() : Received =
        try
            if not (fill header 0 4) then Closed
            else
                let length = BinaryPrimitives.ReadUInt32BigEndian(ReadOnlySpan<byte> header)
                if length > uint32 frameLimit then
                    if discard (Array.zeroCreate 65536) length then TooLarge length else Closed
                else
                    let body = Array.zeroCreate<byte> (int length)
                    if fill body 0 body.Length then Frame body else Closed
        with :? SocketException -> Closed
