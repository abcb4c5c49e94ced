import { isIP } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { checkServerIdentity, type PeerCertificate } from 'node:tls';
import { Client, type ClientReadableStream, credentials, type ServiceError, status } from '@grpc/grpc-js';
import { loadSync, type MethodDefinition, type ServiceDefinition } from '@grpc/proto-loader';
import { PACKAGE_ROOT } from '#platform/package-root';
import type { ReaderApi } from '../csp/reader-api.js';
import { LauncherError } from '../home.js';
import { PointWrong } from './unfinished.js';

export interface Range {
  offset: number;
  length: number;
}

/** Of one message of the stream. */
export interface RangePage {
  /** Of the snapshot, bytes. */
  capacityBytes: number;
  ranges: Range[];
}

/** What changed since the base cannot be known any more: only a full backup helps. */
export class BaseLost extends LauncherError {}

interface SessionReply {
  name: string;
  sessionState: 'Pending' | 'Ready' | 'Failed';
  error?: string;
  sessionToken?: string;
  sessionURL?: string;
  caCert?: string;
}

interface Message {
  volume_capacity_bytes: string;
  block_metadata: { byte_offset: string; size_bytes: string }[];
}

const POLL_MS = 500;
/** Without a new range for so long, the stream is given up: an index may still be built, a gateway start again. */
const PATIENCE_MS = 180_000;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 3_000;
/** After these the same call may do, from where it broke off. Too slow a reader gets RESOURCE_EXHAUSTED. */
const RESUMABLE: ReadonlySet<status> = new Set([
  status.UNAVAILABLE,
  status.DEADLINE_EXCEEDED,
  status.RESOURCE_EXHAUSTED,
  status.ABORTED,
  status.CANCELLED,
  status.INTERNAL,
  status.UNKNOWN,
]);
/** What was asked makes no sense, and will not later. */
const SENSELESS: ReadonlySet<status> = new Set([status.INVALID_ARGUMENT, status.OUT_OF_RANGE]);

const ROOT = 'snapshotmetadata.SnapshotMetadata';

function methods(): ServiceDefinition {
  const file = join(PACKAGE_ROOT, 'proto', 'snapshotmetadata', 'snapshot-metadata.proto');
  return loadSync(file, { keepCase: true, longs: String, defaults: true })[ROOT] as ServiceDefinition;
}

/** TLS has no name for an address, and Node warns of one: the certificate is compared with the address all the same. */
export function secureClient(address: string, caCert: Buffer): Client {
  const host = new URL(`https://${address}`).hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) === 0) return new Client(address, credentials.createSsl(caCert));
  const verify = {
    checkServerIdentity: (_name: string, certificate: PeerCertificate) => checkServerIdentity(host, certificate),
  };
  return new Client(address, credentials.createSsl(caCert, null, null, verify), {
    'grpc.ssl_target_name_override': 'localhost',
  });
}

/** Changed blocks as the community's clients read them: a session, then a stream over TLS, resumed where it breaks off. */
export class MetadataStream {
  readonly #methods = methods();
  #session: SessionReply | undefined;
  #client: Client | undefined;

  constructor(
    private readonly api: ReaderApi,
    /** Ids or names that the session shall cover. */
    private readonly snapshots: readonly string[],
    private readonly say: (line: string) => void = () => {},
    /** Ends it with the signal's reason. */
    private readonly signal?: AbortSignal,
  ) {}

  /** Opens the session. Throws LauncherError with the reason of a failed one. */
  async open(): Promise<void> {
    const path = '/cbt/v1/sessions';
    let session = await this.api.call<SessionReply>('POST', path, { snapshots: this.snapshots });
    for (const end = Date.now() + PATIENCE_MS; session.sessionState === 'Pending'; ) {
      if (Date.now() > end) throw new LauncherError(`snapshot session ${session.name} does not become ready`);
      await this.#pause(POLL_MS);
      session = await this.api.call<SessionReply>('GET', `${path}/${session.name}`);
    }
    if (session.sessionState === 'Failed') {
      await this.#forget(session);
      throw new LauncherError(`no snapshot session: ${session.error}`);
    }
    this.#client?.close();
    this.#client = secureClient(session.sessionURL!, Buffer.from(session.caCert!, 'base64'));
    this.#session = session;
  }

