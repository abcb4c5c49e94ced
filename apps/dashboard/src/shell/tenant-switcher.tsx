import { useState } from 'react';
import { useLocation, useNavigate } from 'react-router';
import { useRead } from '../api/read';
import { Choice } from '../parts/choice';

const SHOWN = 50;
/** Whose users administer all the others, and whose backends are shared; no list of tenants has it. */
const APPLIANCE = { name: 'appliance', displayName: 'the appliance itself' };

/**
 * The tenant is a part of the URL; another one leads to the same kind of list. The gateway searches: each letter is a new
 * question, and the answer to an older one is given up.
 */
export function TenantSwitcher({ tenant }: { tenant: string }) {
  const [typed, setTyped] = useState(tenant);
  // The field shows the tenant that is chosen: nobody has typed that.
  const search = typed === tenant ? '' : typed.trim();
  const { data, isPlaceholderData } = useRead('/tenants', { query: { search, limit: SHOWN } });
  const found = data?.data.items ?? [];
  const navigate = useNavigate();
  const { pathname } = useLocation();
  const go = (to: string): void => {
    const list = /^\/tenants\/[^/]+(?:\/([^/]+))?/.exec(pathname)?.[1];
    void navigate(`/tenants/${to}${list ? `/${list}` : ''}`);
  };
  // Until the new answer is there the old one is shown; Enter must not choose from it what does not match.
  const matching = new Map(
    [...found, APPLIANCE]
      .filter(({ name, displayName }) => [name, displayName].some(text => includes(text, search)))
      .map(({ name, displayName }) => [name, displayName]),
  );
  return (
    <Choice
      className="tenant-switcher"
      mx="sm"
      mt="md"
      size="xs"
      label="Tenant"
      description="Type a part of a name"
      searchable
      allowDeselect={false}
      nothingFoundMessage={isPlaceholderData ? 'Searching' : 'No tenant matches'}
      value={tenant}
      data={[...new Set([...matching.keys(), tenant])].sort()}
      searchValue={typed}
      onSearchChange={setTyped}
      // What was typed before the list was there is not to be typed over.
      onFocus={event => typed === tenant && event.currentTarget.select()}
      filter={({ options }) => options.filter(option => 'value' in option && matching.has(String(option.value)))}
      renderOption={({ option: { value } }) => [value, matching.get(value)].filter(Boolean).join(', ')}
      onChange={name => name !== null && go(name)}
    />
  );
}

const includes = (text: string, part: string): boolean => text.toLowerCase().includes(part.toLowerCase());
