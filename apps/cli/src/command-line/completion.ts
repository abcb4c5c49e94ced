import type { Table } from './command.js';
import { type Command, flagOf } from './command.js';
import { posixScript } from './completion-bash-zsh.js';
import { fishScript } from './completion-fish.js';
import type { Offer, Offers } from './completion-offers.js';
import { verbsOf } from './find.js';

type Shell = 'bash' | 'zsh' | 'fish';

/** A script that completes nouns, verbs, options, and values that are one of some, or a file or folder. */
export function completionScript(table: Table, shell: Shell): string {
  const offers = offersOf(table);
  if (shell === 'fish') return fishScript(offers);
  const head = shell === 'zsh' ? '#compdef trivet\n' : '';
  return `${head}${posixScript(offers, shell)}`;
}

function offersOf(table: Table): Offers {
  const { commands, nouns } = table;
  const alone = commands.filter(({ name }) => !name.includes(' '));
  const first = ['help', ...alone.map(({ name }) => name), ...Object.keys(nouns)];
  const verbs = Object.keys(nouns).map(noun => ({
    behind: `${noun} `,
    words: verbsOf(table, noun).map(({ name }) => name.slice(noun.length + 1)),
  }));
  return {
    nouns: [...[' ', 'help '].map(behind => ({ behind, words: first })), ...verbs],
    values: commands.flatMap(valuesOf),
    options: commands.map(optionsOf),
  };
}

/** A verb of its own stands where others have their noun, and is followed by anything. */
const patternOf = ({ name }: Command, before: string): string => `${name.includes(' ') ? name : `${name} *`}${before}`;

const FILES: Readonly<Record<string, string>> = { file: 'f', folder: 'd', target: 'f' };

const valuesOf = (command: Command): Offer[] =>
  Object.entries(command.options).flatMap(([name, { value, choices = [], hidden }]) =>
    value === undefined || hidden
      ? []
      : [{ behind: patternOf(command, ` ${flagOf(name)}`), words: choices, files: FILES[value] }],
  );

function optionsOf(command: Command): Offer {
  const flags = Object.entries(command.options).flatMap(([name, { hidden }]) => (hidden ? [] : [flagOf(name)]));
  const choices = Object.values(command.args).flatMap(argument => argument.choices ?? []);
  const files = Object.keys(command.args).map(name => FILES[name] ?? '');
  const words = [...choices, ...flags, '--help'];
  return { behind: patternOf(command, ''), words, files: files.includes('f') ? 'f' : files.join('') };
}
