export interface ImageRef {
  pool: string;
  /** import: a raw image that somebody put into the pool to be made a volume of; it is read, and never changed. */
  kind: 'volume' | 'snapshot' | 'import';
  /** The incarnation: uuid of the volume's or snapshot's row; of an import, its name. */
  id: string;
  /** Folder inside the pool; '' is the pool's root. Checked by `parseFolder`. */
  folder: string;
}
