import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { PACKAGE_ROOT } from '#platform/package-root';

/** What may be referred to by a path from the root of the repository. */
export const PATH = /(?<![\w./-])(?:apps|deploy|docs|libs|proto|test)\/[\w@./-]*[\w/](?:#[\w-]+)?/g;
/** Rules of docs/invariants.md; T10 is a committee, whose designator disks carry. */
export const RULE = /(?<![\w%.-])(?!T10\b)[CEFIOPT]\d{1,2}(?![\w-])/g;
const LINK = /\]\(([^)\s]+)\)/g;
const ADR = /(?<!\w)(?:ADR|ADRs) (\d+)(?: (?:and|to) (\d+))?/g;
/** Pages that some of this was planned on, and that nobody else has. */
const ELSEWHERE = /hard-cases|appliance rule|reference\/\w+\.md|(?<![\w/])design\.md/gi;

export interface Source {
  file: string;
  text: string;
}

const read = (path: string): string => readFileSync(join(PACKAGE_ROOT, path), 'utf8');
const FOLDERS = ['apps', 'deploy', 'docs', 'libs', 'proto', 'test'];

/** All that people wrote and that may refer to something; schema.sql and the OpenAPI documents are made of it. */
export function sources(): Source[] {
  const below = FOLDERS.flatMap(folder =>
    readdirSync(join(PACKAGE_ROOT, folder), { recursive: true }).map(file => `${folder}/${file}`),
  );
  return [...readdirSync(PACKAGE_ROOT), ...below]
    .filter(file => /\.(ts|tsx|mjs|sql|md|ya?ml|proto|sh|conf|service)$/.test(file) && file !== 'docs/schema.sql')
    .filter(file => !/(^|\/)(node_modules|dist)\//.test(file))
    .map(file => ({ file, text: read(file) }));
}

export const isProse = (file: string): boolean => file.endsWith('.md');

/** Of a page all but its blocks of code; of a program its comments, those of SQL in texts included. */
export function readableOf({ file, text }: Source): string {
  if (isProse(file)) return text.replace(/^( *)```[\s\S]*?^\1```$/gm, block => block.replace(/[^\n]/g, ''));
  return text
    .split('\n')
    .map(line => line.match(/(?:^\s*(?:\/?\*+|--|#)|(?<=^|\s)(?:\/\/|--|\/\*))(?:\s.*)?$/)?.[0] ?? '')
    .join('\n');
}

/** As GitHub names the headings of a page. */
export function anchorsOf(markdown: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading = ''] of markdown.matchAll(/^#+ (.+)$/gm)) {
    const plain = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const name = plain.replace(/[^\p{L}\p{N}\s_-]/gu, '').replace(/\s/g, '-');
    let anchor = name;
    for (let n = 1; anchors.has(anchor); n++) anchor = `${name}-${n}`;
    anchors.add(anchor);
  }
  return anchors;
}

const isFile = (path: string): boolean =>
  existsSync(join(PACKAGE_ROOT, path)) && statSync(join(PACKAGE_ROOT, path)).isFile();

/** Each rule by its name, which is a heading of the third level, with what stands below it. */
export const rules = (): Map<string, string> =>
  new Map(
    read('docs/invariants.md')
      .split(/^### /m)
      .slice(1)
      .map(part => {
        const [name = '', ...text] = part.split(/^## /m)[0]!.split('\n');
        return [name, text.join('\n')];
      }),
  );

/** Tests and modules may be named without their ending, decisions by their number. */
export function pathExists(path: string): boolean {
  const adr = path.match(/^docs\/adr\/(\d{4})$/)?.[1];
  if (adr !== undefined) return adrs().has(Number(adr));
  const plain = path.replace(/[./]+$/, '');
  return ['', '.ts', '.spec.ts', '.tsx'].some(end => existsSync(join(PACKAGE_ROOT, plain + end)));
}

const adrs = (): Set<number> =>
  new Set(readdirSync(join(PACKAGE_ROOT, 'docs', 'adr')).map(file => Number(file.slice(0, 4))));

const anchorExists = (page: string, anchor: string): boolean => isFile(page) && anchorsOf(read(page)).has(anchor);

/** What is referred to and is not there. */
export function brokenIn(source: Source): string[] {
  const { file } = source;
  const text = readableOf(source);
  const broken: string[] = [];
  const known = rules();
  for (const [rule] of text.matchAll(RULE)) if (!known.has(rule)) broken.push(`rule ${rule}`);
  for (const [, from, to] of text.matchAll(ADR))
    for (const number of [from, to]) if (number && !adrs().has(Number(number))) broken.push(`ADR ${number}`);
  for (const [page] of text.matchAll(ELSEWHERE)) broken.push(`a page that is not here: ${page}`);
  const links = isProse(file) ? [...text.matchAll(LINK)].map(([, link]) => link!) : [];
  for (const link of links) {
    if (/^(https?|mailto):/.test(link)) continue;
    const [path = '', anchor] = link.split('#');
    const page = path === '' ? file : normalize(join(dirname(file), path));
    if (!existsSync(join(PACKAGE_ROOT, page))) broken.push(`link ${link}`);
    else if (anchor !== undefined && !anchorExists(page, anchor)) broken.push(`anchor ${link}`);
  }
  for (const [reference] of text.replace(LINK, ']').matchAll(PATH)) {
    const [path = '', anchor] = reference.split('#');
    if (!pathExists(path)) broken.push(`path ${reference}`);
    else if (anchor !== undefined && !anchorExists(path, anchor)) broken.push(`anchor ${reference}`);
  }
  return broken;
}
