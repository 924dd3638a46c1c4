/* SPDX-License-Identifier: ISC */
/*
 * The table of pinned images, and what makes an entry of it a good one.
 *
 * Lengths and digests are those that stat(1) and sha256sum(1) say of the files in Debian's packages:
 *
 *     firmware-amd-graphics_20260916-1_all.deb
 *         SHA-256 824eba95a5a132505803f30e17aab312b5f5820d1f45ad5c40b4ac910e6271ce
 *     firmware-nvidia-graphics_20260916-1_all.deb
 *         SHA-256 438dea065c930a4626c9cb711635149507471307f9d7ede9b981c61f963e0d68
 *
 * which hold, unchanged, the files of that day's release of linux-firmware. To pin others, unpack a later
 * package, and change version, length and digest here together. tests/firmware holds the table against the
 * files that are installed.
 *
 * The images of AD103, AD104, AD106 and AD107 are those of AD102: the folders with their names are links to
 * its folder, so one entry serves all. What runs before them (FWSEC) is in the card's own ROM, in no
 * package.
 */
#include "firmware/images.h"

#include <string.h>

static const struct rig_firmware_package amd_graphics = {
        .name = "firmware-amd-graphics",
        .version = "20260916-1",
        .suites = "sid and trixie-backports, non-free-firmware",
        .licence = "LICENSE.amdgpu: may be passed on unchanged",
};

static const struct rig_firmware_package nvidia_graphics = {
        .name = "firmware-nvidia-graphics",
        .version = "20260916-1",
        .suites = "sid and trixie-backports, non-free-firmware",
        .licence = "LICENCE.nvidia: may be passed on unchanged",
};

#define AMD_GFX1201  .vendor = "amd", .gpu = "gfx1201", .package = &amd_graphics
#define NVIDIA_AD10X .vendor = "nvidia", .gpu = "AD10x", .package = &nvidia_graphics

static const struct rig_firmware_image images[] = {
        {
                AMD_GFX1201,
                .name = "amdgpu/psp_14_0_3_sos.bin",
                .purpose = "security processor: its system, and the drivers that load the rest",
                .bytes = 435632,
                .sha256 = "28469a0857c813c54a0492423cdf0b0caf757428400036377e19c47e5af62478",
        },
        {
                AMD_GFX1201,
                .name = "amdgpu/smu_14_0_3.bin",
                .purpose = "power and clocks",
                .bytes = 333236,
                .sha256 = "7624724231b0986b59f59705e7c854c482193f6b3b591ebdda58cb62af81c010",
        },
        {
                AMD_GFX1201,
                .name = "amdgpu/sdma_7_0_1.bin",
                .purpose = "copy engines",
                .bytes = 47104,
                .sha256 = "73c29e1c1714ebc95d2221ba56e187910902891593010653bf9518937e414a59",
        },
        {
                AMD_GFX1201,
                .name = "amdgpu/gc_12_0_1_pfp.bin",
                .purpose = "graphics: prefetch parser",
                .bytes = 354912,
                .sha256 = "585c0d3aa40378b55d576a667a91209dc72696ea2569b42473d62bc2ff76d60d",
        },
        {
                AMD_GFX1201,
                .name = "amdgpu/gc_12_0_1_me.bin",
                .purpose = "graphics: micro engine",
                .bytes = 463424,
                .sha256 = "f47fc72ade16f6bd67dc798c8668f620fde1acf6d9e9e9e5627164d312687347",
        },
        {
                AMD_GFX1201,
                .name = "amdgpu/gc_12_0_1_mec.bin",
                .purpose = "compute: micro engine",
                .bytes = 451552,
                .sha256 = "b59371dc5185beba02eb2bf53061e2d2dd3792b278bc2199fd51db1b1888677a",
        },
        {
                AMD_GFX1201,
                .name = "amdgpu/gc_12_0_1_imu.bin",
                .purpose = "initialises the graphics block",
                .bytes = 132352,
                .sha256 = "b3b301fb636efc77b63ce4d2ced0f90c851d03c19681852faa45598e6f5773fd",
        },
        {
                AMD_GFX1201,
                .name = "amdgpu/gc_12_0_1_rlc.bin",
                .purpose = "run list controller",
                .bytes = 150848,
                .sha256 = "6ba4459532246a5c415d3cb33c9b1248294e48f67b827e2accb292a8d1a5c0ec",
        },
        {
                NVIDIA_AD10X,
                .name = "nvidia/ad102/gsp/booter_load-570.144.bin",
                .purpose = "starts the GSP's image",
                .bytes = 57720,
                .sha256 = "8b293e19b637c5e22c87a2428d1c71bb13e0904e8a88ac6b3c6c1f2679c6e37a",
        },
        {
                NVIDIA_AD10X,
                .name = "nvidia/ad102/gsp/booter_unload-570.144.bin",
                .purpose = "ends the GSP's image",
                .bytes = 41592,
                .sha256 = "975b85a14ded8e430d30f000c3c1afdd55c15dee04f35ff9dfd876acd7e67186",
        },
        {
                NVIDIA_AD10X,
                .name = "nvidia/ad102/gsp/bootloader-570.144.bin",
                .purpose = "what the GSP runs first",
                .bytes = 36972,
                .sha256 = "65ab2e6b6e0fca95365c4deac79a34582abcfeb15b6ae234138f22e7183118a8",
        },
        {
                NVIDIA_AD10X,
                .name = "nvidia/ad102/gsp/gsp-570.144.bin",
                .upstream = "nvidia/ga102/gsp/gsp-570.144.bin", /* the packages have a link to it */
                .purpose = "GSP: resource manager",
                .bytes = 63571696,
                .sha256 = "a8c3ebeed280323aedb51c061f321e73379cce7a9ae643a33dd03915df027f7f",
        },
        {
                NVIDIA_AD10X,
                .name = "nvidia/ad102/gsp/scrubber-570.144.bin",
                .purpose = "clears memory that was protected",
                .bytes = 8312,
                .sha256 = "c397358e5c4258dab070966589c7b172eb00771fd15d0bb74b8e22f327c1909b",
        },
};

