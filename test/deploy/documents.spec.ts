import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PACKAGE_ROOT } from '#platform/package-root';
import { wrongIn } from '#test/support/command-line';
import { codeIn, pages } from '#test/support/pages';
import { anchorsOf, isProse, sources } from '#test/support/references';

const read = (path: string): string => readFileSync(join(PACKAGE_ROOT, path), 'utf8');

describe('README', () => {
  it('is short', () => {
    expect(read('README.md').trimEnd().split('\n').length).toBeLessThanOrEqual(200);
  });
});

describe('figures of speed', () => {
  const FIGURE =
    /\d[\d.,]*(?: ?(?:ns|µs|us)\b|(?: ?\w+)?\/s\b| (?:calls|creations|extents|operations|ranges|reads|writes) a second)/g;
  const figuresIn = (text: string) => [...text.matchAll(FIGURE)].map(([figure]) => figure);

  it('stand in docs/performance.md alone', () => {
    const { performance = [], others = [] } = Object.groupBy(
      pages().flatMap(({ file, text }) => figuresIn(text).map(figure => `${file}: ${figure}`)),
      figure => (figure.startsWith('docs/performance.md') ? 'performance' : 'others'),
    );
    expect(others).toEqual([]);
    expect(performance.length).toBeGreaterThan(20);
  });
});

describe('a decision of docs/adr', () => {
  const files = readdirSync(join(PACKAGE_ROOT, 'docs', 'adr'));

  it.each(files)('%s has its number, its status and its date', file => {
    const [title, , status] = read(`docs/adr/${file}`).split('\n');
    expect(title).toMatch(new RegExp(`^# ${Number(file.slice(0, 4))}\\. .`));
    expect(status).toMatch(STATUS);
  });
});
const STATUS = /^Status: (accepted|superseded by ADR \d+)\. Date: 20\d\d-[01]\d-[0-3]\d\.$/;

describe('the glossary', () => {
  const tables = read('docs/glossary.md')
    .split(/^## /m)
    .slice(1)
    .map(section =>
      section
        .split('\n')
        .filter(line => line.startsWith('| '))
        .slice(2),
    );

  it('says of each word where it lives', () => {
    const rows = tables.flat();
    expect(rows.length).toBeGreaterThan(60);
    const PLACE = /`(?:(?:apps|deploy|docs|libs|proto)\b[^`]*|ARCHITECTURE\.md)`/;
    expect(rows.filter(row => !PLACE.test(row))).toEqual([]);
  });

  it('is in the order of the alphabet', () => {
    const words = tables.map(rows => rows.map(row => row.split('|')[1]!.trim().toLowerCase()));
    expect(words).toEqual(words.map(table => table.toSorted()));
  });
});

describe('commands that pages show', () => {
  const shown = () =>
    pages()
      .filter(({ file }) => file !== 'CHANGELOG.md')
      .flatMap(({ file, text }) => codeIn(text).flatMap(code => callsIn(code).map(call => ({ file, call }))));

  it('are in the table of the command line, with their options', () => {
    const wrong = shown().flatMap(({ file, call }) => {
      const why = wrongIn(call);
      return why === undefined ? [] : [`${file}: trivet ${call.join(' ')}: ${why}`];
    });
    expect(wrong).toEqual([]);
  });

  it('are found, and in each page of docs/ that is read by what somebody wants to do', () => {
    const found = shown();
    expect(found.length).toBeGreaterThan(100);
    const begins = pages().filter(({ file, text }) => /^docs\/[\w-]+\.md$/.test(file) && /^# .+\n\n {4}\S/.test(text));
    expect(begins.map(({ file }) => file).sort()).toEqual(TASKS.map(task => `docs/${task}.md`));
  });

  it.each([
    ['./trivet brew', 'brew'],
    ['./trivet volume brew', 'brew'],
    ['./trivet volume', 'say what'],
    ['./trivet volume list --brewed', '--brewed'],
    ['. .trivet/env && ./trivet migrate --brewed', '--brewed'],
    ['cat image | ./trivet volume import - --brewed', '--brewed'],
    ['trivet pool brew', 'brew'],
    ['docker compose exec worker /app/deploy/docker/entrypoint.sh pool brew', 'brew'],
  ])('that are not there are seen: %s', (line, why) => {
    expect(callsIn(line).map(call => wrongIn(call))).toEqual([expect.stringContaining(why)]);
  });

  it.each([
    './trivet backup create data /srv/backup/data --full > log',
    './trivet backup check /srv/backup/data',
    './trivet audit export > audit.ndjson',
    './trivet test --no-install PATH...',
    './trivet --help',
    'trivet COMMAND --help',
    "./trivet queue pause copy --reason 'a pool --is moved'",
  ])('that are there are left alone: %s', line => {
    expect(callsIn(line)).toHaveLength(1);
    expect(callsIn(line).map(call => wrongIn(call))).toEqual([undefined]);
  });
});

/** By what somebody wants to do: each begins with the commands. */
const TASKS = [
  'administer',
  'buckets',
  'changed-blocks',
  'helm',
  'install',
  'kubernetes-sessions',
  'kubernetes',
  'settings',
  'troubleshoot',
  'volumes',
];

/** By its launcher, by its name alone, or by what the image runs. */
const CALL =
  /(?:^\s*(?:\w+=\S+ )*trivet|(?:^|\s)(?:\.\/trivet|\S+\/entrypoint\.sh|node \S+\/main\.js))((?: +\S+)+)\s*$/;

/** The words of each call of the command line in a line of shell. */
function callsIn(line: string): string[][] {
  const plain = line.replace(/'[^']*'|"[^"]*"/g, "''").replace(/(^|\s)#.*/, '');
  return plain
    .split(/&&|\|\||[|;<>()]/)
    .map(part => part.match(CALL)?.[1])
    .filter(words => words !== undefined)
    .map(words => words.trim().split(/ +/));
}

describe('messages', () => {
  /** A page and the title of a section, as in `(README, Node on Debian 12)`. */
  const SENDS = /\b(README|docs\/[\w-]+\.md), "?([A-Z][\w ]+?)(?:"|\))/g;

  it('send people to sections that are there', () => {
    const sent = [...sources(), { file: 'trivet', text: read('trivet') }]
      .filter(({ file }) => !isProse(file) && /^(apps|libs|trivet)/.test(file))
      .flatMap(({ file, text }) => [...text.matchAll(SENDS)].map(([, page, title]) => ({ file, page, title })));
    expect(sent.length).toBeGreaterThan(5);
    const lost = sent.filter(({ page, title }) => {
      const markdown = read(page === 'README' ? 'README.md' : page!);
      return !(anchorsOf(markdown).has(anchorOf(title!)) || markdown.includes(`**${title}**`));
    });
    expect(lost).toEqual([]);
  });

  const anchorOf = (title: string): string => title.toLowerCase().replaceAll(' ', '-');
});
