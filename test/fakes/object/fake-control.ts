import { randomUUID } from 'node:crypto';
import type { Grant, Principal, ServiceAccount } from '#backends/object-backend';
import type { ErrorKind } from '#platform/errors';
import type { FaultMode } from '#test/fakes/object/fake-faults';
import { type BucketRow, deliverLateEffect } from '#test/fakes/object/fake-object-backend';
import { isKnown, modesInForce, seeAll, setLateness } from '#test/fakes/object/fake-rights';
import { FakeState } from '#test/fakes/object/fake-state';

export interface CallLogRow {
  seq: number;
  call: string;
  pid: number;
  method: string;
  resource: string;
  incarnation: string | null;
  phase: 'begin' | 'effect' | 'end';
  /** effect: what it did (created, changed, deleted, unchanged; `late ` before it when delivered late). end: ok or the error's kind. */
  outcome: string | null;
  /** Milliseconds since the epoch. */
  at: number;
}

export interface FaultOrder {
  /** GLOB patterns; any method, any bucket name or uid when absent. */
  method?: string;
  resource?: string;
  mode: FaultMode;
  /** For fail-before and fail-after; `unavailable` when absent. */
  error?: ErrorKind;
  message?: string;
  delayMs?: number;
  /** How many calls it meets; 1 when absent. */
  count?: number;
}

/** A test's hand inside the fake store: looks at its state, seeds what others would have made, orders faults. */
export class FakeControl {
  readonly #state: FakeState;

  constructor(file: string) {
    this.#state = FakeState.open(file);
  }

  buckets(): BucketRow[] {
    return this.#state.all<BucketRow>('SELECT * FROM buckets ORDER BY name');
  }

  bucket(name: string): BucketRow | undefined {
    return this.#state.get<BucketRow>('SELECT * FROM buckets WHERE name = ?', name);
  }

  /** Principals with their keys; secrets included, since tests compare them. */
  principals(): (Omit<Principal, 'accessKeyId' | 'secretAccessKey'> & {
    keys: { accessKeyId: string; secretAccessKey: string }[];
  })[] {
    return this.#state
      .all<{ uid: string; display_name: string }>('SELECT uid, display_name FROM principals ORDER BY uid')
      .map(({ uid, display_name }) => ({ uid, displayName: display_name, keys: this.keys(uid) }));
  }

