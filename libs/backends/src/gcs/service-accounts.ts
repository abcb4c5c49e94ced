/** Principals: a service account of the project for each access, with one HMAC key, or two while a key is changed. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { type GcsApi, isConflict, isMissing, pathOf, unlessMissing } from '#backends/gcs/gcs-api';
import type { IssuedKey, Principal } from '#backends/object-backend';
import { StorageError } from '#platform/errors';
import type { LeaseSignal } from '#platform/lease-signal';

const account = z.looseObject({ email: z.string(), description: z.string().default('') });

const hmacKey = z.looseObject({ accessId: z.string(), state: z.string(), etag: z.string().optional() });
type HmacKey = z.output<typeof hmacKey>;
const hmacKeys = z.looseObject({ items: z.array(hmacKey).default([]), nextPageToken: z.string().optional() });
const newKey = z.looseObject({ metadata: z.looseObject({ accessId: z.string() }), secret: z.string() });

/** An id of an account has 30 characters at most, and is said to be gone for good when it was deleted. */
const ID_LENGTH = 30;

export class ServiceAccounts {
  constructor(
    private readonly api: GcsApi,
    private readonly project: string,
    /** Of appliance and tenant. */
    private readonly digest: string,
  ) {}

  readonly emailOf = (uid: string): string => `${this.#idOf(uid)}@${this.project}.iam.gserviceaccount.com`;

  async put(principal: Principal, signal: LeaseSignal): Promise<void> {
    await this.#ensure(principal.uid, signal);
    // One that came after its answer was given up is nobody's.
    if (principal.accessKeyId !== '') await this.removeKeys(principal.uid, signal, idsOf(principal));
  }

  async holds(principal: Principal, signal: AbortSignal): Promise<boolean> {
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
    const path = pathOf('projects', this.project, 'hmacKeys');
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
      const path = pathOf('projects', this.project, 'hmacKeys', accessId);
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
    const path = pathOf('projects', this.project, 'serviceAccounts');
    const body = { accountId: this.#idOf(uid), serviceAccount: { displayName: uid, description: this.#markOf(uid) } };
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
    const path = pathOf('projects', this.project, 'hmacKeys');
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

  #idOf(uid: string): string {
    const hash = createHash('sha256').update(`${this.digest}/${uid}`).digest('hex');
    return `trivet-${hash}`.slice(0, ID_LENGTH);
  }

  #pathOf(uid: string): string {
    return pathOf('projects', this.project, 'serviceAccounts', this.emailOf(uid));
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
