/**
 * Principals: a service account of the project for each access, with one HMAC key, or two while a key is changed; or with none,
 * where a service account of a cluster comes in as it.
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { type GcsApi, isConflict, isMissing, pathOf, unlessMissing } from '#backends/gcs/gcs-api';
import type { GcsConfig } from '#backends/gcs/gcs-config';
import { letIn, letsIn, memberOf } from '#backends/gcs/workload-identity';
import { type IssuedKey, KEYLESS, type Principal, type ServiceAccount } from '#backends/object-backend';
import { StorageError } from '#platform/errors';
import type { LeaseSignal } from '#platform/lease-signal';

const account = z.looseObject({ email: z.string(), description: z.string().default('') });

const hmacKey = z.looseObject({ accessId: z.string(), state: z.string(), etag: z.string().optional() });
type HmacKey = z.output<typeof hmacKey>;
const hmacKeys = z.looseObject({ items: z.array(hmacKey).default([]), nextPageToken: z.string().optional() });
const newKey = z.looseObject({ metadata: z.looseObject({ accessId: z.string() }), secret: z.string() });

/** An id of an account has 30 characters at most, and is said to be gone for good when it was deleted. */
const ID_LENGTH = 30;

/** Of one without a key; gateways say it, too, which do not know the digest of a tenant. */
export const keylessEmail = (project: string, uid: string): string => emailOf(project, uid);

const emailOf = (project: string, named: string): string => {
  const hash = createHash('sha256').update(named).digest('hex');
  return `${`trivet-${hash}`.slice(0, ID_LENGTH)}@${project}.iam.gserviceaccount.com`;
};

export class ServiceAccounts {
  readonly #project: string;

  constructor(
    private readonly api: GcsApi,
    private readonly config: Pick<GcsConfig, 'project' | 'workloadIdentityPool'>,
    /** Of appliance and tenant. */
    private readonly digest: string,
  ) {
    this.#project = config.project;
  }

