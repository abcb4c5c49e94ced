import { isProse, type Source, sources } from '#test/support/references';

/** What people read: README and its like, docs/, deploy/README.md. */
export const pages = (): Source[] => sources().filter(({ file }) => isProse(file));

/** Of a page the lines of its blocks of code, and what stands in code within its sentences. */
export function codeIn(markdown: string): string[] {
  const blocks = markdown.split('\n').filter(line => /^ {4,}\S/.test(line));
  const fenced = [...markdown.matchAll(/^```\w*\n([\s\S]*?)^```$/gm)].flatMap(([, text]) => text!.split('\n'));
  const prose = markdown.replace(/^( {4,}.*|```[\s\S]*?^```)$/gm, '');
  return [...blocks, ...fenced, ...[...prose.matchAll(/`([^`]+)`/g)].map(([, text]) => text!)];
}
