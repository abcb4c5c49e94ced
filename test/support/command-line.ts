import { find } from '../../apps/cli/src/command-line/find.js';
import { TABLE } from '../../apps/cli/src/commands/table.js';

/** What the command line does not have of the words of a call; nothing when it has all. */
export function wrongIn([first = '', ...more]: readonly string[]): string | undefined {
  // A word that stands for any of them, and what is asked of the whole or of a noun.
  if (/^([A-Z]+|\.\.\.|--help|--version|help)$/.test(first)) return undefined;
  if (more.join() === '--help' && Object.hasOwn(TABLE.nouns, first)) return undefined;
  try {
    const { command, rest } = find(TABLE, [first, ...more]);
    const options = Object.keys(command.options).map(name =>
      name.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`),
    );
    const known = ['help', ...options];
    const unknown = rest.find(word => word.startsWith('--') && !known.includes(word.slice(2)));
    return unknown === undefined ? undefined : `no option ${unknown}`;
  } catch (error) {
    return (error as Error).message;
  }
}
