import { LauncherError } from '../home.js';

/** Wrong use of the command line: one line that says what is allowed. */
export class UsageError extends LauncherError {
  constructor(message: string) {
    super(message, 2);
  }
}

/** A word that is given: `T` is what the action gets. */
export interface Word<T> {
  about: string;
  /** As help calls it, `<value>`; undefined: a flag, which takes none. */
  value?: string;
  choices?: readonly string[];
  /** Several of the choices, with commas. */
  list?: true;
  /** Throws UsageError. `before`: what the same option gave already, where it may be repeated. */
  read?(text: string, before: unknown): unknown;
  /** Only for types. */
  readonly type: T;
}

export interface Option<T> extends Word<T> {
  required?: true;
  initial?: unknown;
  repeats?: true;
  /** For the launcher itself. */
  hidden?: true;
}

export interface Argument<T> extends Word<T> {
  optional?: true;
  many?: true;
}

export type Options = Readonly<Record<string, Option<unknown>>>;
export type Arguments = Readonly<Record<string, Argument<unknown>>>;
export type Values<S> = { [K in keyof S]: S[K] extends Word<infer T> ? T : never };
/** `table` is for what tells of all commands. */
type Run<Args, Opts> = (given: Values<Args> & Values<Opts> & { offline?: boolean }, table: Table) => unknown;

export interface Table {
  /** What each noun is. */
  nouns: Readonly<Record<string, string>>;
  commands: readonly Command[];
}

export interface Definition<Args, Opts> {
  args?: Args;
  options?: Opts;
  /** It takes `--offline`, straight to the database without a gateway, and with it these of its options. */
  offline?: readonly string[];
  /** How it was called before. */
  was?: readonly string[];
  /** Loads what it needs: the table is made for each command. */
  run: Run<Args, Opts>;
}

/** One entry of the table that help, parsing and completion are made from. */
export interface Command extends Definition<Arguments, Options> {
  /** `NOUN VERB`, or a verb alone of the appliance itself. */
  name: string;
  about: string;
  /** Words behind the name. */
  example: string;
  args: Arguments;
  options: Options;
}

export type None = Record<never, never>;

export function command<const Args extends Arguments = None, const Opts extends Options = None>(
  name: string,
  about: string,
  example: string,
  definition: Definition<Args, Opts>,
): Command {
  const { args, options, offline } = definition;
  const own = offline && {
    offline: flag(
      `straight to the database, while no gateway answers; of the other options it takes ${offline.map(flagOf).join(', ')}`,
    ),
  };
  return {
    ...definition,
    name,
    about,
    example,
    args: args ?? {},
    options: { ...options, ...own },
  } as unknown as Command;
}

/** A noun with its verbs. */
export interface Noun {
  noun: string;
  about: string;
  commands: readonly Command[];
}

export const noun = (name: string, about: string, verbs: readonly Command[]): Noun => ({
  noun: name,
  about,
  commands: verbs.map(verb => ({ ...verb, name: `${name} ${verb.name}` })),
});

const as = <T>(word: object): Option<T> => word as Option<T>;

export const flag = (about: string): Option<boolean | undefined> => as({ about });
export const text = (value: string, about: string): Option<string | undefined> => as({ value, about });
export const parsed = <T>(
  value: string,
  about: string,
  read: (text: string, before: T | undefined) => T,
): Option<T | undefined> => as({ value, about, read });
export const choice = <const C extends string>(
  value: string,
  choices: readonly C[],
  about: string,
): Option<C | undefined> => as({ value, choices, about });
/** One or several of the choices, with commas, as one text. */
export const choiceList = (value: string, choices: readonly string[], about: string): Option<string | undefined> =>
  as({ value, choices, about, list: true });

export const needed = <T>(option: Option<T>): Option<NonNullable<T>> => as({ ...option, required: true });
export const initially = <T>(option: Option<T>, initial: NonNullable<T>): Option<NonNullable<T>> =>
  as({ ...option, initial });
export const repeated = <T>(option: Option<T>): Option<T> => as({ ...option, repeats: true });
export const hidden = <T>(option: Option<T>): Option<T> => as({ ...option, hidden: true });

export const one = (about: string): Argument<string> => as({ about });
export const oneOf = <const C extends string>(choices: readonly C[], about: string): Argument<C> =>
  as({ choices, about });
export const maybe = (about: string): Argument<string | undefined> => ({ ...as<string>({ about }), optional: true });
export const many = (about: string): Argument<readonly string[]> => as({ about, many: true });
export const manyMaybe = (about: string): Argument<readonly string[]> => as({ about, many: true, optional: true });

/** `tokenFile` is `--token-file`. */
export const flagOf = (name: string): string => `--${name.replaceAll(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)}`;

/** `<name>`, `[id...]` */
export function placeOf(name: string, { optional, many: several }: Argument<unknown>): string {
  const shown = `${name}${several ? '...' : ''}`;
  return optional ? `[${shown}]` : `<${shown}>`;
}
