import { expect } from 'vitest';
import { ALL_DIALECTS, type CosiClient, type Dialect, type Outcome, type Reply } from '#test/cosi/client';
import type { CosiTarget } from '#test/cosi/target';

/** What the groups of cases share. Everything is made by name, so that the suite can run beside others on one store. */
export class Context {
  private counter = 0;
  private shared: Promise<string> | undefined;
  /** Tells runs on one store apart. */
  private readonly run = Date.now().toString(36);

  constructor(
    private readonly open: () => { target: CosiTarget; client: CosiClient },
    /** In which dialects the cases speak. */
    readonly dialects: readonly Dialect[] = ALL_DIALECTS,
    /** Patience with ABORTED and UNAVAILABLE, which real callers repeat. */
    private readonly repeats = 40,
  ) {}

  /** The cases that only v1alpha2 knows. */
  get v1alpha2(): readonly Dialect[] {
    return this.dialects.filter(dialect => dialect !== 'v1alpha1');
  }

  get target(): CosiTarget {
    return this.open().target;
  }

  get client(): CosiClient {
    return this.open().client;
  }

  /** A fresh bucket name. */
  bucket(): string {
    return `${this.target.prefix}-${this.run}-${this.counter++}`;
  }

  /** A fresh access name, as sidecars make them. */
  access(): string {
    return `ba-${this.run}-${this.counter++}`;
  }

  call(dialect: Dialect, method: string, request: object): Promise<Outcome> {
    return this.client.call(dialect, method, request);
  }

  /** Repeats as a sidecar does while the code says so, and expects OK in the end. */
  async settle(dialect: Dialect, method: string, request: object): Promise<Reply> {
    let outcome = await this.call(dialect, method, request);
    for (let left = this.repeats; left > 0 && ['ABORTED', 'UNAVAILABLE'].includes(outcome.code); left--) {
      await new Promise(resolve => setTimeout(resolve, 100));
      outcome = await this.call(dialect, method, request);
    }
    expect(outcome, `${dialect} ${method}: ${outcome.message}`).toMatchObject({ code: 'OK' });
    return outcome.reply;
  }

  /** Expects a refusal whose message names `about`, with empty status details. */
  async refuse(
    dialect: Dialect,
    method: string,
    request: object,
    code: Outcome['code'],
    about: string | RegExp = /./,
  ): Promise<Outcome> {
    const outcome = await this.call(dialect, method, request);
    expectRefusal(outcome, code, about);
    return outcome;
  }

  /** Runs `body` and expects that it left nothing new at the store. */
  async leavesNoTrace(body: () => Promise<void>): Promise<void> {
    const before = await this.traces();
    await body();
    expect(await this.traces()).toEqual(before);
  }

  private async traces(): Promise<{ buckets: string[]; accounts: string[] }> {
    const { control } = this.target;
    return { buckets: await control.buckets(), accounts: await control.accounts() };
  }

  /** One bucket of ours for all cases that do not change it. */
  anyBucket(): Promise<string> {
    this.shared ??= this.madeBucket();
    return this.shared;
  }

  /** A bucket of ours, made by the first dialect. */
  async madeBucket(parameters: Record<string, string> = {}): Promise<string> {
    const name = this.bucket();
    await this.settle('v1alpha1', 'DriverCreateBucket', { name, parameters });
    return name;
  }
}

export function expectRefusal(outcome: Outcome, code: Outcome['code'], about: string | RegExp): void {
  expect(outcome, outcome.message).toMatchObject({ code, message: expect.stringMatching(about) });
  expect(outcome.trailers?.get('grpc-status-details-bin')).toEqual([]);
}

/** Builds the same wish in each dialect. */
export const createRequest = (
  dialect: Dialect,
  name: string,
  parameters: Record<string, string> = {},
  protocols: readonly object[] = [{ type: 'S3' }],
): object => {
  if (dialect === 'v1alpha1') return { name, parameters };
  return dialect === 'r4' ? { bucket_id: name, protocols, parameters } : { name, protocols, parameters };
};

export type Mode = 'READ_WRITE' | 'READ_ONLY' | 'WRITE_ONLY';
const V1ALPHA1_MODES: Record<Mode, string> = {
  READ_WRITE: 'ReadWrite',
  READ_ONLY: 'ReadOnly',
  WRITE_ONLY: 'WriteOnly',
};

/** v1alpha1 takes the first bucket only. */
export const grantRequest = (dialect: Dialect, name: string, buckets: readonly (readonly [string, Mode])[]): object => {
  if (dialect === 'v1alpha1') {
    const [[bucket_id, mode] = ['', 'READ_WRITE' as Mode]] = buckets;
    return { bucket_id, name, authentication_type: 'Key', parameters: { accessMode: V1ALPHA1_MODES[mode] } };
  }
  return {
    account_name: name,
    protocol: { type: 'S3' },
    authentication_type: { type: 'KEY' },
    buckets: buckets.map(([bucket_id, mode]) => accessedBucket(dialect, bucket_id, mode)),
  };
};

export const accessedBucket = (dialect: Dialect, bucket_id: string, mode: string): object =>
  dialect === 'r1' || dialect === 'r2'
    ? { bucket_id, access_mode: { mode } }
    : {
        bucket_id,
        object_data_access_mode: { mode },
        object_metadata_access_mode: { mode: 'ANY' },
        bucket_metadata_access_mode: { mode: 'ANY' },
      };

export const revokeRequest = (dialect: Dialect, account_id: string, buckets: readonly string[]): object =>
  dialect === 'v1alpha1'
    ? { bucket_id: buckets[0] ?? '', account_id }
    : {
        account_id,
        protocol: { type: 'S3' },
        authentication_type: { type: 'KEY' },
        buckets: buckets.map(bucket_id => ({ bucket_id })),
      };
