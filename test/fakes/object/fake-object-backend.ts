/**
 * An object store for tests and the bench, with an ordered log of every call and failure modes on demand. Checks happen
 * when the call comes in, as an adapter makes them; then the effect is applied, which may be much later (fake-effects).
 */
import { randomUUID } from 'node:crypto';
import { InFlight } from '#backends/in-flight';
import {
  type ApplianceIdentity,
  type BucketInspection,
  type BucketRef,
  type BucketSpec,
  type Expected,
  type Grant,
  type GrantTarget,
  type IssuedKey,
  type ObjectBackend,
  type Principal,
  type PrincipalRef,
  ReplacedBucket,
  type StoreTraits,
} from '#backends/object-backend';
import type { BackendCheck } from '#backends/registration';
import { policyBytes } from '#backends/s3/bucket-policy';
import { applianceTag } from '#backends/s3/bucket-tags';
import { isStorageError, StorageError } from '#platform/errors';
import { type LeaseSignal, mayChange } from '#platform/lease-signal';
import type { FakeConfig } from '#test/fakes/object/fake-config';
import { applyEffect, type FakeEffect, givenKeys } from '#test/fakes/object/fake-effects';
import { type Fault, faultError, hang, heldBy, pause, takeFault, timedOut } from '#test/fakes/object/fake-faults';
import { FakeState } from '#test/fakes/object/fake-state';

export interface BucketRow {
  name: string;
  /** Appliance and tenant that made it, or anything else for a foreign one. */
  owner: string;
  appliance: string | null;
  incarnation: string | null;
  spec: string | null;
  configured: number;
  objects: number;
  locked_key: string | null;
  identity: string;
}

/** Each object is so large here. */
const FAKE_OBJECT_BYTES = 1_000;

type Method = Exclude<keyof ObjectBackend, 'close'>;

interface Plan<T> {
  effect: FakeEffect;
  result: T;
}

interface Call<T> {
  method: Method;
  resource: string;
  incarnation?: string;
  signal: AbortSignal;
  /** Runs inside the write transaction; throws what the store answers when it refuses. */
  plan: () => Plan<T>;
}

export class FakeObjectBackend implements ObjectBackend {
  protected readonly state: FakeState;
  protected readonly owner: string;
  readonly #late = new Set<NodeJS.Timeout>();
  readonly #inFlight = new InFlight();

  constructor(
    protected readonly config: FakeConfig,
    owner: ApplianceIdentity,
    private readonly maxPolicyBytes: number,
  ) {
    this.state = FakeState.open(config.file);
    this.owner = applianceTag(owner);
  }

  health(signal: AbortSignal): Promise<void> {
    return this.call({ method: 'health', resource: '', signal, plan: () => answer(undefined) });
  }

  diagnose(signal: AbortSignal): Promise<BackendCheck[]> {
    return this.health(signal).then(
      () => [{ name: 'answers', ok: true, detail: 'it answers' }],
      (error: Error) => [{ name: 'answers', ok: false, detail: error.message }],
    );
  }

  async tryRights(): Promise<BackendCheck[]> {
    return [];
  }

  inspectBucket(name: string, signal: AbortSignal): Promise<BucketInspection> {
    return this.call({ method: 'inspectBucket', resource: name, signal, plan: () => answer(this.inspect(name)) });
  }

  createBucket(bucket: BucketRef, _spec: BucketSpec, signal: LeaseSignal): Promise<void> {
    return this.bucketCall('createBucket', bucket, signal, () => {
      const row = this.#row(bucket.name);
      if (row && row.owner !== this.owner)
        throw new StorageError('already_exists', `bucket ${bucket.name} exists and belongs to somebody else`);
      return done({ type: 'createBucket', name: bucket.name, owner: this.owner });
    });
  }

  configureBucket(bucket: BucketRef, spec: BucketSpec, signal: LeaseSignal): Promise<void> {
    return this.bucketCall('configureBucket', bucket, signal, () => {
      const found = this.inspect(bucket.name);
      if (found.state === 'absent') throw missing(bucket.name);
      if (found.state !== 'untagged' && !this.isThis(found, bucket)) throw notThisOne(bucket.name);
      return done({
        type: 'configureBucket',
        name: bucket.name,
        appliance: this.owner,
        incarnation: bucket.incarnation,
        spec,
      });
    });
  }

