/// What the deltas change: each answers 0 as it was built.
namespace Target

module Plain =
    let number () = 0
    let added (x: int) (y: string) = x * 0 + y.Length * 0
    let generic (x: 'a) (y: 'b list) : int = (box x |> hash) * 0 + List.length y * 0
    let wide (a: int) (b: int64) (c: string) (d: int[]) (e: obj) (f: float) : int =
        a * 0 + int b * 0 + c.Length * 0 + d.Length * 0 + hash e * 0 + int f * 0

type Box<'t>(value: 't) =
    member _.Value = value
    member _.Get() = 0
    member _.Pair(other: 'u) = (box other |> hash) * 0

[<Struct>]
type Point =
    { X: int }
    member point.Sum() = point.X * 0

module Many =
    let m0 () = 0
    let m1 () = 0
    let m2 () = 0
    let m3 () = 0
    let m4 () = 0
    let m5 () = 0
    let m6 () = 0
    let m7 () = 0
    let m8 () = 0
    let m9 () = 0
    let m10 () = 0
    let m11 () = 0
    let m12 () = 0
    let m13 () = 0
    let m14 () = 0
    let m15 () = 0
    let m16 () = 0
    let m17 () = 0
    let m18 () = 0
    let m19 () = 0
    let m20 () = 0
    let m21 () = 0
    let m22 () = 0
    let m23 () = 0
    let m24 () = 0
    let m25 () = 0
    let m26 () = 0
    let m27 () = 0
    let m28 () = 0
    let m29 () = 0
    let m30 () = 0
    let m31 () = 0
    let m32 () = 0
    let m33 () = 0
    let m34 () = 0
    let m35 () = 0
    let m36 () = 0
    let m37 () = 0
    let m38 () = 0
    let m39 () = 0
