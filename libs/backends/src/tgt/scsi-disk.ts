import type { Command, CommandResult, IscsiSession } from './iscsi-session.js';

/** A command that ended with anything but GOOD. */
export class ScsiError extends Error {
  constructor(
    what: string,
    readonly status: number,
    readonly senseKey: number,
    /** ASC and ASCQ. */
    readonly code: number,
  ) {
    super(`${what}: status ${status}, sense ${senseKey.toString(16)}/${code.toString(16).padStart(4, '0')}`);
  }
}

const BLOCK = 512;
const CHECK_CONDITION = 2;
const UNIT_ATTENTION = 6;
/** Power on, reset or bus device reset: the first answer to every new session. */
const RESET = 0x2900;

/** Reads and writes of one unit over a session: offsets and lengths are bytes, multiples of 512. */
export class ScsiDisk {
  constructor(
    readonly session: IscsiSession,
    private readonly lun: number,
  ) {}

  async write(offset: number, data: Buffer | number, length?: number): Promise<void> {
    const bytes = typeof data === 'number' ? Buffer.alloc(length as number, data) : data;
    await this.#run('write', { cdb: blockCdb(0x8a, offset, bytes.length), write: bytes });
  }

  async read(offset: number, length: number): Promise<Buffer> {
    return (await this.#run('read', { cdb: blockCdb(0x88, offset, length), read: length })).data;
  }

  /** SYNCHRONIZE CACHE(16) of the whole unit. */
  async flush(): Promise<void> {
    await this.#run('flush', { cdb: cdb16(0x91) });
  }

  /** UNMAP of one range. */
  async discard(offset: number, length: number): Promise<void> {
    const list = Buffer.alloc(24);
    list.writeUInt16BE(22, 0);
    list.writeUInt16BE(16, 2);
    list.writeBigUInt64BE(BigInt(offset / BLOCK), 8);
    list.writeUInt32BE(length / BLOCK, 16);
    const cdb = cdb16(0x42);
    cdb.writeUInt16BE(list.length, 7);
    await this.#run('discard', { cdb, write: list });
  }

  async capacity(): Promise<number> {
    const cdb = cdb16(0x9e);
    cdb.writeUInt8(0x10, 1);
    cdb.writeUInt32BE(32, 10);
    const { data } = await this.#run('read capacity', { cdb, read: 32 });
    return (Number(data.readBigUInt64BE(0)) + 1) * data.readUInt32BE(8);
  }

  /** A page of vital product data, e.g. 0x83. */
  async inquiryPage(page: number): Promise<Buffer> {
    const cdb = cdb16(0x12);
    cdb.writeUInt8(1, 1);
    cdb.writeUInt8(page, 2);
    cdb.writeUInt16BE(255, 3);
    return (await this.#run('inquiry', { cdb, read: 255 })).data;
  }

  /** False as soon as the target has hung up. */
  get isOpen(): boolean {
    return this.session.isOpen;
  }

  get closed(): Promise<void> {
    return this.session.closed;
  }

  async close(): Promise<void> {
    await this.session.logout();
  }

  async #run(what: string, command: Omit<Command, 'lun'>): Promise<CommandResult> {
    for (;;) {
      const result = await this.session.execute({ ...command, lun: this.lun });
      if (result.status === 0) return result;
      const senseKey = result.sense.length > 2 ? result.sense.readUInt8(2) & 0xf : 0;
      const code = result.sense.length > 13 ? result.sense.readUInt16BE(12) : 0;
      if (result.status === CHECK_CONDITION && senseKey === UNIT_ATTENTION && code === RESET) continue;
      throw new ScsiError(what, result.status, senseKey, code);
    }
  }
}

function cdb16(operation: number): Buffer {
  const cdb = Buffer.alloc(16);
  cdb.writeUInt8(operation, 0);
  return cdb;
}

function blockCdb(operation: number, offset: number, length: number): Buffer {
  if (offset % BLOCK !== 0 || length % BLOCK !== 0) throw new Error('offset and length are multiples of 512');
  const cdb = cdb16(operation);
  cdb.writeBigUInt64BE(BigInt(offset / BLOCK), 2);
  cdb.writeUInt32BE(length / BLOCK, 10);
  return cdb;
}
