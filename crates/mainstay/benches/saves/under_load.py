"""A web application that serves requests while what its handlers call is saved again and again.

Usage: under_load.py PROGRAM FOLDER [--seconds 30] [--every-ms 200] [--readers 4] [--wrk PATH]

PROGRAM is `mainstay`, FOLDER an empty folder. Each save writes its number into functions, members, closures, tasks and values. A request that
began after a save was told as running and answers an older number is stale. Fails if any request failed or was stale, if a save was refused, or
if the last save was not told. With `--wrk` that program loads the application beside the readers; its errors count as failed.
"""

import argparse
import collections
import hashlib
import os
import re
import socket
import subprocess
import threading
import time

from live import Home, Session, load, resident, spread

PROJECT = """<Project Sdk="Microsoft.NET.Sdk.Web">
  <PropertyGroup><TargetFramework>net10.0</TargetFramework></PropertyGroup>
  <ItemGroup><Compile Include="Cart.fs" /><Compile Include="Price.fs" /><Compile Include="Program.fs" /></ItemGroup>
</Project>
"""

CART = """module Shop.Cart
type Item =
    {{ Count: int }}
    member _.Number = {n}
    static member Of (_: int) = {n}
type Till() =
    let mutable kept = 0
    member _.Next() = kept <- kept + 1; {n}
    interface System.IComparable with
        member _.CompareTo(_: obj) = {n}
let till = Till()
let private hidden () = {n}
let direct () = {n}
let nested () = hidden ()
let generic (_: 'a) = {n}
let value = {n}
let closed () = [ 0 ] |> List.map (fun x -> x + {n}) |> List.head
let later () = async {{ return {n} }}
let tasked () = task {{
    do! System.Threading.Tasks.Task.CompletedTask
    return {n} }}
let rec even x = if x = 0 then {n} else odd (x - 1)
and odd x = if x = 0 then -1 else even (x - 1)
let sequence () = seq {{ yield {n} }}
let matched (x: obj) = match x with :? int -> {n} | _ -> {n}
{helper}"""

HELPER = """let helper{n} () = {n}
let helped () = helper{n} ()
"""

PRICE = """module Shop.Price
let own () = {n}
let all () =
    [ Cart.direct (); Cart.nested (); Cart.generic "a"; Cart.value; Cart.closed ()
      Cart.later () |> Async.RunSynchronously; Cart.tasked().Result; Cart.even 6; Cart.sequence () |> Seq.head
      Cart.matched 1; {{ Cart.Item.Count = 1 }}.Number; Cart.Item.Of 1; Cart.till.Next()
      (Cart.till :> System.IComparable).CompareTo null; own () ]
let text () = {n}, all () |> List.map string |> String.concat ","
"""

PROGRAM = """module Shop.Program
open System
open Microsoft.AspNetCore.Builder
open Microsoft.AspNetCore.Http
open Microsoft.Extensions.Logging
let handler (context: HttpContext) = context.Response.WriteAsync(sprintf "%s,%d" (snd (Price.text ())) (fst (Price.text ())))
[<EntryPoint>]
let main args =
    let builder = WebApplication.CreateBuilder(args)
    builder.Logging.ClearProviders() |> ignore
    let app = builder.Build()
    app.MapGet("/", Func<string>(fun () -> sprintf "%s,%d" (snd (Price.text ())) (fst (Price.text ())))) |> ignore
    app.MapGet("/handler", RequestDelegate handler) |> ignore
    app.Run()
    0
"""

NAMES = (
    "direct nested generic value closed later tasked even sequence matched member static till interface own text".split()
)
# The numbers at these places are Price.fs's; the others are Cart.fs's.
OF_PRICE = {14, 15}


class Counts:
    """What the readers saw, and what each may still be told."""

    def __init__(self):
        self.lock = threading.Lock()
        self.cart = self.price = 0
        self.done = False
        self.requests = 0
        self.failed = collections.Counter()
        self.stale = collections.Counter()
        self.examples = []


def answer(stream, path, port):
    """The body of one answer on a connection that stays open."""
    stream.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
    stream.flush()
    status = stream.readline()
    if b" 200 " not in status:
        raise ValueError(status.decode())
    length, chunked = 0, False
    while (line := stream.readline().strip().lower()) != b"":
        if line.startswith(b"content-length:"):
            length = int(line.split(b":")[1])
        chunked = chunked or line == b"transfer-encoding: chunked"
    if not chunked:
        return stream.read(length).decode()
    body = b""
    while size := int(stream.readline(), 16):
        body += stream.read(size)
        stream.readline()
    stream.readline()
    return body.decode()


def read(counts, port, path):
    """Sends one request after the other and judges each answer by what had been told before it was sent."""
    stream = None
    while not counts.done:
        try:
            if stream is None:
                stream = socket.create_connection(("127.0.0.1", port), timeout=30).makefile("rwb")
            cart, price = counts.cart, counts.price
            text = answer(stream, path, port)
            numbers = [int(part) for part in text.split(",")]
        except (OSError, ValueError) as error:
            stream = None
            with counts.lock:
                counts.failed[str(error)[:80]] += 1
            continue
        old = [NAMES[at] for at, n in enumerate(numbers) if n < (price if at in OF_PRICE else cart)]
        with counts.lock:
            counts.requests += 1
            for name in old:
                counts.stale[name] += 1
            if old and len(counts.examples) < 10:
                counts.examples.append((path, cart, price, text, old))


