/** Whether IAM has this document: it gives them percent-encoded. */
export function sameDocument(found: string, wanted: string): boolean {
  try {
    const text = found.startsWith('%') ? decodeURIComponent(found) : found;
    return JSON.stringify(JSON.parse(text)) === JSON.stringify(JSON.parse(wanted));
  } catch {
    return false;
  }
}
