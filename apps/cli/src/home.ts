import { randomBytes } from 'node:crypto';
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir, userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { EXIT_CONFIG, EXIT_FULL } from '#platform/config/config';
import { makeFolders } from '#platform/make-folders';
import { PACKAGE_ROOT } from '#platform/package-root';
import { type Environment, environment } from './environment.js';
import { jsonIn } from './json-in.js';

/** Leaves room for names that daemons add, e.g. Ceph's `ceph-client.rgw.a.4194304.94012345678901.asok`. */
const LONGEST_NAME = 'ceph/ceph-client.rgw.a.4194304.asok';
/** sun_path ends at 107 bytes; paths of ours stay below this. */
const SHORT = 100;

/** Of these the first is written once a key is in use; the others are of homes from before, or of a backup. */
const HOLDS_SEALED = ['key-id', 'credentials.json', 'postgres/data/PG_VERSION'];

export const isRoot = (): boolean => process.getuid?.() === 0;

/** What cannot go on for a reason that the user can remedy: one line, no stack. */
export class LauncherError extends Error {
  constructor(
    message: string,
    readonly exitCode = 1,
  ) {
    super(message);
  }
}

/** Without blanks, commas and the like: Ceph reads several of its paths as lists, and a URL does not hold them either. */
export const isPlain = (path: string): boolean => /^[\w./+@=-]+$/.test(path);

/** Replaces a file as a whole, so that a reader or a crash never sees a half. */
export function writeWhole(path: string, text: string, mode = 0o600): void {
  const temporary = `${path}.${process.pid}.tmp`;
  writeFileSync(temporary, text, { mode });
  chmodSync(temporary, mode);
  renameSync(temporary, path);
}

/**
 * TRIVET_HOME: all state of one appliance.
 *
 *   state.json  what runs; ports.json  ports kept; env  for a shell; credentials.json, kek, secrets/  mode 0600
 *   log/ postgres/ redis/ ceph/        one folder a part
 *   run/        sockets and pid files, elsewhere when the path is too long (see #chooseRun)
 */
export class Home {
  readonly path: string;
  /** Stays the same when the folder is moved; names what lies outside it. */
  readonly id: string;
  readonly run: string;

  private constructor(path: string, id: string, run: string) {
    this.path = path;
    this.id = id;
    this.run = run;
  }

  /** Where the home is, whether it exists or not. */
  static locate(from: Environment = environment): string {
    return from.TRIVET_HOME ? resolve(from.TRIVET_HOME) : join(PACKAGE_ROOT, '.trivet');
  }

  /** The existing home, or undefined. Changes nothing. */
  static find(path = Home.locate()): Home | undefined {
    const idFile = join(path, 'id');
    if (!existsSync(idFile)) return undefined;
    const runFile = join(path, 'run-dir');
    const run = existsSync(runFile) ? readFileSync(runFile, 'utf8').trim() : join(path, 'run');
    return new Home(path, readFileSync(idFile, 'utf8').trim(), run);
  }

