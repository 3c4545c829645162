/// What a graph of calls says of many tests at once: which of them reach each of its nodes; and who calls a declaration, and what it calls.
module Mainstay.Worker.Reach

open System.Collections.Generic
open Mainstay.Worker.CallGraph

/// The nodes that each node may run or read.
let private calleesOf (graph: CallGraph) : List<int>[] =
    let callees = Array.init graph.Count (fun _ -> List<int>(2))
    for callee in 0 .. graph.Count - 1 do
        for caller in graph.CallersOf callee do callees.[caller].Add callee
    callees

/// Which of some tests reach the nodes of a graph. Each test is told by the nodes at which it begins; behind an `ending` no other test goes on.
type Reached(graph: CallGraph, tests: int list[], endings: HashSet<int>) =
    let width = (tests.Length + 63) / 64
    let bits = Array.zeroCreate<uint64> (graph.Count * width)

    do
        let callees = calleesOf graph
        let waits = Array.zeroCreate<bool> graph.Count
        let left = Queue<int>()
        let enqueue (node: int) =
            if not waits.[node] then
                waits.[node] <- true
                left.Enqueue node
        for test in 0 .. tests.Length - 1 do
            for node in tests.[test] do
                let at = node * width + test / 64
                bits.[at] <- bits.[at] ||| (1UL <<< (test % 64))
                enqueue node
        while left.Count > 0 do
            let node = left.Dequeue()
            waits.[node] <- false
            for callee in callees.[node] do
                if not (endings.Contains callee) then
                    let mutable isNews = false
                    for word in 0 .. width - 1 do
                        let known = bits.[callee * width + word]
                        let both = known ||| bits.[node * width + word]
                        if both <> known then
                            bits.[callee * width + word] <- both
                            isNews <- true
                    if isNews then enqueue callee

    /// The tests that reach one of these, by their numbers.
    member _.By(nodes: int list) : int list =
        [ for test in 0 .. tests.Length - 1 do
            let isReached (node: int) = node < bits.Length / max 1 width && bits.[node * width + test / 64] &&& (1UL <<< (test % 64)) <> 0UL
            if List.exists isReached nodes then test ]

/// The declarations next to some nodes on a way through what the compiler made of declarations. What stands for a method of a base or an
/// interface is called as that.
let private nextTo (graph: CallGraph) (isInner: int -> bool) (next: int -> seq<int>) (stands: int -> int -> bool) (nodes: int list) : int list =
    let seen = HashSet<int> nodes
    let found = List<int>()
    let left = Queue<int> nodes
    while left.Count > 0 do
        let node = left.Dequeue()
        for other in next node do
            if not (seen.Contains other) then
                if isInner other || graph.IsMade other || stands node other then
                    seen.Add other |> ignore
                    left.Enqueue other
                elif (graph.SourceName other).IsSome then
                    seen.Add other |> ignore
                    found.Add other
    List.ofSeq found

/// The declarations that call some methods. What is `isInner` is none of its own, but part of whoever calls it.
let callers (graph: CallGraph) (isInner: int -> bool) (nodes: int list) : int list =
    nextTo graph isInner graph.CallersOf (fun node other -> graph.Overrides(node, other)) nodes

/// The declarations that some methods call.
let callees (graph: CallGraph) (isInner: int -> bool) (nodes: int list) : int list =
    let all = calleesOf graph
    nextTo graph isInner (fun node -> all.[node] :> seq<int>) (fun _ _ -> false) nodes
