import { execFileSync, spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { TABLE } from '../commands/table.js';
import { type Command, UsageError } from './command.js';
import { completionScript } from './completion.js';
import { find } from './find.js';
import { helpOf, helpOfAll, helpOfNoun } from './help.js';
import { parse } from './parse.js';

const each = TABLE.commands.map(command => [command.name, command] as const);
const wordsOf = (line: string): string[] => line.match(/"[^"]*"|\S+/g)!.map(word => word.replaceAll('"', ''));

/** What the command line makes of it. */
function ask(line: string): Record<string, unknown> {
  const { command, rest } = find(TABLE, wordsOf(line));
  return parse(command, rest);
}
function refusalOf(line: string): string {
  try {
    ask(line);
  } catch (error) {
    expect(error).toBeInstanceOf(UsageError);
    expect((error as UsageError).exitCode).toBe(2);
    return (error as Error).message;
  }
  throw new Error(`${line} is taken`);
}

describe('the table', () => {
  it.each(each)('%s has a line of help, and an example that it takes', (name, command) => {
    expect(command.about).toMatch(/^[a-z].{2,}/);
    expect(helpOf(command)).toContain(command.about);
    const example = `${name} ${command.example.replace(/> .*/, '')}`;
    expect(helpOf(command)).toContain(`Example: trivet ${name}`);
    expect(find(TABLE, wordsOf(example)).command).toBe(command);
    ask(example);
  });

  it.each(each)('%s is a verb of a noun in the singular, with names of its own for each word', (name, command) => {
    const [noun, verb, ...more] = name.split(' ');
    expect(more).toEqual([]);
    // No plural ends in ss.
    expect(noun).not.toMatch(/[^s]s$(?<!status)/);
    if (verb !== undefined) expect(Object.keys(TABLE.nouns)).toContain(noun);
    const words = [...Object.keys(command.args), ...Object.keys(command.options)];
    expect(new Set(words).size).toBe(words.length);
    // Only the last argument may take all that is left.
    expect(
      Object.values(command.args)
        .slice(0, -1)
        .some(({ many, optional }) => many || optional),
    ).toBe(false);
    for (const other of command.offline ?? []) expect(words).toContain(other);
  });

  it('has each name once, and something to do with each noun', () => {
    const names = TABLE.commands.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const noun of Object.keys(TABLE.nouns)) {
      expect(names.some(name => name.startsWith(`${noun} `))).toBe(true);
      expect(helpOfAll(TABLE)).toContain(`  ${noun} `);
      expect(helpOfNoun(TABLE, noun)).toContain(TABLE.nouns[noun]);
    }
  });
});

