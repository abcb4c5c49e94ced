import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { ConfigError } from '#platform/config/config';
import { KubeClient } from './kube-client.js';

// Loading the library takes its time on a busy machine.
vi.setConfig({ testTimeout: 60_000 });
const folder = mkdtempSync(join(tmpdir(), 'trivet-kubeconfig-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('TRIVET_KUBERNETES', () => {
  it.each([
    ['a file that is not there', '/nowhere/kubeconfig', 'ENOENT'],
    ['in-cluster, where there is none', 'in-cluster', 'ENOENT'],
    ['a file without a cluster', join(folder, 'empty'), 'it names no cluster'],
  ])('is refused with words for people: %s', async (_, where, why) => {
    writeFileSync(join(folder, 'empty'), '{"apiVersion":"v1","kind":"Config","clusters":[],"users":[],"contexts":[]}');
    const error = await KubeClient.connect(where).catch(thrown => thrown);
    expect(error).toBeInstanceOf(ConfigError);
    expect(error.message).toBe(`TRIVET_KUBERNETES: cannot use ${where}: ${why}`);
  });
});
