import type { PublicDoors } from '#admin/first-run/manifests';
import type { Config } from '#platform/config/config';

type Settings = Pick<
  Config,
  | 'TRIVET_CSP_ADDRESSES'
  | 'TRIVET_HTTP_LISTEN'
  | 'TRIVET_HTTPS_LISTEN'
  | 'TRIVET_CLUSTER_LISTEN'
  | 'TRIVET_CSP_CONTEXT_PATH'
  | 'TRIVET_COSI_DRIVER_NAME'
>;

/** Where callers in clusters reach this gateway, as far as it was told. */
export const publicDoors = (config: Settings): PublicDoors => ({
  address: config.TRIVET_CSP_ADDRESSES?.[0],
  http: config.TRIVET_HTTP_LISTEN.port,
  https: portOf(config.TRIVET_HTTPS_LISTEN),
  clusters: portOf(config.TRIVET_CLUSTER_LISTEN),
  path: config.TRIVET_CSP_CONTEXT_PATH,
  cosiDriver: config.TRIVET_COSI_DRIVER_NAME,
});

const LOOPBACK = /^(localhost|127(\.\d+){3}|::1)$/i;

const portOf = (listen: Settings['TRIVET_HTTPS_LISTEN']): number | undefined =>
  listen === 'none' || LOOPBACK.test(listen.host) ? undefined : listen.port;
