/** The fake store with the traits of Azure Blob: no keys, but signatures under names at the buckets, of which changes are seen late. */
import type {
  Expected,
  Grant,
  GrantTarget,
  IssuedKey,
  Principal,
  PrincipalRef,
  Right,
  StoreTraits,
} from '#backends/object-backend';
import type { LeaseSignal } from '#platform/lease-signal';
import { answer, done, FakeObjectBackend } from '#test/fakes/object/fake-object-backend';
import { lookAt, modesSeen } from '#test/fakes/object/fake-rights';

export const FAKE_SIGNING_TRAITS: StoreTraits = { signs: true, late: true };

/** As the fake signs; whoever has it is let in while the name stands. */
export const nameIn = (token: string): string => new URL(token).searchParams.get('si')!;

/** One for each name. */
const spelled = (grants: readonly Grant[]): Grant[] =>
  grants.flatMap(({ uid, mode, signedAs = [uid] }) =>
    mode === 'revoked' ? [] : signedAs.map(name => ({ uid: name, mode })),
  );

export class FakeSigningBackend extends FakeObjectBackend {
  override traits(): StoreTraits {
    return FAKE_SIGNING_TRAITS;
  }

  override signAccess(bucketName: string, signedAs: string): string {
    return `fake://store/${bucketName}?si=${signedAs}`;
  }

  override putPrincipal({ uid }: Principal, signal: LeaseSignal): Promise<void> {
    return this.call({ method: 'putPrincipal', resource: uid, signal, plan: () => answer(undefined) });
  }

  override async holdsPrincipal({ token }: Principal): Promise<boolean> {
    return token !== undefined;
  }

  override removeKey({ uid }: PrincipalRef, signal: LeaseSignal): Promise<void> {
    return this.call({ method: 'removeKey', resource: uid, signal, plan: () => answer(undefined) });
  }

  override removePrincipal(uid: string, signal: LeaseSignal): Promise<void> {
    return this.call({ method: 'removePrincipal', resource: uid, signal, plan: () => answer(undefined) });
  }

  override putGrants(bucket: GrantTarget, grants: readonly Grant[], signal: LeaseSignal): Promise<void> {
    return super.putGrants(bucket, spelled(grants), signal);
  }

  override holdsGrants(bucket: GrantTarget, grants: readonly Grant[], signal: AbortSignal): Promise<boolean> {
    return super.holdsGrants(bucket, spelled(grants), signal);
  }

  protected override grantsEffect(name: string, grants: readonly Grant[]) {
    return done({ type: 'putNames', name, grants });
  }

  override isInForce({ token }: IssuedKey, expected: Expected, signal: LeaseSignal): Promise<boolean> {
    const name = token === undefined ? undefined : nameIn(token);
    const plan = () => {
      if (name === undefined) return answer(expected === 'no key');
      lookAt(this.state, name);
      const bucket = new URL(token!).pathname.slice(1);
      const rights: readonly Right[] = expected === 'no key' ? [{ bucket, mode: 'revoked' }] : expected;
      const [right] = rights.filter(one => one.bucket === bucket);
      const modes = this.inspect(bucket).state === 'absent' ? [] : modesSeen(this.state, name, bucket);
      return answer(
        right === undefined || (right.mode === 'revoked' ? modes.length === 0 : modes.includes(right.mode)),
      );
    };
    return this.call({ method: 'isInForce', resource: name ?? '', signal, plan });
  }
}
