import { randomUUID, X509Certificate } from 'node:crypto';
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { isIP, SocketAddress } from 'node:net';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { ConfigError } from '#platform/config/config';
import { createLogger } from '#platform/logging/log';
import { makeFolders } from '#platform/make-folders';
import { makeSelfSigned } from './self-signed.js';

const log = createLogger('tls');

/** What node:https takes. */
export interface KeyPair {
  cert: string;
  key: string;
}

/** Where the certificate comes from; `read` gives what is there now, and throws when it cannot be used. */
export interface CertificateSource {
  read(): KeyPair;
  /** For the log and for people. */
  description: string;
}

export interface CertificateSettings {
  certFile?: string;
  keyFile?: string;
  /** TRIVET_HOME. */
  home: string;
  /** Names of this gateway beside those of the host; one that is kept without them all is made anew. */
  names: readonly string[];
}

/** The configured certificate, else one made at the first start and kept in the home. Throws ConfigError. */
export async function certificateSource(settings: CertificateSettings): Promise<CertificateSource> {
  const { certFile, keyFile } = settings;
  if (certFile === undefined && keyFile === undefined) return keptSource(settings);
  if (certFile === undefined) throw new ConfigError('TRIVET_TLS_CERT_FILE: required with TRIVET_TLS_KEY_FILE');
  if (keyFile === undefined) throw new ConfigError('TRIVET_TLS_KEY_FILE: required with TRIVET_TLS_CERT_FILE');
  const source = {
    description: certFile,
    read: () => checked({ cert: text('TRIVET_TLS_CERT_FILE', certFile), key: text('TRIVET_TLS_KEY_FILE', keyFile) }),
  };
  source.read();
  return source;
}

function text(variable: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new ConfigError(`${variable}: cannot read ${path}: ${(error as NodeJS.ErrnoException).code ?? 'error'}`);
  }
}

function checked(pair: KeyPair): KeyPair {
  try {
    createSecureContext(pair);
    return pair;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'not PEM';
    throw new ConfigError(`TRIVET_TLS_CERT_FILE: not a certificate with the key of TRIVET_TLS_KEY_FILE (${code})`);
  }
}

/** A certificate that ends sooner is replaced at start. */
const RENEW_MS = 30 * 24 * 3_600_000;

/**
 * Certificate and key in one file, so that gateways which start together in one home agree on both: who links it first has
 * made it. `certificate.pem` beside it is for clients that want to trust it.
 */
async function keptSource({ home, names }: CertificateSettings): Promise<CertificateSource> {
  const folder = join(home, 'tls');
  const file = join(folder, 'server.pem');
  const read = () => split(readFileSync(file, 'utf8'));
  try {
    makeFolders(folder, 0o700);
    if (!isGood(read, names)) await make(folder, file, names, read);
    return { read, description: file };
  } catch (error) {
    if (!isUnwritable(error)) throw error;
    log.warn(
      { folder },
      'cannot keep a certificate here, so clients see another one after each start; set TRIVET_TLS_CERT_FILE',
    );
    const pair = split(await makeSelfSigned(names));
    return { read: () => pair, description: 'made for this process' };
  }
}

async function make(folder: string, file: string, names: readonly string[], read: () => KeyPair): Promise<void> {
  // Those of the old one stay: another gateway of this home, with settings of its own, may be reached by them.
  const pem = await makeSelfSigned([...names, ...namesOf(read)]);
  const temporary = join(folder, `.${randomUUID()}.pem`);
  writeFileSync(temporary, pem, { mode: 0o600 });
  try {
    if (publish(temporary, file, () => isGood(read, names))) log.info({ file }, 'made a certificate');
  } finally {
    rmSync(temporary, { force: true });
  }
  writeFileSync(join(folder, 'certificate.pem'), read().cert, { mode: 0o644 });
}

/** False: somebody else was first. */
function publish(temporary: string, file: string, isGoodNow: () => boolean): boolean {
  try {
    linkSync(temporary, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    if (isGoodNow()) return false;
    renameSync(temporary, file);
  }
  return true;
}

function isGood(read: () => KeyPair, names: readonly string[]): boolean {
  try {
    const x509 = new X509Certificate(checked(read()).cert);
    const lasts = x509.validToDate.getTime() > Date.now() + RENEW_MS;
    return lasts && names.every(name => (isIP(name) === 0 ? x509.checkHost(name) : x509.checkIP(name)) !== undefined);
  } catch {
    return false;
  }
}

function namesOf(read: () => KeyPair): string[] {
  try {
    const { subjectAltName = '' } = new X509Certificate(read().cert);
    const names = [...subjectAltName.matchAll(/(?:DNS|IP Address):([^,\s"]+)/g)].map(([, name]) => name as string);
    // OpenSSL writes out every zero.
    return names.map(name => (isIP(name) === 6 ? new SocketAddress({ address: name, family: 'ipv6' }).address : name));
  } catch {
    return [];
  }
}

function split(pem: string): KeyPair {
  const at = pem.indexOf('-----BEGIN PRIVATE KEY-----');
  return { cert: pem.slice(0, at), key: pem.slice(at) };
}

const isUnwritable = (error: unknown): boolean =>
  ['EACCES', 'EROFS', 'EPERM', 'ENOSPC', 'ENOTDIR', 'ENOENT'].includes((error as NodeJS.ErrnoException).code ?? '');
