import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { problemsHtml, problemsMarkdown } from '#admin/problems/problem-docs';
import { PROBLEMS } from '#admin/problems/problems';
import { PACKAGE_ROOT } from '#platform/package-root';

const kept = readFileSync(join(PACKAGE_ROOT, 'docs', 'problems.md'), 'utf8');

it('docs/problems.md is made of the code; else run `./trivet openapi`', () => {
  expect(kept).toBe(problemsMarkdown());
});

it('has a section for each code that a problem can have, and the page has its anchor', () => {
  const sections = [...kept.matchAll(/^## (\w+)$/gm)].map(([, code]) => code);
  expect(sections.sort()).toEqual(Object.keys(PROBLEMS).sort());
  for (const code of Object.keys(PROBLEMS)) expect(problemsHtml()).toContain(`<h2 id="${code}">`);
});

it('the page is plain text but for its own marks', () => {
  const page = problemsHtml();
  expect(page).not.toMatch(/<(script|style|img|link)|javascript:|\son\w+=/i);
  expect(page).toContain('<code>instance</code>');
});
