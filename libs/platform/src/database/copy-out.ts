import { escapeLiteral, type PoolClient, Query } from 'pg';
import type { Statement } from '#platform/database/sql';

/** Of PostgreSQL's binary COPY: its signature, flags, and the length of an extension that is not there. */
const HEAD = 19;

/** What the driver calls while a COPY comes; it hands bytes over as they are, while of every other result it makes text. */
class CopyQuery extends Query {
  failure: unknown;
  private at = HEAD;

  constructor(
    text: string,
    done: (error: Error | undefined) => void,
    private readonly onRow: (fields: Buffer[]) => void,
  ) {
    super(text, done);
  }

  /** A message is a row, the first one behind the head; a count of -1 ends them. What is thrown here would end the process. */
  handleCopyData({ chunk }: { chunk: Buffer }): void {
    try {
      let at = this.at;
      this.at = 0;
      const count = chunk.readInt16BE(at);
      at += 2;
      if (count < 0 || this.failure !== undefined) return;
      const fields: Buffer[] = [];
      while (fields.length < count) {
        const length = chunk.readInt32BE(at);
        at += 4;
        if (length < 0) throw new Error('a field is NULL');
        fields.push(chunk.subarray(at, at + length));
        at += length;
      }
      this.onRow(fields);
    } catch (error) {
      this.failure ??= error;
    }
  }
}

/**
 * The rows of a query in PostgreSQL's binary formats, as `onRow` takes them one after the other; its fields are good until
 * it returns, and none is NULL. COPY takes no parameters, so they are put into its text.
 */
export function copyOut(
  client: PoolClient,
  { text }: Statement,
  params: readonly (string | number)[],
  onRow: (fields: Buffer[]) => void,
): Promise<void> {
  const select = text.replace(/\$(\d+)/g, (_, n) => escapeLiteral(String(params[Number(n) - 1])));
  return new Promise((resolve, reject) => {
    const copy = new CopyQuery(
      `COPY (${select}) TO STDOUT (FORMAT binary)`,
      error => {
        const failure = error ?? copy.failure;
        if (failure === undefined) resolve();
        else reject(failure);
      },
      onRow,
    );
    client.query(copy);
  });
}
