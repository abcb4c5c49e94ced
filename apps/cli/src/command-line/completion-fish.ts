import type { Offer, Offers } from './completion-offers.js';

/** Fish offers what the function prints: words, and files and folders that it finds itself. */
export const fishScript = ({ nouns, values, options }: Offers): string =>
  `# Completes trivet in fish; made by \`trivet completion fish\`.
# Prints words, and :f for files or :d for folders.
function __trivet_offer --argument-names noun verb before
  switch "$noun $verb"
${nouns.map(entry).join('\n')}
  end
  switch "$noun $verb $before"
${values.map(entry).join('\n')}
  end
  switch "$noun $verb"
${options.map(entry).join('\n')}
  end
end
${FISH}`;

function entry({ behind, words, files }: Offer): string {
  const printed = [...words, ...(files ? [`:${files}`] : [])];
  return `    case '${behind}'; ${printed.length > 0 ? `printf '%s\\n' ${printed.map(word => `'${word}'`).join(' ')}; ` : ''}return`;
}

/** Of --option=value the value is completed, of a list with commas its last part. */
const FISH = `function __trivet_paths --argument-names kept current finder
  string match -q -- '-*' "$current"; and return
  for path in ($finder "$current")
    printf '%s\\n' "$kept$path"
  end
end
function __trivet
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  set -l before "$words[-1]"
  set -l kept ''
  if string match -q -- '--*=*' $current
    set before (string replace -r '=.*' '' -- $current)
    set kept "$before="
    set current (string replace -r '^[^=]*=' '' -- $current)
  end
  set -l list (string match -r '^.*,' -- $current)
  for word in (__trivet_offer "$words[2]" "$words[3]" "$before")
    switch $word
      case :f
        __trivet_paths "$kept" "$current" __fish_complete_path
      case :d
        __trivet_paths "$kept" "$current" __fish_complete_directories
      case '*'
        printf '%s\\n' "$kept$list$word"
    end
  end
end
complete -c trivet -f -a '(__trivet)'
`;
