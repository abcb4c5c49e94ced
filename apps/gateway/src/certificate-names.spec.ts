import { hostname } from 'node:os';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '#platform/config/config';
import { certificateNames } from './certificate-names.js';

const both = (listen: string) => ({ TRIVET_HTTPS_LISTEN: `${listen}:8743`, TRIVET_CBT_LISTEN: `${listen}:8745` });

describe('the names of the certificate', () => {
  it.each([
    [{}, ['127.0.0.1']],
    [{ TRIVET_HTTPS_LISTEN: '192.0.2.7:8743', TRIVET_CBT_LISTEN: '192.0.2.8:8745' }, ['192.0.2.7', '192.0.2.8']],
    [{ ...both('0.0.0.0'), TRIVET_CBT_PUBLIC_ADDRESS: 'trivet.example.test:443' }, ['trivet.example.test']],
    [{ ...both('[::]'), TRIVET_CBT_PUBLIC_ADDRESS: '[2001:db8::7]:8745' }, ['2001:db8::7']],
    [{ TRIVET_CBT_PUBLIC_ADDRESS: '192.0.2.9:8745' }, ['127.0.0.1', '192.0.2.9']],
    // Sessions name the host then.
    [both('0.0.0.0'), [hostname()]],
    [{ TRIVET_HTTPS_LISTEN: '0.0.0.0:8743', TRIVET_CBT_LISTEN: 'none' }, []],
    [{ TRIVET_HTTPS_LISTEN: 'none', TRIVET_CBT_LISTEN: '[::1]:8745' }, ['::1']],
  ])('are where clients reach it: %j', (env, names) => {
    expect(certificateNames(loadConfig([], env))).toEqual(names);
  });
});
