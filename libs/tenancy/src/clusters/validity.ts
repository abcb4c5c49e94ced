/** How long certificates of clusters are good for. */
const DAY_MS = 24 * 3_600_000;

/** Of clusters and of gateways. Both renew theirs when a third of it is over. */
export const CERTIFICATE_MS = 30 * DAY_MS;
/** How far a clock may be behind: certificates begin so long before they are signed. */
export const SKEW_MS = 600_000;
/** For connectors of a cluster to replace their certificates, each by itself. */
const ROTATION_MS = 3_600_000;

/** When the certificate of a cluster was signed, by the database's clock, which also says from when on others are wanted. */
export const signedAt = (validFrom: string): Date => new Date(Date.parse(validFrom) + SKEW_MS);

/** It is to be replaced. */
export const isOutdated = (signed: Date, rotateFrom: Date | null): boolean =>
  rotateFrom !== null && signed.getTime() < rotateFrom.getTime();

/** It was to be replaced, and there was time to do it. */
export const isRotatedAway = (signed: Date, rotateFrom: Date | null, now = Date.now()): boolean =>
  isOutdated(signed, rotateFrom) && now > rotateFrom!.getTime() + ROTATION_MS;
