/** Keeps a cluster's certificate good: tells a gateway that its connector lives, and renews when a third of its life is over, or when it is told to. */
import { X509Certificate } from 'node:crypto';
import type { Logger } from '#platform/logging/log';
import { VERSION } from '#platform/process/boot';
import type { Gateways } from './gateways.js';
import { type Identity, type IdentityFile, newKey, ownerOf } from './identity.js';
import type { Sockets } from './sockets.js';

/** Of the life of a certificate; the rest is for gateways that are away. */
const RENEW_AFTER = 1 / 3;

export interface KeeperParts {
  file: Pick<IdentityFile, 'read' | 'write'>;
  gateways: Pick<Gateways, 'inOrder'>;
  sockets: Pick<Sockets, 'counts'>;
  log: Logger;
  /** How the connector is told apart from others of its cluster. */
  name: string;
  use(next: Identity): void;
}

/** One look. Takes over what another connector of this cluster has renewed. Rejects when the gateway does not answer. */
export async function keepIdentity(
  { file, gateways, sockets, log, name, use }: KeeperParts,
  identity: Identity,
): Promise<void> {
  const stored = file.read();
  if (stored && stored.certificate !== identity.certificate && ownerOf(stored)) return use(stored);
  const [gateway] = gateways.inOrder();
  const { renew } = await gateway!.client.report({ release: VERSION, name, connections: sockets.counts() });
  const { validFrom, validTo } = new X509Certificate(identity.certificate);
  const [from, to] = [Date.parse(validFrom), Date.parse(validTo)];
  if (!renew && Date.now() < from + (to - from) * RENEW_AFTER) return;
  const { key, request } = await newKey();
  const certificate = await gateway!.client.renew(request, VERSION);
  const next = { key, certificate, authority: identity.authority };
  file.write(next);
  use(next);
  log.info({ until: new X509Certificate(certificate).validTo }, 'the certificate of this cluster was renewed');
}
