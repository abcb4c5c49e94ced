import { EXIT } from '../api/api-error.js';
import { interruptible } from '../backup/interruptible.js';
import { Progress } from '../backup/progress.js';
import { type DoorOptions, withApi } from '../csp/door.js';
import { LauncherError } from '../home.js';
import { humanBytes } from '../human-bytes.js';
import { ImageInput } from '../import/image-input.js';
import { runImport } from '../import/import-job.js';
import { readBytes } from '../read-bytes.js';

interface Options extends DoorOptions {
  file: string;
  name: string;
  pool?: string;
  size?: string;
  json?: boolean;
}

export async function importVolume({ file, name, pool, size, json, ...door }: Options): Promise<void> {
  const bytes = size === undefined ? undefined : readBytes(size);
  if (size !== undefined && (bytes === undefined || Number(bytes) > Number.MAX_SAFE_INTEGER))
    throw new LauncherError(`--size: expected bytes, e.g. 10GiB, got ${size}`, EXIT.data);
  const image = await ImageInput.of(file, bytes === undefined ? undefined : Number(bytes), process.stdin);
  const progress = new Progress(`import of ${image.name}`);
  const made = await interruptible('nothing of it is kept', signal =>
    withApi({ ...door, signal, say: line => progress.tell(line) }, api =>
      runImport(api, { image, name, pool, progress, signal }),
    ),
  );
  if (json) process.stdout.write(`${JSON.stringify(made, null, 2)}\n`);
  else process.stdout.write(`${made.name} (${made.id}) holds ${image.name}, ${humanBytes(made.size)}\n`);
}
