import type { Mode } from '#test/cosi/conformance/context';
import type { Credentials } from '#test/crash/jobs';

export interface ModelAccess {
  /** What was asked for, less what was taken away since. */
  wanted: Map<string, Mode>;
  /** What the store enforces, by incarnation. */
  grants: Map<number, Mode | 'REVOKED'>;
  credentials: Credentials;
}

type Code = 'OK' | 'NOT_FOUND' | 'ALREADY_EXISTS';

/** What a caller may rely on, with nothing of how it is done: no operations, no attempts, no crashes. */
export class ObjectModel {
  readonly buckets = new Map<string, { incarnation: number; quota: string }>();
  readonly accesses = new Map<string, ModelAccess>();
  private incarnations = 0;

  create(name: string, quota: string): Code {
    const known = this.buckets.get(name);
    if (known) return known.quota === quota ? 'OK' : 'ALREADY_EXISTS';
    this.buckets.set(name, { incarnation: ++this.incarnations, quota });
    return 'OK';
  }

  delete(name: string): void {
    const known = this.buckets.get(name);
    if (!known) return;
    this.buckets.delete(name);
    for (const access of this.accesses.values()) access.grants.delete(known.incarnation);
  }

  mayGrant(name: string, wanted: Map<string, Mode>): Code {
    const known = this.accesses.get(name);
    if (known && text(known.wanted) !== text(wanted)) return 'ALREADY_EXISTS';
    return [...wanted.keys()].every(bucket => this.buckets.has(bucket)) ? 'OK' : 'NOT_FOUND';
  }

  grant(name: string, wanted: Map<string, Mode>, credentials: Credentials): void {
    const access = this.accesses.get(name) ?? { wanted: new Map(wanted), grants: new Map(), credentials };
    this.accesses.set(name, access);
    for (const [bucket, mode] of wanted) access.grants.set(this.buckets.get(bucket)!.incarnation, mode);
  }

  revoke(name: string, buckets: readonly string[]): void {
    const access = this.accesses.get(name);
    if (!access) return;
    const kept = [...access.wanted.keys()].filter(bucket => !buckets.includes(bucket));
    if (kept.length === access.wanted.size) return;
    if (kept.length === 0) {
      this.accesses.delete(name);
      return;
    }
    for (const bucket of buckets) {
      const incarnation = this.buckets.get(bucket)?.incarnation;
      if (access.wanted.has(bucket) && incarnation !== undefined && access.grants.has(incarnation))
        access.grants.set(incarnation, 'REVOKED');
      access.wanted.delete(bucket);
    }
  }

  /** As the store must say it: bucket, account, mode. */
  grants(): string[] {
    const names = new Map([...this.buckets].map(([name, { incarnation }]) => [incarnation, name]));
    return [...this.accesses.values()]
      .flatMap(({ grants, credentials }) =>
        [...grants].map(
          ([incarnation, mode]) => `${names.get(incarnation)} ${credentials.accountId} ${mode.toLowerCase()}`,
        ),
      )
      .sort();
  }
}

const text = (wanted: Map<string, Mode>): string => JSON.stringify([...wanted].sort());
