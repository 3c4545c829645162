// What Mainstay puts into a Deno kernel: `Deno.stdin`, which is empty otherwise, asks for what it reads as `prompt` does, and `prompt` knows
// the end of the input. It is run as one block, so that it leaves no name behind.
{
  // In front of the name of a part of the input that is asked for; as an answer the end, and in front of bytes in base64.
  const END_OF_INPUT = "\u0004";
  const kernelPrompt = globalThis.prompt;
  let unread = new Uint8Array();

  const asked = (part) => {
    const answer = kernelPrompt(END_OF_INPUT + part) ?? END_OF_INPUT;
    return answer.startsWith(END_OF_INPUT)
      ? Uint8Array.from(atob(answer.slice(1)), (byte) => byte.charCodeAt(0))
      : new TextEncoder().encode(answer + "\n");
  };

  // A line at a time: nothing here knows which cell reads, so nothing is read ahead for another.
  const readSync = (room) => {
    if (unread.length === 0) unread = asked("line");
    if (unread.length === 0) return null;
    const count = Math.min(room.length, unread.length);
    room.set(unread.subarray(0, count));
    unread = unread.subarray(count);
    return count;
  };

  const readable = () =>
    new ReadableStream({
      type: "bytes",
      pull(controller) {
        const chunk = unread.length > 0 ? unread : asked("lines");
        unread = new Uint8Array();
        if (chunk.length > 0) return controller.enqueue(chunk);
        controller.close();
        controller.byobRequest?.respond(0);
      },
    }, { highWaterMark: 0 });

  Object.defineProperties(Deno.stdin, {
    readSync: { value: readSync },
    read: { value: (room) => Promise.resolve().then(() => readSync(room)) },
    readable: { get: readable },
  });

  globalThis.prompt = (message, otherwise, options) => {
    const answer = kernelPrompt(message, otherwise, options);
    return answer === END_OF_INPUT ? null : answer;
  };
}
