/**
 * What an access class says of the life of keys: how old one gets (`rotateAfter`), how long it lasts after that (`rotateGrace`), and
 * for how long what Grant answers is good, where it ends by itself (`expiresAfter`).
 */
import { invalid } from '#platform/errors';
import type { Expiry, Rotation } from '#storage/shared/desired-state';

export const ROTATE_AFTER = 'rotateAfter';
const ROTATE_GRACE = 'rotateGrace';
export const EXPIRES_AFTER = 'expiresAfter';
export const LIFE_PARAMETERS = [ROTATE_AFTER, ROTATE_GRACE, EXPIRES_AFTER];

const UNITS = { m: 60, h: 3_600, d: 86_400 };
const SPAN = /^([1-9][0-9]{0,4})([mhd])$/;
const LEAST_AFTER = UNITS.h;
const MOST_AFTER = 3_660 * UNITS.d;
const USUAL_GRACE = UNITS.d;

/** Of a request that has no other parameters than known ones. */
export function rotationOf(parameters: Readonly<Record<string, string>>): Rotation | undefined {
  const after = seconds(parameters, ROTATE_AFTER);
  const grace = seconds(parameters, ROTATE_GRACE);
  if (after === undefined) {
    if (grace === undefined) return undefined;
    throw invalid(field(ROTATE_GRACE), `must come with ${ROTATE_AFTER}`);
  }
  bounded(ROTATE_AFTER, after);
  const graceSeconds = grace ?? Math.min(USUAL_GRACE, after / 2);
  if (graceSeconds > after / 2) throw invalid(field(ROTATE_GRACE), `must not be more than half of ${ROTATE_AFTER}`);
  return { afterSeconds: after, graceSeconds };
}

export function expiryOf(parameters: Readonly<Record<string, string>>): Expiry | undefined {
  const afterSeconds = seconds(parameters, EXPIRES_AFTER);
  if (afterSeconds === undefined) return undefined;
  bounded(EXPIRES_AFTER, afterSeconds);
  return { afterSeconds };
}

function bounded(parameter: string, after: number): void {
  if (after < LEAST_AFTER || after > MOST_AFTER) throw invalid(field(parameter), 'must be between 1h and 3660d');
}

export const field = (parameter: string): string => `parameters[${parameter}]`;

function seconds(parameters: Readonly<Record<string, string>>, parameter: string): number | undefined {
  const text = parameters[parameter];
  if (text === undefined) return undefined;
  const [, count, unit] = SPAN.exec(text) ?? [];
  if (count === undefined)
    throw invalid(field(parameter), 'must be a whole number of minutes, hours or days: 30m, 12h, 90d');
  return Number(count) * UNITS[unit as keyof typeof UNITS];
}
