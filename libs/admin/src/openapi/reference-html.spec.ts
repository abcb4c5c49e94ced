import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { ROUTES } from '#admin/contract/index';
import { openApiDocument } from '#admin/openapi/document';
import { REFERENCE_POLICY, referenceHtml } from '#admin/openapi/reference-html';

const document = openApiDocument();
const page = referenceHtml(document);

describe('the reference of the API', () => {
  it('has every call and every form, and each link within it leads somewhere', () => {
    const ids = [...page.matchAll(/\bid="([^"]+)"/g)].map(([, id]) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ROUTES.map(({ id }) => id).filter(id => !ids.includes(id))).toEqual([]);
    const { schemas } = document.components as { schemas: object };
    expect(Object.keys(schemas).filter(name => !ids.includes(`schema-${name}`))).toEqual([]);
    const links = new Set([...page.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id));
    expect([...links].filter(id => !ids.includes(id))).toEqual([]);
  });

  it('needs nothing from elsewhere, no script, and one style that its policy names', () => {
    expect(page).not.toMatch(/<script|\son\w+=|style="|src=/);
    const outside = [...page.matchAll(/href="([^#"][^"]*)"/g)].map(([, href]) => href);
    expect(new Set(outside)).toEqual(new Set(['/api/v1/openapi.json', '/docs/problems']));
    const styles = [...page.matchAll(/<style>([^<]*)<\/style>/g)].map(([, style]) => style!);
    expect(styles).toHaveLength(1);
    const hash = createHash('sha256').update(styles[0]!).digest('base64');
    expect(REFERENCE_POLICY).toContain(`style-src 'sha256-${hash}'`);
    expect(REFERENCE_POLICY).toMatch(/^default-src 'none';/);
    expect(REFERENCE_POLICY).not.toContain('unsafe');
  });

  it('shows fields of what is nested, their bounds and examples', () => {
    const volume = page.slice(page.indexOf('id="schema-Backend"'), page.indexOf('id="schema-BackendKind"'));
    expect(volume).toContain('<code>pools[].thinRatio</code>');
    expect(volume).toContain('<code>holds.volumes</code>');
    const create = page.slice(page.indexOf('id="createVolume"'), page.indexOf('id="changeVolume"'));
    expect(create).toContain('POST /api/v1/tenants/{tenant}/volumes');
    expect(create).toContain('&quot;size&quot;: &quot;1048576&quot;');
    expect(create).toMatch(/<code>source\.image<\/code>/);
  });

  it('lets no text of the document become a tag', () => {
    const text = '<img src=x onerror=alert(1)>';
    const evil = JSON.parse(
      JSON.stringify(document).replaceAll('Make a volume, or clone one', text.replaceAll('"', '')),
    );
    expect(referenceHtml(evil)).not.toContain('<img');
  });
});
