import { type Command, flagOf, type Option, placeOf, UsageError, type Word } from './command.js';

/** Values of arguments and options by their names. Throws UsageError for all that the command does not take. */
export function parse(command: Command, words: readonly string[]): Record<string, unknown> {
  const options = new Map(Object.entries(command.options).map(([name, option]) => [flagOf(name), { name, option }]));
  const given = new Map<string, unknown>();
  const rest: string[] = [];
  const left = [...words];
  for (let word = left.shift(); word !== undefined; word = left.shift()) {
    if (word === '--') {
      rest.push(...left.splice(0));
    } else if (word.startsWith('-') && word !== '-') {
      const at = word.indexOf('=');
      const flag = at === -1 ? word : word.slice(0, at);
      const found = options.get(flag);
      if (!found) throw refusal(command, `unknown option ${flag}; ${allowed(command)}`);
      const value = takeValue(command, flag, found.option, at === -1 ? undefined : word.slice(at + 1), left);
      const before = given.get(found.name);
      if (before !== undefined && !found.option.repeats) throw refusal(command, `${flag} is given twice`);
      given.set(found.name, value === true ? true : readValue(command, flag, found.option, value, before));
    } else rest.push(word);
  }
  for (const [name, { required, about }] of Object.entries(command.options))
    if (required && !given.has(name)) throw refusal(command, `${flagOf(name)} is missing: ${about}`);
  requireOffline(command, given);
  const initial = Object.entries(command.options).flatMap(([name, option]) =>
    option.initial === undefined || given.has(name) ? [] : [[name, option.initial] as const],
  );
  return Object.fromEntries([...given, ...initial, ...argumentsOf(command, rest)]);
}

function takeValue(
  command: Command,
  flag: string,
  { value, about }: Option<unknown>,
  own: string | undefined,
  left: string[],
) {
  if (value === undefined) {
    if (own !== undefined) throw refusal(command, `${flag} takes no value`);
    return true;
  }
  // The next option is no value; one that looks so is written with =.
  const next = own ?? (left[0]?.startsWith('--') ? undefined : left.shift());
  if (next === undefined) throw refusal(command, `${flag} needs a value: ${flag} <${value}>, ${about}`);
  return next;
}

function readValue(command: Command, called: string, word: Word<unknown>, text: string, before?: unknown): unknown {
  const { choices, list, read } = word;
  const chosen = list ? text.split(',') : [text];
  const wrong = choices && chosen.find(each => !choices.includes(each));
  if (wrong !== undefined) throw refusal(command, `${called} ${wrong}: expected one of ${choices!.join(', ')}`);
  if (!read) return text;
  try {
    return read(text, before);
  } catch (error) {
    throw error instanceof UsageError ? refusal(command, `${called} ${text}: ${error.message}`) : error;
  }
}

function argumentsOf(command: Command, words: readonly string[]): [string, unknown][] {
  const left = [...words];
  const values = Object.entries(command.args).map(([name, argument]): [string, unknown] => {
    if (left.length === 0 && !argument.optional)
      throw refusal(command, `${placeOf(name, argument)} is missing: ${usageOf(command)}`);
    const taken = left.splice(0, argument.many ? left.length : 1).map(text => readValue(command, name, argument, text));
    return [name, argument.many ? taken : taken[0]];
  });
  if (left.length > 0) throw refusal(command, `${left[0]} is one word too many: ${usageOf(command)}`);
  return values;
}

function requireOffline(command: Command, given: ReadonlyMap<string, unknown>): void {
  if (!given.has('offline')) return;
  const other = [...given.keys()].find(name => name !== 'offline' && !command.offline!.includes(name));
  if (other !== undefined) throw refusal(command, `${flagOf(other)} does not go with --offline`);
}

export function usageOf({ name, args, options }: Command): string {
  const places = Object.entries(args).map(([called, argument]) => placeOf(called, argument));
  const shown = Object.entries(options).filter(([, { hidden: secret }]) => !secret);
  const required = shown.filter(([, option]) => option.required);
  const more = shown.length > required.length ? ['[--options]'] : [];
  const flags = required.map(([called, { value }]) => `${flagOf(called)} <${value}>`);
  return ['trivet', name, ...places, ...flags, ...more].join(' ');
}

function allowed({ options }: Command): string {
  const flags = Object.entries(options).flatMap(([name, option]) => (option.hidden ? [] : [flagOf(name)]));
  return flags.length === 0 ? 'it takes none' : `it takes ${flags.join(', ')}`;
}

const refusal = ({ name }: Command, message: string): UsageError => new UsageError(`trivet ${name}: ${message}`);
