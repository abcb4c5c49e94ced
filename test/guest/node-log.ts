/**
 * A log that a node's program writes to a file, record by record, each synced to the disk before the next: by perl, of which the guest has the
 * base. A record is a sector: its number over and over, and a checksum. Number n is in slot n modulo slots.
 */
import { type Guest, GuestError } from '#test/support/guest';
import { until } from '#test/support/parts';

const RECORD_BYTES = 512;
const FIELD = 16;
const COPIES = RECORD_BYTES / FIELD - 1;
const SLOTS = 64;
const LOG = '/run/node-log';
/** A line for each record that is on the disk: number, when it was begun, how long that took, in ms of the boot clock. */
const PROGRAM = `
use strict; use Fcntl; use IO::Handle;
my ($path) = @ARGV;
sub now { open(my $clock, '<', '/proc/uptime') or die; my ($up) = split(' ', <$clock>); return int($up * 1000) }
sysopen(my $file, $path, O_RDWR | O_CREAT) or die "$path: $!";
STDOUT->autoflush(1);
for (my $n = 1; !-e '${LOG}.stop'; $n++) {
  my $begun = now();
  my $body = sprintf('%0${FIELD}d', $n) x ${COPIES};
  my $record = $body . sprintf('%0${FIELD}d', unpack('%32C*', $body));
  sysseek($file, $n % ${SLOTS} * ${RECORD_BYTES}, 0);
  if (!defined(syswrite($file, $record)) || !$file->sync) { print "failed: $!\\n"; exit 1 }
  print "$n $begun ", now() - $begun, "\\n";
}
print "stopped\\n";
`;

interface Synced {
  number: number;
  waitedMs: number;
}

export class NodeLog {
  private constructor(
    private readonly guest: Guest,
    private readonly path: string,
  ) {}

  static async start(guest: Guest, path: string): Promise<NodeLog> {
    const program = Buffer.from(PROGRAM).toString('base64');
    await guest.must(`rm -f ${LOG}*
      base64 -d > ${LOG}.pl <<< ${program}
      setsid perl ${LOG}.pl ${path} > ${LOG} 2>&1 < /dev/null &`);
    return new NodeLog(guest, path);
  }

  /** What was synced after that record. */
  async since(number: number): Promise<Synced[]> {
    const lines = await this.guest.must(`tail -n +${number + 1} ${LOG}`);
    return lines
      .split('\n')
      .filter(line => line !== '' && line !== 'stopped')
      .map(line => {
        const [number, , waitedMs] = line.split(' ').map(Number);
        if (!number || waitedMs === undefined) throw new GuestError(`the log's writer: ${line}`);
        return { number, waitedMs };
      });
  }

  async last(): Promise<number> {
    const [last] = await this.since(Number(await this.guest.must(`grep -c '^[0-9]' ${LOG} || true`)) - 1);
    return last?.number ?? 0;
  }

  /** Resolves when `more` records have been synced that were begun from now on. */
  async goesOn(more = 3, timeoutMs = 180_000): Promise<void> {
    const before = await this.last();
    await until(`records after ${before}`, async () => (await this.last()) > before + more, timeoutMs);
  }

  /** The longest that a record took since that one. */
  async longestWaitMs(number: number): Promise<number> {
    return Math.max(...(await this.since(number)).map(({ waitedMs }) => waitedMs));
  }

  /** The last record that was synced. */
  async stop(): Promise<number> {
    await this.guest.must(`touch ${LOG}.stop`);
    await until('the writer ended', async () => (await this.guest.must(`tail -n 1 ${LOG}`)) === 'stopped');
    return this.last();
  }

  /** What the file's slots hold. Unmount and mount before, so that the disk is asked. */
  async found(): Promise<number[]> {
    const file = Buffer.from(await this.guest.must(`base64 -w 0 ${this.path}`), 'base64');
    return Array.from({ length: SLOTS }, (_, slot) =>
      numberOf(file.toString('latin1', slot * RECORD_BYTES, (slot + 1) * RECORD_BYTES)),
    );
  }

  /** What they have to hold when that was the last one. */
  static expected(last: number): number[] {
    return Array.from({ length: SLOTS }, (_, slot) => last - ((((last - slot) % SLOTS) + SLOTS) % SLOTS));
  }
}

/** NaN where it is no whole record. */
function numberOf(record: string): number {
  const body = record.slice(0, COPIES * FIELD);
  const sum = [...body].reduce((total, letter) => total + letter.charCodeAt(0), 0);
  const isWhole = body === record.slice(0, FIELD).repeat(COPIES) && sum === Number(record.slice(COPIES * FIELD));
  return isWhole ? Number(record.slice(0, FIELD)) : Number.NaN;
}
