import type { TargetRef, TargetSpec } from '#backends/exporter';
import type { ChapLogin } from '#backends/tgt/iscsi-login';
import { invalid, StorageError } from '#platform/errors';

/** tgtd takes no other characters in a target's name. */
const TARGET_NAME = /^[A-Za-z0-9:.-]{1,223}$/;
/** RFC 3720, 3.2.6: iqn., eui. or naa., at most 223 bytes, no blanks. A comma would end tgtd's parameter. */
const INITIATOR_NAME = /^(iqn\.|eui\.|naa\.)[^\s,\p{C}]{1,219}$/u;
/** A slash begins our own accounts; tgtd's parameters hold no comma, its answers no line end. */
const USER = /^[^/,\s\p{C}][^,\s\p{C}]{0,254}$/u;
/** tgtd reads parameters into a buffer of that size. */
const MAX_PATH_BYTES = 1023;

export function checkTarget({ tid, iqn }: TargetRef): void {
  if (!Number.isInteger(tid) || tid < 1 || tid > 0x7fffffff) throw defect(`target id ${tid}`);
  if (!TARGET_NAME.test(iqn)) throw defect(`target name ${iqn}`);
}

export function checkPath(path: string): void {
  if (path.includes(',') || path.includes('\0') || Buffer.byteLength(path) > MAX_PATH_BYTES) {
    throw new StorageError(
      'failed_precondition',
      `tgtd cannot open ${path}: no comma, at most ${MAX_PATH_BYTES} bytes`,
    );
  }
}

/** The logins of a target, each user once. */
export function checkSpec(spec: TargetSpec): ChapLogin[] {
  checkTarget(spec);
  if (!Number.isInteger(spec.lun) || spec.lun < 1 || spec.lun > 255) throw defect(`unit ${spec.lun}`);
  const logins = new Map<string, string>();
  for (const { iqn, chap } of spec.initiators) {
    if (!INITIATOR_NAME.test(iqn)) throw invalid('iqns', `${JSON.stringify(iqn)} is no iSCSI name`);
    if (!chap) continue;
    if (!USER.test(chap.user)) throw invalid('chap.user', 'expected no blanks, no comma, no slash in front');
    if (chap.password === '' || chap.password.includes('\0')) throw invalid('chap.password', 'must not be empty');
    if ((logins.get(chap.user) ?? chap.password) !== chap.password) {
      throw new StorageError('already_exists', 'chap.user: the same user with two passwords', { field: 'chap.user' });
    }
    logins.set(chap.user, chap.password);
  }
  if (logins.size > 0 && spec.initiators.some(({ chap }) => !chap)) {
    throw new StorageError('failed_precondition', 'chap.user: one target serves hosts with CHAP or hosts without it', {
      field: 'chap.user',
    });
  }
  return [...logins].map(([user, password]) => ({ user, password }));
}

const defect = (what: string): StorageError =>
  new StorageError('internal', `tgt cannot have ${what}`, { retry: 'person' });
