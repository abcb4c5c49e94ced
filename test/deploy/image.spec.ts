import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PACKAGE_ROOT } from '#platform/package-root';

const dockerfile = readFileSync(join(PACKAGE_ROOT, 'deploy/docker/Dockerfile'), 'utf8');

/** Below, npm has no `sbom`; the image has a newer one. */
const SINCE_NPM = 10;
const npm = Number.parseInt(execFileSync('npm', ['--version'], { encoding: 'utf8' }), 10);

describe('the image', () => {
  it.skipIf(npm < SINCE_NPM)('has the list of its packages, which is the same for the same lock file', () => {
    const [, list, made] = /^RUN (npm sbom [^>]+?) > npm\.json && (node sbom\.mjs) < npm\.json/m.exec(dockerfile)!;
    expect(made).toBe('node sbom.mjs');
    const once = () => {
      const [program, ...args] = list!.split(' ');
      const input = execFileSync(program!, args, { cwd: PACKAGE_ROOT, maxBuffer: 64 * 1024 ** 2 });
      const script = join(PACKAGE_ROOT, 'deploy/docker/sbom.mjs');
      return execFileSync(process.execPath, [script], { input, encoding: 'utf8', maxBuffer: 64 * 1024 ** 2 });
    };
    const first = once();
    expect(once()).toBe(first);
    const { bomFormat, components } = JSON.parse(first) as { bomFormat: string; components: { name: string }[] };
    expect(bomFormat).toBe('CycloneDX');
    const names = components.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['typeorm', 'koffi', '@nestjs/core']));
    expect(names.filter(name => ['vitest', 'typescript', '@biomejs/biome'].includes(name))).toEqual([]);
  });

  it('says its release, as package.json does', () => {
    const { version, license } = JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8'));
    expect(dockerfile).toContain(`org.opencontainers.image.version="${version}"`);
    expect(dockerfile).toContain(`org.opencontainers.image.licenses="${license}"`);
  });
});
