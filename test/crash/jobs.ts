import type { CosiClient, Outcome } from '#test/cosi/client';
import { createRequest, grantRequest, type Mode, revokeRequest } from '#test/cosi/conformance/context';
import { type Answer, persistWhile } from '#test/crash/persist';
import { nameIn } from '#test/fakes/object/fake-signing-backend';

export interface Credentials {
  accountId: string;
  accessKeyId: string;
  secretAccessKey: string;
}

/** What an orchestrator asks for, in one wire revision. */
export class Jobs {
  constructor(
    private readonly client: CosiClient,
    private readonly deadlineMs = 30_000,
  ) {}

  create(name: string, parameters: Record<string, string> = {}): Promise<Outcome> {
    return this.call('DriverCreateBucket', createRequest('r4', name, parameters));
  }

  delete(name: string): Promise<Outcome> {
    return this.call('DriverDeleteBucket', { bucket_id: name });
  }

  grant(name: string, buckets: readonly (readonly [string, Mode])[]): Promise<Outcome> {
    return this.call('DriverGrantBucketAccess', grantRequest('r4', name, buckets));
  }

  revoke(accountId: string, buckets: readonly string[]): Promise<Outcome> {
    return this.call('DriverRevokeBucketAccess', revokeRequest('r4', accountId, buckets));
  }

  private call(method: string, request: object): Promise<Outcome> {
    return this.client.call('r4', method, request, this.deadlineMs);
  }
}

export function credentialsOf({ code, message, reply }: Outcome): Credentials {
  if (code !== 'OK') throw new Error(`${code}: ${message}`);
  const { s3, azure } = reply.credentials;
  // A signature has the name that it stands under.
  if (azure)
    return {
      accountId: reply.account_id,
      accessKeyId: nameIn(azure.access_token),
      secretAccessKey: azure.access_token,
    };
  const { access_key_id, access_secret_key } = s3;
  return { accountId: reply.account_id, accessKeyId: access_key_id, secretAccessKey: access_secret_key };
}

export const isPassing = ({ code }: { code: string }): boolean => code === 'ABORTED' || code === 'UNAVAILABLE';

/** What a sidecar does: the same call again while the answer says that it may help. Returns every answer. */
export const persist = (call: () => Promise<Outcome>, limitMs = 60_000): Promise<Outcome[]> =>
  persistWhile(isPassing, call, limitMs);

export async function mustSucceed<A extends Answer>(call: () => Promise<A>): Promise<A> {
  const last = (await persistWhile(isPassing, call)).at(-1)!;
  if (last.code !== 'OK') throw new Error(`${last.code}: ${last.message}`);
  return last;
}
