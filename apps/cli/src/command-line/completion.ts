import type { Table } from './command.js';
import { type Command, flagOf } from './command.js';
import { verbsOf } from './find.js';

/** What fits at the cursor: the words before it are NOUN VERB ..., `before` is the one right before it. */
const WORDS = '_trivet_offer';

/** A script that completes nouns, verbs, options, and values that are one of some, or a file or folder. */
export function completionScript(table: Table, shell: 'bash' | 'zsh'): string {
  const { commands } = table;
  const alone = commands.filter(({ name }) => !name.includes(' '));
  const first = ['help', ...alone.map(({ name }) => name), ...Object.keys(table.nouns)];
  const verbs = Object.keys(table.nouns).map(noun =>
    entry(
      `'${noun} '`,
      verbsOf(table, noun).map(({ name }) => name.slice(noun.length + 1)),
    ),
  );
  const head = shell === 'zsh' ? '#compdef trivet\n' : '';
  return `${head}# Completes trivet in ${shell}; made by \`trivet completion ${shell}\`.
# Sets offer (words) and files (f: files, d: folders).
${WORDS}() {
  local noun=$1 verb=$2 before=$3
  offer='' files=''
  case "$noun $verb" in
    ' ' | 'help ') offer='${first.join(' ')}'; return ;;
${verbs.join('\n')}
  esac
  case "$noun $verb $before" in
${commands.flatMap(valuesOf).join('\n')}
  esac
  case "$noun $verb" in
${commands.map(optionsOf).join('\n')}
  esac
}
${shell === 'bash' ? BASH : ZSH}`;
}

const entry = (pattern: string, words: readonly string[], files = ''): string =>
  `    ${pattern}) ${[words.length > 0 ? `offer='${words.join(' ')}'` : '', files && `files=${files}`].filter(Boolean).join(' ') || ':'}; return ;;`;

/** A verb of its own stands where others have their noun, and is followed by anything. */
const patternOf = ({ name }: Command, before: string): string =>
  name.includes(' ') ? `'${name}'${before}` : `'${name} '*${before}`;

const FILES: Readonly<Record<string, string>> = { file: 'f', folder: 'd', target: 'f' };

const valuesOf = (command: Command): string[] =>
  Object.entries(command.options).flatMap(([name, { value, choices = [], hidden }]) =>
    value === undefined || hidden ? [] : [entry(patternOf(command, `' ${flagOf(name)}'`), choices, FILES[value])],
  );

function optionsOf(command: Command): string {
  const flags = Object.entries(command.options).flatMap(([name, { hidden }]) => (hidden ? [] : [flagOf(name)]));
  const choices = Object.values(command.args).flatMap(argument => argument.choices ?? []);
  const files = Object.keys(command.args).map(name => FILES[name] ?? '');
  return entry(patternOf(command, ''), [...choices, ...flags, '--help'], files.includes('f') ? 'f' : files.join(''));
}

/** Bash takes \`=\` for a word of its own; of a list with commas the last part is completed. */
const BASH = `_trivet() {
  local offer files cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} noun= verb= kept line
  if [ "$cur" = = ]; then cur=
  elif [ "$prev" = = ]; then prev=\${COMP_WORDS[COMP_CWORD-2]}
  fi
  if [ "$COMP_CWORD" -gt 1 ]; then noun=\${COMP_WORDS[1]}; fi
  if [ "$COMP_CWORD" -gt 2 ]; then verb=\${COMP_WORDS[2]}; fi
  ${WORDS} "$noun" "$verb" "$prev"
  kept=\${cur%"\${cur##*,}"}
  COMPREPLY=($(compgen -P "$kept" -W "$offer" -- "\${cur##*,}"))
  if [ -n "$files" ] && [ "\${cur#-}" = "$cur" ]; then
    compopt -o filenames 2>/dev/null || :
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen "-$files" -- "$cur")
  fi
}
complete -F _trivet trivet ./trivet
`;

const ZSH = `_trivet() {
  local offer files noun= verb=
  (( CURRENT > 2 )) && noun=$words[2]
  (( CURRENT > 3 )) && verb=$words[3]
  if [[ $PREFIX == --*=* ]]; then
    ${WORDS} "$noun" "$verb" "\${PREFIX%%=*}"
    compset -P '*='
  else
    ${WORDS} "$noun" "$verb" "$words[CURRENT-1]"
  fi
  compset -P '*,'
  compadd -- \${=offer}
  [[ -n $files ]] && _files \${\${files:#f}:+-/}
}
if [ "$funcstack[1]" = _trivet ]; then _trivet "$@"; else compdef _trivet trivet ./trivet; fi
`;
