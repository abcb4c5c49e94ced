/**
 * Bundles each program into one file below dist/programs, of what tsc left in dist (so decorators and their metadata are
 * tsc's) and of the packages: to find and read some 2,400 files is most of a start (ADR 41).
 *
 *   node bundle.mjs [tests]      tests: also the entries by which suites start gateway and worker
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { basename, dirname, join, relative } from 'node:path';
import { rolldown } from 'rolldown';

const ROOT = import.meta.dirname;
const DIST = join(ROOT, 'dist');
const PROGRAMS = join(DIST, 'programs');
/** Beside it, so that a build that fails, or a process that starts meanwhile, finds the programs as they were. */
const BEGUN = join(DIST, '.programs');

const SHIPPED = {
  gateway: 'apps/gateway/src/main.js',
  worker: 'apps/worker/src/main.js',
  connector: 'apps/connector/src/main.js',
  trivet: 'apps/cli/src/main.js',
};
/**
 * What few processes need is a file of its own beside the programs, bundled by itself: it shares no module with the program that
 * imports it late, so neither waits for the other. By where it is in dist.
 */
const APART = { 'apps/connector/src/kube/library.js': 'kubernetes' };
const OF_TESTS = { 'test-gateway': 'test/entry/gateway.js', 'test-worker': 'test/entry/worker.js' };

/** Packages that are loaded late (LOADED_LATE in .dependency-cruiser.mjs) and are no native library: in the bundle, they still run late. */
const LATE =
  /createRequire\(import\.meta\.url\)\('(bullmq|ioredis|@azure\/storage-blob|@aws-sdk\/client-iam|@aws-sdk\/client-sts|google-auth-library|nodemailer)'\)/g;

/** Of its modules only those are wanted that something uses: its index has them all. */
const SELECTED = /\/node_modules\/@kubernetes\/client-node\//;

