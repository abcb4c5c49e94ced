import { textOf } from '#csp/config-values';
import type { CreateVolumeBody } from '#csp/volume-requests';
import { invalid, isStorageError } from '#platform/errors';

/** Keys of `config` that name the volume that the new one is made of, or is. */
const CLONES = ['clone_of', 'import_vol_as_clone'] as const;
const IMPORT = 'import_volume_name';

export interface NamedVolume {
  key: (typeof CLONES)[number] | typeof IMPORT;
  name: string;
}

/** A StorageClass names volumes where CSI has ids. */
export function namedVolumeOf(body: CreateVolumeBody): NamedVolume | undefined {
  const [named, another] = [...CLONES, IMPORT].flatMap(key => {
    const name = textOf(body.config, key);
    return name ? [{ key, name } as NamedVolume] : [];
  });
  if (!named) return undefined;
  if (another) throw invalid(`config.${another.key}`, `cannot be given together with ${named.key}`);
  if (body.base_snapshot_id || body.parent_volume_id)
    throw invalid(`config.${named.key}`, 'the request has another source, which a claim names by its dataSource');
  if (named.name === body.name) throw invalid(`config.${named.key}`, `names the new volume, ${named.name}, itself`);
  return named;
}

export const isImport = ({ key }: NamedVolume): boolean => key === IMPORT;

/** Never an empty volume where a full one was wanted: what is not there is refused, by the key that names it. */
export const refuseNamed =
  (named: NamedVolume | undefined) =>
  (error: unknown): never => {
    if (!named || !isStorageError(error) || error.field !== 'source.volumeName') throw error;
    const { key, name } = named;
    throw invalid(`config.${key}`, `no volume is named "${name}" here; give the name of the volume, not of a claim`);
  };
