# SPDX-License-Identifier: ISC
"""The checks of manual pages find mistakes: in a copy of what they look at, each of these is made, and the check
that is there for it must say so.

Usage: check-checks.py ROOT BUILD RIGD
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

import mdoc

COPIED = ('docs/man', 'include/rig', 'libclient/librig-client.sym', 'daemon/bus/org.rig.Rig1.xml')
MAN = 'docs/man/'
# The check, the file, what is in it, what is there instead, and what the check says of it.
MISTAKES = (
    ('lint', MAN + 'rig_wait.3', '.Sh NAME', '.Sh NAMES', 'rig_wait.3: mandoc'),
    ('lint', MAN + 'rig_wait.3', '.Fc\n', '', 'rig_wait.3: groff'),
    ('lint', MAN + 'rig_wait.3', '.Nm rig_notify ,', '.Nm rig_notify', 'man-db finds it as'),
    ('lint', MAN + 'rig_dispatch.3', r'poll(&p, 1, \-1)', 'poll(&p, 1, -1)', "'-' in code is to be escaped"),
    ('lint', MAN + 'rig_dispatch.3', '.Sh RETURN VALUES', '.Sh RETURNS', 'has no section RETURN VALUES'),
    ('library', MAN + 'rig_wait.3', '.Nm rig_notify ,\n', '', 'declares rig_notify, which is not in its NAME'),
    ('library', MAN + 'rig_wait.3', '.Fa "uint64_t value"', '.Fa "uint32_t value"', 'rig.h has int rig_notify'),
    ('library', MAN + 'rig_wait.3', 'Er ETIMEDOUT', 'Er ETIME', 'lacks ETIMEDOUT'),
    ('library', MAN + 'rig_wait.3', 'Er ETIMEDOUT', 'Er ETIMEOUT', 'there is no error ETIMEOUT'),
    ('library', MAN + 'rig_adapter_list.3', 'char driver[64];', 'char driver[32];', 'struct rig_adapter is not as'),
    ('library', MAN + 'rig_buffer_map.3', '.Dv RIG_WRITE', '.Dv RIG_WRITES', 'RIG_WRITES is in a page, and not'),
    ('library', 'libclient/librig-client.sym', 'rig_wait;', 'rig_wait;\n        rig_wait_long;',
     'no page has rig_wait_long'),
    ('library', 'include/rig/rig.h', 'RIG_API int rig_sync(', 'RIG_API int rig_lull(',
     'declares rig_sync, which rig.h'),
    ('references', MAN + 'rig_wait.3', '.Xr rig_submit 3', '.Xr rig_submits 3', 'there is no page rig_submits(3)'),
    ('references', MAN + 'rig_wait.3', '.Xr eventfd 2 ,', '.Xr eventfds 2 ,', 'there is no page eventfds(2)'),
    ('references', MAN + 'rig_wait.3', '.Xr eventfd 2 ,', '.Xr rigd 8 ,', 'SEE ALSO is not in order'),
    ('references', MAN + 'meson.build', "'rig_wait.3': ['rig_notify'", "'rig_wait.3': ['rig_wake'",
     'rig_notify.3 leads to rig_notify.3'),
    ('programs', MAN + 'rigd.8', '.It Fl -print-config\n', '', 'rigd.8: lacks --print-config'),
    ('programs', MAN + 'rigd.8', '.It Fl -print-config\n', '.It Fl -print-config\n.It Fl -print-all\n',
     'has --print-all'),
    ('programs', MAN + 'rigd.conf.5', 'The default is 256M.', 'The default is 256K.',
     'ClientCacheMax: has the default'),
    ('programs', MAN + 'rigd.conf.5', '.It Va ClientCacheMax=', '.It Va ClientCashMax=',
     'rigd.conf.5: lacks ClientCacheMax'),
    ('programs', MAN + 'org.rig.Rig1.5', '"in a{st} limits"', '"in a{ss} limits"', 'lacks "Fn SetClientLimits'),
    ('programs', MAN + 'org.rig.Rig1.5', '.It Va Handed Pq Li t\n', '', 'Devices: lacks "Va Handed Pq Li t"'),
    ('programs', MAN + 'org.rig.Rig1.5', 'Rig1.Error.NotTracing', 'Rig1.Error.Untraced',
     'lacks org.rig.Rig1.Error.NotTracing'),
    ('programs', MAN + 'rigctl.1', '.It Fl b , -batch\n', '', 'rigctl.1: lacks --batch'),
    ('programs', MAN + 'rigctl.1', '.It Cm stats', '.It Cm statistics', 'rigctl.1: lacks the verb stats'),
    ('programs', 'daemon/bus/org.rig.Rig1.xml', 'name="Sleeps"', 'name="Naps"', 'lacks "Va Naps Pq Li t"'),
    ('samples', MAN + 'rig_error.3', 'int r;', 'int r', 'rig_error.3: its program does not compile'),
    ('samples', MAN + 'rig_work_launch.3', '/* 1046529 */', '/* 1046528 */', 'its comment says'),
    ('samples', MAN + 'rig_error.3', 'return r == 0;', 'return r != 0;', 'rig_error.3: its program ends with 1'),
)


def copy(root, to):
    for path in COPIED:
        target = pathlib.Path(to, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (root / path).is_dir() else shutil.copy)(root / path, target)


def make_mistake(tree, path, old, new):
    """Return: whether it could be made. Everything before the first `old` and behind it stays."""
    file = pathlib.Path(tree, path)
    text = file.read_text(encoding='utf-8')
    file.write_text(text.replace(old, new, 1), encoding='utf-8')
    return old in text


def main():
    root, build, rigd, rigctl, compiler, sanitizers = pathlib.Path(sys.argv[1]), *sys.argv[2:7]
    arguments = {'lint': [], 'library': [], 'references': [build], 'programs': [rigd, rigctl],
                 'samples': [build, rigd, compiler, sanitizers]}
    complaints = []
    for check, path, old, new, said in MISTAKES:
        with tempfile.TemporaryDirectory() as tree:
            copy(root, tree)
            if not make_mistake(tree, path, old, new):
                complaints.append(f'{path}: has no {old!r} any more: make another mistake here')
                continue
            if check == 'samples':  # the others' programs are no part of this
                for page in mdoc.pages(tree):
                    if page.section == '3' and page.path.name != pathlib.Path(path).name:
                        page.path.unlink()
            command = [sys.executable, root / f'tests/pages/check-{check}.py', tree, *arguments[check]]
            run = subprocess.run(command, capture_output=True, text=True, check=False)
            if run.returncode == 77:
                print(run.stdout.strip())
                return 77
            if run.returncode != 1 or said not in run.stdout:
                complaints.append(f'check-{check}.py: {path} with {new!r}: status {run.returncode}, without '
                                  f'{said!r}:\n{run.stdout}{run.stderr}')
    return mdoc.report('mistakes', complaints, len(MISTAKES))


if __name__ == '__main__':
    sys.exit(main())
