import { isIP } from 'node:net';
import { hostname } from 'node:os';

const VALID_DAYS = 10 * 365;
const DAY_MS = 24 * 3_600_000;
const CURVE = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** Who listens there says nothing about where clients reach it. */
export const ANYWHERE: ReadonlySet<string> = new Set(['0.0.0.0', '::']);

/** A certificate and its key as PEM, for this host's names, loopback and `names`. */
export async function makeSelfSigned(names: readonly string[]): Promise<string> {
  // Loaded when it is needed: once in the life of a home.
  await import('reflect-metadata');
  const x509 = await import('@peculiar/x509');
  const keys = await crypto.subtle.generateKey(CURVE, true, ['sign', 'verify']);
  const subjects = [...new Set(['localhost', '127.0.0.1', '::1', hostname(), ...names])];
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: [{ O: ['Trivet'] }, { CN: [hostname()] }],
    notBefore: new Date(Date.now() - DAY_MS),
    notAfter: new Date(Date.now() + VALID_DAYS * DAY_MS),
    keys,
    signingAlgorithm: CURVE,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension(['1.3.6.1.5.5.7.3.1']),
      new x509.SubjectAlternativeNameExtension(
        subjects
          .filter(name => !ANYWHERE.has(name))
          .map(value => ({ type: isIP(value) === 0 ? 'dns' : 'ip', value }) as const),
      ),
    ],
  });
  const key = Buffer.from(await crypto.subtle.exportKey('pkcs8', keys.privateKey)).toString('base64');
  const lines = key.replace(/.{64}/g, '$&\n');
  return `${certificate.toString('pem')}\n-----BEGIN PRIVATE KEY-----\n${lines.trimEnd()}\n-----END PRIVATE KEY-----\n`;
}
