import type { AdminOps, RgwUser } from '#backends/rgw/admin-ops';
import { errorCode, RgwError } from '#backends/rgw/errors';
import type { HttpTransport } from '#backends/rgw/http-transport';
import { S3User } from '#backends/rgw/s3-user';
import { StorageError } from '#platform/errors';
import type { LeaseSignal } from '#platform/lease-signal';

/**
 * S3 as the owner of a bucket. An owner's keys are asked from Admin Ops and kept in memory only.
 * Ours is made on first use; the owner of a registered bucket is somebody else, and is only read.
 */
export class BucketOwners {
  readonly #open = new Map<string, S3User>();

  constructor(
    private readonly transport: HttpTransport,
    private readonly admin: AdminOps,
    readonly ours: string,
  ) {}

  /** Makes sure that our owner exists and has a key. */
  async ensureOurs(displayName: string, signal: LeaseSignal): Promise<void> {
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
  async as<T>(uid: string, signal: AbortSignal, work: (user: S3User) => Promise<T>): Promise<T> {
    const user = await this.#user(uid, signal);
    try {
      return await work(user);
    } catch (error) {
      if (!['InvalidAccessKeyId', 'SignatureDoesNotMatch'].includes(errorCode(error))) throw error;
      this.#open.delete(uid);
      const fresh = await this.#user(uid, signal);
      if (fresh.credentials.accessKeyId === user.credentials.accessKeyId) throw error;
      return work(fresh);
    }
  }

  async #user(uid: string, signal: AbortSignal): Promise<S3User> {
    const known = this.#open.get(uid);
    if (known) return known;
    const opened = this.#as(uid, await this.admin.getUser(uid, signal));
    this.#open.set(uid, opened);
    return opened;
  }

  #as(uid: string, found: RgwUser | undefined): S3User {
    const key = found?.keys[0];
    if (!key)
      throw new StorageError(
        'failed_precondition',
        `RGW user ${uid} owns the bucket but ${found ? 'has no S3 key' : 'does not exist'}; give it a key, then retry`,
        { resource: `user ${uid}`, retry: 'later' },
      );
    return new S3User(this.transport, { accessKeyId: key.access_key, secretAccessKey: key.secret_key });
  }
}
