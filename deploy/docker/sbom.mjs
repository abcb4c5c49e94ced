// What is in the image, as CycloneDX: npm sbom --sbom-format=cyclonedx --omit=dev --package-lock-only | node sbom.mjs
// npm's list of the lock file, without the number and the time that it makes up, the name of the folder and npm's own version: the same
// lock file gives the same bytes.
import { readFileSync } from 'node:fs';

const { serialNumber, ...bom } = JSON.parse(readFileSync(0, 'utf8'));
const { timestamp, tools, ...metadata } = bom.metadata;
metadata.component.name = metadata.component['bom-ref'].replace(/@[^@]*$/, '');
process.stdout.write(`${JSON.stringify({ ...bom, metadata }, null, 1)}\n`);
