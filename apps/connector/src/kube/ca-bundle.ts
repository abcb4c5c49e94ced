import { X509Certificate } from 'node:crypto';

const BLOCK = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** What is no certificate counts for nothing: somebody else may have written it. */
export function certificatesIn(pem: string): X509Certificate[] {
  return (pem.match(BLOCK) ?? []).flatMap(block => {
    try {
      return [new X509Certificate(block)];
    } catch {
      return [];
    }
  });
}

/** Whether who trusts `ca` takes this chain. */
export function isTrusted(chain: string, ca: string): boolean {
  const authorities = certificatesIn(ca);
  return certificatesIn(chain).some(shown =>
    authorities.some(
      authority =>
        authority.fingerprint256 === shown.fingerprint256 ||
        (shown.checkIssued(authority) && shown.verify(authority.publicKey)),
    ),
  );
}

/** PEM of all, each once. */
export function union(...bundles: readonly string[]): string {
  const [first, ...others] = bundles;
  const known = new Set(certificatesIn(first!).map(({ fingerprint256 }) => fingerprint256));
  const more = others.flatMap(certificatesIn).filter(({ fingerprint256 }) => {
    const isNew = !known.has(fingerprint256);
    known.add(fingerprint256);
    return isNew;
  });
  if (more.length === 0) return first!;
  return [first!.trimEnd(), ...more.map(certificate => certificate.toString().trimEnd()), ''].join('\n');
}

/** What readers are told to trust, and until when each certificate that is not ours any more is among it. */
export interface Bundle {
  pem: string;
  /** FINGERPRINT=TIME, with commas; absent: none is. */
  retiring?: string;
}

/**
 * Ours, and what was published before for as long as somebody may have read that alone. All of it follows from what is published, so
 * whoever publishes next goes on with it.
 */
export function bundleOf(own: string, published: Partial<Bundle>, now: number, overlapMs: number): Bundle {
  const until = new Map(
    (published.retiring ?? '').split(',').map(entry => entry.split('=') as [string, string | undefined]),
  );
  const ours = new Set(certificatesIn(own).map(({ fingerprint256 }) => fingerprint256));
  const kept: { certificate: X509Certificate; end: number }[] = [];
  for (const certificate of certificatesIn(published.pem ?? '')) {
    const { fingerprint256, validTo } = certificate;
    const told = Date.parse(until.get(fingerprint256) ?? '');
    const end = Number.isNaN(told) ? now + overlapMs : Math.min(told, now + overlapMs);
    if (!ours.has(fingerprint256) && end > now && Date.parse(validTo) > now) kept.push({ certificate, end });
  }
  if (kept.length === 0) return { pem: own };
  return {
    pem: union(own, ...kept.map(({ certificate }) => certificate.toString())),
    retiring: kept.map(({ certificate, end }) => `${certificate.fingerprint256}=${new Date(end).toISOString()}`).join(),
  };
}
