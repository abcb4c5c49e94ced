import { InFlight } from '#backends/in-flight';
import { type CallContext, type StoreWords, translate } from '#backends/s3/errors';

/** Calls of one adapter: each is counted while it runs, and what it fails with says what was being done, in the port's errors. */
export class StoreCalls {
  readonly #inFlight = new InFlight();

  constructor(private readonly words: StoreWords) {}

  onBucket<T>(verb: string, name: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    return this.#on(verb, `bucket ${name}`, signal, work);
  }

  onPrincipal<T>(verb: string, uid: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    return this.#on(verb, `principal ${uid}`, signal, work);
  }

  run<T>(context: CallContext, work: () => Promise<T>): Promise<T> {
    return this.#inFlight.run(async () => {
      try {
        return await work();
      } catch (error) {
        throw translate(error, context, this.words);
      }
    });
  }

  /** What translates its failures itself. */
  count<T>(work: () => Promise<T>): Promise<T> {
    return this.#inFlight.run(work);
  }

  /** `letGo` once none is under way. */
  close(letGo: () => void): void {
    this.#inFlight.close(letGo);
  }

  #on<T>(verb: string, resource: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    return this.run({ doing: `${verb} ${resource}`, resource, readOnly: verb === 'inspect', signal }, work);
  }
}
