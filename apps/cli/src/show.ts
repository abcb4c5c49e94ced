import { table } from './table.js';

export interface Shown<Row> {
  json?: boolean;
  /** Said when there are no rows. */
  none: string;
  columns: Readonly<Record<string, (row: Row) => string>>;
}

/** Rows as a table for people, or as JSON for scripts. */
export function show<Row>(rows: readonly Row[], { json, none, columns }: Shown<Row>): void {
  if (json) process.stdout.write(`${JSON.stringify(rows, null, 2)}\n`);
  else if (rows.length === 0) process.stdout.write(`${none}\n`);
  else {
    const cells = Object.values(columns);
    process.stdout.write(
      table(
        Object.keys(columns),
        rows.map(row => cells.map(cell => cell(row))),
      ),
    );
  }
}
