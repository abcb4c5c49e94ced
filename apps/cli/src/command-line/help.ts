import type { Table } from './command.js';
import { type Command, flagOf, placeOf, type Word } from './command.js';
import { verbsOf } from './find.js';
import { usageOf } from './parse.js';

type Rows = readonly (readonly [string, string])[];

function rows(title: string, lines: Rows): string {
  const width = Math.max(...lines.map(([name]) => name.length));
  return `${title}:\n${lines.map(([name, about]) => `  ${name.padEnd(width)}  ${about}`.trimEnd()).join('\n')}\n`;
}

export function helpOfAll({ nouns, commands }: Table): string {
  const alone = commands.filter(({ name }) => !name.includes(' '));
  const list = (all: readonly Command[]): Rows => all.map(({ name, about }) => [name, about]);
  return [
    'Storage gateway: object buckets over COSI and block volumes over CSP, from real backends.\n',
    rows('trivet VERB', list(alone)),
    rows('trivet NOUN VERB', Object.entries(nouns)),
    '`trivet help NOUN`, and `trivet NOUN VERB --help`, say more; `trivet completion bash` completes them in a shell.\n',
  ].join('\n');
}

export function helpOfNoun(table: Table, noun: string): string {
  const verbs = verbsOf(table, noun).map((command): readonly [string, string] => {
    const places = Object.entries(command.args).map(([name, argument]) => placeOf(name, argument));
    return [[command.name.slice(noun.length + 1), ...places].join(' '), command.about];
  });
  return [`${table.nouns[noun]}\n`, rows(`trivet ${noun}`, verbs)].join('\n');
}

export function helpOf(command: Command): string {
  const { name, about, example, args, options } = command;
  const parts = [`Usage: ${usageOf(command)}\n`, `${about}\n`];
  const places = Object.entries(args).map(([name, word]): [string, string] => [name, aboutOf(word)]);
  if (places.length > 0) parts.push(rows('Arguments', places));
  const flags = Object.entries(options)
    .filter(([, { hidden }]) => !hidden)
    .map(([name, word]): [string, string] => [
      word.value === undefined ? flagOf(name) : `${flagOf(name)} <${word.value}>`,
      aboutOf(word),
    ]);
  if (flags.length > 0) parts.push(rows('Options', flags));
  parts.push(`Example: ${['trivet', name, example].filter(Boolean).join(' ')}\n`);
  return parts.join('\n');
}

function aboutOf({
  about,
  choices,
  required,
  repeats,
  initial,
}: Word<unknown> & { required?: true; repeats?: true; initial?: unknown }): string {
  const more = [
    choices?.join(', '),
    required && 'required',
    repeats && 'may be repeated',
    initial !== undefined && initial !== '' && `${String(initial)} when absent`,
  ].filter(Boolean);
  return more.length === 0 ? about : `${about} (${more.join('; ')})`;
}
