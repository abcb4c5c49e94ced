import type { ZodType } from 'zod';
import { csvOf } from '#admin/contract/csv';
import type { ReplyOf, RouteContract } from '#admin/contract/route';
import { table } from '../table.js';
import type { Answered, ApiClient, Sent } from './api-client.js';

export interface Page<T> {
  items: T[];
  next: string | null;
}
type ListRoute = RouteContract & { reply: ZodType<Page<unknown>> };

/** As many as asked for, over as many pages as it takes. `next` stays null when there are no more. */
export async function listed<R extends ListRoute>(api: ApiClient, route: R, sent: Sent<R>, limit: number) {
  type Item = ReplyOf<R>['items'][number];
  const items: Item[] = [];
  let next: string | null = null;
  do {
    const query: object = {
      ...(sent.query as object),
      limit: Math.min(200, limit - items.length),
      cursor: next ?? undefined,
    };
    const answer: Answered<R> = await api.call(route, { ...sent, query } as Sent<R>);
    const page = answer.reply as Page<Item>;
    items.push(...page.items);
    next = page.next;
  } while (next !== null && items.length < limit);
  return { items, next };
}

/** How a list is to be shown; neither: as a table. */
export interface Shape {
  json?: boolean;
  output?: 'table' | 'json' | 'csv';
}

export const isTable = ({ json, output }: Shape): boolean => !json && (output ?? 'table') === 'table';

export interface Columns<T> extends Shape {
  /** Said when there are none: the next command. */
  none: string;
  columns: Readonly<Record<string, (item: T) => string>>;
}

/** The table of a list, a line each. */
export function tableLines<T>(items: readonly T[], { none, columns }: Columns<T>): string[] {
  if (items.length === 0) return [none];
  const cells = Object.values(columns);
  const rows = items.map(item => cells.map(cell => printable(cell(item))));
  return table(Object.keys(columns), rows).trimEnd().split('\n');
}

/** A list that comes whole has no `next`. */
export function showPage<T>(
  page: { items: readonly T[]; next?: string | null },
  { json = false, output = json ? 'json' : 'table', none, columns }: Columns<T>,
): void {
  const { items, next } = page;
  if (output === 'csv') {
    process.stdout.write(csvOf(items as readonly object[]));
    if (next) process.stderr.write(`trivet: the first ${items.length} alone; --limit gives more\n`);
    return;
  }
  if (output === 'json') {
    sayJson(page);
    return;
  }
  for (const line of tableLines(items, { none, columns })) say(line);
  if (next) say(`the first ${items.length}; --limit shows more`);
}

/** One object: its JSON, or what people want to read about it. */
export function showOne(object: unknown, json: boolean | undefined, lines: () => string): void {
  if (json) sayJson(object);
  else say(lines());
}

/** Named lines of one object. */
export function facts(rows: readonly (readonly [string, string | null | undefined])[]): string {
  const shown = rows.filter((row): row is [string, string] => row[1] !== null && row[1] !== undefined && row[1] !== '');
  const width = Math.max(...shown.map(([name]) => name.length));
  return shown.map(([name, value]) => `${name.padEnd(width)}  ${printable(value)}`).join('\n');
}

export const say = (line: string): void => void process.stdout.write(`${line}\n`);
export const sayJson = (value: unknown): void => say(JSON.stringify(value ?? null, null, 2));

/** What a tenant called something must not drive the terminal of an operator. */
export const printable = (text: string): string => text.replaceAll(/[\p{Cc}\u2028-\u202e\u2066-\u2069]/gu, '\ufffd');

/** `[█████·····]` */
export function bar(share: number, width: number): string {
  const filled = Math.min(width, Math.round(share * width));
  return `[${'█'.repeat(filled)}${'·'.repeat(width - filled)}]`;
}

/** How long ago, in its two largest units. */
export function ago(time: string, now = Date.now()): string {
  return span(Math.max(0, now - Date.parse(time)));
}

export function span(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  const units: [number, string][] = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3_600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
    [seconds % 60, 's'],
  ];
  const first = units.findIndex(([value]) => value > 0);
  if (first === -1) return '0s';
  const shown = units.slice(first, first + 2).filter(([value]) => value > 0);
  return shown.map(([value, unit]) => `${value}${unit}`).join('');
}