  /** Who comes in as the principal without a key. */
  trustOf(uid: string): ServiceAccount | undefined {
    const trusts = this.#state.get<{ trusts: string | null }>(
      'SELECT trusts FROM principals WHERE uid = ?',
      uid,
    )?.trusts;
    return trusts ? (JSON.parse(trusts) as ServiceAccount) : undefined;
  }

  /** As if an administrator had let somebody else in. */
  seedTrust(uid: string, account: ServiceAccount): void {
    this.#state.run('UPDATE principals SET trusts = ? WHERE uid = ?', JSON.stringify(account), uid);
  }

  keys(uid: string): { accessKeyId: string; secretAccessKey: string }[] {
    return this.#state.all(
      'SELECT access_key_id AS "accessKeyId", secret AS "secretAccessKey" FROM keys WHERE uid = ? ORDER BY 1',
      uid,
    );
  }

  /** As if an administrator had made another key. */
  seedKey(uid: string): void {
    const key = randomUUID();
    this.#state.run('INSERT INTO keys (access_key_id, uid, secret) VALUES (?, ?, ?)', key, uid, key);
  }

  /** As if an administrator had taken them away. */
  dropKeys(uid: string): void {
    this.#state.run('DELETE FROM keys WHERE uid = ?', uid);
  }

  grants(bucket: string): Grant[] {
    return this.#state.all<Grant>('SELECT uid, mode FROM grants WHERE bucket = ? ORDER BY uid', bucket);
  }

  /** Every grant of the store. */
  allGrants(): (Grant & { bucket: string })[] {
    return this.#state.all('SELECT bucket, uid, mode FROM grants ORDER BY bucket, uid');
  }

  seedForeignBucket(name: string, objects = 0): void {
    this.#state.run("INSERT INTO buckets (name, owner, objects) VALUES (?, 'foreign', ?)", name, objects);
  }

  /** Sets how many objects the bucket holds; `lockedKey` names one under object lock. */
  seedObjects(name: string, objects: number, lockedKey?: string): void {
    const changed = this.#state.run(
      'UPDATE buckets SET objects = ?, locked_key = ? WHERE name = ?',
      objects,
      lockedKey ?? null,
      name,
    );
    if (changed === 0) throw new Error(`the fake store has no bucket ${name}`);
  }

  /** As if an administrator had removed it behind Trivet's back. Rights of users stay. */
  dropBucket(name: string): void {
    this.#state.write(() => {
      this.#state.run("DELETE FROM grants WHERE bucket = ? AND policy = ''", name);
      this.#state.run('DELETE FROM buckets WHERE name = ?', name);
    });
  }

  /** As if somebody had taken our ownership tags off. */
  dropTags(name: string): void {
    this.#state.run('UPDATE buckets SET appliance = NULL, incarnation = NULL WHERE name = ?', name);
  }

  /** As if an administrator had removed the account. */
  dropPrincipal(uid: string): void {
    this.#state.write(() => {
      this.#state.run('DELETE FROM keys WHERE uid = ?', uid);
      this.#state.run('DELETE FROM principals WHERE uid = ?', uid);
    });
  }

  /** As if an administrator had emptied the bucket's policy. */
  dropGrants(bucket: string): void {
    this.#state.run('DELETE FROM grants WHERE bucket = ?', bucket);
  }

  /** Changes of keys and rights come into force with the so manieth look at their user. */
  seeLate(looks: number): void {
    this.#state.write(() => setLateness(this.#state, looks));
  }

  /** All changes so far are in force. */
  seeAll(): void {
    this.#state.write(() => seeAll(this.#state));
  }

  /** What a key lets its holder do at the bucket by what the store goes by now. */
  modesInForce(accessKeyId: string, bucket: string): Grant['mode'][] {
    return modesInForce(this.#state, accessKeyId, bucket);
  }

  /** Whether the store goes by that there is such a key. */
  isKeyInForce(accessKeyId: string): boolean {
    return isKnown(this.#state, accessKeyId);
  }

  /** Bytes that a tenant may have, by owner. */
  limits(): { owner: string; bytes: string }[] {
    return this.#state.all('SELECT owner, bytes FROM limits ORDER BY owner');
  }

  /** As if the administrator had put it back as it was. */
  restoreBucket({
    name,
    owner,
    appliance,
    incarnation,
    spec,
    configured,
    objects,
    locked_key,
    identity,
  }: BucketRow): void {
    const values = [name, owner, appliance, incarnation, spec, configured, objects, locked_key, identity];
    this.#state.run('INSERT INTO buckets VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)', ...values);
  }

  addFault(order: FaultOrder): number {
    return this.#state.get<{ id: number }>(
      `INSERT INTO faults (method, resource, mode, error, message, delay_ms, remaining)
       VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id`,
      order.method ?? '*',
      order.resource ?? '*',
      order.mode,
      order.error ?? 'unavailable',
      order.message ?? 'ordered by a test',
      order.delayMs ?? null,
      order.count ?? 1,
    )!.id;
  }

  /** Uses of this fault that no call has met yet. */
  faultRemaining(id: number): number {
    return this.#state.get<{ remaining: number }>('SELECT remaining FROM faults WHERE id = ?', id)?.remaining ?? 0;
  }

  liftFault(id: number): void {
    this.#state.run('DELETE FROM faults WHERE id = ?', id);
  }

  clearFaults(): void {
    this.#state.run('DELETE FROM faults');
  }

  calls(filter: { method?: string; resource?: string } = {}): CallLogRow[] {
    return this.#state.all<CallLogRow>(
      'SELECT * FROM call_log WHERE method GLOB ? AND resource GLOB ? ORDER BY seq',
      filter.method ?? '*',
      filter.resource ?? '*',
    );
  }

  clearCalls(): void {
    this.#state.run('DELETE FROM call_log');
  }

  /** Effects that a `late` fault keeps back. */
  lateEffects(): { id: number; method: string; resource: string; incarnation: string | null }[] {
    return this.#state.all(
      'SELECT id, method, resource, incarnation FROM late_effects WHERE delivered = 0 ORDER BY id',
    );
  }

  /** Delivers one effect that was kept back, or all; returns how many. */
  deliverLate(id?: number): number {
    const ids = id === undefined ? this.lateEffects().map(late => late.id) : [id];
    return ids.filter(one => deliverLateEffect(this.#state, one)).length;
  }

  close(): void {
    this.#state.close();
  }
}
