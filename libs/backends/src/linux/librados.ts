/**
 * librados, as far as the block backend on Ceph needs it: a connection, pools, commands to the monitors, and small objects
 * whose keys change under conditions, all of one call or none. What takes time runs in libuv's pool (foreign.ts).
 */
import { type ForeignLibrary, foreignError, koffi, openLibrary, type Pointer } from '#backends/linux/foreign';

let library: ForeignLibrary | undefined;

export function librados(): ForeignLibrary {
  library ??= openLibrary('librados.so.2');
  return library;
}

/** Options of librados by their names; `key` is one of them, and no other process sees it. */
export async function connectRados(user: string, options: Readonly<Record<string, string>>): Promise<RadosCluster> {
  const rados = librados();
  const made: [Pointer] = [null];
  const create = 'int rados_create2(_Out_ void **cluster, const char *name, const char *user, uint64_t flags)';
  const failed = rados.now<number>(create, made, 'ceph', `client.${user}`, 0);
  if (failed < 0) throw foreignError('rados_create2', failed);
  const cluster = made[0];
  try {
    for (const [name, value] of Object.entries(options)) {
      const set = 'int rados_conf_set(void *cluster, const char *option, const char *value)';
      const refused = rados.now<number>(set, cluster, name, value);
      if (refused < 0) throw foreignError(`rados_conf_set ${name}`, refused);
    }
    await rados.call('int rados_connect(void *cluster)', cluster);
  } catch (error) {
    await rados.ask('void rados_shutdown(void *cluster)', cluster);
    throw error;
  }
  return new RadosCluster(cluster);
}

export class RadosCluster {
  constructor(private readonly cluster: Pointer) {}

  fsid(): string {
    const text = Buffer.alloc(64);
    const fsid = 'int rados_cluster_fsid(void *cluster, void *text, size_t size)';
    const length = librados().now<number>(fsid, this.cluster, text, text.length);
    if (length < 0) throw foreignError('rados_cluster_fsid', length);
    return text.toString('utf8', 0, length).replace(/\0.*$/s, '');
  }

  /** How the cluster sees this client: one or more of `10.0.0.2:0/123`, as text. */
  async addresses(): Promise<string> {
    const made: [Pointer] = [null];
    await librados().call('int rados_getaddrs(void *cluster, _Out_ void **text)', this.cluster, made);
    const text = koffi().decode(made[0], 'char', -1) as string;
    librados().now('void rados_buffer_free(void *buffer)', made[0]);
    return text;
  }

  /** Every later request knows at least as much as the monitors do now. */
  async barrier(): Promise<void> {
    await librados().call('int rados_wait_for_latest_osdmap(void *cluster)', this.cluster);
  }

  async openPool(name: string): Promise<RadosPool> {
    const made: [Pointer] = [null];
    const create = 'int rados_ioctx_create(void *cluster, const char *pool, _Out_ void **io)';
    await librados().call(create, this.cluster, name, made);
    // What is removed from a full pool makes room: such requests are answered, not kept waiting.
    librados().now('void rados_set_pool_full_try(void *io)', made[0]);
    return new RadosPool(made[0]);
  }

  /** A command to the monitors; its answer as JSON. */
  async command(command: Readonly<Record<string, unknown>>): Promise<unknown> {
    const rados = librados();
    const [out, outLength, said, saidLength] = [[null], [0], [null], [0]] as [Pointer[], number[], Pointer[], number[]];
    const send =
      'int rados_mon_command(void *cluster, const char **command, size_t count, const char *input, size_t inputLength, ' +
      '_Out_ void **out, _Out_ size_t *outLength, _Out_ void **said, _Out_ size_t *saidLength)';
    const text = JSON.stringify({ ...command, format: 'json' });
    const answer = await rados.ask(send, this.cluster, [text], 1, '', 0, out, outLength, said, saidLength);
    const read = (pointer: Pointer, length: number): string => {
      if (pointer === null) return '';
      const copy = Buffer.from(koffi().decode(pointer, 'uint8_t', length) as number[]).toString();
      rados.now('void rados_buffer_free(void *buffer)', pointer);
      return copy;
    };
    const result = read(out[0]!, outLength[0]!);
    read(said[0]!, saidLength[0]!);
    if (answer < 0) throw foreignError(`${command.prefix}`, answer);
    // `osd blocklist ls` of Ceph 16 writes two lists, one behind the other: what is more than one value is a list of them.
    const values = JSON.parse(`[${result.replaceAll('][', '],[')}]`) as unknown[];
    return values.length > 1 ? values : (values[0] ?? null);
  }

  async close(): Promise<void> {
    await librados().ask('void rados_shutdown(void *cluster)', this.cluster);
  }
}

/** One condition on a key of an object: its value now, '' when it has none, compared as bytes. */
export interface KeyCondition {
  key: string;
  is: 'equal' | 'below';
  value: string;
}

const COMPARE = { equal: 1, below: 5 } as const;

export class RadosPool {
  constructor(readonly io: Pointer) {}

