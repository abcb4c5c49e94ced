import type { RouteContract } from '#admin/contract/route';
import type { Answered } from './api-client.js';

/** So long the API may wait for an operation; then it goes on by itself. */
export const PATIENCE_S = 120;

/** Of an answer 202: the operation that goes on. */
export const operationIn = ({ status, location }: Pick<Answered<RouteContract>, 'status' | 'location'>) =>
  status === 202 ? (location?.slice(location.lastIndexOf('/') + 1) ?? null) : null;

/** What to say of something that is done, or of what goes on. */
export const saidOf = (operation: string | null, done: string, underWay: string): string =>
  operation === null ? done : `${underWay}; \`trivet operation watch ${operation}\` follows it to its end`;