const ours = {
  name: 'ours',
  load: {
    filter: { id: /\/dist\/(apps|libs|test)\// },
    handler: id => ({
      code: readFileSync(id, 'utf8').replace(LATE, "require('$1')"),
      map: JSON.parse(readFileSync(`${id}.map`, 'utf8')),
    }),
  },
};

/**
 * What ESM imports of Node comes name by name. An import statement would have Node read every name of the module, among them
 * those of node:http that load a whole other client.
 */
const BUILTIN = '\0builtin:';
const builtins = {
  name: 'builtins',
  resolveId: (id, importer, { kind }) => {
    const isOfBundler = importer?.startsWith('\0');
    return kind === 'import-statement' && !isOfBundler && isBuiltin(id)
      ? `${BUILTIN}${id.replace(/^node:/, '')}`
      : null;
  },
  load: {
    filter: { id: /^\0builtin:/ },
    handler: id => {
      const name = `node:${id.slice(BUILTIN.length)}`;
      const names = Object.getOwnPropertyNames(process.getBuiltinModule(name));
      const plain = names.filter(one => /^[A-Za-z_$][\w$]*$/.test(one) && one !== 'default');
      const exported = plain.map(
        (one, at) => `const _${at} = /* @__PURE__ */ named('${one}'); export { _${at} as ${one} };`,
      );
      const begin = `const module = process.getBuiltinModule('${name}'); const named = name => module[name];`;
      return `${begin} export default module; ${exported.join(' ')}`;
    },
  },
};

/** What is no script, or is read from a folder: these packages a program finds where they are, all others are in it. */
const besides = new Set(['koffi', '@koromix/koffi-linux-x64', '@koromix/koffi-linux-arm64']);

/** Of the packages nobody reads the map, which Node reads at each start. What they read beside themselves stays there. */
const packages = {
  name: 'packages',
  load: {
    filter: { id: /\/node_modules\/.*\.[cm]?js$/ },
    handler: id => ({ code: readFileSync(id, 'utf8'), map: { version: 3, sources: [], names: [], mappings: '' } }),
  },
  transform: {
    filter: { id: /\/node_modules\/.*\.c?js$/, code: /\b__(dirname|filename)\b/ },
    handler: (code, id) => {
      const from = relative(PROGRAMS, dirname(id));
      besides.add(/.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(id)[1]);
      const place = `var __dirname = __programs + ${JSON.stringify(`/${from}`)}, __filename = __dirname + ${JSON.stringify(`/${basename(id)}`)};`;
      return { code: `${place} ${code}`, map: null };
    },
  },
};

const apart = {
  name: 'apart',
  resolveId: (id, importer, { kind }) => {
    if (kind !== 'dynamic-import' || !id.startsWith('.')) return null;
    const name = APART[relative(DIST, join(dirname(importer), id))];
    return name ? { id: `./${name}.bundle.js`, external: true } : null;
  },
};

/** Optional packages that are not there: who asks for them looks whether they are. */
const isAbsent = ({ code, id = '' }) => code === 'UNRESOLVED_IMPORT' && id.includes('/node_modules/');

async function bundle(name, entry) {
  const build = await rolldown({
    input: join(DIST, entry),
    cwd: ROOT,
    platform: 'node',
    plugins: [builtins, apart, ours, packages],
    // Of others their package.json says it.
    treeshake: { moduleSideEffects: id => (SELECTED.test(id) ? false : undefined) },
    onLog(level, log, handle) {
      if (level !== 'warn' || isAbsent(log)) return;
      handle(log.code === 'UNRESOLVED_IMPORT' ? 'error' : level, log);
    },
  });
  await build.write({
    file: join(BEGUN, `${name}.bundle.js`),
    format: 'esm',
    // Dynamic imports too: a part of its own would wait for the end of the program that imports it.
    codeSplitting: false,
    keepNames: true,
    comments: false,
    // Less to read at each start, and nothing else: what names and calls are stays as it is.
    minify: { compress: false, mangle: false, codegen: { removeWhitespace: true } },
    banner: 'const __programs = import.meta.dirname;',
    sourcemap: true,
    sourcemapExcludeSources: true,
  });
  await build.close();
  inAscii(join(BEGUN, `${name}.bundle.js`));
}

/**
 * V8 keeps a text with any other letter in two bytes a letter, and decodes it more slowly. Not a plugin of the bundler, whose last step writes
 * letters as they are. The map says of what comes after one on its line that it is as much further on.
 */
function inAscii(file) {
  const map = JSON.parse(readFileSync(`${file}.map`, 'utf8'));
  const lines = readFileSync(file, 'utf8').split('\n');
  const mapped = map.mappings.split(';');
  for (const [at, line] of lines.entries()) {
    const columns = Array.from(line.matchAll(OTHER), ({ index }) => index);
    if (columns.length === 0) continue;
    if (ESCAPED.test(line))
      throw new Error(`${file}:${at + 1} has a backslash before a letter that is to be written otherwise`);
    lines[at] = line.replace(OTHER, letter => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`);
    if (mapped[at]) mapped[at] = movedOn(mapped[at], columns);
  }
  writeFileSync(file, lines.join('\n'));
  writeFileSync(`${file}.map`, JSON.stringify({ ...map, mappings: mapped.join(';') }));
}

const OTHER = /[^\0-\x7f]/g;
const ESCAPED = /\\[^\0-\x7f]/;
/** Of \uXXXX, beside the letter itself. */
const LONGER = 5;
const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/** Segments of a line. The first number of each is how far its column is from that of the one before, in base64 VLQ. */
function movedOn(segments, columns) {
  let column = 0;
  let passed = 0;
  const moved = segments.split(',').map(segment => {
    const [first] = /^[g-z0-9+/]*[A-Za-f]/.exec(segment);
    const delta = distanceIn(first);
    column += delta;
    const before = passed;
    while (columns[passed] < column) passed++;
    return `${written(delta + (passed - before) * LONGER)}${segment.slice(first.length)}`;
  });
  return moved.join(',');
}

/** Columns only grow, so the sign, which is the last bit, is none. */
const distanceIn = digits =>
  [...digits].reduce((sum, digit, at) => sum + (DIGITS.indexOf(digit) % 32) * 32 ** at, 0) / 2;

function written(distance) {
  let rest = distance * 2;
  let digits = '';
  do {
    const digit = rest % 32;
    rest = Math.floor(rest / 32);
    digits += DIGITS[digit + (rest > 0 ? 32 : 0)];
  } while (rest > 0);
  return digits;
}

function starter(name) {
  // Node takes the map only of what is loaded afterwards, and says nothing of deprecated calls below node_modules, where the
  // packages were: those of ours are said where tests run the sources.
  const settings = 'process.setSourceMapsEnabled(true);\nprocess.noDeprecation = true;\n';
  // Node would print the line that threw, which is the whole bundle.
  const caught = '.catch(error => {\n  console.error(error);\n  process.exit(1);\n})';
  const start = `${settings}await import('./${name}.bundle.js')${caught};\n`;
  writeFileSync(join(BEGUN, `${name}.js`), start);
}

/** Of a clone. In an image whoever builds says it (BUILD_COMMIT, SOURCE_DATE_EPOCH), or nobody knows. */
function git(...args) {
  if (!existsSync(join(ROOT, '.git'))) return undefined;
  try {
    return execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return undefined;
  }
}

/** Of an archive of git: what git wrote there in place of a pattern (.gitattributes). */
function archived() {
  const file = join(ROOT, 'deploy', 'release', 'commit.txt');
  const [, commit, seconds] = (existsSync(file) && /^([0-9a-f]{40}) (\d+)$/m.exec(readFileSync(file, 'utf8'))) || [];
  return { commit: commit?.slice(0, 12), seconds };
}

/** What `trivet --version` says beside the release. The date is the commit's: the same sources give the same files. */
function provenance() {
  // biome-ignore lint/style/noProcessEnv: of the build, not of a program.
  const { BUILD_COMMIT, SOURCE_DATE_EPOCH } = process.env;
  const changed = git('status', '--porcelain') ? ', changed since' : '';
  const commit = BUILD_COMMIT || git('rev-parse', '--short=12', 'HEAD') || archived().commit;
  const seconds = SOURCE_DATE_EPOCH || git('log', '-1', '--format=%ct') || archived().seconds;
  const date = seconds === undefined ? undefined : new Date(1_000 * Number(seconds)).toISOString().slice(0, 10);
  return { commit: commit && `${commit}${BUILD_COMMIT ? '' : changed}`, date };
}

const programs = { ...SHIPPED, ...(process.argv[2] === 'tests' && OF_TESTS) };
rmSync(BEGUN, { recursive: true, force: true });
// One after the other: together they take 2.6 GB of memory.
for (const [name, entry] of Object.entries(programs)) {
  await bundle(name, entry);
  starter(name);
}
for (const [entry, name] of Object.entries(APART)) await bundle(name, entry);
writeFileSync(join(BEGUN, 'build.json'), JSON.stringify(provenance()));
writeFileSync(join(BEGUN, 'packages.json'), JSON.stringify([...besides].sort()));
mkdirSync(PROGRAMS, { recursive: true });
for (const file of readdirSync(BEGUN)) renameSync(join(BEGUN, file), join(PROGRAMS, file));
