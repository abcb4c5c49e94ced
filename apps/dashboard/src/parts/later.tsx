import { type ComponentType, useEffect, useState } from 'react';
import { Loading } from './page';

/** What is shown when its script is here. One that did not come is asked for again by whoever comes back. */
export function later<Props extends object = object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let loaded: ComponentType<Props> | undefined;
  return props => {
    const [Found, setFound] = useState(() => loaded);
    const [failed, setFailed] = useState<{ reason: unknown }>();
    useEffect(() => {
      if (loaded) return;
      let wanted = true;
      load().then(
        found => {
          loaded = found;
          if (wanted) setFound(() => found);
        },
        (reason: unknown) => wanted && setFailed({ reason }),
      );
      return () => {
        wanted = false;
      };
    }, []);
    if (failed) throw failed.reason;
    return Found ? <Found {...props} /> : <Loading />;
  };
}
