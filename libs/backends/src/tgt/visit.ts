/**
 * A session of our own on a target, as a host would have one: the only way to see what hosts see, and to hold a unit's
 * queue. It comes under a name that is drawn for this once, and with an account of its own where the target wants CHAP;
 * whoever is interrupted leaves an initiator and an account that the next apply removes like any other.
 */
import { randomBytes } from 'node:crypto';
import { newSecret } from '#backends/tgt/accounts';
import { type Command, type CommandResult, IscsiSession } from '#backends/tgt/iscsi-session';
import { endConnections } from '#backends/tgt/sessions';
import type { TgtClient } from '#backends/tgt/tgt-client';
import { locked, type RunningDaemon } from '#backends/tgt/tgt-daemons';
import { bindAccount, bindInitiator, deleteAccount, newAccount, unbindAccount } from '#backends/tgt/tgt-request';
import { isStorageError, StorageError } from '#platform/errors';

const CLEAN_UP_MS = 3_000;
const CHECK_CONDITION = 2;
const UNIT_ATTENTION = 6;

export interface VisitedTarget {
  tid: number;
  iqn: string;
  lun: number;
  portals: readonly string[];
  wantsChap: boolean;
}

export class Visit {
  constructor(
    readonly session: IscsiSession,
    private readonly lun: number,
    /** Another session of the same visitor. */
    readonly again: () => Promise<Visit>,
  ) {}

  /** Data of a command that must succeed. */
  async run(command: Omit<Command, 'lun'>): Promise<Buffer> {
    for (;;) {
      const result = await this.session.execute({ ...command, lun: this.lun });
      if (result.status === 0) return result.data;
      // Every new session is told once that it is new.
      if (isUnitAttention(result)) continue;
      throw new Error(`status ${result.status}, sense ${result.sense.subarray(0, 14).toString('hex')}`);
    }
  }

  /** In bytes, as READ CAPACITY(16) tells hosts. */
  async capacity(): Promise<bigint> {
    const cdb = Buffer.from('9e100000000000000000000000200000', 'hex');
    const data = await this.run({ cdb, read: 32 });
    return (data.readBigUInt64BE(0) + 1n) * BigInt(data.readUInt32BE(8));
  }

  /** A page of vital product data. */
  async inquiryPage(page: number): Promise<Buffer> {
    const cdb = Buffer.from([0x12, 1, page, 0, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    return this.run({ cdb, read: 255 });
  }
}

const isUnitAttention = ({ status, sense }: CommandResult): boolean =>
  status === CHECK_CONDITION && sense.length > 2 && (sense.readUInt8(2) & 0xf) === UNIT_ATTENTION;

/** The caller has unsettled the target's state. */
export async function visit<T>(
  daemon: RunningDaemon,
  client: TgtClient,
  target: VisitedTarget,
  signal: AbortSignal,
  work: (visit: Visit) => Promise<T>,
): Promise<T> {
  const { tid, iqn, lun } = target;
  const name = randomBytes(8).toString('hex');
  const initiator = `iqn.2026-01.dev.trivet:visit.${name}`;
  const chap = target.wantsChap ? { user: `/visit-${name}`, password: newSecret() } : undefined;
  const account = (change: () => Promise<unknown>): Promise<unknown> => locked(daemon.folder, signal, change);
  const sessions: IscsiSession[] = [];
  const end = (): void => {
    for (const session of sessions) session.destroy();
  };
  const come = async (): Promise<Visit> => {
    const session = await IscsiSession.open(reachable(target.portals), { initiator, target: iqn, chap }, signal);
    sessions.push(session);
    return new Visit(session, lun, come);
  };
  const leave = async (): Promise<void> => {
    signal.removeEventListener('abort', end);
    end();
    const left = AbortSignal.timeout(CLEAN_UP_MS);
    await endConnections(client, tid, [initiator], found => found === initiator, left);
    if (!chap) return;
    await locked(daemon.folder, left, async () => {
      await client.tell(unbindAccount(tid, chap.user), left, 'no user');
      await client.tell(deleteAccount(chap.user), left, 'no user');
    });
  };
  try {
    if (chap) {
      await account(async () => {
        await client.ask(newAccount(chap.user, chap.password), signal);
        await client.ask(bindAccount(tid, chap.user), signal);
      });
    }
    await client.ask(bindInitiator(tid, initiator), signal);
    signal.addEventListener('abort', end, { once: true });
    const result = await work(await come());
    // Who could not leave says so: the target is looked at once more.
    await leave();
    return result;
  } catch (error) {
    await leave().catch(() => {});
    if (isStorageError(error)) throw error;
    const kind = signal.aborted ? 'timeout' : 'unavailable';
    throw new StorageError(kind, `target ${iqn}: ${(error as Error).message}`, { cause: error });
  }
}

/** The first portal, from this host. */
function reachable([portal]: readonly string[]): { host: string; port: number } {
  if (portal === undefined) throw new StorageError('failed_precondition', 'the pool has no portal');
  const at = portal.lastIndexOf(':');
  const host = portal.slice(0, at).replace(/^\[|\]$/g, '');
  const any: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };
  return { host: any[host] ?? host, port: Number(portal.slice(at + 1)) };
}
