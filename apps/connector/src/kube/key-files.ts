import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { type Config, ConfigError } from '#platform/config/config';
import type { Logger } from '#platform/logging/log';

export interface KeyFile {
  cert: string;
  key: string;
  /** Whom clients are to trust. */
  ca: string;
}

const LOOK_MS = 30_000;

/** The certificate that a Secret puts into the pod. A renewed one is taken over while everything runs. */
export class KeyFiles {
  private readonly followers: ((pair: KeyFile) => void)[] = [];
  private timer: NodeJS.Timeout | undefined;

  private constructor(
    private readonly config: Config,
    public current: KeyFile,
  ) {}

  /** Throws ConfigError. */
  static open(config: Config): KeyFiles {
    return new KeyFiles(config, read(config));
  }

  follow(log: Logger): void {
    this.timer = setInterval(() => {
      try {
        const next = read(this.config);
        if (JSON.stringify(next) === JSON.stringify(this.current)) return;
        this.current = next;
        for (const tell of this.followers) tell(next);
        log.info('another certificate is used from now on');
      } catch (error) {
        log.warn({ err: error }, 'the certificate cannot be read; the one before goes on');
      }
    }, LOOK_MS);
  }

  onChange(tell: (pair: KeyFile) => void): void {
    this.followers.push(tell);
  }

  close(): void {
    clearInterval(this.timer);
  }
}

function read(config: Config): KeyFile {
  const cert = text(config, 'TRIVET_TLS_CERT_FILE');
  const pair = {
    cert,
    key: text(config, 'TRIVET_TLS_KEY_FILE'),
    ca: config.TRIVET_TLS_CA_FILE ? text(config, 'TRIVET_TLS_CA_FILE') : cert,
  };
  try {
    createSecureContext(pair);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'not PEM';
    throw new ConfigError(`TRIVET_TLS_CERT_FILE: not a certificate with the key of TRIVET_TLS_KEY_FILE (${code})`);
  }
  return pair;
}

function text(config: Config, name: 'TRIVET_TLS_CERT_FILE' | 'TRIVET_TLS_KEY_FILE' | 'TRIVET_TLS_CA_FILE'): string {
  const path = config[name];
  if (path === undefined) throw new ConfigError(`${name}: required with TRIVET_KUBERNETES, but not set`);
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new ConfigError(`${name}: cannot read ${path}: ${(error as NodeJS.ErrnoException).code ?? 'error'}`);
  }
}
