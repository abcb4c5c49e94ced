/** Parts of a pool beyond which it goes otherwise (invariant F3). Alert rules and the dashboard's figures have the same ones. */
export const POOL_MARKS = {
  /** Nothing new is made in it. */
  filling: 0.85,
  /** What is kept as long as there is room is given up: the recycle bin, and images for the change index. */
  full: 0.95,
} as const;
