// What is in the image, as CycloneDX: npm sbom --sbom-format=cyclonedx --omit=dev --package-lock-only | node sbom.mjs
// npm's list of the lock file, without the number and the time that it makes up: the same lock file gives the same bytes.
import { readFileSync } from 'node:fs';

const { serialNumber, ...bom } = JSON.parse(readFileSync(0, 'utf8'));
const { timestamp, ...metadata } = bom.metadata;
process.stdout.write(`${JSON.stringify({ ...bom, metadata }, null, 1)}\n`);
