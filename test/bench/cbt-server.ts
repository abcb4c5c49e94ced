/**
 * What `bench cbt` measures, in a process of its own: the room over a source that costs nothing, and beside it bare
 * grpc-js that sends the same messages ready-made, or from objects through protobufjs.
 */
import { join } from 'node:path';
import { type MethodDefinition, Server, ServerCredentials, type ServerWritableStream } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { emptyBatch, type RangeBatch } from '#backends/extent-source';
import { DEFAULT_RANGES, RangeEncoder } from '#cbt/range-encoder';
import { PACKAGE_ROOT } from '#platform/package-root';
import { openRoom, S1 } from '#test/cbt/in-process-server';

export interface BenchDoors {
  room: string;
  bare: string;
}

const STEP = 16_384;
const COUNT = 8_192;
const TOTAL = 2_000_000_000;
const CAPACITY = TOTAL * STEP;

const first = emptyBatch(COUNT);
first.count = COUNT;
first.lengths.fill(4_096);

/** One batch whose offsets move on: making it costs next to nothing, and offsets grow as in a real volume. */
async function* endless(from: number): AsyncGenerator<RangeBatch> {
  for (let at = Math.ceil(from / STEP); at < TOTAL; at += COUNT) {
    const { offsets } = first;
    for (let n = 0; n < COUNT; n++) offsets[n] = (at + n) * STEP;
    yield first;
  }
}

const room = await openRoom();
room.log.info = room.log.warn = room.log.error = () => 0;
room.changes.snapshots.set(S1, { ...room.changes.snapshots.get(S1)!, capacityBytes: CAPACITY });
room.changes.batches = endless;

const proto = loadSync(join(PACKAGE_ROOT, 'proto/csi/v1/snapshot-metadata.proto'), { keepCase: true, longs: Number });
const method = (proto['csi.v1.SnapshotMetadata'] as Record<string, MethodDefinition<object, object>>)
  .GetMetadataAllocated!;

/** Sends as `write` and 'drain' allow. */
function streamed(messagesOf: (request: { starting_offset: number }) => () => unknown) {
  return (call: ServerWritableStream<{ starting_offset: number }, unknown>): void => {
    const next = messagesOf(call.request);
    const more = (): void => {
      if (call.cancelled) return;
      if (call.write(next())) setImmediate(more);
      else call.once('drain', more);
    };
    more();
  };
}

/** One message with ranges from there on, again and again: as long as those of a stream from there. */
function readyMade({ starting_offset }: { starting_offset: number }): () => Buffer {
  const offsets = first.offsets.map((_, n) => starting_offset + n * STEP);
  const ready = new RangeEncoder(2, CAPACITY).encode({ ...first, offsets }, 0, DEFAULT_RANGES);
  return () => ready;
}

let at = 1e9;
const objects = () => {
  const block_metadata = Array.from({ length: DEFAULT_RANGES }, () => ({
    byte_offset: at++ * STEP,
    size_bytes: 4_096,
  }));
  return { block_metadata_type: 2, volume_capacity_bytes: CAPACITY, block_metadata };
};

const bare = new Server();
bare.addService(
  {
    Bytes: { ...method, path: '/bare/Bytes', responseSerialize: bytes => bytes as Buffer },
    Objects: { ...method, path: '/bare/Objects' },
  },
  { Bytes: streamed(readyMade), Objects: streamed(() => objects) },
);
const bareSocket = room.socketPath.replace(/[^/]+$/, 'bare.sock');
await new Promise<void>((resolve, reject) => {
  bare.bindAsync(`unix:${bareSocket}`, ServerCredentials.createInsecure(), error =>
    error ? reject(error) : resolve(),
  );
});

let most = 0;
setInterval(() => {
  most = Math.max(most, process.memoryUsage.rss());
}, 50);
process.on('message', () => {
  const now = process.memoryUsage.rss();
  process.send!({ now, most: Math.max(most, now), cpu: process.cpuUsage() });
  most = now;
});
process.on('disconnect', () => {
  bare.forceShutdown();
  void room.close().then(() => process.exit(0));
});
process.send!({ room: room.socketPath, bare: bareSocket } satisfies BenchDoors);
