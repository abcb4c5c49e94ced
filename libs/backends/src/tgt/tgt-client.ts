import { connect } from 'node:net';
import { decodeReply, describeRequest, encodeRequest, type TgtRequest } from '#backends/tgt/tgt-request';
import { StorageError } from '#platform/errors';
import { failpoint } from '#platform/process/failpoint';

/** tgt's error numbers, by their place. */
const NAMES = [
  'success',
  'unknown error',
  'out of memory',
  'no driver',
  'no target',
  'no unit',
  'no session',
  'no connection',
  'no binding',
  'target exists',
  'unit exists',
  'binding exists',
  'initiator exists',
  'no initiator',
  'user exists',
  'no user',
  'too many users',
  'invalid request',
  'outgoing account exists',
  'target active',
  'unit active',
  'driver active',
  'unsupported operation',
  'unknown parameter',
  'removal prevented',
] as const;
export type TgtErrorName = (typeof NAMES)[number];

/** tgtd's own answer; nothing of the request has happened, except where the request says so. */
class TgtError extends Error {
  readonly reason: TgtErrorName;

  constructor(
    readonly number: number,
    doing: string,
  ) {
    const reason = NAMES[number] ?? 'unknown error';
    super(`${doing}: ${reason}`);
    this.reason = reason;
  }
}

export const isTgtError = (error: unknown, ...reasons: TgtErrorName[]): error is TgtError =>
  error instanceof TgtError && (reasons.length === 0 || reasons.includes(error.reason));

/** tgtd answers within a millisecond; it is a single thread, and a file that it opens may be on a slow disk. */
const ANSWER_MS = 10_000;

/** Asks one tgtd, one connection a request. */
export class TgtClient {
  /** @param mayChange called before each request that changes something; its rejection stops the request */
  constructor(
    private readonly socket: string,
    private readonly mayChange: () => Promise<void> = async () => {},
  ) {}

  /** The same daemon, for whoever may be overtaken. */
  guarded(mayChange: () => Promise<void>): TgtClient {
    return new TgtClient(this.socket, mayChange);
  }

  /** The text of a `show` or `stat`, else ''. TgtError, or StorageError `unavailable` (not reached) or `timeout` (effect unknown). */
  async ask(request: TgtRequest, signal: AbortSignal, answerMs = ANSWER_MS): Promise<string> {
    return this.#exchange(request, signal, answerMs);
  }

  #exchange(request: TgtRequest, signal: AbortSignal, answerMs: number): Promise<string> {
    const doing = `tgtd: ${describeRequest(request)}`;
    const bytes = encodeRequest(request);
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = [];
      let sent = false;
      const socket = connect(this.socket);
      const fail = (error: Error): void => done(() => reject(error));
      const timeout = (): void =>
        fail(new StorageError('timeout', `${doing}: no answer in time; its effect is unknown`));
      const timer = setTimeout(timeout, answerMs);
      const done = (settle: () => void): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', timeout);
        socket.destroy();
        settle();
      };
      const lost = (cause?: unknown): void => {
        if (sent) fail(new StorageError('timeout', `${doing}: it hung up; the effect is unknown`, { cause }));
        else fail(new StorageError('unavailable', `${doing}: tgtd is not there`, { cause }));
      };
      if (signal.aborted) return timeout();
      signal.addEventListener('abort', timeout, { once: true });
      const send = async (): Promise<void> => {
        if (request.op !== 'show' && request.op !== 'stat') {
          await this.mayChange();
          await failpoint(`tgt.${request.op}.${request.mode}:checked`);
        }
        if (socket.destroyed) return;
        sent = true;
        socket.write(bytes);
      };
      // With the connection open, so that nothing stands between the question and the request but these lines.
      socket.once('connect', () => void send().catch(fail));
      socket.on('data', chunk => {
        chunks.push(chunk);
        const reply = decodeReply(chunks.length === 1 ? chunk : Buffer.concat(chunks));
        if (!reply) return;
        if (reply.error === 0) done(() => resolve(reply.text));
        else fail(new TgtError(reply.error, doing));
      });
      socket.once('error', lost);
      socket.once('close', () => lost());
    });
  }

  /** Resolves to false instead of the error named. */
  async tell(request: TgtRequest, signal: AbortSignal, ...harmless: TgtErrorName[]): Promise<boolean> {
    try {
      await this.ask(request, signal);
      return true;
    } catch (error) {
      if (isTgtError(error, ...harmless) && harmless.length > 0) return false;
      throw error;
    }
  }
}