def follow(counts, session, saved, tell):
    """Takes in what is told, by the hashes of what was saved."""
    refused, times = tell
    while not counts.done:
        at, event = session.told.get()
        if event["kind"] in ("workerExited", "applicationEnded"):
            counts.failed[event["kind"]] += 1
        if event["kind"] != "sourcesSwapped":
            continue
        body = event["body"]
        for obstacle in body.get("obstacles", []):
            refused[obstacle.get("code", str(obstacle))] += 1
        if body.get("obstacles"):
            continue
        for path, sha in body["files"].items():
            known = saved.get(sha)
            if known is None:
                continue
            number, which, began = known
            times.append(at - began)
            setattr(counts, which, max(getattr(counts, which), number))


def sources(number):
    """What a save writes: one file, the other or both, at times with a helper that the next save takes back."""
    cart = CART.format(n=number, helper=HELPER.format(n=number) if number % 7 == 0 else "")
    price = PRICE.format(n=number)
    return [{"Cart.fs": cart}, {"Price.fs": price}, {"Cart.fs": cart, "Price.fs": price}][number % 3]


def row(began, counts, home, worker, number):
    print(
        f"{time.monotonic() - began:5.0f} s: {number} saves, told {counts.cart}/{counts.price}, {counts.requests} requests, "
        f"{sum(counts.failed.values())} failed, {sum(counts.stale.values())} stale, worker {resident(worker)} MB, "
        f"daemon {home.resident()} MB, stored {home.stored()} KB, {load()}",
        flush=True,
    )


def start(program, folder, port):
    """A session whose application listens."""
    work = os.path.join(os.path.abspath(folder), "work")
    os.makedirs(work)
    for name, text in {"Shop.fsproj": PROJECT, "Program.fs": PROGRAM, **sources(0), **sources(1), **sources(2)}.items():
        with open(os.path.join(work, name), "w") as file:
            file.write(text.replace("= 2", "= 0"))
    home = Home(program, os.path.join(folder, "home"), "[fsharp]\nstandby = false\nwarm-compilers = 0\n")
    session = Session(home, os.path.join(work, "Shop.fsproj"))
    home.run("run-app", "--", "--urls", f"http://127.0.0.1:{port}", folder=work)
    return home, session, work


def save_all(session, work, counts, saved, arguments, report):
    """Saves at each interval until the time is over; gives the number of saves and what the last of them wrote."""
    began, number, reported = time.monotonic(), 2, time.monotonic()
    while time.monotonic() - began < arguments.seconds:
        number += 1
        texts = {os.path.join(work, name): text for name, text in sources(number).items()}
        at = time.monotonic()
        for path, text in texts.items():
            which = "cart" if path.endswith("Cart.fs") else "price"
            saved[hashlib.sha256(text.encode()).hexdigest()] = (number, which, at)
        session.save(texts)
        if time.monotonic() - reported > max(5, arguments.seconds / 20):
            reported = time.monotonic()
            report(began, number)
        time.sleep(max(0, began + (number - 2) * arguments.every_ms / 1000 - time.monotonic()))
    return number


def settle(counts, number, seconds=30):
    """Waits until the last save of each file is told."""
    cart, price = max(n for n in (number, number - 1) if n % 3 != 1), max(n for n in (number, number - 1) if n % 3 != 0)
    until = time.monotonic() + seconds
    while time.monotonic() < until and (counts.cart < cart or counts.price < price):
        time.sleep(0.05)
    return counts.cart >= cart and counts.price >= price


def loaded(arguments, port):
    """The other program that sends requests, if one is given."""
    if not arguments.wrk:
        return None
    command = [arguments.wrk, "-t1", "-c16", f"-d{int(arguments.seconds)}s", f"http://127.0.0.1:{port}/handler"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--every-ms", type=float, default=200)
    parser.add_argument("--readers", type=int, default=4)
    parser.add_argument("--wrk")
    arguments = parser.parse_args()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    home, session, work = start(arguments.program, arguments.folder, port)
    counts, saved, tell = Counts(), {}, (collections.Counter(), [])
    threading.Thread(target=follow, args=(counts, session, saved, tell), daemon=True).start()
    readers = [
        threading.Thread(target=read, args=(counts, port, ["/", "/handler"][index % 2])) for index in range(arguments.readers)
    ]
    for reader in readers:
        reader.start()
    worker, other = session.worker(), loaded(arguments, port)
    number = save_all(session, work, counts, saved, arguments, lambda began, n: row(began, counts, home, worker, n))
    is_told = settle(counts, number)
    time.sleep(1)
    counts.done = True
    for reader in readers:
        reader.join()
    row(time.monotonic() - arguments.seconds, counts, home, worker, number)
    if other:
        printed = other.communicate()[0]
        print(printed)
        for line in re.findall(r"(?:Non-2xx|Socket errors).*", printed):
            counts.failed[line] += 1
    print(f"from a save until it is told: {spread(tell[1])}; saves that were told: {len(tell[1])} files of {len(saved)}")
    print("failed:", dict(counts.failed), "stale:", dict(counts.stale), "refused:", dict(tell[0]), "last told:", is_told)
    for example in counts.examples:
        print("stale:", example)
    session.close()
    home.stop()
    raise SystemExit(bool(counts.failed or counts.stale or tell[0] or not is_told))


main()