  /** Creates what is missing. The folder itself is 0711: PostgreSQL's user has to pass through it, none may list it. */
  static open(path = Home.locate()): Home {
    try {
      makeFolders(path, 0o711);
      const idFile = join(path, 'id');
      if (!existsSync(idFile)) {
        refuseForeign(path);
        writeWhole(idFile, `${randomBytes(6).toString('hex')}\n`);
      }
      const id = readFileSync(idFile, 'utf8').trim();
      const home = new Home(path, id, chooseRun(path, id));
      writeWhole(join(path, 'run-dir'), `${home.run}\n`);
      for (const folder of ['log', 'secrets']) mkdirSync(join(path, folder), { recursive: true, mode: 0o700 });
      for (const door of ['cosi', 'csi']) mkdirSync(join(home.run, door), { recursive: true, mode: 0o755 });
      return home;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === undefined) throw error;
      const exitCode = code === 'ENOSPC' || code === 'EDQUOT' ? EXIT_FULL : EXIT_CONFIG;
      throw new LauncherError(`cannot write ${path} (${code}); set TRIVET_HOME to a folder of yours`, exitCode);
    }
  }

  file(...names: string[]): string {
    return join(this.path, ...names);
  }

  log(name: string): string {
    return this.file('log', `${name}.log`);
  }

  get cosiSocket(): string {
    return join(this.run, 'cosi', 'cosi.sock');
  }

  get csiSocket(): string {
    return join(this.run, 'csi', 'csi.sock');
  }

  get stateFile(): string {
    return this.file('state.json');
  }

  get environmentFile(): string {
    return this.file('env');
  }

  get credentialsFile(): string {
    return this.file('credentials.json');
  }

  get kekFile(): string {
    return this.file('kek');
  }

  /** The key-encryption key, made at the first call: 32 random bytes, base64. Losing it loses every stored credential. */
  ensureKek(): void {
    this.requireKek();
    if (!existsSync(this.kekFile)) writeWhole(this.kekFile, `${randomBytes(32).toString('base64')}\n`);
  }

  /** A new key opens nothing of what another one has sealed: beside data none is made. */
  requireKek(): void {
    if (existsSync(this.kekFile) || !HOLDS_SEALED.some(name => existsSync(this.file(name)))) return;
    const id = existsSync(this.#keyIdFile) ? readFileSync(this.#keyIdFile, 'utf8').trim() : 'of an unknown id';
    throw new LauncherError(
      `${this.kekFile} is missing, and what this home keeps is sealed with its key, ${id}\n` +
        '  put its copy back there (mode 0600), or set TRIVET_KEK_FILE to where it is; nothing was started or changed',
      EXIT_CONFIG,
    );
  }

  /** What seals from now on; of no use to open anything, and told when the key is lost. */
  noteKey(id: string): void {
    writeWhole(this.#keyIdFile, `${id}\n`);
  }

  /** Why the last `up` failed, in its own words; undefined after one that did not. */
  lastFailure(): { at: string; message: string } | undefined {
    return existsSync(this.#failureFile) ? jsonIn(readFileSync(this.#failureFile, 'utf8')) : undefined;
  }

  noteFailure(message: string | undefined): void {
    if (message === undefined) rmSync(this.#failureFile, { force: true });
    else writeWhole(this.#failureFile, `${JSON.stringify({ at: new Date().toISOString(), message }, null, 2)}\n`);
  }

  get #failureFile(): string {
    return this.file('last-failure.json');
  }

  get #keyIdFile(): string {
    return this.file('key-id');
  }
}

/** What `down --purge` deletes must be ours. A disk of its own, a key file and a first start that was killed are. */
function refuseForeign(path: string): void {
  const foreign = readdirSync(path).filter(name => !/^(?:lost\+found|kek|id\.\d+\.tmp)$/.test(name));
  if (foreign.length > 0)
    throw new LauncherError(
      `${path} is no home of Trivet, and not empty (${foreign[0]}); set TRIVET_HOME to a folder that is new or empty`,
      EXIT_CONFIG,
    );
}

function chooseRun(path: string, id: string): string {
  const inside = join(path, 'run');
  if (isPlain(inside) && Buffer.byteLength(join(inside, LONGEST_NAME)) < SHORT) {
    mkdirSync(inside, { recursive: true, mode: 0o711 });
    return inside;
  }
  if (isRoot() && existsSync('/run')) {
    const folder = `/run/trivet/${id}`;
    mkdirSync(folder, { recursive: true, mode: 0o711 });
    return folder;
  }
  const runFile = join(path, 'run-dir');
  if (existsSync(runFile)) {
    const kept = readFileSync(runFile, 'utf8').trim();
    if (kept !== inside && isPrivate(kept)) return kept;
  }
  // A session's own folder goes with the session, and those for temporary files are swept: only the last resort is one.
  const kept = homedir();
  const base = [kept, '/var/tmp'].find(folder => isPlain(folder) && canKeep(folder)) ?? tmpdir();
  return mkdtempSync(join(base, base === kept ? '.trivet-' : 'trivet-'));
}

/** Where a path of ours is short enough, and may be made. */
function canKeep(folder: string): boolean {
  if (Buffer.byteLength(join(folder, '.trivet-XXXXXX', LONGEST_NAME)) >= SHORT) return false;
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return statSync(folder).isDirectory();
  } catch {
    return false;
  }
}

/** A folder of ours alone: in a shared one like /tmp anybody could have made it. */
function isPrivate(folder: string): boolean {
  try {
    const stat = lstatSync(folder);
    return stat.isDirectory() && stat.uid === userInfo().uid && (stat.mode & 0o077) === 0;
  } catch {
    return false;
  }
}
