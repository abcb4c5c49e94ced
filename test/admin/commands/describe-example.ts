import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { PACKAGE_ROOT } from '#platform/package-root';
import type { CommandLine } from './command-line.js';

const PROGRAM = join(PACKAGE_ROOT, 'docs', 'examples', 'typescript', 'make-bucket.ts');

/** The generated client of docs/examples, as whoever writes a program begins with it. */
export function describeExample(line: CommandLine): void {
  describe('the example in TypeScript', () => {
    const make = async (bucket: string) => {
      const { acme, appliance } = line.house;
      const { TRIVET_ADMIN_TOKEN_FILE: token } = line.environment(acme.operator);
      const { stdout } = await promisify(execFile)(
        process.execPath,
        [PROGRAM, appliance.cspUrl, token!, 'acme', bucket],
        {
          env: { PATH: '/usr/bin:/bin' },
        },
      );
      return stdout;
    };

    it('lists volumes, makes a bucket and waits for it', async () => {
      const { acme, call } = { acme: line.house.acme, call: line.house.call.bind(line.house) };
      const body = { name: 'of-the-example', size: '1048576' };
      const made = await call(acme.operator, 'POST', '/tenants/acme/volumes', { body });
      expect([201, 202]).toContain(made.status);
      expect(await make('by-example')).toMatch(
        /^volume of-the-example: 1048576 bytes, (creating|ready)\n[\s\S]*bucket by-example: (ready|operation [0-9a-f-]{36} succeeded)\n$/m,
      );
    });

    it('says what was refused, and why', async () => {
      await expect(make('No Name Of A Bucket')).rejects.toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/Error: bucket No Name Of A Bucket: .+ \(invalid_argument\)/),
      });
    });
  });
}
