import { createHash, randomBytes } from 'node:crypto';
import { StorageError } from '#platform/errors';

/** How long somebody may take before the browser's dialog. */
export const CHALLENGE_SECONDS = 300;

/** EdDSA, ES256, RS256, as COSE numbers them. */
const ALGORITHMS = [-8, -7, -257];

/** Where browsers reach the gateway: what signatures are bound to. */
export interface RelyingParty {
  /** A host name. */
  id: string;
  origin: string;
}

/** In base64url, as browsers give it. */
export interface PasskeyMade {
  id: string;
  clientData: string;
  attestation: string;
}
export interface PasskeyProof {
  id: string;
  clientData: string;
  authenticatorData: string;
  signature: string;
}

export interface KeptPasskey {
  credentialId: Buffer;
  publicKey: Buffer;
  counter: number;
}

/** What was signed is none of this challenge, origin or key; or nobody was verified; or the counter went back. */
export class PasskeyUnproved extends StorageError {
  constructor(cause?: unknown) {
    super('unauthenticated', 'this passkey opens nothing here, or took too long: begin again', {
      retry: 'never',
      cause,
    });
  }
}

/** A name over TLS, or this very host: browsers sign for nothing else. `failed_precondition` says what to set. */
export function relyingParty(publicUrl: string | undefined): RelyingParty {
  const url = publicUrl === undefined ? undefined : new URL(publicUrl);
  const isName = url !== undefined && /[a-z]/i.test(url.hostname) && !url.hostname.startsWith('[');
  if (url && isName && (url.protocol === 'https:' || url.hostname === 'localhost'))
    return { id: url.hostname, origin: url.origin };
  throw new StorageError(
    'failed_precondition',
    'passkeys are of a host name: whoever runs the appliance sets TRIVET_PUBLIC_URL to https://NAME (or http://localhost)',
  );
}

export const newChallenge = (): Buffer => randomBytes(32);
export const hashOfChallenge = (challenge: Uint8Array): Buffer => createHash('sha256').update(challenge).digest();

/** The library is loaded by whoever uses passkeys: it brings parsers of certificates along. */
const library = () => import('@simplewebauthn/server');

/** What the browser's `create` is given. Residing in the authenticator: a login begins without a name. */
export async function creationOptions(
  { id }: RelyingParty,
  challenge: Buffer,
  user: { id: string; name: string },
  known: readonly Buffer[],
): Promise<object> {
  return (await library()).generateRegistrationOptions({
    rpName: 'Trivet',
    rpID: id,
    userName: user.name,
    userDisplayName: user.name,
    userID: new Uint8Array(Buffer.from(user.id)),
    challenge: new Uint8Array(challenge),
    timeout: CHALLENGE_SECONDS * 1_000,
    attestationType: 'none',
    excludeCredentials: known.map(one => ({ id: one.toString('base64url') })),
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    supportedAlgorithmIDs: ALGORITHMS,
  });
}

/** What the browser's `get` is given: no names, so it tells nobody who has passkeys. */
export async function requestOptions({ id }: RelyingParty, challenge: Buffer): Promise<object> {
  return (await library()).generateAuthenticationOptions({
    rpID: id,
    challenge: new Uint8Array(challenge),
    timeout: CHALLENGE_SECONDS * 1_000,
    userVerification: 'required',
  });
}

/** The challenge that was signed, by its own word: whoever takes it up says whether it was given out. */
export function challengeIn(clientData: string): Buffer {
  try {
    const { challenge } = JSON.parse(Buffer.from(clientData, 'base64url').toString()) as { challenge?: unknown };
    const bytes = Buffer.from(String(challenge), 'base64url');
    if (bytes.length === 32) return bytes;
  } catch {
    // No JSON.
  }
  throw new PasskeyUnproved();
}

/**
 * The certificates of other statements are the sender's word, and the library asks addresses that stand in them for revocations:
 * nothing is connected to because a request names it. None was asked for, so browsers send none.
 */
async function requireNoCertificates(attestation: string): Promise<void> {
  const { decodeAttestationObject } = await import('@simplewebauthn/server/helpers');
  const object = decodeAttestationObject(new Uint8Array(Buffer.from(attestation, 'base64url')));
  const format = object.get('fmt');
  if (format === 'none' || (format === 'packed' && object.get('attStmt').get('x5c') === undefined)) return;
  throw new Error('an attestation with certificates, which nobody asked for');
}

/** The key that was made. `challenge`: one that was taken up. Throws PasskeyUnproved. */
export async function madePasskey(party: RelyingParty, challenge: Buffer, made: PasskeyMade): Promise<KeptPasskey> {
  const { verifyRegistrationResponse } = await library();
  const verify = async () => {
    await requireNoCertificates(made.attestation);
    return verifyRegistrationResponse({
      response: {
        id: made.id,
        rawId: made.id,
        type: 'public-key',
        response: { clientDataJSON: made.clientData, attestationObject: made.attestation },
        clientExtensionResults: {},
      },
      expectedChallenge: challenge.toString('base64url'),
      expectedOrigin: party.origin,
      expectedRPID: party.id,
      requireUserVerification: true,
      supportedAlgorithmIDs: ALGORITHMS,
    });
  };
  const verified = await verify().catch(error => {
    throw new PasskeyUnproved(error);
  });
  if (!verified.verified) throw new PasskeyUnproved();
  const { id, publicKey, counter } = verified.registrationInfo.credential;
  return { credentialId: Buffer.from(id, 'base64url'), publicKey: Buffer.from(publicKey), counter };
}

/** The counter as the authenticator says it now. `challenge`: one that was taken up. Throws PasskeyUnproved. */
export async function provedCounter(
  party: RelyingParty,
  challenge: Buffer,
  proof: PasskeyProof,
  kept: Pick<KeptPasskey, 'publicKey' | 'counter'>,
): Promise<number> {
  const { verifyAuthenticationResponse } = await library();
  const { id, clientData: clientDataJSON, authenticatorData, signature } = proof;
  const verified = await verifyAuthenticationResponse({
    response: {
      id,
      rawId: id,
      type: 'public-key',
      response: { clientDataJSON, authenticatorData, signature },
      clientExtensionResults: {},
    },
    expectedChallenge: challenge.toString('base64url'),
    expectedOrigin: party.origin,
    expectedRPID: party.id,
    credential: { id, publicKey: new Uint8Array(kept.publicKey), counter: kept.counter },
    requireUserVerification: true,
  }).catch(error => {
    throw new PasskeyUnproved(error);
  });
  if (!verified.verified) throw new PasskeyUnproved();
  return verified.authenticationInfo.newCounter;
}