  get id(): number {
    return Number(librados().now<number | bigint>('int64_t rados_ioctx_get_id(void *io)', this.io));
  }

  /**
   * Changes keys of an object if all conditions hold, in one step of the cluster; makes the object if need be. False when
   * one did not hold.
   */
  async changeKeys(
    object: string,
    conditions: readonly KeyCondition[],
    set: Readonly<Record<string, string>>,
    remove: readonly string[] = [],
  ): Promise<boolean> {
    const rados = librados();
    const op = rados.now<Pointer>('void *rados_create_write_op()');
    try {
      rados.now('void rados_write_op_create(void *op, int exclusive, const char *category)', op, 0, null);
      for (const { key, is, value } of conditions) {
        const compare =
          'void rados_write_op_omap_cmp(void *op, const char *key, uint8_t how, const char *value, size_t length, int *result)';
        rados.now(compare, op, key, COMPARE[is], value, Buffer.byteLength(value), null);
      }
      const keys = Object.keys(set);
      if (keys.length > 0) {
        const values = Object.values(set);
        const write =
          'void rados_write_op_omap_set(void *op, const char **keys, const char **values, const size_t *lengths, size_t count)';
        rados.now(
          write,
          op,
          keys,
          values,
          values.map(value => Buffer.byteLength(value)),
          keys.length,
        );
      }
      if (remove.length > 0)
        rados.now(
          'void rados_write_op_omap_rm_keys(void *op, const char **keys, size_t count)',
          op,
          remove,
          remove.length,
        );
      const operate = 'int rados_write_op_operate(void *op, void *io, const char *object, void *mtime, int flags)';
      const answer = await rados.ask(operate, op, this.io, object, null, 0);
      if (answer === -ECANCELED) return false;
      if (answer < 0) throw foreignError('rados_write_op_operate', answer);
      return true;
    } finally {
      rados.now('void rados_release_write_op(void *op)', op);
    }
  }

  /** Keys of an object that begin so, with their values, after `after`; none when it is not there. */
  async keys(object: string, prefix: string, after = '', limit = 1_000): Promise<[key: string, value: string][]> {
    const rados = librados();
    const op = rados.now<Pointer>('void *rados_create_read_op()');
    const [found, more, result] = [Buffer.alloc(8), Buffer.alloc(1), Buffer.alloc(4)];
    try {
      const get =
        'void rados_read_op_omap_get_vals2(void *op, const char *after, const char *prefix, uint64_t limit, void *found, void *more, void *result)';
      rados.now(get, op, after, prefix, limit, found, more, result);
      const operate = 'int rados_read_op_operate(void *op, void *io, const char *object, int flags)';
      const answer = await rados.ask(operate, op, this.io, object, 0);
      // Written to while it ran, and named here, so that until here nothing collects them.
      const [failed, isMore] = [result.readInt32LE(), more[0]];
      const pairs = readKeys(found.readBigUInt64LE());
      if (answer === -ENOENT) return [];
      if (answer < 0) throw foreignError('rados_read_op_operate', answer);
      if (failed < 0 || isMore === undefined) throw foreignError('rados_read_op_omap_get_vals2', failed);
      return pairs;
    } finally {
      rados.now('void rados_release_read_op(void *op)', op);
    }
  }

  /** Up to `limit` bytes from its begin; undefined when it is not there. */
  async read(object: string, limit: number): Promise<Buffer | undefined> {
    const data = Buffer.alloc(limit);
    const read = 'int rados_read(void *io, const char *object, void *data, size_t length, uint64_t offset)';
    const answer = await librados().ask(read, this.io, object, data, limit, 0);
    if (answer === -ENOENT) return undefined;
    if (answer < 0) throw foreignError('rados_read', answer);
    return data.subarray(0, answer);
  }

  /** One that is not there is fine. */
  async remove(object: string): Promise<void> {
    const answer = await librados().ask('int rados_remove(void *io, const char *object)', this.io, object);
    if (answer < 0 && answer !== -ENOENT) throw foreignError('rados_remove', answer);
  }

  close(): void {
    librados().now('void rados_ioctx_destroy(void *io)', this.io);
  }
}

const ENOENT = 2;
const ECANCELED = 125;

function readKeys(iterator: bigint): [string, string][] {
  const rados = librados();
  const all: [string, string][] = [];
  const [key, value, length] = [[null], [null], [0]] as [(string | null)[], Pointer[], number[]];
  try {
    for (;;) {
      const next =
        'int rados_omap_get_next(void *iterator, _Out_ const char **key, _Out_ void **value, _Out_ size_t *length)';
      const failed = rados.now<number>(next, iterator, key, value, length);
      if (failed < 0) throw foreignError('rados_omap_get_next', failed);
      if (key[0] == null) return all;
      const bytes = length[0]! > 0 ? (koffi().decode(value[0], 'uint8_t', length[0]!) as number[]) : [];
      all.push([key[0], Buffer.from(bytes).toString()]);
    }
  } finally {
    rados.now('void rados_omap_get_end(void *iterator)', iterator);
  }
}
