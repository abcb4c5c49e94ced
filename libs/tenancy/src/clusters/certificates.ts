import 'reflect-metadata';
import { type webcrypto, X509Certificate } from 'node:crypto';
import * as x509 from '@peculiar/x509';
import { invalid, StorageError } from '#platform/errors';
import { CERTIFICATE_MS, SKEW_MS } from '#tenancy/clusters/validity';

/** X.509 for Authority, which loads this when it is first needed: most appliances have no clusters. */
const CURVE = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const DAY_MS = 24 * 3_600_000;
const AUTHORITY_DAYS = 20 * 365;
const USES = { server: '1.3.6.1.5.5.7.3.1', client: '1.3.6.1.5.5.7.3.2' };
const CURVES = ['P-256', 'P-384'];

export interface SignedCertificate {
  /** PEM. */
  certificate: string;
  /** Hexadecimal, as Node shows it. */
  serial: string;
  until: Date;
}

export interface ServerPair {
  /** With the authority's behind it, PEM: a client that joins knows that one by its fingerprint alone. */
  cert: string;
  key: string;
  until: Date;
}

/** An authority whose key is at hand. */
export interface OpenAuthority {
  certificate: x509.X509Certificate;
  key: webcrypto.CryptoKey;
}

/** As text, which holds the private key. */
export async function makeAuthority(): Promise<string> {
  const keys = await crypto.subtle.generateKey(CURVE, true, ['sign', 'verify']);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: [{ O: ['Trivet'] }, { CN: ['Trivet clusters'] }],
    notBefore: new Date(Date.now() - SKEW_MS),
    notAfter: new Date(Date.now() + AUTHORITY_DAYS * DAY_MS),
    keys,
    signingAlgorithm: CURVE,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
    ],
  });
  return JSON.stringify({ certificate: certificate.toString('pem'), key: await privatePem(keys) });
}

/** What `makeAuthority` gave. */
export async function openAuthority(text: string): Promise<OpenAuthority> {
  const { certificate, key } = JSON.parse(text) as { certificate: string; key: string };
  const [raw] = x509.PemConverter.decode(key);
  return {
    certificate: new x509.X509Certificate(certificate),
    key: await crypto.subtle.importKey('pkcs8', raw!, CURVE, false, ['sign']),
  };
}

/** For the key of a PKCS #10 request. Of what else it asks for nothing is taken over. `invalid_argument`. */
export async function signClient(
  authority: OpenAuthority,
  request: string,
  { organization, commonName }: { organization: string; commonName: string },
  now = Date.now(),
): Promise<SignedCertificate> {
  const subject: x509.JsonName = [{ O: [organization] }, { CN: [commonName] }];
  return sign(authority, { publicKey: await keyOf(request), subject, use: 'client', now });
}

/** A pair of its own for each gateway. */
export async function makeServerPair(authority: OpenAuthority, name: string): Promise<ServerPair> {
  const keys = await crypto.subtle.generateKey(CURVE, true, ['sign', 'verify']);
  const names = new x509.SubjectAlternativeNameExtension([{ type: 'dns', value: name }]);
  const subject = [{ CN: [name] }];
  const { certificate, until } = await sign(authority, { publicKey: keys.publicKey, subject, use: 'server', names });
  return { cert: `${certificate}\n${authority.certificate.toString('pem')}`, key: await privatePem(keys), until };
}

interface ToSign {
  publicKey: webcrypto.CryptoKey | x509.PublicKey;
  subject: x509.JsonName;
  /** Keeps the two apart: a cluster's certificate is none of a gateway. */
  use: keyof typeof USES;
  names?: x509.Extension;
  now?: number;
}

async function sign(
  authority: OpenAuthority,
  { publicKey, subject, use, names, now = Date.now() }: ToSign,
): Promise<SignedCertificate> {
  const made = await x509.X509CertificateGenerator.create({
    subject,
    issuer: authority.certificate.subject,
    notBefore: new Date(now - SKEW_MS),
    notAfter: new Date(now + CERTIFICATE_MS),
    signingKey: authority.key,
    publicKey,
    signingAlgorithm: CURVE,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([USES[use]], true),
      ...(names ? [names] : []),
    ],
  });
  const certificate = made.toString('pem');
  return { certificate, serial: new X509Certificate(certificate).serialNumber, until: made.notAfter };
}

/** Of a request whose sender has the private key. */
async function keyOf(request: string): Promise<x509.PublicKey> {
  let parsed: x509.Pkcs10CertificateRequest;
  let isOfSender: boolean;
  try {
    parsed = new x509.Pkcs10CertificateRequest(request);
    isOfSender = await parsed.verify();
  } catch (cause) {
    const message = 'request: expected a certificate request (PKCS #10, PEM)';
    throw new StorageError('invalid_argument', message, { cause, field: 'request' });
  }
  const { name, namedCurve } = parsed.publicKey.algorithm as webcrypto.EcKeyAlgorithm;
  if (name !== 'ECDSA' || !CURVES.includes(namedCurve))
    throw invalid('request', `expected a key of ${CURVES.join(', ')}`);
  if (!isOfSender) throw invalid('request', 'it is not signed by the key that it is for');
  return parsed.publicKey;
}

const privatePem = async ({ privateKey }: webcrypto.CryptoKeyPair): Promise<string> =>
  x509.PemConverter.encode(await crypto.subtle.exportKey('pkcs8', privateKey), 'PRIVATE KEY');
