import { readFileSync } from 'node:fs';
import type { MetadataService } from '#cbt/sessions-api';
import { type Config, ConfigError } from '#platform/config/config';
import { readersHost } from './certificate-names.js';

const KEEP_MS = 5_000;

/** The door for changed blocks, as it is served: what openCbtListeners gives. */
export interface ServedDoor {
  port: number;
  /** PEM of the certificate that is served now. */
  caCert(): string;
}

type Settings = Pick<
  Config,
  'TRIVET_CBT_LISTEN' | 'TRIVET_CBT_PUBLIC_ADDRESS' | 'TRIVET_TLS_CA_FILE' | 'TRIVET_CSI_DRIVER_NAME'
>;

/**
 * What sessions tell their readers about the door for changed blocks. Its certificate is trusted by itself, unless its CA
 * is configured. Asked again after a while, since both may be renewed.
 */
export function metadataService(config: Settings, door: ServedDoor): () => MetadataService {
  const address = config.TRIVET_CBT_PUBLIC_ADDRESS ?? addressOf(readersHost(config), door.port);
  const read = (): string => {
    const file = config.TRIVET_TLS_CA_FILE;
    if (file === undefined) return door.caCert();
    try {
      return readFileSync(file, 'utf8');
    } catch (error) {
      throw new ConfigError(`TRIVET_TLS_CA_FILE: cannot read ${file}: ${(error as NodeJS.ErrnoException).code}`);
    }
  };
  let kept = { caCert: read(), until: performance.now() + KEEP_MS };
  return () => {
    if (performance.now() >= kept.until) kept = { caCert: read(), until: performance.now() + KEEP_MS };
    return { address, caCert: kept.caCert, drivers: [config.TRIVET_CSI_DRIVER_NAME] };
  };
}

const addressOf = (host: string, port: number): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
