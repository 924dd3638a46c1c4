# SPDX-License-Identifier: ISC
"""Every name of a manual page is found by man, every page that a page refers to exists, and all are installed.

Usage: check-references.py ROOT BUILD. Each page and each link to one is laid out as it is installed (meson's own list
says where, docs/man/meson.build where links lead), and man-db is asked for each name of each page.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import mdoc

# Pages of others that ours may refer to. One that is not here is a slip, or has to be added.
OTHERS = {
    ('apropos', '1'), ('busctl', '1'), ('journalctl', '1'), ('systemctl', '1'), ('systemd-analyze', '1'),
    ('epoll', '7'), ('unix', '7'), ('user-runtime-dir@.service', '5'), ('proc', '5'), ('polkit', '8'),
    ('eventfd', '2'), ('fdatasync', '2'), ('fork', '2'), ('gettid', '2'), ('memfd_create', '2'), ('open', '2'),
    ('poll', '2'), ('read', '2'), ('rename', '2'), ('write', '2'), ('fcntl', '2'), ('clock_gettime', '2'),
    ('dlopen', '3'), ('errno', '3'), ('sd_bus_path_encode', '3'), ('sd_notify', '3'), ('sd_listen_fds', '3'),
    ('systemd.exec', '5'), ('systemd.service', '5'), ('systemd.socket', '5'), ('systemd.syntax', '7'),
    ('org.freedesktop.LogControl1', '5'), ('sysusers.d', '5'), ('tmpfiles.d', '5'), ('usermod', '8'),
}


def installed(root, build):
    """{name of a page as it is installed: (file that it is or leads to, folder)}."""
    listing = json.loads(pathlib.Path(build, 'meson-info/intro-installed.json').read_text(encoding='utf-8'))
    folders = {pathlib.Path(to).name: pathlib.Path(to).parent.name
               for to in listing.values() if re.search(r'/man\d/[^/]+\.\d$', to)}
    text = pathlib.Path(root, 'docs/man/meson.build').read_text(encoding='utf-8')
    leads = {}
    for page, names in re.findall(r"^  '(\S+)': \[(.*?)\]", text, re.S | re.M):
        leads.update({f'{name}.{page[-1]}': page for name in re.findall(r"'(\S+)'", names)})
    return {name: (pathlib.Path(root, 'docs/man', leads.get(name, name)), folder) for name, folder in folders.items()}


def check_installed(files, pages):
    for page in pages:
        for name in {page.name} | set(page.names()):
            file, folder = files.get(f'{name}.{page.section}', (None, None))
            if not file:
                yield f'{page}: {name}.{page.section} is not installed'
            elif folder != f'man{page.section}':
                yield f'{page}: {name} is installed in {folder}'
            elif file.name != page.path.name:
                yield f'{page}: {name}.{page.section} leads to {file.name}'
    names = {f'{n}.{p.section}' for p in pages for n in p.names() + [p.name]}
    yield from (f'{name} is installed, and no page has that name' for name in sorted(set(files) - names))


def check_found(files, pages):
    """Asks man-db, in a tree like the one that is installed."""
    if not shutil.which('man'):
        return
    with tempfile.TemporaryDirectory() as tree:
        for name, (file, folder) in files.items():
            pathlib.Path(tree, folder).mkdir(exist_ok=True)
            if not file.exists():
                continue
            if file.name == name:
                shutil.copy(file, pathlib.Path(tree, folder, name))
            else:
                pathlib.Path(tree, folder, name).symlink_to(file.name)
        for page in pages:
            for name in page.names():
                command = ['man', '-M', tree, '-w', page.section, name]
                run = subprocess.run(command, capture_output=True, text=True, check=False)
                if pathlib.Path(run.stdout.strip()).resolve().name != page.path.name:
                    yield f'man {page.section} {name} finds {run.stdout.strip() or "nothing"}, and not {page}'


def check_references(files, pages):
    for page in pages:
        for name, section in sorted(page.references()):
            ours = f'{name}.{section}' in files
            if not ours and (name, section) not in OTHERS:
                yield f'{page}: there is no page {name}({section})'
            if ours and name in page.names() and section == page.section:
                yield f'{page}: refers to itself, as {name}'
        sorted_by = [(words[1], words[0].lower()) for macro, words in page.words('SEE ALSO') if macro == 'Xr']
        if sorted_by != sorted(sorted_by):
            yield f'{page}: SEE ALSO is not in order: sections, then names'


def main():
    pages, files = mdoc.pages(sys.argv[1]), installed(*sys.argv[1:3])
    complaints = [*check_installed(files, pages), *check_found(files, pages), *check_references(files, pages)]
    return mdoc.report('names', complaints, len(files))


if __name__ == '__main__':
    sys.exit(main())
