/* SPDX-License-Identifier: ISC */
/* The small device as a program: for clients that are not of this process, QEMU among them. */
#include "tests/pci/device.h"

int main(int argc, char **argv)
{
        static struct device device;

        return model_main(argc, argv, &device_description, &device);
}
