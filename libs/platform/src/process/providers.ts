import type { FactoryProvider, InjectionToken } from '@nestjs/common';

/** A token for what is no class: an interface, a setting, one of two values of a class. */
export type Key<T> = symbol & { readonly of?: T };

export const key = <T>(name: string): Key<T> => Symbol(name) as Key<T>;

type Token<T> = { readonly prototype: T } | Key<T>;
type Tokens<Needs extends unknown[]> = { [At in keyof Needs]: Token<Needs[At]> };

/**
 * A class of the domain, made of what its constructor takes. The domain knows nothing of Nest, so its modules say what the
 * compiler would read off a decorated class; unlike Nest, it compares their types.
 */
export const provideClass = <Needs extends unknown[], T>(
  made: new (...needs: Needs) => T,
  ...inject: Tokens<Needs>
): FactoryProvider<T> => ({
  provide: made,
  inject: inject as InjectionToken[],
  useFactory: (...needs: unknown[]) => new made(...(needs as Needs)),
});

/** What `make` gives for the tokens in `inject`. */
export const provide = <Needs extends unknown[], T>(
  token: Token<T>,
  inject: readonly [...Tokens<Needs>],
  make: (...needs: Needs) => T | Promise<T>,
): FactoryProvider<T> => ({
  provide: token as InjectionToken,
  inject: [...inject] as InjectionToken[],
  useFactory: make as (...needs: unknown[]) => T | Promise<T>,
});
