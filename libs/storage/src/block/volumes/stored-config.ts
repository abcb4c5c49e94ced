import type { VolumeConfig, VolumeSettings } from '#storage/block/block-storage';

/**
 * What the domain reads of `config` in rows of volumes and of performance policies. It is kept as its caller sent it, which
 * has been CSP alone since the first release: so the keys are those of that protocol, here and nowhere else in the domain.
 */

/** What somebody has said; what is left open is absent. */
export function settingsOf(config: VolumeConfig): VolumeSettings {
  const text = (key: string) => (Object.hasOwn(config, key) ? String(config[key]) : undefined);
  const flag = (key: string) => (Object.hasOwn(config, key) ? text(key) === 'true' : undefined);
  const number = (key: string) => (Object.hasOwn(config, key) ? Number(text(key)) : undefined);
  return said({
    pool: text('pool'),
    folder: text('folder'),
    thick: flag('thick'),
    limitIops: number('limit_iops'),
    limitMbps: number('limit_mbps'),
    destroyOnDelete: flag('destroy_on_delete'),
  });
}

/** Without what is undefined: laid over other settings it changes nothing that it does not say. */
export function said({ pool, folder, thick, limitIops, limitMbps, destroyOnDelete }: VolumeSettings): VolumeSettings {
  const all = Object.entries({ pool, folder, thick, limitIops, limitMbps, destroyOnDelete });
  return Object.fromEntries(all.filter(([, value]) => value !== undefined));
}

/** The driver says it of every volume whose claim is for one node (ReadWriteOnce): two would destroy its file system. */
export const isOfOneHost = ({ multi_initiator, multiInitiator }: VolumeConfig): boolean =>
  String(multi_initiator ?? multiInitiator) === 'false';

/** Under which name the volume was taken over: a repeat of that is recognised by it. */
export const importedFrom = ({ import_volume_name }: VolumeConfig): VolumeConfig[string] | undefined =>
  import_volume_name;
