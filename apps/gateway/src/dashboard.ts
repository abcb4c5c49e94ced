import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { PACKAGE_ROOT } from '#platform/package-root';

const DASHBOARD_FOLDER = join(PACKAGE_ROOT, 'dist', 'apps', 'dashboard', 'public');

/** What vite.config.ts of the dashboard writes where a nonce belongs. */
const NONCE = '__CSP_NONCE__';
/** Paths that are never pages: what is not found below them is not found. */
const NO_PAGE = /^\/(?:api|assets|containers|csp|docs|livez|readyz|metrics)(?:\/|$)/;
const YEAR = 'public, max-age=31536000, immutable';
const DAY = 'public, max-age=86400';

const TYPES: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
};

interface File {
  path: string;
  type: string;
  body: Buffer;
  /** By content encoding; compressed when the first caller wants it. */
  packed: Map<string, Promise<Buffer>>;
}

const PACKERS: Readonly<Record<string, (body: Buffer) => Promise<Buffer>>> = {
  br: body => promisify(brotliCompress)(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
  gzip: body => promisify(gzip)(body, { level: 9 }),
};

/**
 * Serves the dashboard: its files by the names that have a hash, and its one page for whatever else a browser asks for, so
 * that addresses of the page can be passed on. Files are read once; nothing that a request says becomes a path.
 */
export function serveDashboard(fastify: FastifyInstance, folder = DASHBOARD_FOLDER): void {
  const files = readFiles(folder);
  const page = files.get('/index.html')?.body.toString();
  fastify.get('/*', async (request, reply) => {
    const path = request.url.split('?', 1)[0] as string;
    const file = path === '/index.html' ? undefined : files.get(path);
    if (file) return sendFile(file, request, reply);
    if (NO_PAGE.test(path) || !wantsPage(request)) return reply.callNotFound();
    if (page === undefined)
      return reply
        .status(503)
        .type('text/plain; charset=utf-8')
        .send(
          'The dashboard is not built: run ./trivet up, or npx vite build apps/dashboard. The API is below /api/v1.\n',
        );
    return sendPage(page, reply);
  });
}

/** A program that asks for a path that is not there is told so. */
const wantsPage = ({ url, headers }: FastifyRequest): boolean =>
  (headers.accept ?? '').includes('text/html') || url === '/';

function readFiles(folder: string): Map<string, File> {
  const files = new Map<string, File>();
  if (!existsSync(folder)) return files;
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    const type = TYPES[entry.name.split('.').at(-1) as string];
    if (!entry.isFile() || type === undefined) continue;
    const path = `/${relative(folder, join(entry.parentPath, entry.name))}`;
    files.set(path, { path, type, body: readFileSync(join(folder, path)), packed: new Map() });
  }
  return files;
}

async function sendFile(file: File, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const encoding = Object.keys(PACKERS).find(name => accepts(request, name));
  secure(reply)
    .type(file.type)
    .header('cache-control', file.path.startsWith('/assets/') ? YEAR : DAY)
    .header('vary', 'accept-encoding')
    // A picture that is opened by itself may do nothing either.
    .header('content-security-policy', "default-src 'none'; frame-ancestors 'none'");
  if (encoding === undefined) return reply.send(file.body);
  let packed = file.packed.get(encoding);
  if (!packed) {
    packed = (PACKERS[encoding] as (body: Buffer) => Promise<Buffer>)(file.body);
    file.packed.set(encoding, packed);
  }
  return reply.header('content-encoding', encoding).send(await packed);
}

/** The component library writes style elements, so those with this page's nonce are allowed; scripts are files of ours alone. */
function sendPage(page: string, reply: FastifyReply): FastifyReply {
  const nonce = randomBytes(16).toString('base64');
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
  return secure(reply)
    .type(TYPES.html as string)
    .header('cache-control', 'no-store')
    .header('content-security-policy', policy)
    .header('permissions-policy', 'camera=(), geolocation=(), microphone=()')
    .send(page.replaceAll(NONCE, nonce));
}

const secure = (reply: FastifyReply): FastifyReply =>
  reply
    .header('x-content-type-options', 'nosniff')
    .header('referrer-policy', 'same-origin')
    .header('cross-origin-opener-policy', 'same-origin')
    .header('cross-origin-resource-policy', 'same-origin');

/** `gzip`, `gzip;q=0.5`; not `gzip;q=0`. */
const accepts = ({ headers }: FastifyRequest, encoding: string): boolean =>
  new RegExp(`(?:^|,)\\s*${encoding}\\s*(?:;\\s*q=(?!0(?:\\.0*)?\\s*(?:,|$))[^,]*)?\\s*(?:,|$)`, 'i').test(
    String(headers['accept-encoding'] ?? ''),
  );
