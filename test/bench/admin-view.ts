import { get } from 'node:http';
import { basename } from 'node:path';
import type { AdminHouse } from '#test/admin/admin-house';
import type { Figure } from '#test/bench/measure';

const KB = 1_000;
const LIMIT_KB = 300;

/** Bytes as a browser gets them for the first view, lazy pages left out: what the page itself names, and what that imports. */
export async function firstViewFigures(house: AdminHouse): Promise<Figure[]> {
  const base = house.appliance.cspUrl;
  const page = await load(`${base}/`);
  if (page.status !== 200)
    return [
      { name: 'first view', value: `no page: ${page.status}`, limit: `< ${LIMIT_KB} kB`, baseline: '', ok: false },
    ];
  const named = (pattern: RegExp) => [...page.text.matchAll(pattern)].map(([, path]) => path!);
  const scripts = new Set(named(/(?:src|href)="([^"]+\.js)"/g));
  let sent = 0;
  let plain = 0;
  // A Set goes on over what is added meanwhile.
  for (const path of scripts) {
    const script = await load(new URL(path, base).href);
    sent += script.bytes;
    plain += script.text.length;
    for (const [, imported] of script.text.matchAll(/\bfrom\s*"(\.\/[^"]+\.js)"|\bimport\s*"(\.\/[^"]+\.js)"/g))
      if (imported) scripts.add(`/assets/${basename(imported)}`);
  }
  let styles = 0;
  for (const path of named(/href="([^"]+\.css)"/g)) styles += (await load(new URL(path, base).href)).bytes;
  return [
    {
      name: 'first view: script as it is sent',
      value: `${(sent / KB).toFixed(0)} kB in ${scripts.size} files (styles ${(styles / KB).toFixed(0)} kB)`,
      limit: `< ${LIMIT_KB} kB`,
      baseline: `${(plain / KB).toFixed(0)} kB unpacked`,
      ok: sent < LIMIT_KB * KB,
    },
  ];
}

interface Loaded {
  status: number;
  /** On the way. */
  bytes: number;
  text: string;
}

async function load(url: string): Promise<Loaded> {
  const bytes = await new Promise<number>((resolve, reject) => {
    get(url, { headers: { 'accept-encoding': 'br, gzip' } }, reply => {
      let count = 0;
      reply.on('data', (chunk: Buffer) => {
        count += chunk.length;
      });
      reply.once('end', () => resolve(count));
    }).once('error', reject);
  });
  const reply = await fetch(url);
  return { status: reply.status, bytes, text: await reply.text() };
}
