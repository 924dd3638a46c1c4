/* SPDX-License-Identifier: ISC */
/*
 * Any bytes, as the configuration space of a PCI function whose lists of capabilities are walked. What may
 * be said of them, whatever they are:
 *
 *   - only whole words below the end of the space are read, and no more of them than there are, twice;
 *   - the answer is one of those that transport.h lists, and the same the second time;
 *   - what is found in a list that is right is the first of its id, as following the pointers finds it;
 *   - a list that is wrong is wrong for each id, and one that is right for none;
 *   - where the reader fails, that is what is returned.
 *
 * The first byte says how much space there is, the second after how many reads the reader fails (0: never),
 * the next four two ids to look for. The space follows; what of it is not there is zeros. It is a block of
 * its own, so that a sanitizer sees a read past its end.
 */
#include <string.h>

#include "daemon/pci/transport.h"
#include "tests/fuzz/fuzz.h"

#define PREFIX 6u
/* Each word is the header of one capability at most, and the control of one; two reads begin a list. */
#define READS_MAX (2 * 4096 / 4 + 2)

struct space {
        uint8_t *data;
        uint32_t bytes, reads, fails_at;
};

typedef int (*finder)(
        rig_pci_config_reader reader, void *own, uint32_t bytes, uint32_t id, uint32_t *ret_at);

static int read_word(void *own, uint32_t at, uint32_t *ret_value)
{
        struct space *s = own;

        rig_assert(at % 4 == 0 && !rig_range_outside(at, 4, s->bytes));
        rig_assert(++s->reads <= READS_MAX);
        if (s->reads == s->fails_at)
                return -ENODEV;
        memcpy(ret_value, s->data + at, 4);
        return 0;
}

static int find(finder f, struct space *s, uint32_t id, uint32_t *ret_at)
{
        uint32_t again = 0;
        bool failed;
        int r;

        *ret_at = 0;
        s->reads = 0;
        r = f(read_word, s, s->bytes, id, ret_at);
        failed = s->fails_at && s->reads >= s->fails_at;
        rig_assert(r == 0 || r == -ENOENT || r == -EPROTO || r == -ENODEV);
        rig_assert((r == -ENODEV) == failed);
        s->reads = 0;
        rig_assert(f(read_word, s, s->bytes, id, &again) == r);
        rig_assert(again == *ret_at && (r == 0 || again == 0));
        return r;
}

/* Where the first capability of an id is in a list that is right, or 0: by its pointers alone. */
static uint32_t first_of(const struct space *s, bool extended, uint32_t id)
{
        uint32_t at = extended ? 256 : s->data[0x34] & 0xfc, word = 0;

        if (extended ? s->bytes <= 256 : !(s->data[6] & 0x10))
                return 0;
        while (at) {
                rig_assert(!rig_range_outside(at, 4, s->bytes));
                memcpy(&word, s->data + at, 4);
                if (extended && at == 256 && (word == 0 || word == UINT32_MAX))
                        return 0;
                if ((extended ? word & 0xffff : word & 0xff) == id)
                        return at;
                at = extended ? word >> 20 & 0xffc : word >> 8 & 0xfc;
        }
        return 0;
}

static void check_list(struct space *s, bool extended, const uint16_t *ids)
{
        finder f = extended ? rig_pci_extended_capability_find : rig_pci_capability_find;
        uint32_t at;
        int any = find(f, s, RIG_PCI_ANY, &at);

        rig_assert(any != -ENOENT && at == 0);
        for (unsigned i = 0; i < 2; i++) {
                uint32_t id = extended ? ids[i] : ids[i] & 0xff;
                int r = find(f, s, id, &at);

                if (any < 0) {
                        rig_assert(r == any);
                } else {
                        rig_assert(at == first_of(s, extended, id));
                        rig_assert(r == (at ? 0 : -ENOENT));
                }
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const uint32_t sizes[] = {4096, 256, 64, 1024};
        struct space s;
        uint16_t ids[2];

        if (size < PREFIX)
                return 0;
        s = (struct space){.bytes = sizes[data[0] % RIG_ARRAY_SIZE(sizes)], .fails_at = data[1]};
        memcpy(ids, data + 2, sizeof(ids));
        s.data = calloc(1, s.bytes);
        rig_assert(s.data);
        memcpy(s.data, data + PREFIX, RIG_MIN(size - PREFIX, (size_t)s.bytes));
        check_list(&s, false, ids);
        check_list(&s, true, ids);
        free(s.data);
        return 0;
}
