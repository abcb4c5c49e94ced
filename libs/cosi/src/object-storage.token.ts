/** Whoever imports CosiModule provides an ObjectStorage under this token. */
export const OBJECT_STORAGE = Symbol('ObjectStorage');
