import { join } from 'node:path';
import { ConfigError, exitOnConfigError } from '#platform/config/config';
import { PACKAGE_ROOT } from '#platform/package-root';

/**
 * The first import of gateway and worker, so that it is run before what an older Node cannot run (argon2 of node:crypto is
 * 24's): who starts them by hand may have the host's Node first in PATH.
 */
const OLDEST = 24;

if (Number.parseInt(process.versions.node, 10) < OLDEST) {
  const own = join(PACKAGE_ROOT, 'node_modules', '.trivet', 'node');
  exitOnConfigError(new ConfigError(`Node ${process.versions.node} is too old: ${OLDEST} is needed; ${own} is`));
}