  async close(): Promise<void> {
    this.#client?.close();
    if (this.#session) await this.#forget(this.#session);
    this.#session = undefined;
  }

  /**
   * Ranges that hold data, or that differ from `base`, from `begin` on: ascending and disjoint over all pages. Its end
   * means that nothing is missing. Throws BaseLost when there is no delta, PointWrong when the same question gets the same
   * answer for ever, LauncherError for everything else.
   */
  async *pages(target: string, base?: string, begin = 0): AsyncGenerator<RangePage> {
    let from = begin;
    let pause = FIRST_PAUSE_MS;
    let giveUpAt = Date.now() + PATIENCE_MS;
    for (;;) {
      try {
        for await (const page of this.#stream(target, base, from)) {
          const ranges = page.ranges.filter(({ offset, length }) => offset + length > from).map(clipped(from));
          const last = ranges.at(-1);
          // Before it is handed over: who takes long with a page has not lost time.
          yield { ...page, ranges };
          if (last) from = last.offset + last.length;
          pause = FIRST_PAUSE_MS;
          giveUpAt = Date.now() + PATIENCE_MS;
        }
        return;
      } catch (error) {
        this.signal?.throwIfAborted();
        const { code, details } = error as Partial<ServiceError>;
        if (code === undefined) throw error;
        const message = `${status[code]}: ${details}`;
        if (base !== undefined && (code === status.FAILED_PRECONDITION || code === status.NOT_FOUND))
          throw new BaseLost(message);
        if (code === status.UNAUTHENTICATED && Date.now() < giveUpAt) await this.open();
        else if (!RESUMABLE.has(code) || Date.now() > giveUpAt) {
          const Kind = SENSELESS.has(code) ? PointWrong : LauncherError;
          throw new Kind(`the stream of changed blocks ended at offset ${from} with ${message}`);
        }
        this.say(`the stream broke off at offset ${from} (${message}); resuming`);
        await this.#pause(pause);
        pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
      }
    }
  }

  async *#stream(target: string, base: string | undefined, from: number): AsyncGenerator<RangePage> {
    const method = this.#methods[base === undefined ? 'GetMetadataAllocated' : 'GetMetadataDelta'] as MethodDefinition<
      object,
      Message
    >;
    const common = {
      security_token: this.#session!.sessionToken,
      namespace: this.api.namespace,
      starting_offset: String(from),
    };
    const request =
      base === undefined
        ? { ...common, snapshot_name: target }
        : { ...common, base_snapshot_id: base, target_snapshot_name: target };
    const call: ClientReadableStream<Message> = this.#client!.makeServerStreamRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
      request,
    );
    // Cancelled by whoever stops early, it reports that as an error to nobody.
    call.on('error', () => {});
    const cancel = (): void => call.cancel();
    this.signal?.addEventListener('abort', cancel, { once: true });
    try {
      for await (const message of call as AsyncIterable<Message>)
        yield {
          capacityBytes: Number(message.volume_capacity_bytes),
          ranges: message.block_metadata.map(range => ({
            offset: Number(range.byte_offset),
            length: Number(range.size_bytes),
          })),
        };
    } finally {
      this.signal?.removeEventListener('abort', cancel);
      call.cancel();
    }
  }

  async #pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.signal }).catch(() => this.signal!.throwIfAborted());
  }

  async #forget({ name }: SessionReply): Promise<void> {
    // It expires by itself in any case.
    await this.api.call('DELETE', `/cbt/v1/sessions/${name}`).catch(() => {});
  }
}

/** A resumed stream may round its offset down. */
const clipped =
  (from: number) =>
  ({ offset, length }: Range): Range =>
    offset >= from ? { offset, length } : { offset: from, length: offset + length - from };