  emptyBucket(bucket: BucketRef, signal: LeaseSignal): Promise<{ done: boolean; removed: number }> {
    return this.bucketCall('emptyBucket', bucket, signal, () => {
      const found = this.inspect(bucket.name);
      if (found.state === 'absent') return answer({ done: true, removed: 0 });
      if (!this.isThis(found, bucket)) throw notThisOne(bucket.name);
      const { objects, locked_key } = this.#row(bucket.name)!;
      if (locked_key !== null)
        throw new StorageError('failed_precondition', `object ${locked_key} of bucket ${bucket.name} is locked`);
      const removed = Math.min(objects, this.config.emptyPortion);
      return {
        effect: { type: 'emptyBucket', name: bucket.name, portion: this.config.emptyPortion },
        result: { done: removed === objects, removed },
      };
    });
  }

  isBucketEmpty(bucket: BucketRef, signal: AbortSignal): Promise<boolean> {
    return this.bucketCall('isBucketEmpty', bucket, signal, () => {
      return answer(!this.isThis(this.inspect(bucket.name), bucket) || this.#row(bucket.name)!.objects === 0);
    });
  }

  deleteBucket(bucket: BucketRef, signal: LeaseSignal): Promise<'deleted' | 'absent' | 'not_empty' | 'foreign'> {
    type Result = 'deleted' | 'absent' | 'not_empty' | 'foreign';
    return this.bucketCall<Result>('deleteBucket', bucket, signal, () => {
      const found = this.inspect(bucket.name);
      if (found.state === 'absent') return answer<Result>('absent');
      if (!this.isThis(found, bucket)) return answer<Result>('foreign');
      if (this.#row(bucket.name)!.objects > 0) return answer<Result>('not_empty');
      return { effect: { type: 'deleteBucket', name: bucket.name }, result: 'deleted' };
    });
  }

  traits(): StoreTraits {
    return {};
  }

  async issueKey(_uid: string, _signal: LeaseSignal, _staying?: string): Promise<IssuedKey> {
    throw new StorageError('unimplemented', 'keys of this store are chosen');
  }

  async isInForce(_key: IssuedKey, _expected: Expected, _signal: LeaseSignal): Promise<boolean> {
    return true;
  }

  putPrincipal(principal: Principal, signal: LeaseSignal): Promise<void> {
    return this.call({
      method: 'putPrincipal',
      resource: principal.uid,
      signal,
      plan: () => {
        for (const { accessKeyId } of givenKeys(principal)) {
          const holder = this.state.get<{ uid: string }>('SELECT uid FROM keys WHERE access_key_id = ?', accessKeyId);
          if (holder && holder.uid !== principal.uid)
            throw new StorageError('already_exists', `the access key of ${principal.uid} belongs to another principal`);
        }
        return done({ type: 'putPrincipal', principal });
      },
    });
  }

  holdsPrincipal(principal: Principal, signal: AbortSignal): Promise<boolean> {
    const plan = () => {
      const keys = this.state.all<{ id: string; secret: string }>(
        'SELECT access_key_id AS id, secret FROM keys WHERE uid = ?',
        principal.uid,
      );
      const given = givenKeys(principal);
      const holds = given.every(key =>
        keys.some(({ id, secret }) => id === key.accessKeyId && secret === key.secretAccessKey),
      );
      return answer(holds && keys.length === given.length);
    };
    return this.call({ method: 'holdsPrincipal', resource: principal.uid, signal, plan });
  }

  removeKey(principal: PrincipalRef, signal: LeaseSignal): Promise<void> {
    const effect: FakeEffect = { type: 'removeKey', uid: principal.uid, accessKeyId: principal.accessKeyId };
    return this.call({ method: 'removeKey', resource: principal.uid, signal, plan: () => done(effect) });
  }

  removePrincipal(uid: string, signal: LeaseSignal): Promise<void> {
    return this.call({
      method: 'removePrincipal',
      resource: uid,
      signal,
      plan: () => done({ type: 'removePrincipal', uid }),
    });
  }

  holdsGrants(
    bucket: GrantTarget,
    grants: readonly Grant[],
    signal: AbortSignal,
    _whose?: readonly string[],
  ): Promise<boolean> {
    return this.bucketCall('holdsGrants', bucket, signal, () => {
      const sorted = (list: readonly Grant[]) => JSON.stringify(list.map(({ uid, mode }) => `${uid} ${mode}`).sort());
      const there = this.state.all<Grant>('SELECT uid, mode FROM grants WHERE bucket = ?', bucket.name);
      const is = bucket.identity === undefined || bucket.identity === this.#row(bucket.name)?.identity;
      return answer(is && sorted(there) === sorted(grants));
    });
  }

  putGrants(
    bucket: GrantTarget,
    grants: readonly Grant[],
    signal: LeaseSignal,
    _whose?: readonly string[],
  ): Promise<void> {
    return this.bucketCall('putGrants', bucket, signal, () => {
      const found = this.inspect(bucket.name);
      if (found.state === 'absent') throw missing(bucket.name);
      if (bucket.incarnation !== undefined) {
        if (found.state === 'untagged')
          throw new StorageError('failed_precondition', `bucket ${bucket.name} has lost its tags`);
        if (!this.isThis(found, { ...bucket, incarnation: bucket.incarnation })) throw missing(bucket.name);
      }
      if (bucket.identity !== undefined && this.#row(bucket.name)!.identity !== bucket.identity)
        throw new ReplacedBucket(bucket.name);
      const counts = { read_write: 0, read_only: 0, write_only: 0, revoked: 0 };
      for (const grant of grants) counts[grant.mode] += 1;
      if (policyBytes(bucket.name, counts) > this.maxPolicyBytes)
        throw new StorageError(
          'resource_exhausted',
          `the policy of bucket ${bucket.name} cannot hold ${grants.length} grants`,
        );
      return this.grantsEffect(bucket.name, grants);
    });
  }

  protected grantsEffect(name: string, grants: readonly Grant[]): Plan<void> {
    return done({ type: 'putGrants', name, grants });
  }

  signAccess(_bucketName: string, _signedAs: string): string | undefined {
    return undefined;
  }

  measureBucket(name: string, signal: AbortSignal): Promise<bigint | undefined> {
    const plan = () => {
      const row = this.#row(name);
      return answer(row && BigInt(row.objects) * BigInt(FAKE_OBJECT_BYTES));
    };
    return this.call({ method: 'measureBucket', resource: name, signal, plan });
  }

  limitTenant(bytes: bigint | undefined, signal: LeaseSignal): Promise<void> {
    const effect: FakeEffect = {
      type: 'limitTenant',
      owner: this.owner,
      bytes: bytes === undefined ? null : `${bytes}`,
    };
    return this.call({ method: 'limitTenant', resource: this.owner, signal, plan: () => done(effect) });
  }

  forgetTenant(signal: LeaseSignal): Promise<void> {
    const plan = () => {
      if (this.state.get('SELECT name FROM buckets WHERE owner = ?', this.owner))
        throw new StorageError('failed_precondition', 'the tenant has buckets still');
      return done({ type: 'limitTenant', owner: this.owner, bytes: null });
    };
    return this.call({ method: 'forgetTenant', resource: this.owner, signal, plan });
  }

  close(): void {
    for (const timer of this.#late) clearTimeout(timer);
    this.#late.clear();
    this.#inFlight.close(() => this.state.close());
  }

  protected bucketCall<T>(method: Method, bucket: GrantTarget, signal: AbortSignal, plan: () => Plan<T>): Promise<T> {
    return this.call({ method, resource: bucket.name, incarnation: bucket.incarnation, signal, plan });
  }

  protected call<T>(call: Call<T>): Promise<T> {
    return this.#inFlight.run(() => this.#logged(call));
  }

  async #logged<T>(call: Call<T>): Promise<T> {
    const { method, resource, signal } = call;
    if (signal.aborted) throw timedOut(method);
    const id = this.config.callLog ? randomUUID() : '';
    const fault = this.state.write(() => {
      this.#log(id, call, 'begin', null);
      return takeFault(this.state, method, resource);
    });
    try {
      const result = await this.#answer(id, call, fault);
      this.#log(id, call, 'end', 'ok');
      return result;
    } catch (error) {
      this.#log(id, call, 'end', isStorageError(error) ? error.kind : 'defect');
      throw error;
    }
  }

  async #answer<T>(id: string, call: Call<T>, fault: Fault | undefined): Promise<T> {
    const { method, signal } = call;
    if (fault?.mode === 'fail-before') throw faultError(fault);
    if (fault?.mode === 'hang') return hang(method, signal);
    if (fault?.mode === 'late') {
      this.#keepBack(id, call, fault);
      throw timedOut(method);
    }
    if (fault?.mode === 'hold') await heldBy(fault, this.state, method, signal);
    const isDelayed = fault?.mode === 'delay' || fault?.mode === 'hold';
    const ms = this.config.latencyMs + (isDelayed ? (fault.delay_ms ?? 0) : 0);
    if (ms > 0) await pause(ms, method, signal);
    const result = this.state.write(() => {
      const plan = call.plan();
      // Whatever has an effect comes with a lease: the port says so.
      if (plan.effect.type !== 'none') mayChange(signal as LeaseSignal);
      const outcome = applyEffect(this.state, plan.effect);
      if (plan.effect.type !== 'none') this.#log(id, call, 'effect', outcome);
      return plan.result;
    });
    if (fault?.mode === 'fail-after') throw faultError(fault);
    if (fault?.mode === 'hang-after') return hang(method, signal);
    return result;
  }

  #keepBack<T>(call: string, { method, resource, incarnation, plan }: Call<T>, fault: Fault): void {
    const late = this.state.write(() => {
      const { effect } = plan();
      return this.state.get<{ id: number }>(
        'INSERT INTO late_effects (call, method, resource, incarnation, effect) VALUES (?, ?, ?, ?, ?) RETURNING id',
        call,
        method,
        resource,
        incarnation ?? null,
        JSON.stringify(effect),
      )!;
    });
    if (fault.delay_ms === null) return;
    const timer = setTimeout(() => {
      this.#late.delete(timer);
      deliverLateEffect(this.state, late.id);
    }, fault.delay_ms);
    this.#late.add(timer);
  }

  protected inspect(name: string): BucketInspection {
    const row = this.#row(name);
    if (!row) return { state: 'absent' };
    const { appliance, incarnation, identity } = row;
    if (row.owner !== this.owner) return { state: 'foreign', byTrivet: appliance !== null, identity };
    if (appliance === null || incarnation === null) return { state: 'untagged', empty: row.objects === 0, identity };
    return appliance === this.owner ? { state: 'ours', incarnation } : { state: 'foreign', byTrivet: true, identity };
  }

  protected isThis(found: BucketInspection, bucket: BucketRef): boolean {
    return found.state === 'ours' && found.incarnation === bucket.incarnation;
  }

  #row(name: string): BucketRow | undefined {
    return this.state.get<BucketRow>('SELECT * FROM buckets WHERE name = ?', name);
  }

