import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pattern } from '#test/block-crash/pool-images';
import type { InitiatorSession } from '#test/support/initiator';

const BLOCK = 1_024;
const FILE = 40_000;

/** A block of the disk, and what it holds from then on. */
type Write = [block: number, bytes: Buffer];

/** One step of the file system: as the journal has it, and in its place. */
interface Transaction {
  log: Write[];
  /** The journal's first block, which says that there is something to replay, or nothing. */
  begun: Write;
  home: Write[];
  ended: Write;
}

/**
 * An ext4 and what its kernel would write to add one file after the other, and then to take all of them away again: to the
 * journal, then the journal's head, then in place, then the head. At any instant between two writes the journal makes
 * it whole; a mixture of instants is torn.
 */
export class FileSystemPlan {
  private readonly folder = mkdtempSync(join(tmpdir(), 'trivet-ext4-'));
  private readonly empty: Buffer;
  private readonly transactions: Transaction[] = [];

  constructor(
    private readonly bytes: number,
    files: number,
  ) {
    const image = this.file('image', Buffer.alloc(0));
    truncateSync(image, bytes);
    const options = ['-t', 'ext4', '-b', `${BLOCK}`, '-J', 'size=1', '-E', 'lazy_itable_init=0,nodiscard'];
    execFileSync('mke2fs', ['-q', '-F', ...options, image]);
    debugfs(image, 'feature needs_recovery');
    const head = Number(debugfs(image, 'bmap <8> 0'));
    this.empty = readFileSync(image);
    let before = this.empty;
    for (let n = 1; n <= files + 1; n++) {
      // Tools take the flag of a mounted file system away when they have changed it.
      if (n <= files) debugfs(image, `write ${this.file('content', contentOf(n))} file-${n}`, 'feature needs_recovery');
      const after = n <= files ? readFileSync(image) : this.empty;
      this.transactions.push(this.transaction(head, before, after));
      before = after;
    }
  }

  private transaction(head: number, before: Buffer, after: Buffer): Transaction {
    const home = changes(before, after);
    const list = home.map(([block]) => block).join();
    const blocks = this.file('blocks', Buffer.concat(home.map(([, bytes]) => bytes)));
    const logged = this.file('logged', before);
    debugfs(logged, 'journal_open', `journal_write -b ${list} ${blocks}`, 'journal_close');
    const log = changes(before, readFileSync(logged)).filter(([block]) => block > 1);
    const begun = log.find(([block]) => block === head);
    if (!begun) throw new Error('debugfs has written no transaction');
    return { log: log.filter(write => write !== begun), begun, home, ended: [head, at(before, head)] };
  }

  /** After so many steps there is again what was after none. */
  get steps(): number {
    return this.transactions.length;
  }

  async format(disk: InitiatorSession): Promise<void> {
    await disk.write(0, this.empty);
    await disk.flush();
  }

  /** The n-th from 1 on; it counts when this resolves, and perhaps before. */
  async step(n: number, disk: InitiatorSession): Promise<void> {
    const { log, begun, home, ended } = this.transactions[(n - 1) % this.steps]!;
    // Answered is written, for whoever reads the volume: a flush between them would be for a loss of power alone.
    for (const writes of [log, [begun], home, [ended]])
      await Promise.all(writes.toReversed().map(([block, bytes]) => disk.write(block * BLOCK, bytes)));
  }

  /** How many files are on it, once its journal was replayed. Throws unless it is whole, and they are the first ones. */
  filesOn(image: Buffer): number {
    const found = this.file('found', image.subarray(0, this.bytes));
    execFileSync('e2fsck', ['-E', 'journal_only', '-y', found], { stdio: 'pipe' });
    execFileSync('e2fsck', ['-fn', found], { stdio: 'pipe' });
    const names = debugfs(found, 'ls -p /').match(/file-\d+/g) ?? [];
    const reads = names.map((_, n) => join(this.folder, `read-${n + 1}`));
    debugfs(found, ...reads.map((read, n) => `dump file-${n + 1} ${read}`));
    for (const [n, read] of reads.entries())
      if (!readFileSync(read).equals(contentOf(n + 1)))
        throw new Error(`file-${n + 1} of ${names.length} is not what was written`);
    return names.length;
  }

  close(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  private file(name: string, content: Buffer): string {
    const path = join(this.folder, name);
    writeFileSync(path, content);
    return path;
  }
}

const contentOf = (n: number): Buffer => pattern(`file ${n}`, FILE);

const at = (image: Buffer, block: number): Buffer => image.subarray(block * BLOCK, (block + 1) * BLOCK);

function changes(before: Buffer, after: Buffer): Write[] {
  const blocks = Array.from({ length: after.length / BLOCK }, (_, block) => block);
  return blocks.filter(block => !at(before, block).equals(at(after, block))).map(block => [block, at(after, block)]);
}

function debugfs(image: string, ...commands: string[]): string {
  const stdio = ['pipe', 'pipe', 'ignore'] as const;
  const text = execFileSync('debugfs', ['-w', '-f', '-', image], { input: commands.join('\n'), stdio: [...stdio] });
  return text
    .toString()
    .split('\n')
    .filter(line => !line.startsWith('debugfs:'))
    .join('\n');
}
