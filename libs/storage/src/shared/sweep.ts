/**
 * Goes through what is there in portions, each from where the last one ended, and then from the start again: a round costs what
 * a portion does, and all have their turn. Kept in memory: another worker begins at the start.
 */
export class Sweep<Place> {
  private readonly places = new Map<string, Place>();

  constructor(readonly portion: number) {}

  /** @param of what is gone through, such as a tenant */
  placeOf(of: string, start: Place): Place {
    return this.places.get(of) ?? start;
  }

  /** @param last the place of the last row, of as many as there were */
  wentOn(of: string, rows: number, last: Place | undefined): void {
    if (rows < this.portion || last === undefined) this.places.delete(of);
    else this.places.set(of, last);
  }
}
