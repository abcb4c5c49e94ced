import type { PoolRow } from '#storage/pools/pool-store';

const isLoopback = (portal: string): boolean => /^(127\.|\[::1\]|localhost:)/.test(portal);

/** Beyond loopback a host without CHAP is protected by a name that anybody can take (hard-cases I4). */
export const servesWithoutChap = ({ portals, withoutChap }: Pick<PoolRow, 'portals' | 'withoutChap'>): boolean =>
  withoutChap || portals.every(isLoopback);

export const chapNeeded = (host: string): string =>
  `host ${host} has no CHAP account, and without one its name is all that protects its volumes: give it one, ` +
  'or set TRIVET_ISCSI_WITHOUT_CHAP=1';
