/**
 * One iSCSI session over one connection: SCSI commands in flight up to the target's window, data both ways.
 *
 * It never reconnects and never repeats: whoever uses it sees every error, and the end of the session. The exporter
 * holds a unit's queue with it while the unit grows (see resize.ts); the tests are its other user.
 */
import { connect, type Socket } from 'node:net';
import { type LoginOptions, type LoginResult, login } from './iscsi-login.js';
import {
  encode,
  FINAL,
  flagsOf,
  IMMEDIATE,
  makeHeader,
  NO_TAG,
  Opcode,
  opcodeOf,
  type Pdu,
  PduReader,
  taskTagOf,
  writeLun,
} from './iscsi-pdu.js';

export interface Command {
  lun: number;
  cdb: Buffer;
  /** Most bytes that the target may send. */
  read?: number;
  write?: Buffer;
  /** An ordered command starts when the unit has nothing else to do, and nothing else starts until it has ended. */
  order?: 'simple' | 'ordered';
  /** Called once, with the first data of the target. */
  onData?: () => void;
}

export interface CommandResult {
  /** 0 good, 2 check condition: see `sense`. */
  status: number;
  data: Buffer;
  sense: Buffer;
}

interface Task {
  command: Command;
  chunks: { offset: number; bytes: Buffer }[];
  resolve(result: CommandResult): void;
  reject(error: Error): void;
}

const READ = 0x40;
const WRITE = 0x20;
const ORDER = { simple: 1, ordered: 2 };

export class IscsiSession {
  readonly #tasks = new Map<number, Task>();
  readonly #waiting: (() => void)[] = [];
  readonly #reader = new PduReader();
  #negotiated: LoginResult | undefined;
  #loginTurn: ((pdu: Pdu) => void) | undefined;
  #nextTag = 2;
  #cmdSn = 1;
  #expStatSn = 0;
  #maxCmdSn = 0;
  #over: Error | undefined;
  /** Resolves when the connection is gone, whoever ended it. */
  readonly closed: Promise<void>;

