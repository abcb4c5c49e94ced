import { describeCsp } from '#test/csp/describe-csp';
import { openRoom } from '#test/csp/in-process-target';

describeCsp('the CSP room over a double of the domain', () => openRoom());
