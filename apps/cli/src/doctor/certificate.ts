import { connect } from 'node:tls';
import { portalAddress } from '../csp/portal-address.js';
import { type Finding, fail, findings, ok, warn } from './check.js';

const DAY_MS = 24 * 3_600_000;
const SOON_DAYS = 30;
const CONNECT_MS = 5_000;

/** @param own it comes from TRIVET_TLS_CERT_FILE; else the gateway made it, and makes another one at a start */
export function certificateFinding(validTo: Date, own: boolean, now = Date.now()): Finding {
  const days = Math.floor((validTo.getTime() - now) / DAY_MS);
  const remedy = own
    ? 'renew TRIVET_TLS_CERT_FILE; the gateway takes it over within 30 s'
    : 'restart the gateway: it makes another one';
  if (days < 0) return fail('certificate', `has ended ${validTo.toISOString()}`, remedy);
  if (days < SOON_DAYS) return warn('certificate', `ends in ${days} days`, remedy);
  return ok('certificate', `good for ${days} days`);
}

/** What the gateway serves now, whoever signed it. */
export function checkCertificate(listen: string, own: boolean): Promise<Finding[]> {
  return findings('certificate', 'see the log of the gateway', async () => {
    const validTo = await new Promise<Date>((resolve, reject) => {
      // Looked at, not trusted.
      const socket = connect({ ...portalAddress(listen), rejectUnauthorized: false });
      socket.setTimeout(CONNECT_MS, () => socket.destroy(new Error('no answer')));
      socket.once('error', reject);
      socket.once('secureConnect', () => {
        const certificate = socket.getPeerX509Certificate();
        socket.destroy();
        if (certificate === undefined) reject(new Error('none is served'));
        else resolve(certificate.validToDate);
      });
    });
    return [certificateFinding(validTo, own)];
  });
}