const struct rig_firmware_table rig_firmware_pinned = {.images = images, .n = RIG_ARRAY_SIZE(images)};

const struct rig_firmware_image *rig_firmware_image_get(
        const struct rig_firmware_table *table, const char *name)
{
        for (size_t i = 0; i < table->n; i++)
                if (strcmp(table->images[i].name, name) == 0)
                        return &table->images[i];
        return NULL;
}

/* ---------------------------------------------------------------- a good entry */

#define ALPHANUMERIC "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

static bool word_is_good(const char *word)
{
        size_t n = strlen(word);

        return n > 0 && n <= 32 && word[0] != '-' && strspn(word, ALPHANUMERIC "_-") == n;
}

static bool name_is_good(const char *name)
{
        size_t n = strlen(name);

        return n > 0 && n <= RIG_FIRMWARE_NAME_MAX && strspn(name, ALPHANUMERIC "._+-/") == n &&
               name[0] != '.' && name[0] != '/' && name[n - 1] != '/' && !strstr(name, "//") &&
               !strstr(name, "/.");
}

int rig_firmware_image_check(const struct rig_firmware_image *image, struct rig_error *e)
{
        if (!word_is_good(image->vendor))
                return rig_error_set(e, -EINVAL, "\"%.40s\" is no name of a vendor", image->vendor);
        if (!word_is_good(image->gpu))
                return rig_error_set(e, -EINVAL, "\"%.40s\" is no name of a GPU", image->gpu);
        if (!name_is_good(image->name))
                return rig_error_set(e, -EINVAL, "\"%.100s\" is no name of an image", image->name);
        if (image->upstream && !name_is_good(image->upstream))
                return rig_error_set(e, -EINVAL, "\"%.100s\" is no name of an image", image->upstream);
        if (image->bytes == 0 || image->bytes > RIG_FIRMWARE_BYTES_MAX)
                return rig_error_set(e, -EINVAL, "an image has 1 to %llu bytes",
                        (unsigned long long)RIG_FIRMWARE_BYTES_MAX);
        if (strlen(image->sha256) != RIG_FIRMWARE_DIGITS ||
                strspn(image->sha256, "0123456789abcdef") != RIG_FIRMWARE_DIGITS)
                return rig_error_set(
                        e, -EINVAL, "\"%.70s\" is no SHA-256 in lower-case digits", image->sha256);
        return 0;
}
