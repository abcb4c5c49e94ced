import { type Config, ConfigError, readSecretFile } from '#platform/config/config';

/** The object stores that the environment names, each by the setting of its address. */
export function objectBackends(config: Config) {
  return [
    ...(config.TRIVET_RGW_ENDPOINT === undefined ? [] : [rgwBackend(config, config.TRIVET_RGW_ENDPOINT)]),
    ...(config.TRIVET_AZURE_ENDPOINT === undefined ? [] : [azureBackend(config, config.TRIVET_AZURE_ENDPOINT)]),
  ];
}

const rgwBackend = (config: Config, endpoint: string) => ({
  name: 'rgw',
  kind: 'rgw',
  config: {
    endpoint,
    publicEndpoint: config.TRIVET_RGW_PUBLIC_ENDPOINT ?? endpoint,
    region: config.TRIVET_RGW_REGION,
  },
  credentials: {
    accessKeyId: secretOf(config, 'TRIVET_RGW_ACCESS_KEY_FILE', 'TRIVET_RGW_ENDPOINT'),
    secretAccessKey: secretOf(config, 'TRIVET_RGW_SECRET_KEY_FILE', 'TRIVET_RGW_ENDPOINT'),
  },
});

function azureBackend(config: Config, endpoint: string) {
  const { TRIVET_AZURE_ACCOUNT: account, TRIVET_AZURE_PUBLIC_ENDPOINT: publicEndpoint } = config;
  if (!account) throw new ConfigError('TRIVET_AZURE_ACCOUNT: required with TRIVET_AZURE_ENDPOINT');
  return {
    name: 'azure',
    kind: 'azure',
    config: {
      account,
      endpoint,
      ...(publicEndpoint === undefined ? {} : { publicEndpoint }),
      authentication: 'sharedKey',
    },
    credentials: { accountKey: secretOf(config, 'TRIVET_AZURE_KEY_FILE', 'TRIVET_AZURE_ENDPOINT') },
  };
}

type FileSetting = 'TRIVET_RGW_ACCESS_KEY_FILE' | 'TRIVET_RGW_SECRET_KEY_FILE' | 'TRIVET_AZURE_KEY_FILE';

function secretOf(config: Config, name: FileSetting, needs: keyof Config): string {
  const path = config[name];
  if (!path) throw new ConfigError(`${name}: required with ${needs}`);
  return readSecretFile(name, path);
}
