import type { CutPrediction } from '#backends/block-backend';
import { StorageError } from '#platform/errors';

/**
 * How long a cut may keep writers waiting (invariants F3, F4). Sharing blocks stalls those of this one image for as long
 * as its extents take, which may be forced. Stopping the exporter stops all that it serves, and where the data are copied
 * under writes the copy would be torn: these limits cannot be forced.
 */
export const STALL_LIMIT_MS = 5_000;
export const PAUSE_LIMIT_MS = 2_000;
/** Counting goes no further than what is certainly too much. */
export const EXTENT_LIMIT = 1_000_000;

export function requireShortStall(prediction: CutPrediction, resource: string, force: boolean): void {
  if (force || (prediction.stallMs <= STALL_LIMIT_MS && !prediction.more)) return;
  throw new StorageError(
    'failed_precondition',
    `${resource}: its ${figure(prediction)} would stall its writers for about ${Math.round(prediction.stallMs)} ms, above the limit of ${STALL_LIMIT_MS} ms`,
    { resource, field: 'force' },
  );
}

/** The cuts of one pause are made one after the other. */
export function requireShortPause(predictions: readonly CutPrediction[], resource: string): void {
  const ms = predictions.reduce((sum, { stallMs }) => sum + stallMs, 0);
  if (ms < PAUSE_LIMIT_MS && !predictions.some(({ more }) => more)) return;
  const extents = predictions.reduce((sum, prediction) => sum + prediction.extents, 0);
  const more = predictions.some(prediction => prediction.more);
  throw new StorageError(
    'failed_precondition',
    `${resource}: writers would have to be stopped for about ${Math.round(ms)} ms (${figure({ extents, more })}), above the limit of ${PAUSE_LIMIT_MS} ms; unpublish first, or cut less at once`,
    { resource },
  );
}

const figure = ({ extents, more }: Pick<CutPrediction, 'extents' | 'more'>): string =>
  `${more ? 'more than ' : ''}${extents} extents`;
