import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import type { CspCall } from '#csp/csp-call';

/**
 * Answers with a JSON array page by page: the next page is read when the client has taken the last one, so memory does
 * not follow the length. A failure before the first page is an ordinary error; a later one breaks the connection, for a
 * list that looks complete and is not would be believed.
 */
export async function sendList<View>(
  call: CspCall,
  reply: FastifyReply,
  pages: AsyncIterable<View[]>,
  toItem: (view: View) => unknown,
): Promise<void> {
  const iterator = pages[Symbol.asyncIterator]();
  const first = await iterator.next();
  reply.type('application/json; charset=utf-8');
  const enveloped = call.session.enveloped;
  const chunks = chunksOf(iterator, first, toItem, enveloped ? '{"data":[' : '[', enveloped ? ']}' : ']');
  await reply.send(Readable.from(chunks, { objectMode: false, highWaterMark: HIGH_WATER }));
}

const HIGH_WATER = 64 * 1024;

async function* chunksOf<View>(
  iterator: AsyncIterator<View[]>,
  first: IteratorResult<View[]>,
  toItem: (view: View) => unknown,
  head: string,
  tail: string,
): AsyncGenerator<Buffer> {
  let before = head;
  try {
    for (let page = first; !page.done; page = await iterator.next()) {
      const items = page.value.map(view => JSON.stringify(toItem(view)));
      if (items.length === 0) continue;
      yield Buffer.from(before + items.join(','));
      before = ',';
    }
    yield Buffer.from(before === head ? head + tail : tail);
  } finally {
    // Also when the client left in between.
    await iterator.return?.();
  }
}
