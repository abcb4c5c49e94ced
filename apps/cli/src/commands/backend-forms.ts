import type { BackendReply, backendRoutes } from '#admin/contract/backends';
import type { BodyOf } from '#admin/contract/route';
import type { ApiClient } from '../api/api-client.js';
import { EXIT } from '../api/api-error.js';
import { readJsonFile } from '../api/given-file.js';
import { initially, parsed, repeated, text, type Values } from '../command-line/command.js';
import { LauncherError } from '../home.js';
import { configOf } from './backend-settings.js';
import { collect, collectSetting, reason } from './options.js';

const settings = {
  set: repeated(parsed('field=value', 'a setting of its kind; again for each', collectSetting)),
  configFile: text('file', 'its settings in JSON, as a whole; - is standard input; --set goes over it'),
  credentialsFile: text('file', 'its keys in JSON, all of them; - is standard input'),
};

/** Of a new one. */
export const REGISTRATION = {
  kind: text('kind', 'rgw, s3, azure, garage, gcs, reflink, rbd, ...: trivet backend kinds'),
  ...settings,
  share: text('name', 'a backend of the tenant `appliance`, instead of the four above'),
  description: initially(text('text', 'for people'), ''),
};

/** Of one that is there. */
export const CHANGES = {
  ...settings,
  unset: repeated(parsed('field', 'a setting that it has no longer; again for each', collect)),
  description: text('text', 'for people'),
  reason,
};

export async function registrationOf(
  api: ApiClient,
  { name, share, kind, set, configFile, credentialsFile, description }: { name: string } & Values<typeof REGISTRATION>,
) {
  if (share !== undefined) {
    if ([kind, set, configFile, credentialsFile].some(given => given !== undefined))
      throw new LauncherError('--share takes kind, config and credentials of the backend that it shares', EXIT.data);
    return { name, share, description };
  }
  if (kind === undefined || (configFile === undefined && set === undefined))
    throw new LauncherError('give --kind, and --set or --config-file; or --share', EXIT.data);
  refuseTwice(configFile, credentialsFile);
  const config = {
    ...(configFile === undefined ? {} : readJsonFile('--config-file', configFile)),
    ...(set === undefined ? {} : await configOf(api, kind, set)),
  };
  const credentials = credentialsFile === undefined ? {} : credentialsIn(credentialsFile);
  return { name, kind, description, config, credentials };
}

/** What is not named stays as `found` has it; keys are replaced as a whole, as nobody reads them. */
export async function changesOf(
  api: ApiClient,
  { kind, config: found }: BackendReply,
  { set, unset, configFile, credentialsFile, description, reason: why }: Values<typeof CHANGES>,
): Promise<BodyOf<typeof backendRoutes.change>> {
  if ([set, unset, configFile, credentialsFile, description].every(given => given === undefined))
    throw new LauncherError(
      'nothing to change: give --set, --unset, --config-file, --credentials-file or --description',
      EXIT.data,
    );
  refuseTwice(configFile, credentialsFile);
  const isOther = set !== undefined || unset !== undefined || configFile !== undefined;
  const base = configFile === undefined ? found : readJsonFile('--config-file', configFile);
  return {
    ...(description === undefined ? {} : { description }),
    ...(isOther
      ? { config: without({ ...base, ...(set === undefined ? {} : await configOf(api, kind, set)) }, unset) }
      : {}),
    ...(credentialsFile === undefined ? {} : { credentials: credentialsIn(credentialsFile) }),
    ...(why === undefined ? {} : { reason: why }),
  };
}

function without(config: Record<string, unknown>, fields: readonly string[] = []): Record<string, unknown> {
  const missing = fields.find(field => !Object.hasOwn(config, field));
  if (missing !== undefined)
    throw new LauncherError(
      `--unset ${missing}: it is not set; what is set is ${Object.keys(config).join(', ')}`,
      EXIT.data,
    );
  return Object.fromEntries(Object.entries(config).filter(([field]) => !fields.includes(field)));
}

const credentialsIn = (file: string): Record<string, string> =>
  readJsonFile('--credentials-file', file) as Record<string, string>;

function refuseTwice(configFile: string | undefined, credentialsFile: string | undefined): void {
  if (configFile === '-' && credentialsFile === '-')
    throw new LauncherError('standard input can be read once: give one of the two as a file', EXIT.data);
}
