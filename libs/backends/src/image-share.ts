/** The `nth` of `of` shares of all images of a pool: they are listed in no order, and so many that nobody lists them in one go. */
export interface ImageShare {
  /** From 0 on. */
  nth: number;
  of: number;
}

/** By the end of an image's id, since its beginning is a time. None: all images. */
export const isInShare = (id: string, share: ImageShare | undefined): boolean =>
  share === undefined || Number.parseInt(id.slice(-6), 16) % share.of === share.nth;

export const isLastShare = (share: ImageShare | undefined): boolean =>
  share === undefined || share.nth === share.of - 1;