  readonly emailOf = (uid: string): string =>
    uid.startsWith(KEYLESS) ? keylessEmail(this.#project, uid) : emailOf(this.#project, `${this.digest}/${uid}`);

  async put(principal: Principal, signal: LeaseSignal): Promise<void> {
    const { uid, trusts } = principal;
    if (trusts) return this.#putKeyless(uid, trusts, signal);
    await this.#ensure(uid, signal);
    // One that came after its answer was given up is nobody's.
    if (principal.accessKeyId !== '') await this.removeKeys(principal.uid, signal, idsOf(principal));
  }

  async #putKeyless(uid: string, trusts: ServiceAccount, signal: LeaseSignal): Promise<void> {
    const { workloadIdentityPool: pool } = this.config;
    if (pool === undefined)
      throw new StorageError(
        'failed_precondition',
        'this backend has no pool of workload identities any more: give it workloadIdentityPool again, or revoke this access',
        { resource: `principal ${uid}` },
      );
    const member = memberOf(pool, trusts);
    await this.#ensure(uid, signal);
    // Whoever made one for it came in by another door.
    await this.removeKeys(uid, signal);
    await letIn(this.api, this.#pathOf(uid), member, signal);
  }

  async #holdsKeyless(uid: string, trusts: ServiceAccount, signal: AbortSignal): Promise<boolean> {
    const { workloadIdentityPool: pool } = this.config;
    const found = pool === undefined ? undefined : await this.#find(uid, signal);
    if (pool === undefined || !found || !this.#isOurs(found, uid)) return false;
    if ((await this.#keysOf(uid, signal)).length > 0) return false;
    return letsIn(this.api, this.#pathOf(uid), memberOf(pool, trusts), signal);
  }

  async holds(principal: Principal, signal: AbortSignal): Promise<boolean> {
    if (principal.trusts) return this.#holdsKeyless(principal.uid, principal.trusts, signal);
    const keys = await this.#keysOf(principal.uid, signal);
    const ids = idsOf(principal);
    return (
      keys.some(({ accessId }) => accessId === principal.accessKeyId) &&
      keys.every(({ accessId, state }) => ids.includes(accessId) && state === 'ACTIVE')
    );
  }

  async issueKey(uid: string, signal: LeaseSignal, staying?: string): Promise<IssuedKey> {
    await this.removeKeys(uid, signal, staying === undefined ? [] : [staying]);
    const query = { serviceAccountEmail: this.emailOf(uid) };
    const path = pathOf('projects', this.#project, 'hmacKeys');
    try {
      const text = await this.api.change('POST', 'hmacKeys.create', { place: 'storage', path, query }, signal);
      const { metadata, secret } = newKey.parse(JSON.parse(text));
      return { accessKeyId: metadata.accessId, secretAccessKey: secret };
    } catch (error) {
      if (!isMissing(error) || !(await this.#find(uid, signal))) throw error;
      throw new StorageError('aborted', `service account ${this.emailOf(uid)} is not known everywhere yet`, {
        resource: `principal ${uid}`,
        cause: error,
      });
    }
  }

  /** A key is switched off first: Google deletes no other. */
  async removeKeys(uid: string, signal: LeaseSignal, staying: readonly string[] = []): Promise<void> {
    for (const { accessId, state } of await this.#keysOf(uid, signal)) {
      if (staying.includes(accessId)) continue;
      const path = pathOf('projects', this.#project, 'hmacKeys', accessId);
      if (state === 'ACTIVE')
        await unlessMissing(
          this.api.change('PUT', 'hmacKeys.update', { place: 'storage', path, body: { state: 'INACTIVE' } }, signal),
        );
      await unlessMissing(this.api.change('DELETE', 'hmacKeys.delete', { place: 'storage', path }, signal));
    }
  }

  async remove(uid: string, signal: LeaseSignal): Promise<void> {
    const found = await this.#find(uid, signal);
    if (found && !this.#isOurs(found, uid)) throw this.#notOurs(uid);
    await this.removeKeys(uid, signal);
    if (found)
      await unlessMissing(
        this.api.change('DELETE', 'serviceAccounts.delete', { place: 'iam', path: this.#pathOf(uid) }, signal),
      );
  }

  async #ensure(uid: string, signal: LeaseSignal): Promise<void> {
    const path = pathOf('projects', this.#project, 'serviceAccounts');
    const body = {
      accountId: this.emailOf(uid).split('@')[0],
      serviceAccount: { displayName: uid, description: this.#markOf(uid) },
    };
    try {
      await this.api.change('POST', 'serviceAccounts.create', { place: 'iam', path, body }, signal);
    } catch (error) {
      if (!isConflict(error)) throw error;
      const found = await this.#find(uid, signal);
      if (!found || !this.#isOurs(found, uid)) throw this.#notOurs(uid);
    }
  }

  #find(uid: string, signal: AbortSignal) {
    return this.api.find(account, { place: 'iam', path: this.#pathOf(uid) }, signal);
  }

  async #keysOf(uid: string, signal: AbortSignal): Promise<HmacKey[]> {
    const path = pathOf('projects', this.#project, 'hmacKeys');
    const keys: HmacKey[] = [];
    let pageToken: string | undefined;
    do {
      const query = { serviceAccountEmail: this.emailOf(uid), ...(pageToken === undefined ? {} : { pageToken }) };
      const page = await this.api.find(hmacKeys, { place: 'storage', path, query }, signal);
      keys.push(...(page?.items ?? []).filter(({ state }) => state !== 'DELETED'));
      pageToken = page?.nextPageToken;
    } while (pageToken !== undefined);
    return keys;
  }

  #pathOf(uid: string): string {
    return pathOf('projects', this.#project, 'serviceAccounts', this.emailOf(uid));
  }

  #markOf(uid: string): string {
    return `made by Trivet (${this.digest}) for ${uid}`;
  }

  #isOurs({ description }: z.output<typeof account>, uid: string): boolean {
    return description === this.#markOf(uid);
  }

  #notOurs(uid: string): StorageError {
    return new StorageError('already_exists', `service account ${this.emailOf(uid)} was not made by this appliance`, {
      resource: `principal ${uid}`,
    });
  }
}

const idsOf = ({ accessKeyId, beside = [] }: Principal): string[] => [
  accessKeyId,
  ...beside.map(key => key.accessKeyId),
];
