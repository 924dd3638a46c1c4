/* SPDX-License-Identifier: ISC */
/*
 * Unpacks whole files from memory to memory (firmware/unpack.h), by libzstd and liblzma.
 *
 * Both decoders are given all of the input and room for as many bytes as the file may have. They write
 * straight into that room, so a file that would be longer stops them, and no window is allocated for zst.
 * For xz a dictionary is, of a length that the file asks for: 64 MiB is the most that xz(1) makes, and the
 * limit is above that.
 */
#include "firmware/unpack.h"

#include <lzma.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

#define LZMA_MEMORY_MAX (UINT64_C(80) << 20)

const char *rig_firmware_packing_to_string(enum rig_firmware_packing packing)
{
        static const char *const names[RIG_FIRMWARE_PACKING_MAX] = {
                [RIG_FIRMWARE_PLAIN] = "plain",
                [RIG_FIRMWARE_ZST] = "zst",
                [RIG_FIRMWARE_XZ] = "xz",
        };

        return names[packing];
}

static int too_long(size_t n_out, struct rig_error *e)
{
        return rig_error_set(e, -EFBIG, "it unpacks to more than the %zu bytes that are pinned", n_out);
}

static int unpack_zst(
        const void *in, size_t n_in, void *out, size_t n_out, size_t *ret_n, struct rig_error *e)
{
        size_t n = ZSTD_decompress(out, n_out, in, n_in);

        switch (ZSTD_getErrorCode(n)) {
        case ZSTD_error_no_error:
                *ret_n = n;
                return 0;
        case ZSTD_error_dstSize_tooSmall:
                return too_long(n_out, e);
        case ZSTD_error_memory_allocation:
                return rig_error_set(e, -ENOMEM, "no memory to unpack it");
        default:
                return rig_error_set(e, -EBADMSG, "it is no whole zst file: %s", ZSTD_getErrorName(n));
        }
}

static int unpack_xz(
        const void *in, size_t n_in, void *out, size_t n_out, size_t *ret_n, struct rig_error *e)
{
        lzma_stream s = LZMA_STREAM_INIT;
        lzma_ret r = lzma_stream_decoder(&s, LZMA_MEMORY_MAX, LZMA_CONCATENATED);

        s.next_in = in;
        s.avail_in = n_in;
        s.next_out = out;
        s.avail_out = n_out;
        while (r == LZMA_OK) /* it gets on, or is an error */
                r = lzma_code(&s, LZMA_FINISH);
        lzma_end(&s);
        *ret_n = n_out - s.avail_out;
        switch (r) {
        case LZMA_STREAM_END:
                return 0;
        case LZMA_BUF_ERROR: /* it wants more of one of the two */
                return s.avail_in > 0 ? too_long(n_out, e)
                                      : rig_error_set(e, -EBADMSG, "it is no whole xz file");
        case LZMA_MEM_ERROR:
                return rig_error_set(e, -ENOMEM, "no memory to unpack it");
        case LZMA_MEMLIMIT_ERROR:
                return rig_error_set(e, -EBADMSG, "its dictionary needs more than %llu MiB",
                        (unsigned long long)(LZMA_MEMORY_MAX >> 20));
        case LZMA_FORMAT_ERROR:
                return rig_error_set(e, -EBADMSG, "it is no xz file");
        default:
                return rig_error_set(e, -EBADMSG, "it is no whole xz file");
        }
}

int rig_firmware_unpack(enum rig_firmware_packing packing, const void *in, size_t n_in, void *out,
        size_t n_out, struct rig_error *e)
{
        size_t n = 0;
        int r = 0;

        switch (packing) {
        case RIG_FIRMWARE_PLAIN:
                n = n_in;
                if (n_in > n_out)
                        return rig_error_set(e, -EFBIG, "it has %zu bytes, not %zu", n_in, n_out);
                memcpy(out, in, n_in);
                break;
        case RIG_FIRMWARE_ZST:
                r = unpack_zst(in, n_in, out, n_out, &n, e);
                break;
        case RIG_FIRMWARE_XZ:
                r = unpack_xz(in, n_in, out, n_out, &n, e);
                break;
        case RIG_FIRMWARE_PACKING_MAX:
                return rig_error_set(e, -EINVAL, "there is no such packing");
        }
        if (r == 0 && n != n_out)
                return rig_error_set(e, -EBADMSG, "it has %zu bytes, not %zu", n, n_out);
        return r;
}