  #log<T>(id: string, call: Call<T>, phase: 'begin' | 'effect' | 'end', outcome: string | null): void {
    if (this.config.callLog) logCall(this.state, { call: id, ...call }, phase, outcome);
  }
}

/** Applies an effect that a `late` fault kept back; false when it was delivered before. */
export function deliverLateEffect(state: FakeState, id: number): boolean {
  return state.write(() => {
    const late = state.get<{
      call: string;
      method: string;
      resource: string;
      incarnation: string | null;
      effect: string;
    }>('UPDATE late_effects SET delivered = 1 WHERE id = ? AND delivered = 0 RETURNING *', id);
    if (!late) return false;
    const outcome = applyEffect(state, JSON.parse(late.effect) as FakeEffect);
    logCall(state, late, 'effect', `late ${outcome}`);
    return true;
  });
}

export function logCall(
  state: FakeState,
  call: { call: string; method: string; resource: string; incarnation?: string | null },
  phase: string,
  outcome: string | null,
): void {
  state.run(
    'INSERT INTO call_log (call, pid, method, resource, incarnation, phase, outcome, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
    call.call,
    process.pid,
    call.method,
    call.resource,
    call.incarnation ?? null,
    phase,
    outcome,
    Date.now(),
  );
}

export const answer = <T>(result: T): Plan<T> => ({ effect: { type: 'none' }, result });
export const done = (effect: FakeEffect): Plan<void> => ({ effect, result: undefined });

export const missing = (name: string): StorageError =>
  new StorageError('not_found', `bucket ${name} does not exist`, { resource: `bucket ${name}` });
const notThisOne = (name: string): StorageError =>
  new StorageError('failed_precondition', `bucket ${name} is not the one that Trivet made`, {
    resource: `bucket ${name}`,
  });
