/// SHA-256, by hand: on Linux the runtime's own is OpenSSL's, and that of SDK 3.1 ends the process where there is no OpenSSL 1.1.
module Mainstay.Worker.Sha256

open System.IO

let private isPrime (n: int) = seq { 2 .. int (sqrt (float n)) } |> Seq.forall (fun d -> n % d <> 0)

let private primes = Seq.initInfinite ((+) 2) |> Seq.filter isPrime |> Seq.take 64 |> Seq.map decimal |> Array.ofSeq

/// The first 32 bits behind the point of `root` of a prime, which is where its `power` is not more than the prime. Floating
/// point is not exact enough everywhere: the last digits are found by trying.
let private fraction (root: float -> float) (power: decimal -> decimal) (prime: decimal) : uint32 =
    let scale = 4294967296M
    let guess = decimal (floor (root (float prime) * 4294967296.))
    let isLow (n: decimal) = power (n / scale) <= prime
    let rec settle (n: decimal) = if not (isLow n) then settle (n - 1M) elif isLow (n + 1M) then settle (n + 1M) else n
    uint32 (settle guess % scale)

let private constants = primes |> Array.map (fraction (fun x -> System.Math.Pow(x, 1. / 3.)) (fun x -> x * x * x))

let private beginning = primes.[..7] |> Array.map (fraction sqrt (fun x -> x * x))

let inline private rotated (x: uint32) (by: int) = (x >>> by) ||| (x <<< (32 - by))

/// Takes in one block of 64 bytes; `w` is room for its schedule.
let private mix (state: uint32[]) (w: uint32[]) (block: byte[]) =
    for i in 0 .. 15 do
        let at = i * 4
        w.[i] <- (uint32 block.[at] <<< 24) ||| (uint32 block.[at + 1] <<< 16) ||| (uint32 block.[at + 2] <<< 8) ||| uint32 block.[at + 3]
    for i in 16 .. 63 do
        let x, y = w.[i - 15], w.[i - 2]
        let s0 = rotated x 7 ^^^ rotated x 18 ^^^ (x >>> 3)
        let s1 = rotated y 17 ^^^ rotated y 19 ^^^ (y >>> 10)
        w.[i] <- w.[i - 16] + s0 + w.[i - 7] + s1
    let mutable a, b, c, d = state.[0], state.[1], state.[2], state.[3]
    let mutable e, f, g, h = state.[4], state.[5], state.[6], state.[7]
    for i in 0 .. 63 do
        let s1 = rotated e 6 ^^^ rotated e 11 ^^^ rotated e 25
        let t1 = h + s1 + ((e &&& f) ^^^ (~~~e &&& g)) + constants.[i] + w.[i]
        let s0 = rotated a 2 ^^^ rotated a 13 ^^^ rotated a 22
        let t2 = s0 + ((a &&& b) ^^^ (a &&& c) ^^^ (b &&& c))
        h <- g
        g <- f
        f <- e
        e <- d + t1
        d <- c
        c <- b
        b <- a
        a <- t1 + t2
    state.[0] <- state.[0] + a
    state.[1] <- state.[1] + b
    state.[2] <- state.[2] + c
    state.[3] <- state.[3] + d
    state.[4] <- state.[4] + e
    state.[5] <- state.[5] + f
    state.[6] <- state.[6] + g
    state.[7] <- state.[7] + h

/// The hash of all that a stream gives, in hexadecimal.
let ofStream (stream: Stream) : string =
    let state, w, block = Array.copy beginning, Array.zeroCreate 64, Array.zeroCreate<byte> 64
    let rec fill (filled: int) =
        match stream.Read(block, filled, 64 - filled) with
        | 0 -> filled
        | count when filled + count = 64 -> 64
        | count -> fill (filled + count)
    let rec take (before: int64) =
        match fill 0 with
        | 64 ->
            mix state w block
            take (before + 64L)
        | last ->
            block.[last] <- 0x80uy
            System.Array.Clear(block, last + 1, 63 - last)
            if last >= 56 then
                mix state w block
                System.Array.Clear(block, 0, 64)
            let bits = (before + int64 last) * 8L
            for i in 0 .. 7 do
                block.[63 - i] <- byte (bits >>> (8 * i))
            mix state w block
    take 0L
    state |> Array.map (fun word -> word.ToString "x8") |> String.concat ""
