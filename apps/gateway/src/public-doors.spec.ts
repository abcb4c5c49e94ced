import { describe, expect, it } from 'vitest';
import { publicDoors } from './public-doors.js';

const listening = (host: string) =>
  publicDoors({
    TRIVET_CSP_ADDRESSES: ['gw.example'],
    TRIVET_HTTP_LISTEN: { host, port: 8740 },
    TRIVET_HTTPS_LISTEN: { host, port: 8743 },
    TRIVET_CLUSTER_LISTEN: { host, port: 8747 },
    TRIVET_CSP_CONTEXT_PATH: 'csp',
    TRIVET_COSI_DRIVER_NAME: 'cosi.trivet.dev',
  });

describe('doors for callers in clusters', () => {
  it.each(['127.0.0.1', '127.8.9.10', '::1', 'localhost'])('are none at %s, which reaches nobody there', host => {
    expect(listening(host)).toMatchObject({ https: undefined, clusters: undefined });
  });

  it.each(['0.0.0.0', '::', '192.0.2.7', 'gw.example'])('are those that listen at %s', host => {
    expect(listening(host)).toMatchObject({ https: 8743, clusters: 8747 });
  });
});