describe('parsing', () => {
  it('gives values by their names, wherever the options stand', () => {
    expect(ask('tenant quota --json acme volumes=1 --url=http://h:1 streams=2')).toEqual({
      name: 'acme',
      limits: ['volumes=1', 'streams=2'],
      json: true,
      url: 'http://h:1',
    });
    expect(ask('operation list --state pending,running')).toMatchObject({ state: 'pending,running', limit: 20 });
    expect(ask('backend create x --kind rgw --set a=1 --set b=2=3')).toMatchObject({ set: { a: '1', b: '2=3' } });
    expect(ask('backend create x --credentials-file -')).toMatchObject({ credentialsFile: '-' });
    expect(ask('volume import - --name x')).toMatchObject({ file: '-' });
    expect(ask('protection create -- --odd a:1h:1')).toMatchObject({ name: '--odd', schedules: ['a:1h:1'] });
    expect(ask('user passwd x --offline')).toEqual({ name: 'x', offline: true });
  });

  it.each([
    ['tenant list --colour', 'trivet tenant list: unknown option --colour; it takes --state, --search,'],
    ['demo -x', 'trivet demo: unknown option -x; it takes none'],
    ['tenant list --tenant', 'unknown option --tenant'],
    ['tenant list --state', '--state needs a value: --state <state>, only those'],
    ['operation list --tenant --json', '--tenant needs a value'],
    ['tenant list --json=1', '--json takes no value'],
    ['tenant list --state done', '--state done: expected one of active, suspended, draining'],
    ['operation list --state pending,done', '--state done: expected one of pending'],
    ['tenant list --limit many', '--limit many: expected a whole number from 1'],
    ['tenant list --limit 1 --limit 2', '--limit is given twice'],
    ['queue pause all --reason x', 'class all: expected one of fast, copy'],
    ['queue pause copy', '--reason is missing: why'],
    ['tenant create', '<name> is missing: trivet tenant create <name> [--options]'],
    ['token revoke', '<ids...> is missing'],
    ['tenant create a b', 'b is one word too many: trivet tenant create <name> [--options]'],
    ['backup prune x', '--keep is missing: how many points stay'],
    ['backend create x --set y', '--set y: expected FIELD=VALUE'],
    ['operation list --offline --kind x', '--kind does not go with --offline'],
    ['user create x --offline --url http://h', '--url does not go with --offline'],
    ['operation cancel x --reason y --offline', 'unknown option --offline'],
    ['policy create x --offline', 'unknown option --offline'],
    ['nothing', 'there is no command nothing; `trivet help` lists what there is'],
    ['constructor', 'there is no command constructor'],
    ['token', 'trivet token: say what; it takes list, create, rotate, revoke'],
    ['token forge', 'trivet token: there is no forge; it takes list, create, rotate, revoke'],
    ['audit', 'trivet audit: say what; it takes list, export'],
    ['backup', 'trivet backup: say what; it takes create, check, restore, prune'],
  ])('refuses %s', (line, said) => {
    const message = refusalOf(line);
    expect(message).toContain(said);
    expect(message).not.toContain('\n');
  });

  it.each([
    ['operations list', '`trivet operations list` is now `trivet operation list`'],
    ['operations', '`trivet operations` is now `trivet operation VERB`'],
    ['tenants list', '`trivet tenants list` is now `trivet tenant list`'],
    ['backup data /folder', '`trivet backup` is now `trivet backup create`'],
    ['restore /folder image', '`trivet restore` is now `trivet backup restore`'],
    ['prune /folder --keep 1', '`trivet prune` is now `trivet backup prune`'],
    ['changes snapshot', '`trivet changes` is now `trivet snapshot changes`'],
    ['user add ann', '`trivet user add` is now `trivet user create`'],
    ['backend remove x --tenant y', '`trivet backend remove` is now `trivet backend delete`'],
    ['endpoint add x', '`trivet endpoint add` is now `trivet endpoint create`'],
    ['policy add x --offline', '`trivet policy add` is now `trivet policy create`'],
    ['audit --action x', '`trivet audit` is now `trivet audit list`'],
    ['audit --tenant x --export', '`trivet audit --export` is now `trivet audit export`'],
  ])('tells %s its new spelling', (line, said) => expect(refusalOf(line)).toBe(said));
});

/** Commands that a shell completes as a person types them; the last word is the one at the cursor. */
const TYPED: [string[], string[]][] = [
  [['ten'], ['tenant']],
  [['comp'], ['completion']],
  [['op'], ['operation', 'openapi']],
  [
    ['operation', 'r'],
    ['retry', 'resolve', 'release'],
  ],
  [
    ['backup', ''],
    ['create', 'check', 'restore', 'prune'],
  ],
  [
    ['tenant', 'list', '--s'],
    ['--state', '--search'],
  ],
  [
    ['tenant', 'list', '--state', ''],
    ['active', 'suspended', 'draining'],
  ],
  [['user', 'create', 'ann', '--role', 'v'], ['viewer']],
  [['queue', 'pause', 'd'], ['destroy']],
  [['operation', 'retry', 'x', '--off'], ['--offline']],
  [
    ['completion', ''],
    ['bash', 'zsh', 'fish', '--help'],
  ],
  [['up', '--d'], ['--detach']],
  [['up', '--detach', '--p'], ['--parts-only']],
  [['up', '--b'], []],
];

