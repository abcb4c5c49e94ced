import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { isoCBOR } from '@simplewebauthn/server/helpers';

/** As the helpers of the library write CBOR. */
type Statement = Map<string, unknown>;

const sha256 = (bytes: Buffer | string): Buffer => createHash('sha256').update(bytes).digest();
const base64url = (bytes: Buffer): string => bytes.toString('base64url');

/** Flags of authenticator data: somebody was there, was verified, a key comes along. */
const [PRESENT, VERIFIED, WITH_KEY] = [0x01, 0x04, 0x40];

interface Signing {
  challenge: string;
  origin: string;
  host?: string;
  verified?: boolean;
  counter?: number;
  /** Absent: there is none, as browsers are asked for. `signed`: by the passkey itself. */
  attestation?: { format: string; statement: Statement; signed?: boolean };
}

/** An authenticator of WebAuthn with one ES256 passkey, which does what it is told, right or wrong. */
export class TestAuthenticator {
  readonly id = randomBytes(32);
  counter = 0;
  private readonly keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });

  /** What a browser sends on after `navigator.credentials.create`. */
  make(given: Signing) {
    const { x, y } = this.keys.publicKey.export({ format: 'jwk' }) as { x: string; y: string };
    // COSE: EC2, ES256, P-256.
    const key = Buffer.concat([
      Buffer.from('a5010203262001215820', 'hex'),
      Buffer.from(x, 'base64url'),
      Buffer.from('225820', 'hex'),
      Buffer.from(y, 'base64url'),
    ]);
    const length = Buffer.from([0, this.id.length]);
    const data = Buffer.concat([this.data(given, WITH_KEY), Buffer.alloc(16), length, this.id, key]);
    const clientData = this.clientData('webauthn.create', given);
    const { format, statement, signed } = given.attestation ?? { format: 'none', statement: new Map() };
    if (signed) {
      const bytes = Buffer.concat([data, sha256(Buffer.from(clientData, 'base64url'))]);
      statement.set('alg', -7).set('sig', new Uint8Array(sign('sha256', bytes, this.keys.privateKey)));
    }
    const attestation = new Map<string, unknown>([
      ['fmt', format],
      ['attStmt', statement],
      ['authData', new Uint8Array(data)],
    ]);
    return {
      id: base64url(this.id),
      clientData,
      attestation: base64url(Buffer.from(isoCBOR.encode(attestation as never))),
    };
  }

  /** What a browser sends on after `navigator.credentials.get`. */
  prove(given: Signing) {
    this.counter = given.counter ?? this.counter + 1;
    const [data, clientData] = [this.data(given), this.clientData('webauthn.get', given)];
    const signed = Buffer.concat([data, sha256(Buffer.from(clientData, 'base64url'))]);
    return {
      id: base64url(this.id),
      clientData,
      authenticatorData: base64url(data),
      signature: base64url(sign('sha256', signed, this.keys.privateKey)),
    };
  }

  private data({ origin, host = new URL(origin).hostname, verified = true }: Signing, more = 0): Buffer {
    const counter = Buffer.alloc(4);
    counter.writeUInt32BE(this.counter);
    return Buffer.concat([sha256(host), Buffer.from([PRESENT | (verified ? VERIFIED : 0) | more]), counter]);
  }

  private clientData(type: string, { challenge, origin }: Signing): string {
    return base64url(Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false })));
  }
}
