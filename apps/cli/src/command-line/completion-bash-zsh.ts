import type { Offer, Offers } from './completion-offers.js';

/** What fits at the cursor: the words before it are NOUN VERB ..., `before` is the one right before it. */
const WORDS = '_trivet_offer';

/** Bash and zsh differ in how they are told; what is offered where is the same function. */
export const posixScript = (
  { nouns, values, options }: Offers,
  shell: 'bash' | 'zsh',
): string => `# Completes trivet in ${shell}; made by \`trivet completion ${shell}\`.
# Sets offer (words) and files (f: files, d: folders).
${WORDS}() {
  local noun=$1 verb=$2 before=$3
  offer='' files=''
  case "$noun $verb" in
${nouns.map(entry).join('\n')}
  esac
  case "$noun $verb $before" in
${values.map(entry).join('\n')}
  esac
  case "$noun $verb" in
${options.map(entry).join('\n')}
  esac
}
${shell === 'bash' ? BASH : ZSH}`;

function entry({ behind, words, files }: Offer): string {
  const sets = [words.length > 0 && `offer='${words.join(' ')}'`, files && `files=${files}`].filter(Boolean);
  return `    '${behind.replaceAll('*', "'*'")}') ${sets.join(' ') || ':'}; return ;;`;
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
