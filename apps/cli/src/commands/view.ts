import { viewRoutes } from '#admin/contract/views';
import { showOne } from '../api/output.js';
import { needed, noun, one, parsed, repeated, text } from '../command-line/command.js';
import { listing, overApi } from './api-commands.js';
import { collect, collectSetting } from './options.js';

const ID = '0198c0de-0000-7000-8000-000000000000';
const id = one('as `view list` shows it');
const columns = repeated(parsed('column', 'a head that is shown, once for each; all when absent', collect));
const query = repeated(parsed('filter=value', 'as the address of the page has it, once for each', collectSetting));

export const VIEW = noun('view', 'lists as you want to see them again, at the page', [
  listing('those that you have saved', '--list volumes', {
    route: viewRoutes.list,
    filters: { list: text('list', 'only of this one, as its page is called: volumes, all/volumes ...') },
    none: 'no saved views: the page saves one, above each list',
    columns: {
      LIST: row => row.list,
      NAME: row => row.name,
      FILTERS: row => new URLSearchParams(row.query).toString(),
      COLUMNS: row => row.columns?.join(', ') ?? 'all',
      ID: row => row.id,
    },
  }),
  overApi('create', 'save one', 'largest --list volumes --query sort=-size', {
    args: { name: one('what it is called') },
    options: { list: needed(text('list', 'as its page is called: volumes, all/volumes ...')), query, column: columns },
    run: async ({ name, list, query: asked = {}, column = null, json }, api) => {
      const body = { name, list, query: asked, columns: column && [...column] };
      const { reply } = await api.call(viewRoutes.create, { body });
      showOne(reply, json, () => `${reply.name} is saved: ${reply.id}`);
    },
  }),
  overApi('change', 'give one another name', `${ID} --name large`, {
    args: { id },
    options: { name: needed(text('name', 'what it is called from now on')) },
    run: async ({ id: view, name, json }, api) => {
      const { reply } = await api.call(viewRoutes.change, { params: { view }, body: { name } });
      showOne(reply, json, () => `${view} is called ${reply.name}`);
    },
  }),
  overApi('delete', 'forget one', ID, {
    args: { id },
    run: async ({ id: view, json }, api) => {
      await api.call(viewRoutes.delete, { params: { view } });
      showOne({ id: view, state: 'deleted' }, json, () => `${view} is forgotten`);
    },
  }),
]);
