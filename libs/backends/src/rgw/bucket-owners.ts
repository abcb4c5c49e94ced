import type { AdminOps, RgwUser } from '#backends/rgw/admin-ops';
import { errorCode, RefusedRequest } from '#backends/s3/errors';
import type { HttpTransport } from '#backends/s3/http-transport';
import { S3User } from '#backends/s3/s3-user';
import { StorageError } from '#platform/errors';
import type { LeaseSignal } from '#platform/lease-signal';

/**
 * S3 as the owner of a bucket. An owner's keys are asked from Admin Ops and kept in memory only.
 * Ours is made on first use; the owner of a registered bucket is somebody else, and is only read.
 */
export class BucketOwners {
  readonly #open = new Map<string, { user: S3User; accessKeyId: string }>();

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
      if (!(error instanceof RefusedRequest && error.code === 'UserAlreadyExists')) throw error;
    }
  }

  /**
   * Runs `work` as this user. Its key may have been exchanged since we asked: a call refused for the key had no effect,
   * and is made once more with the new one.
   */
  async as<T>(uid: string, signal: AbortSignal, work: (user: S3User) => Promise<T>): Promise<T> {
    const { user, accessKeyId } = await this.#user(uid, signal);
    try {
      return await work(user);
    } catch (error) {
      if (!['InvalidAccessKeyId', 'SignatureDoesNotMatch'].includes(errorCode(error))) throw error;
      this.#open.delete(uid);
      const fresh = await this.#user(uid, signal);
      if (fresh.accessKeyId === accessKeyId) throw error;
      return work(fresh.user);
    }
  }

  async #user(uid: string, signal: AbortSignal) {
    const known = this.#open.get(uid);
    if (known) return known;
    const opened = this.#as(uid, await this.admin.getUser(uid, signal));
    this.#open.set(uid, opened);
    return opened;
  }

  #as(uid: string, found: RgwUser | undefined) {
    const key = found?.keys[0];
    if (!key)
      throw new StorageError(
        'failed_precondition',
        `RGW user ${uid} owns the bucket but ${found ? 'has no S3 key' : 'does not exist'}; give it a key, then retry`,
        { resource: `user ${uid}`, retry: 'later' },
      );
    const credentials = { accessKeyId: key.access_key, secretAccessKey: key.secret_key };
    return { user: new S3User(this.transport, credentials), accessKeyId: key.access_key };
  }
}
