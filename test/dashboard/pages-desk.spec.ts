import { DESK } from '#test/dashboard/browser';
import { describeUsablePages } from '#test/dashboard/usable-pages';

describeUsablePages('a desk', DESK);
