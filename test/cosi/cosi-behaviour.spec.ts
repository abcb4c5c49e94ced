import { describeCosi } from '#test/cosi/describe-cosi';
import { openRoom } from '#test/cosi/in-process-target';

describeCosi('the COSI room over a double of the domain', openRoom);
