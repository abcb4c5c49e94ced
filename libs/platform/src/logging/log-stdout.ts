import { type DestinationStream, destination } from 'pino';

const MAX_KEPT = 1024 * 1024;

/**
 * stdout, written at once so that a killed process has said what it did. A full disk behind it must not stop a storage
 * daemon: lines that cannot be written are kept up to 1 MiB, then dropped.
 */
export function openStdout(): DestinationStream {
  const stream = destination({ dest: 1, sync: true, maxLength: MAX_KEPT });
  stream.removeAllListeners('error');
  stream.on('error', () => {});
  return stream;
}
