import { Button, Group } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import { csvOf } from '#admin/contract/csv';
import { type Answer, call } from '../api/client';
import type { Find, Input, PathOf, ReadOf } from '../api/routes';
import { ProblemAlert } from './problem-alert';

/** Nobody's spreadsheet takes many more, and the page holds them all until it has the last. */
const MOST_ROWS = 100_000;
const PAGE = 200;

/** Any that has pages; one stands for all to the compiler. */
type List = '/tenants/{tenant}/volumes';

interface ExportProps<P extends PathOf<'GET'>> {
  /** Of the file, without its ending. */
  name: string;
  path: P;
  /** Of the list that is shown; its place is left out. */
  query: Readonly<Record<string, string | number>>;
}

/** The whole of a filtered list as a file, page after page, until somebody has enough of it. */
export function ExportCsv<P extends PathOf<'GET'>>(props: ExportProps<P> & Pick<Input<Find<'GET', P>>, 'params'>) {
  const { name, path, params, query } = props;
  const [read, setRead] = useState<number>();
  const [ended, setEnded] = useState('');
  const [error, setError] = useState<unknown>();
  const running = useRef<AbortController>(undefined);
  // Whoever leaves the page, or asks for another list, wants this one no more.
  const asked = JSON.stringify([path, params, query]);
  useEffect(() => {
    void asked;
    return () => running.current?.abort();
  }, [asked]);

  const carryOut = async (): Promise<void> => {
    const control = new AbortController();
    running.current = control;
    setError(undefined);
    setEnded('');
    setRead(0);
    try {
      const rows: object[] = [];
      let next: string | null = null;
      do {
        const input: object = { params, query: { ...query, limit: PAGE, cursor: next ?? undefined } };
        const { data }: Answer<ReadOf<List>> = await call('GET', path as List, input as Input<Find<'GET', List>>, {
          signal: control.signal,
        });
        rows.push(...data.items);
        next = data.next;
        setRead(rows.length);
      } while (next !== null && rows.length < MOST_ROWS);
      save(csvOf(rows), `${name}.csv`);
      const count = rows.length.toLocaleString('en');
      setEnded(
        next === null ? `${count} rows exported` : `The first ${count} rows exported: narrow the list for the rest`,
      );
    } catch (failure) {
      if (control.signal.aborted) setEnded('Export cancelled');
      else setError(failure);
    } finally {
      running.current = undefined;
      setRead(undefined);
    }
  };

  return (
    <>
      <Group gap="xs">
        {read === undefined ? (
          <Button variant="default" size="xs" onClick={() => void carryOut()}>
            Export as CSV
          </Button>
        ) : (
          <Button variant="default" size="xs" onClick={() => running.current?.abort()}>
            Cancel the export
          </Button>
        )}
        <output className="dimmed">{read === undefined ? ended : `${read.toLocaleString('en')} rows read`}</output>
      </Group>
      {error !== undefined && <ProblemAlert error={error} />}
    </>
  );
}

/** What is on the page whole. */
export const ExportRows = ({ name, rows }: { name: string; rows: readonly object[] }) => (
  <Group>
    <Button variant="default" size="xs" onClick={() => save(csvOf(rows), `${name}.csv`)}>
      Export as CSV
    </Button>
  </Group>
);

function save(text: string, name: string): void {
  // Spreadsheets take a file without this mark for one of the system's own letters.
  const address = URL.createObjectURL(new Blob(['\ufeff', text], { type: 'text/csv;charset=utf-8' }));
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  URL.revokeObjectURL(address);
}
