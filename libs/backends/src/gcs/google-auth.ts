/** Who Trivet is at Google, as the headers of a request: by a key file, or by what the process has (workload identity). */
import { createRequire } from 'node:module';
import type { AuthClient } from 'google-auth-library';
import { type GcsCredentials, readKeyFile } from '#backends/gcs/gcs-config';
import { RefusedRequest } from '#backends/s3/errors';

const SCOPE = 'https://www.googleapis.com/auth/cloud-platform';

/** Loaded by the first backend of this kind: most appliances have none, and pay neither its time nor its memory. */
const authLibrary = (): typeof import('google-auth-library') => createRequire(import.meta.url)('google-auth-library');

export class GoogleAuth {
  #client: Promise<AuthClient> | undefined;

  constructor(
    private readonly credentials: GcsCredentials,
    private readonly project: string,
  ) {}

  /** Rejects with RefusedRequest when Google, or the machine, gives no token. The library keeps what it got until shortly before its end. */
  async headers(signal: AbortSignal): Promise<Record<string, string>> {
    this.#client ??= this.#open();
    const client = this.#client;
    try {
      const headers = await untilAborted(
        client.then(opened => opened.getRequestHeaders()),
        signal,
      );
      return Object.fromEntries(headers.entries());
    } catch (error) {
      if (signal.aborted) throw error;
      // The next call looks again: the machine's own may have come meanwhile.
      if (this.#client === client) this.#client = undefined;
      throw new RefusedRequest(401, 'NoGoogleCredentials', (error as Error).message);
    }
  }

  async #open(): Promise<AuthClient> {
    const { GoogleAuth: Defaults, JWT } = authLibrary();
    const key = this.credentials.serviceAccountKey && readKeyFile(this.credentials.serviceAccountKey);
    // The project is told, or the library would ask the machine for it.
    if (!key) return new Defaults({ scopes: SCOPE, projectId: this.project }).getClient();
    const client = new JWT({
      email: key.client_email,
      key: key.private_key,
      ...(key.private_key_id === undefined ? {} : { keyId: key.private_key_id }),
      scopes: [SCOPE],
    });
    // Signed here for each API, without asking anybody for a token (https://google.aip.dev/auth/4111).
    client.useJWTAccessWithScope = true;
    return client;
  }
}

function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    void work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}