  private constructor(private readonly socket: Socket) {
    socket.setNoDelay(true);
    socket.on('data', chunk => this.#receive(chunk));
    this.closed = new Promise(resolve => {
      socket.once('error', error => this.#end(error));
      socket.once('close', () => {
        this.#end(new Error('the target closed the connection'));
        resolve();
      });
    });
  }

  /** Rejects with LoginRefused when the target says no. */
  static async open(
    address: { host: string; port: number },
    options: LoginOptions,
    signal?: AbortSignal,
  ): Promise<IscsiSession> {
    const socket = connect(address);
    const session = new IscsiSession(socket);
    const abort = (): void => session.destroy(new Error('aborted'));
    signal?.addEventListener('abort', abort, { once: true });
    try {
      if (signal?.aborted) throw new Error('aborted');
      const result = await login(options, pdu => session.#exchange(pdu));
      session.#negotiated = result;
      session.#cmdSn = result.cmdSn;
      session.#expStatSn = result.expStatSn;
      session.#maxCmdSn = result.maxCmdSn;
      return session;
    } catch (error) {
      session.destroy();
      throw error;
    } finally {
      signal?.removeEventListener('abort', abort);
    }
  }

  get isOpen(): boolean {
    return this.#over === undefined;
  }

  /** Resolves with any status; rejects when the session ends before the answer. */
  async execute(command: Command): Promise<CommandResult> {
    while (this.#over === undefined && this.#windowIsFull()) await new Promise<void>(go => this.#waiting.push(go));
    if (this.#over) throw this.#over;
    const tag = this.#nextTag++;
    const { read = 0, write } = command;
    const flags = FINAL | (read > 0 ? READ : 0) | (write ? WRITE : 0) | ORDER[command.order ?? 'simple'];
    const header = makeHeader(Opcode.command, flags, tag);
    writeLun(header, command.lun);
    header.writeUInt32BE(write?.length ?? read, 20);
    header.writeUInt32BE(this.#cmdSn, 24);
    header.writeUInt32BE(this.#expStatSn, 28);
    command.cdb.copy(header, 32);
    this.#cmdSn = (this.#cmdSn + 1) >>> 0;
    return new Promise((resolve, reject) => {
      this.#tasks.set(tag, { command, chunks: [], resolve, reject });
      this.socket.write(encode(header));
    });
  }

  /** Stops reading: what the target has to send stays with it. */
  pause(): void {
    this.socket.pause();
  }

  resume(): void {
    this.socket.resume();
  }

  /** Says goodbye and waits until the target has hung up. */
  async logout(): Promise<void> {
    if (this.#over) return;
    const header = makeHeader(Opcode.logout | IMMEDIATE, FINAL, this.#nextTag++);
    header.writeUInt32BE(this.#cmdSn, 24);
    header.writeUInt32BE(this.#expStatSn, 28);
    this.socket.write(encode(header));
    await this.closed;
  }

  destroy(reason = new Error('the session was ended')): void {
    this.#end(reason);
    this.socket.destroy();
  }

  #windowIsFull(): boolean {
    return ((this.#maxCmdSn - this.#cmdSn) | 0) < 0;
  }

  #exchange(pdu: Buffer): Promise<Pdu> {
    return new Promise((resolve, reject) => {
      if (this.#over) return reject(this.#over);
      this.#loginTurn = resolve;
      this.#tasks.set(1, { command: { lun: 0, cdb: Buffer.alloc(0) }, chunks: [], resolve: () => {}, reject });
      this.socket.write(pdu);
    });
  }

  #receive(chunk: Buffer): void {
    this.#reader.push(chunk);
    for (let pdu = this.#reader.next(); pdu; pdu = this.#reader.next()) {
      if (this.#negotiated === undefined && this.#loginTurn) {
        const turn = this.#loginTurn;
        this.#loginTurn = undefined;
        this.#tasks.delete(1);
        turn(pdu);
      } else {
        this.#handle(pdu);
      }
    }
  }

  #handle(pdu: Pdu): void {
    const { header } = pdu;
    const opcode = opcodeOf(pdu);
    this.#maxCmdSn = header.readUInt32BE(32);
    const hasStatus = opcode !== Opcode.readyToTransfer && (opcode !== Opcode.dataIn || (flagsOf(pdu) & 1) !== 0);
    if (hasStatus && taskTagOf(pdu) !== NO_TAG) this.#expStatSn = (header.readUInt32BE(24) + 1) >>> 0;
    for (const go of this.#waiting.splice(0)) go();
    switch (opcode) {
      case Opcode.dataIn:
        this.#takeData(pdu);
        return;
      case Opcode.response:
        this.#finish(pdu, header.readUInt8(3));
        return;
      case Opcode.readyToTransfer:
        this.#sendData(pdu);
        return;
      case Opcode.nopIn:
        this.#answerNop(pdu);
        return;
      case Opcode.logoutResponse:
        this.socket.end();
        return;
      default:
        this.destroy(new Error(`the target sent unit 0x${opcode.toString(16)}`));
    }
  }

  #takeData(pdu: Pdu): void {
    const task = this.#tasks.get(taskTagOf(pdu));
    if (!task) return;
    if (task.chunks.length === 0) task.command.onData?.();
    task.chunks.push({ offset: pdu.header.readUInt32BE(40), bytes: pdu.data });
    if (flagsOf(pdu) & 1) this.#finish(pdu, pdu.header.readUInt8(3));
  }

  #sendData(pdu: Pdu): void {
    const task = this.#tasks.get(taskTagOf(pdu));
    const data = task?.command.write;
    if (!task || !data) return;
    let offset = pdu.header.readUInt32BE(40);
    const end = Math.min(offset + pdu.header.readUInt32BE(44), data.length);
    for (let number = 0; offset < end; number++) {
      const next = Math.min(offset + (this.#negotiated as LoginResult).targetSegmentBytes, end);
      const part = data.subarray(offset, next);
      const header = makeHeader(Opcode.dataOut, next === end ? FINAL : 0, taskTagOf(pdu), part.length);
      writeLun(header, task.command.lun);
      header.writeUInt32BE(pdu.header.readUInt32BE(20), 20);
      header.writeUInt32BE(this.#expStatSn, 28);
      header.writeUInt32BE(number, 36);
      header.writeUInt32BE(offset, 40);
      this.socket.write(encode(header, part));
      offset = next;
    }
  }

  #finish(pdu: Pdu, status: number): void {
    const tag = taskTagOf(pdu);
    const task = this.#tasks.get(tag);
    if (!task) return;
    this.#tasks.delete(tag);
    const isResponse = opcodeOf(pdu) === Opcode.response;
    const senseBytes = isResponse && pdu.data.length >= 2 ? pdu.data.readUInt16BE(0) : 0;
    const data = Buffer.concat(task.chunks.sort((a, b) => a.offset - b.offset).map(chunk => chunk.bytes));
    task.resolve({ status, data, sense: isResponse ? pdu.data.subarray(2, 2 + senseBytes) : Buffer.alloc(0) });
  }

  #answerNop(pdu: Pdu): void {
    const transferTag = pdu.header.readUInt32BE(20);
    if (transferTag === NO_TAG) return;
    const header = makeHeader(Opcode.nopOut | IMMEDIATE, FINAL, NO_TAG);
    header.writeUInt32BE(transferTag, 20);
    header.writeUInt32BE(this.#cmdSn, 24);
    header.writeUInt32BE(this.#expStatSn, 28);
    this.socket.write(encode(header));
  }

  #end(reason: Error): void {
    if (this.#over) return;
    this.#over = reason;
    for (const task of this.#tasks.values()) task.reject(reason);
    this.#tasks.clear();
    for (const go of this.#waiting.splice(0)) go();
  }
}
