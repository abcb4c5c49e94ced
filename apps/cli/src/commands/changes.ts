import { once } from 'node:events';
import { findSnapshots } from '../backup/find-snapshot.js';
import { MetadataStream, type Range } from '../backup/metadata-stream.js';
import { type DoorOptions, withApi } from '../csp/door.js';
import type { ReaderApi } from '../csp/reader-api.js';
import { humanBytes } from '../human-bytes.js';

interface Options extends DoorOptions {
  base?: string;
  json?: boolean;
}

/** Of our output; the stream itself forgets it. */
let failure: NodeJS.ErrnoException | undefined;

/** Waits while the reader of our output is slower than the stream. Throws when it has left, as `head` does. */
async function print(text: string): Promise<void> {
  if (failure) throw failure;
  if (!process.stdout.write(text)) await once(process.stdout, 'drain');
}

const row = ({ offset, length }: Range): string => `${String(offset).padStart(20)}  ${String(length).padStart(20)}\n`;

export function showChanges({ snapshot, ...options }: Options & { snapshot: string }): Promise<void> {
  process.stdout.on('error', error => {
    failure ??= error;
  });
  return withApi(options, api => show(api, snapshot, options)).catch(error => {
    if (failure?.code !== 'EPIPE') throw error;
  });
}

async function show(api: ReaderApi, snapshot: string, { base, json }: Options): Promise<void> {
  const stream = new MetadataStream(api, base === undefined ? [snapshot] : [base, snapshot], line =>
    process.stderr.write(`${line}\n`),
  );
  const totals = { capacityBytes: 0, ranges: 0, bytes: 0 };
  try {
    await stream.open();
    await print(
      json
        ? `{"snapshot":${JSON.stringify(snapshot)},"base":${JSON.stringify(base ?? null)},"ranges":[`
        : `${'OFFSET'.padStart(20)}  ${'LENGTH'.padStart(20)}\n`,
    );
    for await (const { capacityBytes, ranges } of stream.pages(snapshot, base)) {
      const before = totals.ranges;
      totals.capacityBytes = capacityBytes;
      totals.ranges += ranges.length;
      for (const { length } of ranges) totals.bytes += length;
      if (ranges.length === 0) continue;
      await print(
        json
          ? `${before === 0 ? '' : ','}${ranges.map(range => JSON.stringify(range)).join(',')}`
          : ranges.map(row).join(''),
      );
    }
    // What is empty has no message that says it.
    if (totals.ranges === 0) totals.capacityBytes = (await findSnapshots(api, snapshot))[0]?.size ?? 0;
  } finally {
    await stream.close();
  }
  const { capacityBytes, ranges, bytes } = totals;
  if (json) await print(`],"totals":${JSON.stringify(totals)}}\n`);
  else {
    const share = capacityBytes === 0 ? 0 : (bytes / capacityBytes) * 100;
    await print(
      `${ranges} ranges, ${humanBytes(bytes)} of ${humanBytes(capacityBytes)} (${share.toFixed(share < 1 ? 3 : 1)} %) ` +
        `${base === undefined ? 'hold data' : `changed since ${base}`}\n`,
    );
  }
}
