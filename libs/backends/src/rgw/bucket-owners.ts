import { S3Client } from '@aws-sdk/client-s3';
import type { AdminOps, RgwUser } from '#backends/rgw/admin-ops';
import { errorCode, RgwError } from '#backends/rgw/errors';
import type { HttpTransport } from '#backends/rgw/http-transport';
import { StorageError } from '#platform/errors';

interface Opened {
  accessKeyId: string;
  client: S3Client;
}

/**
 * S3 clients that act as the owner of a bucket. An owner's keys are asked from Admin Ops and kept in memory only.
 * Ours is made on first use; the owner of a registered bucket is somebody else, and is only read.
 */
export class BucketOwners {
  readonly #open = new Map<string, Promise<Opened>>();

  constructor(
    private readonly transport: HttpTransport,
    private readonly admin: AdminOps,
    private readonly region: string,
    readonly ours: string,
  ) {}

  /** Makes sure that our owner exists and has a key. */
  async ensureOurs(displayName: string, signal: AbortSignal): Promise<void> {
    if (this.#open.has(this.ours)) return;
    const user = await this.admin.getUser(this.ours, signal);
    if (user && user.keys.length > 0) return;
    if (user) return this.admin.generateKey(this.ours, signal);
    try {
      await this.admin.createUserWithKey(this.ours, displayName, signal);
    } catch (error) {
      // Another worker was first.
      if (!(error instanceof RgwError && error.code === 'UserAlreadyExists')) throw error;
    }
  }

  /**
   * Runs `work` as this user. Its key may have been exchanged since we asked: a call refused for the key had no effect,
   * and is made once more with the new one.
   */
  async as<T>(uid: string, signal: AbortSignal, work: (client: S3Client) => Promise<T>): Promise<T> {
    const { client, accessKeyId } = await this.#client(uid, signal);
    try {
      return await work(client);
    } catch (error) {
      if (!['InvalidAccessKeyId', 'SignatureDoesNotMatch'].includes(errorCode(error))) throw error;
      this.#open.delete(uid);
      const fresh = await this.#client(uid, signal);
      if (fresh.accessKeyId === accessKeyId) throw error;
      return work(fresh.client);
    }
  }

  async #client(uid: string, signal: AbortSignal): Promise<Opened> {
    const known = this.#open.get(uid);
    if (known) return known;
    const opened = this.#connect(uid, await this.admin.getUser(uid, signal));
    this.#open.set(uid, Promise.resolve(opened));
    return opened;
  }

  #connect(uid: string, user: RgwUser | undefined): Opened {
    const key = user?.keys[0];
    if (!key)
      throw new StorageError(
        'failed_precondition',
        `RGW user ${uid} owns the bucket but ${user ? 'has no S3 key' : 'does not exist'}; give it a key, then retry`,
        { resource: `user ${uid}`, retry: 'later' },
      );
    const client = new S3Client({
      endpoint: this.transport.url.href,
      region: this.region,
      credentials: { accessKeyId: key.access_key, secretAccessKey: key.secret_key },
      forcePathStyle: true,
      // The engine retries, and must know of each attempt.
      maxAttempts: 1,
      requestHandler: this.transport.handler,
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
    });
    return { accessKeyId: key.access_key, client };
  }
}
