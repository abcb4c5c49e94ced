import type { ObjectBackendKind } from '#backends/object-backend';
import type { Operations } from '#operations/accepting/operations';
import type { SecretBox } from '#platform/crypto/secrets';
import type { Database } from '#platform/database/database';

/** What the accepting half of the object side works with. */
export interface ObjectDependencies {
  database: Database;
  operations: Operations;
  secrets: SecretBox;
  kindOf(kind: string): ObjectBackendKind;
}
