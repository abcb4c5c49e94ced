import { type Command, type Table, UsageError } from './command.js';

export const verbsOf = ({ commands }: Table, noun: string): Command[] =>
  commands.filter(({ name }) => name.startsWith(`${noun} `));

/** The command that is asked for, and the words for it. Throws UsageError. */
export function find(table: Table, words: readonly string[]): { command: Command; rest: readonly string[] } {
  const [noun = '', verb = ''] = words;
  const found = (name: string) => table.commands.find(command => command.name === name);
  const alone = found(noun);
  if (alone) return { command: alone, rest: words.slice(1) };
  const both = found(`${noun} ${verb}`);
  if (both) return { command: both, rest: words.slice(2) };
  const renamed = nowCalled(table, words);
  if (renamed) throw new UsageError(`\`trivet ${renamed.old}\` is now \`trivet ${renamed.now}\``);
  if (!Object.hasOwn(table.nouns, noun))
    throw new UsageError(`there is no command ${noun}; \`trivet help\` lists what there is`);
  const verbs = verbsOf(table, noun).map(({ name }) => name.slice(noun.length + 1));
  const what = verb === '' || verb.startsWith('-') ? 'say what' : `there is no ${verb}`;
  throw new UsageError(`trivet ${noun}: ${what}; it takes ${verbs.join(', ')}`);
}

/** Each old spelling by its longest match; a noun in the plural, by its singular. */
function nowCalled({ nouns, commands }: Table, words: readonly string[]): { old: string; now: string } | undefined {
  const [noun = '', verb] = words;
  const singular = noun.slice(0, -1);
  if (noun.endsWith('s') && Object.hasOwn(nouns, singular)) {
    const known = verb !== undefined && commands.some(({ name }) => name === `${singular} ${verb}`);
    return { old: known ? `${noun} ${verb}` : noun, now: known ? `${singular} ${verb}` : `${singular} VERB` };
  }
  const matching = commands.flatMap(({ name, was = [] }) =>
    was
      .filter(old => old.split(' ').every(part => words.includes(part)) && old.startsWith(noun))
      .map(old => ({ old, now: name })),
  );
  // `backup` alone, or with --help, is the noun that it is now.
  const most = matching.sort((a, b) => b.old.length - a.old.length)[0];
  return most && Object.hasOwn(nouns, most.old) && (verb === undefined || verb === '--help') ? undefined : most;
}
