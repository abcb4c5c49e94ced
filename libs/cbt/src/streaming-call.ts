import { constants, type ServerHttp2Stream } from 'node:http2';
import { type handleServerStreamingCall, type ServerWritableStream, status } from '@grpc/grpc-js';
import { toCbtStatus } from '#cbt/cbt-errors';
import type { ServiceName } from '#cbt/cbt-metrics';
import { MalformedRequest } from '#cbt/cbt-protos';
import { ask, type MetadataQuery } from '#cbt/metadata-query';
import type { OpenStream, OpenStreams } from '#cbt/open-streams';
import { Outflow } from '#cbt/outflow';
import { pump, unlessAborted } from '#cbt/pump';
import { RangeEncoder } from '#cbt/range-encoder';
import { StreamEnd } from '#cbt/stream-end';
import { StreamLog } from '#cbt/stream-log';
import type { ChangedBlocks } from '#changes/changed-blocks';
import { invalid } from '#platform/errors';
import type { CallLogger } from '#protocol/call-log';
import type { GrpcStatus } from '#protocol/grpc-status';

/** What all services stream with. */
export interface StreamParts {
  changes: ChangedBlocks;
  streams: OpenStreams;
  logger: CallLogger;
  /** How long a caller may take nothing. */
  stallMs: number;
  /** For `OpenStreams.endDoor`. */
  door?: object;
}

export interface StreamMethod<Request> {
  service: ServiceName;
  method: 'allocated' | 'delta';
  /** The service's number of VARIABLE_LENGTH. */
  blockType: number;
  toQuery(request: Request): MetadataQuery | Promise<MetadataQuery>;
}

type Call = ServerWritableStream<unknown, Buffer>;

/**
 * One server-streaming method. grpc-js tells `cancelled` of every call that is over, and of one whose deadline has passed
 * only when the caller took its status, so the deadline is watched here as well.
 */
export function streamingCall<Request>(
  { service, method, blockType, toQuery }: StreamMethod<Request>,
  { changes, streams, logger, stallMs, door }: StreamParts,
): handleServerStreamingCall<unknown, Buffer> {
  const answer = async (call: Call, stream: OpenStream, log: StreamLog): Promise<void> => {
    const { signal } = stream;
    if (call.request instanceof MalformedRequest)
      throw invalid('request', `not a message of this method: ${call.request.reason}`);
    const query = await unlessAborted(Promise.resolve(toQuery(call.request as Request)), signal);
    log.query = query;
    await unlessAborted(streams.admit(stream, query.tenantId), signal);
    const ranges = await unlessAborted(ask(changes, query, signal), signal);
    log.source = ranges.source;
    const out = new Outflow((message, taken) => call.write(message, taken), stallMs, signal, signsOfLife(call));
    const encoder = new RangeEncoder(blockType, ranges.capacityBytes);
    await pump(ranges, encoder, query.perMessage, out, signal, log.sent);
  };

  const run = async (call: Call): Promise<void> => {
    const log = new StreamLog(service, method, logger);
    let stream: OpenStream | undefined;
    let late: NodeJS.Timeout | undefined;
    try {
      const opened = streams.open();
      stream = opened;
      opened.door = door;
      call.once('cancelled', () => opened.end('left', 'the caller left'));
      late = atDeadline(call, opened);
      await answer(call, opened, log);
      call.end();
      log.end();
    } catch (error) {
      const problem = toCbtStatus(error);
      fail(call, problem, patience(error, stallMs));
      log.end(problem, error);
    } finally {
      clearTimeout(late);
      if (stream) streams.close(stream);
    }
  };
  return call => void run(call as Call);
}

const MAX_TIMER_MS = 2_147_483_647;

function atDeadline(call: Call, stream: OpenStream): NodeJS.Timeout | undefined {
  const left = Number(call.getDeadline()) - Date.now();
  if (!(left < MAX_TIMER_MS)) return undefined;
  return setTimeout(() => stream.end('deadline', 'the deadline of the call has passed'), Math.max(0, left));
}

/** How a reset says what the status could not; callers' libraries turn it back into about the same code. */
const RESETS: Partial<Record<status, number>> = {
  [status.UNAVAILABLE]: constants.NGHTTP2_REFUSED_STREAM,
  [status.RESOURCE_EXHAUSTED]: constants.NGHTTP2_ENHANCE_YOUR_CALM,
  [status.CANCELLED]: constants.NGHTTP2_CANCEL,
  [status.DEADLINE_EXCEEDED]: constants.NGHTTP2_CANCEL,
};

const HURRY_MS = 1_000;

/** How long a caller has to take what is under way and its status; one that was slow may come back to it. */
const patience = (error: unknown, stallMs: number): number =>
  error instanceof StreamEnd && error.reason !== 'stalled' ? Math.min(HURRY_MS, stallMs) : stallMs;

/** A status follows the messages before it, so who takes no message gets no status: then the stream is reset. */
function fail(call: Call, { code, details }: GrpcStatus, patienceMs: number): void {
  if (call.cancelled) return;
  const stream = http2Stream(call);
  call.emit('error', Object.assign(new Error(details), { code, details }));
  if (!stream || stream.closed) return;
  const reset = (): void => stream.close(RESETS[code] ?? constants.NGHTTP2_INTERNAL_ERROR);
  const late = setTimeout(reset, patienceMs);
  stream.once('close', () => clearTimeout(late));
}

/** Window updates, pings, and answers to ours: a client's transport sends them while its caller is at work. */
function signsOfLife(call: Call): () => number {
  const session = http2Stream(call)?.session;
  let heard = 0;
  return () => {
    if (session && !session.destroyed) heard = session.socket.bytesRead;
    return heard;
  };
}

/** grpc-js has no public way to reset a stream. */
const http2Stream = (call: Call): ServerHttp2Stream | undefined =>
  (call as unknown as { call?: { stream?: ServerHttp2Stream } }).call?.stream;
