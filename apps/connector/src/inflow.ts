import type { OnReadOpts, Socket } from 'node:net';

const BLOCK_BYTES = 32 * 1024;
/** Of TLS. A block with less room is put away, so that none is cut in two. */
const RECORD_BYTES = 16 * 1024;
const MAX_FREE = 64;

interface Block {
  readonly bytes: Buffer;
  /** Of its bytes, that are under way. */
  writes: number;
  /** Nothing more is read into it. */
  isFull: boolean;
}

/** Used over and over: what a stream reads by itself is a buffer of its own each time, and garbage soon. */
const free: Block[] = [];
const newBlock = (): Block => free.pop() ?? { bytes: Buffer.allocUnsafeSlow(BLOCK_BYTES), writes: 0, isFull: false };

function giveBack(block: Block): void {
  if (!block.isFull || block.writes > 0 || free.length >= MAX_FREE) return;
  block.isFull = false;
  free.push(block);
}

/**
 * What a gateway sends on one connection. All that comes in one turn of the event loop is given to the sidecar's connection by one
 * write, instead of one for each record of TLS. While that does not take it the gateway is not read, so two blocks are held at most.
 */
export class Inflow {
  /** For `connect`. */
  readonly onread: OnReadOpts;
  /** Something has come. */
  readonly begun: Promise<void>;
  private remote!: Socket;
  private local: Socket | undefined;
  private block = newBlock();
  private filled = 0;
  private written = 0;
  private isDue = false;
  private isPaused = false;

  constructor() {
    let begin!: () => void;
    this.begun = new Promise(resolve => {
      begin = resolve;
    });
    this.onread = {
      // Node goes on with this one until the callback has returned, so a block is changed there alone.
      buffer: () => this.block.bytes.subarray(this.filled),
      callback: length => {
        begin();
        this.filled += length;
        const isFull = BLOCK_BYTES - this.filled < RECORD_BYTES;
        if (this.local === undefined) this.waitForLocal(isFull);
        else if (!isFull) this.flushSoon();
        if (isFull) this.change();
        return true;
      },
    };
  }

  /** Of which connection. */
  from(remote: Socket): this {
    this.remote = remote;
    return this;
  }

  into(local: Socket): void {
    this.local = local;
    this.flush();
    if (!this.isPaused) this.remote.resume();
  }

  /** Nothing more comes. */
  end(): void {
    this.change();
  }

  /** No gateway has as much to say before it was asked anything. */
  private waitForLocal(isFull: boolean): void {
    if (isFull) this.remote.destroy();
    else this.remote.pause();
  }

  private change(): void {
    this.flush();
    const { block } = this;
    block.isFull = true;
    giveBack(block);
    this.block = newBlock();
    this.filled = 0;
    this.written = 0;
  }

  private flushSoon(): void {
    if (this.isDue) return;
    this.isDue = true;
    setImmediate(() => {
      this.isDue = false;
      this.flush();
    });
  }

  private flush(): void {
    const { local, block, written, filled } = this;
    if (local === undefined || written === filled) return;
    this.written = filled;
    if (!local.writable) return;
    block.writes++;
    local.write(block.bytes.subarray(written, filled), () => {
      block.writes--;
      giveBack(block);
      if (!this.isPaused || local.writableLength > 0) return;
      this.isPaused = false;
      this.remote.resume();
    });
    // The socket has not taken all of it.
    if (local.writableLength === 0 || this.isPaused) return;
    this.isPaused = true;
    this.remote.pause();
  }
}
