import { choice, flag, initially, one, parsed, text, UsageError } from '../command-line/command.js';
import { readBytes } from '../read-bytes.js';

/** Of every command that talks to the API. */
export const OVER_API = {
  url: text('address', "the API's address; else TRIVET_ADMIN_URL, or the appliance of this home"),
  tokenFile: text('file', 'holds an API token; else TRIVET_ADMIN_TOKEN_FILE, or that of this home'),
  json: flag('as the API says it, for scripts'),
};

export const OF_TENANT = {
  tenant: text('name', 'whose; your own when absent, for administrators of the appliance `default`'),
  ...OVER_API,
};

/** Of a list; `csv` has what `json` has, a column for each field. */
export const OUTPUT = choice(
  'form',
  ['table', 'json', 'csv'],
  'table for people, or json or csv; --json is the second',
);

/** Of what may change while somebody looks at it. */
export const WATCH = flag('again whenever it changes, until Ctrl-C; a line a change where that is no terminal');

/** Of a list: instead of `--tenant`. */
export const ALL_TENANTS = flag('what all tenants have, for administrators of the appliance');

/** Of a command that takes away what cannot be had back. */
export const YES = flag('without a question; needed where nobody sits at a terminal');

/** Of a command that is answered a secret. */
export const SECRET_FILE = text('file', 'write the secret there, for you alone (mode 0600), and not to the terminal');

/** Names a thing that is there. */
export const NAME = one('as it is listed');
/** Names a new one. */
export const LABEL = one('small letters, digits and -');

/** Of the tools that use volumes as any other client does, over CSP. */
export const OVER_CSP = {
  url: text('address', 'http(s) address of the appliance; else the one that runs here'),
  user: text('name', 'who logs in over CSP: name, or name@tenant'),
  passwordFile: text('file', 'file with the password'),
  caFile: text('file', 'PEM of whom to trust over https'),
};

export const limit = (initial: number) => initially(parsed('n', 'how many', wholeNumber(1)), initial);
export const reason = text('text', 'why; kept in the audit log');
export const install = { noInstall: flag('install no system packages') };

export const wholeNumber =
  (least: number, most = 999_999_999) =>
  (given: string): number => {
    const value = Number(given);
    if (!/^\d{1,9}$/.test(given) || value < least || value > most)
      throw new UsageError(`expected a whole number from ${least} to ${most}`);
    return value;
  };

/** `FIELD=VALUE`, one after the other. */
export function collectSetting(given: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const at = given.indexOf('=');
  if (at < 1) throw new UsageError('expected FIELD=VALUE');
  return { ...before, [given.slice(0, at)]: given.slice(at + 1) };
}

/** Each that is given, one after the other. */
export const collect = (given: string, before: readonly string[] = []): readonly string[] => [...before, given];

/** Exact bytes of `10GiB`, as the API takes them. */
export function readSize(given: string): string {
  const bytes = readBytes(given);
  if (bytes === undefined) throw new UsageError('expected bytes, e.g. 10GiB (or 10G) or 10GB');
  return bytes;
}
