import { z } from 'zod';
import { text } from '#csp/request-body';
import { invalid } from '#platform/errors';
import type { ConfigValue, VolumeConfig } from '#storage/block/block-storage';

/**
 * `config` of volumes, snapshots and groups: a flat map. The driver writes every StorageClass parameter into it, as text,
 * and prints every value of a reply into the persistent volume; so values are scalars, echoed as they came
 * (docs/callers.md#volumes-and-their-config). What of it Trivet acts on is read by the functions below.
 */
const MAX_KEYS = 256;
const MAX_KEY = 253;
const MAX_VALUE = 4_096;

const string = text(MAX_VALUE, { lines: true });
const key = text(MAX_KEY).min(1, 'must not be empty');

/** Why this may not stand in a flat map. */
function faultOf(name: string, value: unknown): string | undefined {
  const badKey = key.safeParse(name).error?.issues[0]?.message;
  if (badKey !== undefined) return `its key ${badKey}`;
  if (typeof value === 'boolean') return undefined;
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : 'is too large for a number';
  if (typeof value === 'string') return string.safeParse(value).error?.issues[0]?.message;
  return 'must be text, a number, true or false';
}

const isMap = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The object as it came: no key is lost or takes a meaning by being copied. */
export const config = z
  .custom<VolumeConfig>(isMap, 'expected an object')
  .superRefine((map, context) => {
    const entries = Object.entries(map);
    if (entries.length > MAX_KEYS) context.addIssue(`must not have more than ${MAX_KEYS} keys`);
    for (const [name, value] of entries) {
      const message = faultOf(name, value);
      if (message !== undefined) context.addIssue({ code: 'custom', message, path: [name.slice(0, 60)] });
    }
  })
  .nullish()
  .transform((map): VolumeConfig => map ?? {});

const shown = (given: ConfigValue): string => (typeof given === 'string' ? `'${given.slice(0, 60)}'` : String(given));

export function booleanOf(map: VolumeConfig, key: string): boolean | undefined {
  const given = entryOf(map, key);
  if (given === undefined || typeof given === 'boolean') return given;
  if (given === 'true') return true;
  if (given === 'false') return false;
  throw invalid(`config.${key}`, `must be true or false, got ${shown(given)}`);
}

/** -1: no limit. */
export function limitOf(map: VolumeConfig, key: string): number | undefined {
  const given = entryOf(map, key);
  if (given === undefined) return undefined;
  const number = typeof given === 'string' && /^-?\d{1,15}$/.test(given) ? Number(given) : given;
  if (typeof number === 'number' && Number.isSafeInteger(number) && (number === -1 || number > 0)) return number;
  throw invalid(`config.${key}`, `must be a positive whole number, or -1 for no limit, got ${shown(given)}`);
}

export function textOf(map: VolumeConfig, key: string): string | undefined {
  const given = entryOf(map, key);
  if (given === undefined || typeof given === 'string') return given;
  throw invalid(`config.${key}`, `must be text, got ${shown(given)}`);
}

/** Of a volume that says nfs the driver ends no publication and grows no file system (docs/callers.md#volumes-and-their-config). */
export function requireBlock(map: VolumeConfig): void {
  const given = entryOf(map, 'access_protocol');
  if (typeof given === 'string' && given.toLowerCase() === 'nfs')
    throw invalid('config.access_protocol', 'nfs is for file volumes; this backend makes block volumes');
}

/** As the driver writes it, or as a StorageClass does (destroyOnDelete): whoever calls without the driver may do so too. */
function entryOf(map: VolumeConfig, key: string): ConfigValue | undefined {
  const camel = key.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
  const [given, another] = [...new Set([key, camel])].filter(name => Object.hasOwn(map, name));
  if (given === undefined) return undefined;
  if (another !== undefined && String(map[another]) !== String(map[given]))
    throw invalid(`config.${another}`, `says something else than ${given}`);
  return map[given];
}
