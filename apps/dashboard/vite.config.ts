import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

/** Placeholder in index.html; the gateway puts a fresh nonce there for every page. */
const NONCE = '__CSP_NONCE__';

/** It imports nothing. */
const VALUES: Readonly<Record<string, string>> = { '#admin/contract/csv': 'libs/admin/src/contract/csv.ts' };

/**
 * Types of the API's contract are imported from the server's libraries, values are not: they would bring a schema library and
 * the server's code into the browser.
 */
const onlyTypesOfServer: Plugin = {
  name: 'only-types-of-server',
  enforce: 'pre',
  resolveId(source, importer) {
    const file = VALUES[source];
    if (file !== undefined) return `${import.meta.dirname}/../../${file}`;
    if (source.startsWith('#') || source === 'zod')
      this.error(`${importer} imports a value from ${source}; the page takes types alone from there`);
    return undefined;
  },
};

/** The whole of React is 215 kB, more than a page may have beside it (ADR 69). */
const ALIAS = [
  { find: /^react$/, replacement: `${import.meta.dirname}/react.mjs` },
  { find: /^react-dom$/, replacement: 'preact/compat' },
  { find: /^react-dom\/client$/, replacement: 'preact/compat/client' },
  { find: /^react\/jsx-runtime$/, replacement: 'preact/jsx-runtime' },
  { find: /^react\/jsx-dev-runtime$/, replacement: 'preact/jsx-dev-runtime' },
];

export default defineConfig({
  root: import.meta.dirname,
  plugins: [onlyTypesOfServer, react()],
  resolve: { alias: ALIAS },
  html: { cspNonce: NONCE },
  build: {
    outDir: '../../dist/apps/dashboard/public',
    emptyOutDir: true,
    target: 'es2023',
    manifest: true,
    // A file inlined into the page would need a weaker policy.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    modulePreload: { polyfill: false },
  },
  server: { proxy: { '/api': 'http://127.0.0.1:8740' } },
});
