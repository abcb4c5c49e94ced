/**
 * Who changes which target of a daemon now, so that a change that came too late is found (invariant E5).
 *
 * Fence and lease are asked with the connection to tgtd open, right before the request is written; but a process can be
 * stopped between the two, and tgtd refuses nobody. So whoever changes a target leaves a note first, and takes it away
 * when nobody has overtaken it after its last request. A note that says it was overtaken, or whose writer has ended,
 * stands for a change that may have come after a successor's: the target's record is not believed, and it is applied
 * again. Only an application that began after that takes the note away.
 *
 *   changes/<tid>.<fence>.<pid>.<start time>          the target's name
 *   changes/<tid>.<fence>.<pid>.<start time>.late     its writer was overtaken, or came after somebody interrupted
 */
import { mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { TargetRef } from '#backends/exporter';
import { inspectProcess } from '#backends/linux/process-id';
import { writeWhole } from '#backends/tgt/daemon-folder';

const LATE = '.late';
const NOTE = /^(\d+)\.\d+\.(\d+)\.(\w+:\d+)(\.late)?$/;

let own: Awaited<ReturnType<typeof inspectProcess>>;

export interface LateChange {
  note: string;
  tid: number;
}

export class OpenChanges {
  private readonly folder: string;

  constructor(stateFolder: string) {
    this.folder = join(stateFolder, 'changes');
  }

  /** To be awaited before the first request. Gives the note. */
  async open({ tid, iqn }: Pick<TargetRef, 'tid' | 'iqn'>, fence: string): Promise<string> {
    own ??= await inspectProcess(process.pid);
    const note = `${tid}.${fence}.${process.pid}.${own?.id.startTime}`;
    const write = () => writeWhole(join(this.folder, note), iqn);
    await write()
      .catch(async (error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error;
        await mkdir(this.folder, { recursive: true, mode: 0o700 });
        await write();
      })
      .catch((error: NodeJS.ErrnoException) => {
        // Where there is no room for a note a target must still be removable; the audit finds what came too late.
        if (error.code !== 'ENOSPC' && error.code !== 'EDQUOT') throw error;
      });
    return note;
  }

  async close(note: string): Promise<void> {
    await rm(join(this.folder, note), { force: true });
  }

  /** The target is to be applied. A folder that is gone is that of a daemon that is gone, with all that it held. */
  async markLate(note: string): Promise<void> {
    const path = join(this.folder, note);
    await rename(path, `${path}${LATE}`).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
    });
  }

  /** Those of one target, or of all. */
  async late(tid?: number): Promise<LateChange[]> {
    const notes = await readdir(this.folder).catch((): string[] => []);
    const found: LateChange[] = [];
    for (const note of notes) {
      const [, of, pid, startTime, mark] = NOTE.exec(note) ?? [];
      if (of === undefined || (tid !== undefined && tid !== Number(of))) continue;
      const isLate = mark !== undefined || (await inspectProcess(Number(pid)))?.id.startTime !== startTime;
      if (isLate) found.push({ note, tid: Number(of) });
    }
    return found;
  }

  /** Undefined when it is gone by now. */
  async targetName({ note }: LateChange): Promise<string | undefined> {
    return readFile(join(this.folder, note), 'utf8').catch(() => undefined);
  }
}
