import { createHash } from 'node:crypto';
import { fieldsHtml, type Schema, tableOf, typeOf, wordsOf } from '#admin/openapi/reference-schema';
import type { Json } from '#admin/openapi/schema-book';
import { escaped, inline } from '#admin/problems/html-text';

const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const;

interface Parameter {
  $ref?: string;
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema: Schema;
}
interface Content {
  schema?: Schema;
  'x-item-schema'?: Schema;
  examples?: Record<string, { summary?: string; value: unknown }>;
}
interface Answer {
  $ref?: string;
  description?: string;
  content?: Record<string, Content>;
}
interface Operation {
  operationId: string;
  tags: readonly string[];
  summary: string;
  description?: string;
  parameters?: readonly Parameter[];
  requestBody?: { content: Record<string, Content> };
  responses: Record<string, Answer>;
}
interface Document {
  info: { title: string; version: string; summary: string; description: string };
  servers: readonly { url: string }[];
  tags: readonly { name: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: {
    parameters: Record<string, Parameter>;
    responses: Record<string, Answer>;
    schemas: Record<string, Schema>;
  };
}

const STYLE = `
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }
body { max-width: 70rem; margin: 0 auto; padding: 0 1rem 4rem; }
nav ul { columns: 18rem; padding-left: 1rem; }
section { margin-top: 2.5rem; }
article { margin: 1.5rem 0; padding: 0 1rem 1rem; border: 1px solid #8886; border-radius: 6px; }
h3, h4 { overflow-wrap: anywhere; }
code, pre { font: 0.875em/1.4 ui-monospace, monospace; overflow-wrap: anywhere; }
pre, .wide { overflow-x: auto; }
pre { padding: 0.6rem; border: 1px solid #8886; }
table { width: 100%; border-collapse: collapse; }
th, td { padding: 0.3rem 0.5rem; text-align: left; vertical-align: top; border-bottom: 1px solid #8884; }
a:focus-visible, summary:focus-visible, .wide:focus-visible { outline: 2px solid; }
`;

/** The one style of the page, by what it is: nothing else is let in. */
export const REFERENCE_POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256')
  .update(STYLE)
  .digest('base64')}'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'`;

/** The API's document for people: one page without scripts, in which a browser's own search finds all. */
export function referenceHtml(json: Json): string {
  const document = json as unknown as Document;
  const { info, components, tags } = document;
  const all = Object.entries(document.paths).flatMap(([path, methods]) =>
    METHODS.flatMap(method => (methods[method] ? [{ path, method, operation: methods[method] }] : [])),
  );
  const ofTag = (tag: string) => all.filter(({ operation }) => operation.tags.includes(tag));
  const entry = ({ operation: { operationId, summary } }: Placed) =>
    `<li><a href="#${operationId}">${inline(summary)}</a></li>`;
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>API - ${info.title}</title><style>${STYLE}</style></head>
<body>
<header><h1>${info.title} API, version ${info.version}</h1>
<p>${inline(info.summary)}. As a document for programs: <a href="/api/v1/openapi.json">openapi.json</a>. Refusals: <a href="/docs/problems">problems</a>.</p>
${paragraphs(info.description)}</header>
<nav aria-label="Calls and forms">
${tags.map(({ name }) => `<h2>${name}</h2><ul>${ofTag(name).map(entry).join('')}</ul>`).join('\n')}
<h2>Forms</h2><ul>${Object.keys(components.schemas)
    .map(name => `<li><a href="#schema-${name}">${name}</a></li>`)
    .join('')}</ul>
</nav>
<main>
${tags
  .map(
    ({ name }) =>
      `<section aria-label="${name}"><h2>${name}</h2>${ofTag(name)
        .map(placed => operationHtml(placed, document))
        .join('\n')}</section>`,
  )
  .join('\n')}
<section><h2>Forms</h2>${Object.entries(components.schemas)
    .map(
      ([name, schema]) =>
        `<article id="schema-${name}"><h3>${name}</h3>${schema.description && schema.properties ? paragraphs(schema.description) : ''}${fieldsHtml(schema)}</article>`,
    )
    .join('\n')}</section>
</main>
</body>
</html>
`;
}

interface Placed {
  path: string;
  method: string;
  operation: Operation;
}

function operationHtml({ path, method, operation }: Placed, { components, servers }: Document): string {
  const { operationId, summary, description = '', parameters = [], requestBody, responses } = operation;
  const body = requestBody?.content['application/json'];
  const found = parameters.map(one => (one.$ref ? components.parameters[one.$ref.split('/').at(-1)!]! : one));
  const parts = [
    `<h3>${inline(summary)}</h3>`,
    `<p><code>${method.toUpperCase()} ${servers[0]!.url}${path}</code></p>`,
    paragraphs(description),
  ];
  if (found.length > 0)
    parts.push('<h4>Parameters</h4>', tableOf(['Name', 'Where', 'Type', 'What it is'], found.map(parameterHtml)));
  if (body?.schema) parts.push('<h4>Body</h4>', fieldsHtml(body.schema));
  for (const { summary: of, value } of Object.values(body?.examples ?? {}))
    parts.push(`<p>For example, ${escaped(of ?? '')}:</p><pre>${escaped(JSON.stringify(value, null, 2))}</pre>`);
  const answers = Object.entries(responses).map(([status, answer]) => answerHtml(status, answer, components.responses));
  parts.push('<h4>Answers</h4>', tableOf(['Status', 'Form', 'What it means'], answers));
  return `<article id="${operationId}">${parts.join('\n')}</article>`;
}

function parameterHtml({ name, in: where, required, description, schema }: Parameter): string[] {
  const words = wordsOf({ ...schema, description: description ?? schema.description });
  return [`<code>${name}</code>${required ? '' : ' <small>optional</small>'}`, where, typeOf(schema), words];
}

function answerHtml(status: string, answer: Answer, known: Record<string, Answer>): string[] {
  const { description = '', content = {} } = answer.$ref ? known[answer.$ref.split('/').at(-1)!]! : answer;
  const forms = Object.entries(content).map(([type, { schema, 'x-item-schema': item }]) => {
    const form = item ? `${typeOf(item)}, one after the other` : schema ? typeOf(schema) : '';
    return type === 'application/json' ? form : `${form} <small>${type}</small>`;
  });
  return [status, forms.join('<br>'), inline(description)];
}

const paragraphs = (text: string): string =>
  text
    .split(/\n\n?/)
    .filter(Boolean)
    .map(part => `<p>${inline(part)}</p>`)
    .join('\n');
