/* SPDX-License-Identifier: ISC */
/*
 * Bus addresses as text: [DOMAIN:]BUS:DEVICE.FUNCTION, in hexadecimal, the way sysfs names its directories.
 *
 * A domain has up to eight digits: the kernel prints at least four, and gives those of virtual host bridges
 * (VMD) numbers from 0x10000 up. What is read is what people type: fewer digits, and capitals, are fine;
 * signs, blanks, prefixes and anything after the function are not.
 */
#include <stdio.h>

#include "daemon/pci/pci.h"

/* Reads 1 to `digits` hexadecimal digits. Return: what follows them, or NULL. */
static const char *read_hex(const char *text, unsigned digits, uint32_t *ret_value)
{
        uint32_t value = 0;
        unsigned n = 0;

        for (;; n++, text++) {
                unsigned digit;

                if (*text >= '0' && *text <= '9')
                        digit = (unsigned)(*text - '0');
                else if (*text >= 'a' && *text <= 'f')
                        digit = (unsigned)(*text - 'a') + 10;
                else if (*text >= 'A' && *text <= 'F')
                        digit = (unsigned)(*text - 'A') + 10;
                else
                        break;
                if (n == digits)
                        return NULL;
                value = value << 4 | digit;
        }
        *ret_value = value;
        return n ? text : NULL;
}

int rig_pci_address_parse(const char *text, struct rig_pci_address *ret_address)
{
        uint32_t domain = 0, bus, device, function;
        const char *p = read_hex(text, 8, &bus);

        if (!p || *p != ':')
                return -EINVAL;
        p = read_hex(p + 1, 2, &device);
        if (p && *p == ':') {
                domain = bus;
                bus = device;
                p = read_hex(p + 1, 2, &device);
        }
        if (!p || *p != '.' || bus > 0xff || device > 0x1f)
                return -EINVAL;
        p = read_hex(p + 1, 1, &function);
        if (!p || *p || function > 7)
                return -EINVAL;
        *ret_address = (struct rig_pci_address){domain, (uint8_t)bus, (uint8_t)device, (uint8_t)function};
        return 0;
}

const char *rig_pci_address_format(const struct rig_pci_address *address, char *text)
{
        snprintf(text, RIG_PCI_ADDRESS_TEXT_MAX, "%04x:%02x:%02x.%x", address->domain, address->bus,
                address->device & 0x1fu, address->function & 7u);
        return text;
}
