import { indexChanges } from '#changes/index-changes';
import { mergeChanges } from '#changes/merge-changes';

/** What is done about the change index. */
export const CHANGE_OPERATIONS = [indexChanges, mergeChanges] as const;
