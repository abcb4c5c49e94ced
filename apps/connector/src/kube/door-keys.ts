import { X509Certificate } from 'node:crypto';
import { certificatesIn, isTrusted, union } from './ca-bundle.js';
import type { KeyFile } from './key-files.js';

/** Before the end of a certificate. */
const SOON_MS = 60_000;

/** Or nearly. */
export const isOver = (cert: string, now: number): boolean =>
  Date.parse(new X509Certificate(cert).validTo) - SOON_MS <= now;

/**
 * What the door shows. A certificate of an authority that readers know is shown at once; one of another when that was published for `overlapMs`,
 * so that nobody is left who has heard of the old one alone. Until then the one before goes on.
 */
export class DoorKeys {
  private next: KeyFile | undefined;
  /** Authorities that are published, by fingerprint, and since when. */
  private told: Map<string, { pem: string; since: number }>;
  private tell: (pair: KeyFile) => void = () => {};

  constructor(
    private served: KeyFile,
    private readonly overlapMs: number,
    /** For the next start. */
    private readonly keep: (pair: KeyFile) => void = () => {},
  ) {
    this.told = this.seen(served.ca, Number.NEGATIVE_INFINITY, new Map());
  }

  get current(): KeyFile {
    return this.served;
  }

  /** Whom readers are to trust. */
  get ca(): string {
    return this.next ? union(this.served.ca, this.next.ca) : this.served.ca;
  }

  onChange(tell: (pair: KeyFile) => void): void {
    this.tell = tell;
  }

  /** There is another certificate. */
  use(pair: KeyFile, now: number): void {
    this.next = pair;
    this.look(now);
  }

  /** @param published whom readers were told to trust just now; absent: they could not be told anything */
  look(now: number, published?: string): void {
    if (published !== undefined) this.told = this.seen(published, now, this.told);
    const { next } = this;
    if (!next) return;
    const known = [...this.told.values()].filter(({ since }) => since + this.overlapMs <= now);
    // Nobody trusts one that is over, whatever was published.
    if (!isOver(this.served.cert, now) && !isTrusted(next.cert, known.map(({ pem }) => pem).join('\n'))) return;
    this.next = undefined;
    this.served = next;
    this.keep(next);
    this.tell(next);
  }

  private seen(ca: string, now: number, before: DoorKeys['told']): DoorKeys['told'] {
    return new Map(
      certificatesIn(ca).map(certificate => {
        const { fingerprint256 } = certificate;
        return [fingerprint256, { pem: certificate.toString(), since: before.get(fingerprint256)?.since ?? now }];
      }),
    );
  }
}
