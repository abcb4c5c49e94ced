import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { csvOf } from '#admin/contract/csv';

/** A reader by the grammar of RFC 4180 alone. */
function read(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  const field = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/y;
  while (field.lastIndex < text.length) {
    const at = field.lastIndex;
    const [, quoted, plain, end] = field.exec(text) ?? [];
    if (end === undefined) throw new Error(`no field at ${at}: ${JSON.stringify(text.slice(at))}`);
    row.push(quoted === undefined ? plain! : quoted.replaceAll('""', '"'));
    if (end === ',') continue;
    rows.push(row);
    row = [];
  }
  return rows;
}

const anyText = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.string({ unit: fc.constantFrom('=', '+', '-', '@', '\t', '\r', '\n', '"', ',', "'", 'a', ' ') }),
);

describe('a list as CSV', () => {
  it('is read back cell by cell, whatever stands in it, and no cell is a formula', () => {
    fc.assert(
      fc.property(fc.array(fc.record({ name: anyText, note: anyText }), { minLength: 1 }), items => {
        const [head, ...rows] = read(csvOf(items));
        expect(head).toEqual(['name', 'note']);
        const back = rows.map(row => row.map(cell => cell.replace(/^'(?=[=+\-@\t\r])/, '')));
        const wanted = items.map(({ name, note }) => [name, note].map(text => text.replace(/^'(?=[=+\-@\t\r])/, '')));
        expect(back).toEqual(wanted);
        expect(rows.flat().filter(cell => /^[=+\-@\t\r]/.test(cell))).toEqual([]);
      }),
      { numRuns: 2_000 },
    );
  });

  it('defuses what a spreadsheet would run, and quotes by RFC 4180', () => {
    expect(csvOf([{ name: '=HYPERLINK("http://x")' }, { name: '@SUM(1)' }, { name: 'a,b' }, { name: '\tx' }])).toBe(
      'name\r\n"\'=HYPERLINK(""http://x"")"\r\n\'@SUM(1)\r\n"a,b"\r\n\'\tx\r\n',
    );
  });

  it('has the parts of an object in columns of their own, also where some rows have none', () => {
    const volume = { id: '1', name: 'shop' };
    const items = [
      { id: 'a', volume, condition: null, iqns: ['iqn.1', 'iqn.2'], lun: 0 },
      { id: 'b', volume, condition: { type: 'lost', message: 'no image' }, iqns: [], grants: [{ bucket: 'x' }] },
    ];
    expect(read(csvOf(items))).toEqual([
      ['id', 'volume.id', 'volume.name', 'iqns', 'lun', 'condition.type', 'condition.message', 'grants'],
      ['a', '1', 'shop', 'iqn.1 iqn.2', '0', '', '', ''],
      ['b', '1', 'shop', '', '', 'lost', 'no image', '[{"bucket":"x"}]'],
    ]);
    expect(csvOf([])).toBe('');
  });
});
