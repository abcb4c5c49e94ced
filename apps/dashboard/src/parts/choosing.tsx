import { Checkbox } from '@mantine/core';
import { useEffect, useState } from 'react';
import { useMay } from '../api/me';
import type { Find, Input, PathOf } from '../api/routes';

type BulkPath = Extract<PathOf<'POST'>, `/tenants/{tenant}/bulk/${string}`>;
type TotalsPath = Extract<PathOf<'GET'>, `/tenants/{tenant}/totals/${string}`>;

export interface BulkAction {
  /** Its route. */
  starts: BulkPath;
  /** Of its button, behind which the number stands. */
  label: string;
  explain: string;
  /** Something is lost: the number is typed first. */
  danger?: boolean;
  role: 'operator' | 'admin';
  reason: 'optional' | 'required';
}

export interface BulkActions {
  tenant: string;
  /** What one and many of them are called. */
  noun: readonly [one: string, many: string];
  /** Counts what the filters match. */
  totals: TotalsPath;
  /** Beside those of the address. */
  filter?: Record<string, string>;
  /** Beside the filters, when it is counted what is to be chosen. */
  counts?: Record<string, string>;
  actions: readonly BulkAction[];
}

interface Row {
  id: string;
  name?: string;
}

/** How many, and which they are, as their totals say it. */
export interface Matching {
  count: number;
  digest: string | undefined;
}

/** What of a list is chosen, also on pages that are not shown. */
export interface Choosing {
  bulk: BulkActions;
  /** Names by ids. */
  chosen: ReadonlyMap<string, string>;
  /** All that match, by the filters: what that was when it was counted. */
  matching: Matching | undefined;
  /** As the bulk takes them. */
  filter: Record<string, string>;
  /** @param range with all between it and the one before */
  toggle(row: Row, range: boolean): void;
  choosePage(): void;
  chooseMatching(matching: Matching): void;
  none(): void;
}

/** What the list shows, without its order. */
export function filterOf(bulk: BulkActions | undefined, wanted: Record<string, unknown>): Record<string, string> {
  const { sort: _, limit: _limit, ...filters } = wanted;
  return Object.fromEntries(
    Object.entries({ ...filters, ...bulk?.filter }).map(([name, value]) => [name, String(value)]),
  );
}

/** Undefined: nobody can do anything to many of these. */
export function useChoosing(
  bulk: BulkActions | undefined,
  rows: readonly object[] | undefined,
  wanted: Record<string, unknown>,
): Choosing | undefined {
  const may = useMay();
  const [chosen, setChosen] = useState<ReadonlyMap<string, string>>(new Map());
  const [matching, setMatching] = useState<Matching>();
  const [last, setLast] = useState<string>();
  const filter = filterOf(bulk, wanted);
  // What was chosen by other filters is not shown any more, and must not go along unseen.
  const asked = JSON.stringify([bulk?.tenant, filter]);
  useEffect(() => {
    void asked;
    setChosen(new Map());
    setMatching(undefined);
  }, [asked]);
  const allowed = bulk?.actions.filter(({ role }) => may(role));
  if (!bulk || !allowed || allowed.length === 0) return undefined;
  const shown = (rows ?? []) as readonly Row[];
  const choose = (to: ReadonlyMap<string, string>): void => {
    setMatching(undefined);
    setChosen(to);
  };
  return {
    bulk: { ...bulk, actions: allowed },
    chosen,
    matching,
    filter,
    toggle(row, range) {
      const after = new Map(chosen);
      const on = !after.has(row.id);
      const [from, to] = [shown.findIndex(({ id }) => id === last), shown.findIndex(({ id }) => id === row.id)];
      const some = range && from >= 0 ? shown.slice(Math.min(from, to), Math.max(from, to) + 1) : [row];
      for (const each of some) {
        if (on) after.set(each.id, nameOf(each));
        else after.delete(each.id);
      }
      setLast(row.id);
      choose(after);
    },
    choosePage() {
      choose(new Map([...chosen, ...shown.map(row => [row.id, nameOf(row)] as const)]));
    },
    chooseMatching: setMatching,
    none() {
      setLast(undefined);
      choose(new Map());
    },
  };
}

export const nameOf = (row: Row): string => {
  const { kind, resource, volume, host } = row as {
    kind?: string;
    resource?: { name: string };
    volume?: { name: string };
    host?: { name: string };
  };
  if (row.name !== undefined) return row.name;
  if (resource) return `${kind} ${resource.name}`;
  return volume && host ? `${volume.name} to ${host.name}` : row.id;
};

/** By the space bar, and with Shift all from the one that was chosen before. */
export function ChooseRow({ choosing, row }: { choosing: Choosing; row: unknown }) {
  const { id } = row as Row;
  return (
    <Checkbox
      size="xs"
      aria-label={`Choose ${nameOf(row as Row)}`}
      checked={choosing.matching !== undefined || choosing.chosen.has(id)}
      disabled={choosing.matching !== undefined}
      // A change does not say which keys were held, and the space bar clicks, too.
      onClick={({ shiftKey }) => choosing.toggle(row as Row, shiftKey)}
    />
  );
}

export type BulkBody = Input<Find<'POST', BulkPath>>['body'];
