# SPDX-License-Identifier: ISC
"""An access of a mapped window is one instruction of its width: read from objdump's disassembly of accesses.c.

Usage: check-accesses.py OBJECT-OR-ARCHIVE

Each function there accesses one place, whose number is in no other instruction but the access itself and the call
for windows that are not mapped. What is looked for is a memory operand with that displacement, in AT&T syntax.
On a processor that this cannot read, the test is skipped.
"""

import platform
import re
import shutil
import subprocess
import sys

PLACES = {8: 0x12345, 16: 0x12346, 32: 0x12348, 64: 0x12350}
# register names by width: what tells the width of a load or store where its mnemonic has no suffix
REGISTERS = {
    8: r'%([abcd]l|[sd]il|bpl|r\d+b)$',
    16: r'%([abcds][xip]|r\d+w)$',
    32: r'%(e[abcds][xip]|ebp|r\d+d)$',
    64: r'%(r[abcds][xip]|rbp|r\d+)$',
}


def functions(path):
    """The instructions of each function: (mnemonic, operands)."""
    text = subprocess.run(['objdump', '-d', '--no-show-raw-insn', '-w', path], check=True, capture_output=True,
                          text=True).stdout
    found, name = {}, None
    for line in text.splitlines():
        start = re.match(r'^[0-9a-f]+ <(\w+)>:$', line)
        if start:
            name = start.group(1)
            found[name] = []
            continue
        instruction = re.match(r'^\s+[0-9a-f]+:\s+(\S+)\s*(.*?)\s*(#.*)?$', line)
        if instruction and name:
            found[name].append((instruction.group(1), instruction.group(2)))
    return found


def wrong(instructions, verb, bits):
    """What is wrong with a function, or None."""
    operand = re.compile(rf'\b{PLACES[bits]:#x}\(%\w+\)')
    accesses = [i for i in instructions if operand.search(i[1])]
    if len(accesses) != 1:
        return f'{len(accesses)} instructions access the place, not one: {accesses}'
    mnemonic, operands = accesses[0]
    parts = re.split(r',(?![^(]*\))', operands)
    if len(parts) != 2 or not mnemonic.startswith('mov'):
        return f'{mnemonic} {operands} is no plain load or store'
    place, register = (parts[0], parts[1]) if verb == 'read' else (parts[1], parts[0])
    if not operand.search(place):
        return f'{mnemonic} {operands} goes the other way'
    # a narrow load may extend into a wider register, and its mnemonic says from what
    extends = {8: 'movzbl', 16: 'movzwl'}.get(bits)
    if verb == 'read' and mnemonic == extends:
        return None
    if not re.match(REGISTERS[bits], register.strip()):
        return f'{mnemonic} {operands} is not of {bits} bits'
    return None


def main():
    if platform.machine() != 'x86_64' or not shutil.which('objdump'):
        print('needs objdump, and a processor of x86-64')
        return 77
    found, bad = functions(sys.argv[1]), 0
    for verb in 'read', 'write':
        for bits in PLACES:
            name = f'access_{verb}{bits}'
            problem = wrong(found[name], verb, bits) if name in found else 'is not there'
            print(f'{name}: {problem or "one instruction"}')
            bad += problem is not None
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
