import 'reflect-metadata';
import { randomUUID, webcrypto, X509Certificate } from 'node:crypto';
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const CURVE = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
/** PEM blocks: key, certificate, authority. */
const BLOCK = /-----BEGIN [A-Z ]+-----[^-]+-----END [A-Z ]+-----/g;

/** All PEM. */
export interface Identity {
  key: string;
  certificate: string;
  authority: string;
}

export interface NewKey {
  key: string;
  /** PKCS #10. */
  request: string;
}

/** The key never leaves the cluster. */
export async function newKey(): Promise<NewKey> {
  const { PemConverter, Pkcs10CertificateRequestGenerator } = await import('@peculiar/x509');
  const keys = await webcrypto.subtle.generateKey(CURVE, true, ['sign', 'verify']);
  const made = await Pkcs10CertificateRequestGenerator.create({ name: 'CN=connector', keys, signingAlgorithm: CURVE });
  const key = PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY');
  return { key, request: made.toString('pem') };
}

/** One file, so that key and certificate always fit. Two connectors may share it. */
export class IdentityFile {
  readonly path: string;
  private readonly joining: string;

  constructor(home: string) {
    this.path = join(home, 'connector', 'identity.pem');
    this.joining = join(home, 'connector', 'joining.pem');
  }

  /**
   * What to join with. It is kept until there is an identity: whoever did not hear the answer that used up its join token is let
   * in again for this key alone.
   */
  async keyToJoin(): Promise<NewKey> {
    const kept = readIfThere(this.joining);
    const [key, request] = kept?.match(BLOCK) ?? [];
    if (key !== undefined && request !== undefined) return { key, request };
    const made = await newKey();
    // Written whole or not at all, and never over the one that another connector has just asked for.
    this.writeBlocks([made.key, made.request], temporary => {
      if (kept !== undefined) return renameSync(temporary, this.joining);
      linkUnlessThere(temporary, this.joining);
    });
    return kept === undefined ? this.keyToJoin() : made;
  }

  /** undefined: there is none yet. */
  read(): Identity | undefined {
    const text = readIfThere(this.path);
    if (text === undefined) return undefined;
    const [key, certificate, authority] = text.match(BLOCK) ?? [];
    if (key === undefined || certificate === undefined || authority === undefined)
      throw new Error(`${this.path} is not a key with its certificate and authority`);
    return { key, certificate, authority };
  }

  write({ key, certificate, authority }: Identity): void {
    this.writeBlocks([key, certificate, authority], temporary => renameSync(temporary, this.path));
    rmSync(this.joining, { force: true });
  }

  private writeBlocks(blocks: readonly string[], place: (temporary: string) => void): void {
    mkdirSync(dirname(this.path), { recursive: true, mode: 0o700 });
    const temporary = join(dirname(this.path), `.${randomUUID()}.pem`);
    try {
      writeFileSync(temporary, `${blocks.join('\n')}\n`, { mode: 0o600, flush: true });
      place(temporary);
    } finally {
      rmSync(temporary, { force: true });
    }
  }
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function linkUnlessThere(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/** The tenant whose endpoints it may ask for; undefined: its certificate has ended. */
export function ownerOf({ certificate }: Identity): { tenantId: string } | undefined {
  const { subject, validTo } = new X509Certificate(certificate);
  const tenantId = /^O=(.+)$/m.exec(subject)?.[1];
  return tenantId !== undefined && Date.parse(validTo) > Date.now() ? { tenantId } : undefined;
}