describe('completion', () => {
  const quoted = (words: readonly string[]): string => words.map(word => `'${word}'`).join(' ');
  const lines = (text: string): string[] => text.split('\n').filter(Boolean).sort();

  const bash = (words: readonly string[]): string[] => {
    const script = `${completionScript(TABLE, 'bash')}
COMP_WORDS=(trivet ${quoted(words)}); COMP_CWORD=${words.length}
_trivet
[ \${#COMPREPLY[@]} = 0 ] || printf '%s\\n' "\${COMPREPLY[@]}"`;
    return lines(execFileSync('bash', ['--norc', '-uc', script], { encoding: 'utf8', cwd: '/etc' }));
  };
  it.each(TYPED)('in bash: %j', (words, offered) => expect(bash(words)).toEqual([...offered].sort()));

  it('in bash: after = and commas, and of files', () => {
    expect(bash(['tenant', 'list', '--state', '=', 'a'])).toEqual(['active']);
    expect(bash(['tenant', 'list', '--state', '='])).toEqual(['active', 'draining', 'suspended']);
    expect(bash(['operation', 'list', '--state', 'failed,pen'])).toEqual(['failed,pending']);
    expect(bash(['tenant', 'list', '--token-file', '/etc/passw'])).toContain('/etc/passwd');
    expect(bash(['backup', 'check', '/et'])).toEqual(['/etc']);
    expect(bash(['tenant', 'create', '/et'])).toEqual([]);
  });

  it('in bash: is bound to the command', () => {
    const bound = execFileSync('bash', [
      '--norc',
      '-c',
      `${completionScript(TABLE, 'bash')}\ncomplete -p trivet ./trivet`,
    ]);
    expect(String(bound)).toMatch(/complete -F _trivet trivet\n.*-F _trivet \.\/trivet\n/);
  });

  const hasZsh = spawnSync('zsh', ['--version']).status === 0;
  /** As compsys calls it; what it would add is printed. */
  const zsh = (words: readonly string[]): string[] => {
    const stub = `compdef() { : }; compset() { : }; _files() { print -l -- "$PREFIX"*(N) }
compadd() { shift; for word in "$@"; do [[ $word == "$PREFIX"* ]] && print -r -- $word; done; return 0 }`;
    const script = `${stub}\n${completionScript(TABLE, 'zsh')}
words=(trivet ${quoted(words)}); CURRENT=${words.length + 1}; PREFIX=$words[CURRENT]
_trivet; return 0`;
    return lines(execFileSync('zsh', ['-fc', script], { encoding: 'utf8', cwd: '/etc' }));
  };
  it.runIf(hasZsh).each(TYPED)('in zsh, which is here: %j', (words, offered) =>
    expect(zsh(words)).toEqual([...offered].sort()),
  );
  it.runIf(hasZsh)('in zsh: of files', () => {
    expect(zsh(['tenant', 'list', '--token-file', '/etc/passwd'])).toContain('/etc/passwd');
  });

  const hasFish = spawnSync('fish', ['--version']).status === 0;
  const fish = (words: readonly string[]): string[] => {
    const line = ['trivet', ...words].join(' ');
    const script = `${completionScript(TABLE, 'fish')}\ncomplete -C '${line}'`;
    const env = { ...process.env, HOME: '/nonexistent' };
    const offered = lines(execFileSync('fish', ['--no-config', '-c', script], { encoding: 'utf8', cwd: '/etc', env }));
    return offered.map(each => each.split('\t')[0]!);
  };
  it.runIf(hasFish).each(TYPED)('in fish, which is here: %j', (words, offered) =>
    expect(fish(words)).toEqual([...offered].sort()),
  );
  it.runIf(hasFish)('in fish: after = and commas, and of files', () => {
    expect(fish(['tenant', 'list', '--state=a'])).toEqual(['--state=active']);
    expect(fish(['operation', 'list', '--state', 'failed,pen'])).toEqual(['failed,pending']);
    expect(fish(['tenant', 'list', '--token-file', '/etc/passw'])).toContain('/etc/passwd');
    expect(fish(['backup', 'check', '/et'])).toEqual(['/etc/']);
    expect(fish(['tenant', 'create', '/et'])).toEqual([]);
  });
  it('in fish: has a case for each command, and no word that fish would read', () => {
    const script = completionScript(TABLE, 'fish');
    for (const { name } of TABLE.commands)
      expect(script).toContain(`case '${name}${name.includes(' ') ? '' : ' *'}'; `);
    expect(script.match(/\bcase '[^']*'/g)!.join()).not.toMatch(/[$\\"]/);
    expect(script).toContain("complete -c trivet -f -a '(__trivet)'\n");
  });
});

it('the help of a command names all that it takes, and nothing that is for the launcher itself', () => {
  const up = TABLE.commands.find(({ name }) => name === 'up') as Command;
  expect(helpOf(up)).toContain('--parts-only');
  expect(helpOf(up)).not.toContain('--behind');
  const retry = TABLE.commands.find(({ name }) => name === 'operation retry') as Command;
  expect(helpOf(retry)).toMatch(/--offline +straight to the database, while no gateway answers; .* --reason/);
});
