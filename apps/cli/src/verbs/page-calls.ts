import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RouteContract } from '#admin/contract/route';
import { PACKAGE_ROOT } from '#platform/package-root';

const PATH = String.raw`('[^']*'|"[^"]*"|${'`[^`]*`'}|\w+)`;
/** How the page's sources call the API: each has a path, and a method or that of a reading. */
const CALLS = [
  new RegExp(String.raw`\bcall\(\s*'(?<method>[A-Z]+)',\s*(?<path>${PATH})`, 'g'),
  new RegExp(String.raw`\bcallFresh\(\s*'(?<method>[A-Z]+)',\s*(?<path>${PATH})`, 'g'),
  new RegExp(String.raw`\b(?:useRead|addressOf)\(\s*(?<path>${PATH})`, 'g'),
  // It reads what it changes.
  new RegExp(String.raw`\bcallFresh\(\s*'[A-Z]+',\s*(?<path>${PATH})`, 'g'),
  /\bpath=(?<path>"[^"]*")/g,
  // Of what is done to many rows of a list, and of what counts them.
  /\bstarts: (?<path>'[^']*')/g,
  /\btotals: (?<path>'[^']*')/g,
];

/** Ids of the routes that the dashboard calls, read out of its sources. */
export function calledByPage(routes: readonly RouteContract[]): ReadonlySet<string> {
  const folder = join(PACKAGE_ROOT, 'apps', 'dashboard', 'src');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    file => /\.tsx?$/.test(file) && !/\.spec\./.test(file),
  );
  return new Set(files.flatMap(file => calledIn(readFileSync(join(folder, file), 'utf8'), routes)));
}

export function calledIn(text: string, routes: readonly RouteContract[]): string[] {
  const found = CALLS.flatMap(form => [...text.matchAll(form)].map(match => ({ form, match }))).flatMap(
    ({ form, match: { groups } }) => {
      const { method = form.source.includes('starts') ? 'POST' : 'GET', path = '' } = groups as {
        method?: string;
        path: string;
      };
      return pathsOf(path, text).map(pattern => ({ method, pattern }));
    },
  );
  return routes
    .filter(({ method, path }) => found.some(call => call.method === method && call.pattern.test(path)))
    .map(({ id }) => id);
}

/** A literal, or what constants of its name in the file are. What is put in at run time is a word that the file has. */
function pathsOf(expression: string, text: string): { test(path: string): boolean }[] {
  const constants = (name: string) =>
    [...text.matchAll(new RegExp(String.raw`\b${name} = '(/[^']*)'`, 'g'))].map(([, path]) => path!);
  if (/^\w/.test(expression)) return constants(expression).map(literal => ({ test: path => path === literal }));
  const whole = expression
    .slice(1, -1)
    .replaceAll(/\$\{(\w+)\}/g, (placed, name: string) => constants(name)[0] ?? placed);
  const open = whole.split(/\$\{\w+\}/).map(part => part.replaceAll(/[{}.]/g, String.raw`\$&`));
  const form = new RegExp(`^${open.join(String.raw`([\w-]+)`)}$`);
  return [
    {
      test: path => {
        const words = form.exec(path)?.slice(1);
        return words?.every(word => new RegExp(String.raw`\b${word}\b`).test(text)) ?? false;
      },
    },
  ];
}
