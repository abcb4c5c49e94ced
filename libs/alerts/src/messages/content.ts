import type { RuleName, Severity } from '#alerts/rules';

export type AlertEvent = 'opened' | 'escalated' | 'acknowledged' | 'ended' | 'test';

/** What is told, the same at each try. Times are ISO 8601. */
export interface Content {
  event: AlertEvent;
  /** Id of the alert; of a test that of the delivery. */
  alert: string;
  rule: RuleName | 'test';
  object: string;
  severity: Severity;
  what: string;
  means: string;
  todo: string;
  /** Path of the dashboard. */
  link: string | null;
  since: string;
  /** When it happened. */
  at: string;
  /** Who acknowledged it, and what they said. */
  by: string | null;
  note: string | null;
}

/** One delivery: its id stays the same over all tries, so that a receiver can tell a repeat. */
export interface Message {
  id: string;
  content: Content;
  /** Where the dashboard is, without a slash at its end; undefined: nobody said. */
  dashboard: string | undefined;
  /** Which appliance says it. */
  source: string;
}

const HEADS: Readonly<Record<AlertEvent, string>> = {
  opened: '',
  escalated: 'Nobody has acknowledged: ',
  acknowledged: 'Acknowledged: ',
  ended: 'Ended: ',
  test: 'Test: ',
};

/** In one line. */
export const titleOf = ({ event, what }: Content): string => `${HEADS[event]}${oneLine(what)}`;

export const detailsOf = ({ means, todo, by, note, event, since }: Content): [name: string, text: string][] => {
  const rows: [string, string | null][] = [
    ['What follows', event === 'ended' ? null : means],
    ['What to do', event === 'ended' || event === 'acknowledged' ? null : todo],
    ['By', by],
    ['Note', note],
    ['Since', since],
  ];
  return rows.filter((row): row is [string, string] => row[1] !== null && row[1] !== '');
};

export const addressIn = ({ content: { link }, dashboard }: Message): string | null =>
  link !== null && dashboard !== undefined ? `${dashboard}${link}` : null;

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken away
export const oneLine = (text: string): string => text.replace(/[\u0000-\u001f\u007f\u0085\u2028\u2029]+/g, ' ').trim();

/** Never half of a character. */
export const cut = (text: string, most: number): string => {
  const all = Array.from(text);
  return all.length <= most ? text : `${all.slice(0, most - 1).join('')}…`;
};
