import { SegmentedControl } from '@mantine/core';
import { type KeyboardEvent, useState } from 'react';
import type { ReadOf } from '../api/routes';
import { showBytes, showPercent } from './amounts';
import { DataTable } from './data-table';
import { Empty } from './page';

type Map = ReadOf<'/tenants/{tenant}/snapshots/{snapshot}/change-map'>;

/** Of a row of the picture. On a phone the cells are small, but each row means the same part of the volume. */
const COLUMNS = 64;
const CELL = 10;
const LEVELS = ['nothing', 'up to a quarter', 'up to a half', 'up to three quarters', 'more'] as const;
const levelOf = (share: number): number => (share <= 0 ? 0 : Math.min(4, Math.floor(share * 4 - 1e-9) + 1));

/** Where a volume holds data or changed: a picture that arrow keys walk through, or a table of the same. */
export function ChangeMap({ map, what }: { map: Map; what: string }) {
  const [form, setForm] = useState<'picture' | 'table'>('picture');
  return (
    <div>
      <SegmentedControl
        size="xs"
        mb="xs"
        aria-label="Form of the map"
        value={form}
        onChange={value => setForm(value as 'picture' | 'table')}
        data={[
          { value: 'picture', label: 'Picture' },
          { value: 'table', label: 'Table' },
        ]}
      />
      {form === 'picture' ? <Picture map={map} what={what} /> : <Ranges map={map} what={what} />}
    </div>
  );
}

function Picture({ map: { cells, cellSize, bytes, capacity }, what }: { map: Map; what: string }) {
  const [chosen, setChosen] = useState<number>();
  const columns = Math.min(COLUMNS, Math.max(1, cells.length));
  const rows = Math.ceil(cells.length / columns);
  const walk = (event: KeyboardEvent): void => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
    const to =
      event.key === 'Home'
        ? 0
        : event.key === 'End'
          ? cells.length - 1
          : step === undefined
            ? undefined
            : (chosen ?? 0) + (chosen === undefined ? 0 : step);
    if (to === undefined) return;
    event.preventDefault();
    setChosen(Math.max(0, Math.min(cells.length - 1, to)));
  };
  return (
    <div>
      <div
        role="img"
        aria-label={`Map of the volume from its begin to its end: ${showBytes(bytes)} of ${showBytes(capacity)} ${what}. Arrow keys walk through its ${cells.length} cells.`}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: arrow keys read one cell after the other
        tabIndex={0}
        onKeyDown={walk}
      >
        <svg
          className="change-map"
          viewBox={`0 0 ${columns * CELL} ${rows * CELL}`}
          aria-hidden="true"
          onPointerLeave={() => setChosen(undefined)}
          onPointerMove={event => {
            const box = event.currentTarget.getBoundingClientRect();
            const column = Math.floor(((event.clientX - box.left) / box.width) * columns);
            const row = Math.floor(((event.clientY - box.top) / box.height) * rows);
            const at = row * columns + column;
            setChosen(at >= 0 && at < cells.length ? at : undefined);
          }}
        >
          {cells.map((share, at) => (
            <rect
              // biome-ignore lint/suspicious/noArrayIndexKey: a cell is its place
              key={at}
              className={`cell-${levelOf(share)}`}
              x={(at % columns) * CELL}
              y={Math.floor(at / columns) * CELL}
              width={CELL - 1}
              height={CELL - 1}
            />
          ))}
          {chosen !== undefined && (
            <rect
              className="cell-chosen"
              x={(chosen % columns) * CELL}
              y={Math.floor(chosen / columns) * CELL}
              width={CELL - 1}
              height={CELL - 1}
            />
          )}
        </svg>
      </div>
      <p className="dimmed" aria-live="polite">
        {chosen === undefined
          ? 'Point at a cell, or walk with the arrow keys.'
          : `Cell ${chosen + 1} of ${cells.length}, from ${offsetOf(chosen, cellSize)} to ${offsetOf(chosen + 1, cellSize)}: ${showPercent(cells[chosen] ?? 0)} ${what}`}
      </p>
      <ul className="legend" aria-label="Shades: share of a cell">
        {LEVELS.map((name, level) => (
          <li key={name}>
            <svg viewBox="0 0 10 10" aria-hidden="true">
              <rect className={`cell-${level}`} width={10} height={10} />
            </svg>
            {name}
          </li>
        ))}
      </ul>
    </div>
  );
}

interface Run {
  from: number;
  to: number;
  /** Cells' worth of it. */
  sum: number;
}

/** Neighbouring cells that are not empty are one row. */
function Ranges({ map: { cells, cellSize }, what }: { map: Map; what: string }) {
  const runs: Run[] = [];
  for (const [at, share] of cells.entries()) {
    if (share <= 0) continue;
    const last = runs.at(-1);
    if (last?.to === at) {
      last.to = at + 1;
      last.sum += share;
    } else runs.push({ from: at, to: at + 1, sum: share });
  }
  return (
    <DataTable
      label={`Parts of the volume where something ${what}`}
      rows={runs}
      keyOf={({ from }) => String(from)}
      empty={<Empty what={`Nothing ${what}.`} />}
      columns={[
        { head: 'From', cell: ({ from }) => offsetOf(from, cellSize), number: true },
        { head: 'To', cell: ({ to }) => offsetOf(to, cellSize), number: true },
        { head: 'Share', cell: ({ from, to, sum }) => showPercent(sum / (to - from)), number: true },
        { head: 'About', cell: ({ sum }) => showBytes(sum * Number(cellSize)), number: true },
      ]}
    />
  );
}

const offsetOf = (cell: number, cellSize: string): string => showBytes(BigInt(cell) * BigInt(cellSize));
