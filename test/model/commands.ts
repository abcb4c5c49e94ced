import fc from 'fast-check';
import { expect } from 'vitest';
import type { Outcome } from '#test/cosi/client';
import type { Mode } from '#test/cosi/conformance/context';
import { type Credentials, credentialsOf, type Jobs, persist } from '#test/crash/jobs';
import type { FaultMode } from '#test/fakes/object/fake-faults';
import type { ObjectModel } from '#test/model/object-model';
import type { TestAppliance } from '#test/support/appliance';

export interface Real {
  appliance: TestAppliance;
  jobs: Jobs;
  /** Before all names of this run. */
  prefix: string;
}

export type Command = fc.AsyncCommand<ObjectModel, Real>;

const final = async (call: () => Promise<Outcome>): Promise<Outcome> => (await persist(call, 25_000)).at(-1)!;

class Create implements Command {
  constructor(
    private readonly name: string,
    private readonly quota: string,
  ) {}
  check = () => true;
  async run(model: ObjectModel, { jobs, prefix }: Real): Promise<void> {
    const outcome = await final(() => jobs.create(`${prefix}-${this.name}`, { quotaMaxObjects: this.quota }));
    expect(outcome.code, outcome.message).toBe(model.create(this.name, this.quota));
  }
  toString = () => `create ${this.name} quota ${this.quota}`;
}

class Delete implements Command {
  constructor(private readonly name: string) {}
  check = () => true;
  async run(model: ObjectModel, { jobs, prefix }: Real): Promise<void> {
    const outcome = await final(() => jobs.delete(`${prefix}-${this.name}`));
    expect(outcome.code, outcome.message).toBe('OK');
    model.delete(this.name);
  }
  toString = () => `delete ${this.name}`;
}

class Grant implements Command {
  constructor(
    private readonly name: string,
    private readonly wanted: ReadonlyMap<string, Mode>,
  ) {}
  check = () => true;
  async run(model: ObjectModel, { jobs, prefix }: Real): Promise<void> {
    const wanted = new Map(this.wanted);
    const buckets = [...wanted].map(([bucket, mode]) => [`${prefix}-${bucket}`, mode] as const);
    const outcome = await final(() => jobs.grant(`${prefix}-${this.name}`, buckets));
    expect(outcome.code, outcome.message).toBe(model.mayGrant(this.name, wanted));
    if (outcome.code !== 'OK') return;
    const credentials: Credentials = credentialsOf(outcome);
    const known = model.accesses.get(this.name);
    if (known) expect(credentials, 'a repeat gets the same').toEqual(known.credentials);
    model.grant(this.name, wanted, credentials);
  }
  toString = () => `grant ${this.name} ${JSON.stringify([...this.wanted])}`;
}

class Revoke implements Command {
  constructor(
    private readonly name: string,
    private readonly buckets: readonly string[],
  ) {}
  check = (model: Readonly<ObjectModel>) => model.accesses.has(this.name);
  async run(model: ObjectModel, { jobs, prefix }: Real): Promise<void> {
    const { accountId } = model.accesses.get(this.name)!.credentials;
    const buckets = this.buckets.map(bucket => `${prefix}-${bucket}`);
    const outcome = await final(() => jobs.revoke(accountId, buckets));
    expect(outcome.code, outcome.message).toBe('OK');
    model.revoke(this.name, this.buckets);
  }
  toString = () => `revoke ${this.name} ${this.buckets}`;
}

/** Meets whichever call comes next: fails before or after its effect, hangs, or takes effect late. */
class Fault implements Command {
  constructor(private readonly mode: FaultMode) {}
  check = () => true;
  async run(_: ObjectModel, { appliance }: Real): Promise<void> {
    // Late: within the horizon of the call, as a store would.
    appliance.fake!.addFault({ mode: this.mode, delayMs: 150, error: 'unavailable' });
  }
  toString = () => `fault ${this.mode}`;
}

class KillWorker implements Command {
  check = () => true;
  async run(_: ObjectModel, { appliance }: Real): Promise<void> {
    await appliance.process('worker').stop('SIGKILL');
    await appliance.worker();
  }
  toString = () => 'kill worker';
}

/** Kills the worker while it works on a deletion or creation that nobody waits for any more. */
class KillInTheMiddle implements Command {
  constructor(private readonly name: string) {}
  check = (model: Readonly<ObjectModel>) => model.buckets.has(this.name);
  async run(model: ObjectModel, { appliance, jobs, prefix }: Real): Promise<void> {
    appliance.fake!.addFault({ mode: 'delay', delayMs: 100, resource: `${prefix}-${this.name}` });
    const answer = final(() => jobs.delete(`${prefix}-${this.name}`));
    await appliance.process('worker').stop('SIGKILL');
    await appliance.worker();
    expect((await answer).code).toBe('OK');
    model.delete(this.name);
  }
  toString = () => `delete ${this.name} and kill the worker`;
}

class RestartGateway implements Command {
  check = () => true;
  async run(_: ObjectModel, { appliance }: Real): Promise<void> {
    await appliance.process('gateway').stop('SIGTERM');
    await appliance.gateway();
  }
  toString = () => 'restart gateway';
}

const bucket = fc.constantFrom('b1', 'b2', 'b3');
const access = fc.constantFrom('a1', 'a2');
const mode = fc.constantFrom<Mode>('READ_WRITE', 'READ_ONLY');
const wanted = fc
  .uniqueArray(fc.tuple(bucket, mode), { minLength: 1, maxLength: 2, selector: ([name]) => name })
  .map(pairs => new Map(pairs));
const faults = fc.constantFrom<FaultMode>('fail-before', 'fail-after', 'hang', 'hang-after', 'late', 'delay');

export const commands: fc.Arbitrary<Iterable<Command>> = fc.commands(
  [
    fc.tuple(bucket, fc.constantFrom('7', '7', '7', '8')).map(([name, quota]) => new Create(name, quota)),
    bucket.map(name => new Create(name, '7')),
    bucket.map(name => new Delete(name)),
    fc.tuple(access, wanted).map(([name, buckets]) => new Grant(name, buckets)),
    fc.tuple(access, wanted).map(([name, buckets]) => new Grant(name, buckets)),
    fc
      .tuple(access, fc.subarray(['b1', 'b2', 'b3'], { minLength: 1 }))
      .map(([name, buckets]) => new Revoke(name, buckets)),
    faults.map(kind => new Fault(kind)),
    faults.map(kind => new Fault(kind)),
    fc.constant(new KillWorker()),
    bucket.map(name => new KillInTheMiddle(name)),
    fc.constant(new RestartGateway()),
  ],
  { maxCommands: 20, size: 'max' },
);
