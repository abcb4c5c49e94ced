/** What is offered behind the words that the pattern matches, in which * is anything; f: files, d: folders. */
export interface Offer {
  behind: string;
  words: readonly string[];
  files?: string;
}

/** By the words at the cursor, the first that fits: NOUN VERB, an option that wants its value, and the options. */
export interface Offers {
  nouns: readonly Offer[];
  values: readonly Offer[];
  options: readonly Offer[];
}
