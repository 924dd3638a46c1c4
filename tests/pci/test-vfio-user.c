/* SPDX-License-Identifier: ISC */
/*
 * The vfio-user way against a model that keeps to the protocol: what a driver gets from daemon/pci/.
 * Expected values are the device's (device.h), and those of the PCI specifications as model-config.c has
 * them from there.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "tests/memory/random.h"
#include "tests/pci/world.h"

static const struct model_options plain = {.tick_usec = -1};

static struct rig_window window(struct rig_pci *pci, unsigned bar, uint64_t offset, uint64_t bytes)
{
        struct rig_error e = RIG_ERROR_NULL;
        struct rig_window w;
        int r = rig_pci_window(pci, bar, offset, bytes, RIG_UNCACHED, &w, &e);

        if (r < 0)
                fprintf(stderr, "%s\n", e.text);
        CHECK_EQ(r, 0);
        return w;
}

static void what_it_is_is_what_its_configuration_space_says(void)
{
        const struct rig_pci_id *id;
        struct rig_pci_bar bar;
        struct rig_pci *pci;
        struct world w;
        uint32_t value;

        world_start(&w, &plain);
        pci = world_open(&w, 0);
        id = rig_pci_id(pci);
        CHECK_EQ(id->vendor, DEVICE_VENDOR);
        CHECK_EQ(id->device, DEVICE_DEVICE);
        CHECK_EQ(id->subvendor, 0x1af4);
        CHECK_EQ(id->subdevice, 0x1100);
        CHECK_EQ(id->class, 0x120000);
        CHECK_EQ(id->revision, 7);
        CHECK(strcmp(rig_pci_name(pci), w.where) == 0);
        CHECK_EQ(rig_pci_way(pci), RIG_PCI_VFIO_USER);
        /* memory decoded, bus master off, INTx disabled */
        CHECK_EQ(rig_pci_config_read(pci, 4, 2, &value), 0);
        CHECK_EQ(value, 0x0402);
        CHECK_EQ(rig_pci_config_read(pci, 4096, 4, &value), -ERANGE);
        CHECK_EQ(rig_pci_bar(pci, MEMORY_BAR, &bar, NULL), 0);
        CHECK(bar.bytes == MEMORY_BYTES && bar.prefetchable && bar.mappable);
        CHECK_EQ(rig_pci_bar(pci, MEMORY_BAR + 1, &bar, NULL), 0);
        CHECK_EQ(bar.bytes, 0);
        CHECK_EQ(rig_pci_bar(pci, REGISTER_BAR, &bar, NULL), 0);
        CHECK(bar.bytes == REGISTER_BYTES && !bar.prefetchable && !bar.mappable);
        CHECK_EQ(rig_pci_bar(pci, SPARSE_BAR, &bar, NULL), 0);
        CHECK(bar.bytes == SPARSE_BYTES && !bar.mappable);
        CHECK_EQ(rig_pci_bar(pci, 6, &bar, NULL), -EINVAL);
        rig_pci_close(pci);
        world_stop(&w);
}

static void capabilities_are_found_where_they_lie(void)
{
        struct rig_pci *pci;
        struct world w;
        uint32_t at, value;

        world_start(&w, &plain);
        pci = world_open(&w, 0);
        CHECK_EQ(rig_pci_capability(pci, RIG_PCI_CAP_PM, &at), 0);
        CHECK_EQ(rig_pci_capability(pci, RIG_PCI_CAP_PCIE, &at), 0);
        CHECK_EQ(rig_pci_config_read(pci, at + 4, 4, &value), 0);
        CHECK(value & 1u << 28); /* function level reset */
        CHECK_EQ(rig_pci_capability(pci, RIG_PCI_CAP_MSIX, &at), 0);
        CHECK_EQ(rig_pci_config_read(pci, at + 2, 2, &value), 0);
        CHECK_EQ(value, DEVICE_VECTORS - 1);
        CHECK_EQ(rig_pci_capability(pci, 0x12, &at), -ENOENT);
        CHECK_EQ(rig_pci_extended_capability(pci, RIG_PCI_EXT_REBAR, &at), 0);
        CHECK_EQ(at, 0x100);
        CHECK_EQ(rig_pci_extended_capability(pci, RIG_PCI_EXT_VFREBAR, &at), -ENOENT);
        CHECK_EQ(rig_pci_failure(pci, NULL), 0);
        rig_pci_close(pci);
        world_stop(&w);
}

static void registers_of_each_width_are_read_as_they_were_written(void)
{
        struct rig_window regs;
        struct rig_pci *pci;
        struct world w;

        world_start(&w, &plain);
        pci = world_open(&w, 0);
        regs = window(pci, REGISTER_BAR, 0, REGISTER_BYTES);
        CHECK(!regs.host);
        CHECK_EQ(rig_window_read32(&regs, REG_ID), DEVICE_ID_VALUE);
        rig_window_write8(&regs, REG_BYTE, 0xa5);
        rig_window_write16(&regs, REG_HALF, 0xbeef);
        rig_window_write32(&regs, REG_SCRATCH, 0xdeadbeef);
        rig_window_write64(&regs, REG_WIDE, UINT64_C(0x0123456789abcdef));
        CHECK_EQ(rig_window_read8(&regs, REG_BYTE), 0xa5);
        CHECK_EQ(rig_window_read16(&regs, REG_HALF), 0xbeef);
        CHECK_EQ(rig_window_read32(&regs, REG_SCRATCH), 0xdeadbeef);
        CHECK_EQ(rig_window_read64(&regs, REG_WIDE), UINT64_C(0x0123456789abcdef));
        CHECK_EQ(rig_pci_failure(pci, NULL), 0);
        CHECK_EQ(model_faults(w.model, NULL), 0);
        rig_window_close(&regs);
        rig_pci_close(pci);
        world_stop(&w);
}

/* Copies at random places, beside an array that should stay the same; returns what the memory is then. */
static void copy_about(const struct rig_window *win, uint8_t *mirror, uint64_t bytes)
{
        uint8_t data[300], back[300];
        uint64_t seed = 1;

        for (unsigned i = 0; i < 400; i++) {
                uint64_t n = random_below(&seed, i < 200 ? 24 : sizeof(data)),
                         at = random_below(&seed, bytes - n + 1);

                for (uint64_t k = 0; k < n; k++)
                        data[k] = (uint8_t)random_next(&seed);
                rig_window_write(win, at, data, n);
                memcpy(mirror + at, data, n);
                n = random_below(&seed, sizeof(data));
                at = random_below(&seed, bytes - n + 1);
                rig_window_read(win, at, back, n);
                CHECK(memcmp(back, mirror + at, n) == 0);
        }
}

static void copies_give_the_same_mapped_and_trapped_and_combined(void)
{
        static uint8_t mirror[4096], whole[4096];
        struct model_options trapped = plain;

        trapped.trap_all = true;
        for (unsigned way = 0; way < 3; way++) {
                struct rig_window win;
                struct rig_pci *pci;
                struct world w;

                world_start(&w, way == 1 ? &trapped : &plain);
                pci = world_open(&w, 0);
                CHECK_EQ(rig_pci_window(pci, MEMORY_BAR, 8192, 4096,
                                 way == 2 ? RIG_WRITE_COMBINING : RIG_UNCACHED, &win, NULL),
                        0);
                CHECK((win.host == NULL) == (way == 1));
                memset(mirror, 0, sizeof(mirror));
                copy_about(&win, mirror, sizeof(mirror));
                rig_wc_flush();
                rig_window_read(&win, 0, whole, sizeof(whole));
                CHECK(memcmp(whole, mirror, sizeof(mirror)) == 0);
                CHECK(memcmp(model_memory(w.model, MEMORY_BAR) + 8192, mirror, sizeof(mirror)) == 0);
                /* nothing outside was touched */
                for (unsigned i = 0; i < 4096; i++)
                        CHECK(!model_memory(w.model, MEMORY_BAR)[4096 + i] &&
                                !model_memory(w.model, MEMORY_BAR)[12288 + i]);
                rig_window_close(&win);
                rig_pci_close(pci);
                world_stop(&w);
        }
}

static void a_bar_that_is_mapped_in_part_is_mapped_there(void)
{
        struct rig_window whole, page, first;
        struct rig_pci *pci;
        struct world w;

        world_start(&w, &plain);
        pci = world_open(&w, 0);
        whole = window(pci, SPARSE_BAR, 0, SPARSE_BYTES);
        page = window(pci, SPARSE_BAR, SPARSE_MAPPED, 4096);
        first = window(pci, SPARSE_BAR, 0, 4096);
        CHECK(!whole.host && page.host && !first.host);
        rig_window_write32(&page, 16, 0x600d);
        CHECK_EQ(rig_window_read32(&whole, SPARSE_MAPPED + 16), 0x600d);
        rig_window_write32(&whole, SPARSE_MAPPED + 20, 0xcafe);
        CHECK_EQ(rig_window_read32(&first, 0), 0); /* the write before it has arrived now */
        CHECK_EQ(rig_window_read32(&page, 20), 0xcafe);
        rig_window_close(&first);
        rig_window_close(&page);
        rig_window_close(&whole);
        rig_pci_close(pci);
        world_stop(&w);
}

static void windows_that_do_not_fit_are_refused(void)
{
        struct rig_error e = RIG_ERROR_NULL;
        struct rig_window win;
        struct rig_pci *pci;
        struct world w;

        world_start(&w, &plain);
        pci = world_open(&w, 0);
        CHECK_EQ(rig_pci_window(pci, REGISTER_BAR, 0, REGISTER_BYTES + 4096, RIG_UNCACHED, &win, &e),
                -ERANGE);
        CHECK(strstr(e.text, "BAR 2"));
        CHECK_EQ(rig_pci_window(pci, REGISTER_BAR, REGISTER_BYTES, 4096, RIG_UNCACHED, &win, &e), -ERANGE);
        CHECK_EQ(rig_pci_window(pci, REGISTER_BAR, 4, 4096, RIG_UNCACHED, &win, &e), -ERANGE);
        CHECK_EQ(rig_pci_window(pci, REGISTER_BAR, 0, 0, RIG_UNCACHED, &win, &e), -ERANGE);
        CHECK_EQ(
                rig_pci_window(pci, REGISTER_BAR, 4096, UINT64_MAX - 4095, RIG_UNCACHED, &win, &e), -ERANGE);
        CHECK_EQ(rig_pci_window(pci, 1, 0, 4096, RIG_UNCACHED, &win, &e), -ERANGE);
        CHECK_EQ(rig_pci_window(pci, 6, 0, 4096, RIG_UNCACHED, &win, &e), -EINVAL);
        CHECK_EQ(rig_pci_window(pci, REGISTER_BAR, 0, 4096, RIG_WRITE_COMBINING, &win, &e), -EOPNOTSUPP);
        rig_pci_close(pci);
        world_stop(&w);
}

/* Runs a command, and waits until it is done. */
static uint32_t run(
        const struct rig_window *regs, uint32_t command, uint64_t address, uint32_t bytes, uint32_t value)
{
        uint32_t status;

        rig_window_write64(regs, REG_ADDRESS, address);
        rig_window_write32(regs, REG_BYTES, bytes);
        rig_window_write32(regs, REG_VALUE, value);
        rig_dma_to_device();
        rig_window_write32(regs, REG_COMMAND, command);
        do {
                status = rig_window_read32(regs, REG_STATUS);
        } while (status == 1);
        rig_dma_from_device();
        return status;
}

static void dma_goes_both_ways(const struct model_options *options)
{
        struct rig_error e = RIG_ERROR_NULL;
        struct rig_window regs;
        struct rig_dma dma, fixed, more;
        struct rig_pci *pci;
        struct world w;
        uint32_t sum = 0, *words;

        world_start(&w, options);
        pci = world_open(&w, 0);
        regs = window(pci, REGISTER_BAR, 0, 4096);
        CHECK_EQ(rig_dma_new(pci, 10000, 0, 0, &dma, &e), 0);
        CHECK(dma.bytes == 12288 && dma.n_ranges == 1 && dma.ranges[0].bytes == 12288);
        CHECK_EQ(rig_dma_new(pci, 4096, RIG_DMA_AT | RIG_DMA_READ_ONLY, 0x10000, &fixed, &e), 0);
        CHECK_EQ(fixed.ranges[0].address, 0x10000);
        CHECK_EQ(rig_dma_new(pci, 8192, RIG_DMA_AT, 0xf000, &more, &e), -EEXIST);
        CHECK(strstr(e.text, "0xf000"));
        CHECK_EQ(rig_dma_new(pci, 4096, RIG_DMA_AT, dma.ranges[0].address + 4096, &more, &e), -EEXIST);
        CHECK_EQ(rig_dma_new(pci, 0, 0, 0, &more, &e), -EINVAL);
        CHECK_EQ(rig_dma_new(pci, 4096, RIG_DMA_AT, 100, &more, &e), -EINVAL);

        CHECK_EQ(run(&regs, COMMAND_FILL, dma.ranges[0].address, 4096, 1), 2); /* bus mastering is off */
        CHECK_EQ(*(uint32_t *)dma.host, 0);
        CHECK_EQ(model_faults(w.model, NULL), 1);
        CHECK_EQ(rig_pci_set_master(pci, true), 0);
        CHECK_EQ(run(&regs, COMMAND_FILL, dma.ranges[0].address + 8, 12272, 0x01020304), 0);
        words = dma.host;
        CHECK(words[1] == 0 && words[2] == 0x01020304 && words[3069] == 0x01020304 && words[3070] == 0);
        words = fixed.host;
        for (uint32_t i = 0; i < 1024; i++)
                sum += words[i] = i * i;
        CHECK_EQ(run(&regs, COMMAND_SUM, 0x10000, 4096, 0), 0);
        CHECK_EQ(rig_window_read32(&regs, REG_RESULT), sum);
        CHECK_EQ(model_faults(w.model, NULL), 1);
        CHECK_EQ(run(&regs, COMMAND_FILL, 0x10000, 4, 1), 2); /* it may only read there */
        CHECK_EQ(run(&regs, COMMAND_SUM, 0x10ffc, 8, 1), 2);  /* over the end */
        CHECK_EQ(model_faults(w.model, NULL), 3);
        rig_dma_free(&fixed);
        CHECK_EQ(run(&regs, COMMAND_SUM, 0x10000, 4, 1), 2); /* it is mapped no more */
        CHECK_EQ(rig_pci_failure(pci, NULL), 0);
        rig_dma_free(&dma);
        rig_dma_free(&dma);
        rig_window_close(&regs);
        rig_pci_close(pci);
        world_stop(&w);
}

static void dma_goes_both_ways_by_descriptor(void)
{
        dma_goes_both_ways(&plain);
}

static void dma_goes_both_ways_by_message_on_a_socket_of_its_own(void)
{
        struct model_options o = plain;

        o.message_dma = true;
        dma_goes_both_ways(&o);
}

static void dma_goes_both_ways_by_message_between_answers(void)
{
        struct model_options o = plain;

        o.message_dma = o.no_twin = true;
        dma_goes_both_ways(&o);
}

static void memory_of_the_callers_is_mapped_too(void)
{
        _cleanup_(rig_closep) int fd = memfd_create("caller", MFD_CLOEXEC);
        struct rig_window regs;
        struct rig_dma dma;
        struct rig_pci *pci;
        struct world w;
        uint32_t word = 0;

        CHECK(fd >= 0 && ftruncate(fd, 65536) == 0);
        world_start(&w, &plain);
        pci = world_open(&w, 0);
        regs = window(pci, REGISTER_BAR, 0, 4096);
        CHECK_EQ(rig_pci_set_master(pci, true), 0);
        CHECK_EQ(rig_dma_map(pci, fd, 100, 4096, 0, 0, &dma, NULL), -EINVAL);
        CHECK_EQ(rig_dma_map(pci, fd, 8192, 100, 0, 0, &dma, NULL), -EINVAL);
        CHECK_EQ(rig_dma_map(pci, fd, 8192, 4096, 0, 0, &dma, NULL), 0);
        CHECK_EQ(run(&regs, COMMAND_FILL, dma.ranges[0].address + 4, 4, 0xabcd), 0);
        CHECK_EQ(pread(fd, &word, 4, 8192 + 4), 4);
        CHECK_EQ(word, 0xabcd);
        rig_dma_free(&dma);
        rig_window_close(&regs);
        rig_pci_close(pci);
        world_stop(&w);
}

static void a_thousand_mappings_find_place_and_leave_none_behind(void)
{
        static struct rig_dma dma[1000];
        struct rig_pci *pci;
        struct world w;
        uint64_t seed = 3;

        world_start(&w, &plain);
        pci = world_open(&w, 0);
        for (unsigned i = 0; i < 1000; i++)
                CHECK_EQ(rig_dma_new(pci, 4096 * (1 + random_below(&seed, 4)), 0, 0, &dma[i], NULL), 0);
        for (unsigned i = 0; i < 1000; i++)
                for (unsigned k = 0; i < 100 && k < i; k++)
                        CHECK(dma[i].ranges[0].address + dma[i].bytes <= dma[k].ranges[0].address ||
                                dma[k].ranges[0].address + dma[k].bytes <= dma[i].ranges[0].address);
        CHECK_EQ(model_dma_mappings(w.model), 1000);
        for (unsigned i = 0; i < 1000; i++)
                rig_dma_free(&dma[(i * 7) % 1000]);
        CHECK_EQ(model_dma_mappings(w.model), 0);
        rig_pci_close(pci);
        world_stop(&w);
}

/* Waits for an interrupt. Return: how many came. */
static uint64_t wait_interrupt(int fd)
{
        struct pollfd p = {.fd = fd, .events = POLLIN};
        uint64_t n = 0;

        CHECK_EQ(poll(&p, 1, 60000), 1);
        CHECK_EQ(read(fd, &n, sizeof(n)), sizeof(n));
        return n;
}

static void interrupts_arrive_on_the_eventfd_of_their_vector(void)
{
        struct rig_error e = RIG_ERROR_NULL;
        int fds[DEVICE_VECTORS + 1];
        struct rig_window regs;
        struct rig_pci *pci;
        struct world w;
        uint64_t n;

        for (unsigned i = 0; i < DEVICE_VECTORS + 1; i++)
                fds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        world_start(&w, &plain);
        pci = world_open(&w, 0);
        regs = window(pci, REGISTER_BAR, 0, 4096);
        CHECK_EQ(run(&regs, COMMAND_INTERRUPT, 0, 0, 0), 2); /* none is enabled */
        CHECK_EQ(rig_pci_interrupts(pci, DEVICE_VECTORS + 1, fds, &e), -EOPNOTSUPP);
        CHECK(strstr(e.text, "4 interrupts"));
        CHECK_EQ(rig_pci_interrupts(pci, DEVICE_VECTORS, fds, &e), 0);
        for (unsigned i = 0; i < DEVICE_VECTORS; i++) {
                CHECK_EQ(run(&regs, COMMAND_INTERRUPT, 0, 0, i), 0);
                CHECK_EQ(wait_interrupt(fds[i]), 1);
        }
        for (unsigned i = 0; i < DEVICE_VECTORS; i++) /* and nowhere else */
                CHECK(read(fds[i], &n, sizeof(n)) < 0);
        CHECK_EQ(rig_pci_interrupts(pci, 1, &fds[DEVICE_VECTORS], &e), 0);
        CHECK_EQ(run(&regs, COMMAND_INTERRUPT, 0, 0, 0), 0);
        CHECK_EQ(wait_interrupt(fds[DEVICE_VECTORS]), 1);
        CHECK(read(fds[0], &n, sizeof(n)) < 0);
        CHECK_EQ(rig_pci_reset(pci, 60000000, &e), 0); /* what is routed stays so */
        CHECK_EQ(run(&regs, COMMAND_INTERRUPT, 0, 0, 0), 0);
        CHECK_EQ(wait_interrupt(fds[DEVICE_VECTORS]), 1);
        CHECK_EQ(rig_pci_interrupts(pci, 0, NULL, &e), 0);
        CHECK_EQ(run(&regs, COMMAND_INTERRUPT, 0, 0, 0), 2);
        rig_window_close(&regs);
        rig_pci_close(pci);
        world_stop(&w);
        for (unsigned i = 0; i < DEVICE_VECTORS + 1; i++)
                close(fds[i]);
}

static void a_reset_leaves_it_as_it_was_opened(void)
{
        struct rig_window regs;
        struct rig_pci *pci;
        struct world w;
        uint32_t value, at;

        world_start(&w, &plain);
        pci = world_open(&w, 0);
        regs = window(pci, REGISTER_BAR, 0, 4096);
        CHECK_EQ(rig_pci_set_master(pci, true), 0);
        rig_window_write32(&regs, REG_SCRATCH, 5);
        CHECK_EQ(rig_pci_reset(pci, 60000000, NULL), 0);
        CHECK_EQ(rig_window_read32(&regs, REG_SCRATCH), 0);
        CHECK_EQ(rig_pci_config_read(pci, 4, 2, &value), 0);
        CHECK_EQ(value, 0x0402);
        /* a function level reset by its register is one as well: the model turns memory off */
        CHECK_EQ(rig_pci_capability(pci, RIG_PCI_CAP_PCIE, &at), 0);
        CHECK_EQ(rig_pci_config_write(pci, at + 8, 2, 0x8000), 0);
        CHECK_EQ(model_resets(w.model), 2);
        CHECK_EQ(rig_window_read32(&regs, REG_ID), UINT32_MAX);
        CHECK_EQ(model_faults(w.model, NULL), 1);
        rig_window_close(&regs);
        rig_pci_close(pci);
        world_stop(&w);
}

static void closing_turns_mastering_off_and_resets(void)
{
        struct model_options o = plain;
        struct rig_pci *pci;
        struct world w;

        world_start(&w, &o);
        pci = world_open(&w, 0);
        CHECK_EQ(rig_pci_set_master(pci, true), 0);
        CHECK(model_is_master(w.model));
        rig_pci_close(pci);
        world_join(&w); /* the client has left */
        CHECK_EQ(w.served, 0);
        CHECK_EQ(model_resets(w.model), 1);
        CHECK(!model_is_master(w.model));
        world_stop(&w);
}

static void what_the_table_does_not_have_is_a_fault(void)
{
        const char *first;
        struct rig_window regs;
        struct rig_pci *pci;
        struct world w;

        world_start(&w, &plain);
        pci = world_open(&w, 0);
        regs = window(pci, REGISTER_BAR, 0, 4096);
        CHECK_EQ(rig_window_read32(&regs, 0x800), UINT32_MAX); /* no register */
        CHECK_EQ(model_faults(w.model, &first), 1);
        CHECK(strstr(first, "0x800"));
        CHECK_EQ(rig_window_read16(&regs, REG_SCRATCH), UINT16_MAX); /* not its width */
        CHECK_EQ(rig_window_read32(&regs, REG_COMMAND), UINT32_MAX); /* written only */
        rig_window_write32(&regs, REG_ID, 1);                        /* read only */
        CHECK_EQ(rig_window_read32(&regs, REG_ID), DEVICE_ID_VALUE);
        CHECK_EQ(model_faults(w.model, NULL), 4);
        CHECK(!rig_pci_gone(pci)); /* all ones, and there */
        rig_window_close(&regs);
        rig_pci_close(pci);
        world_stop(&w);
}

static void one_that_is_gone_is_told_from_one_that_reads_as_ones(void)
{
        struct model_options o = plain;
        struct rig_window regs;
        struct rig_pci *pci;
        struct world w;
        uint32_t value;

        world_start(&w, &o);
        pci = world_open(&w, 0);
        regs = window(pci, REGISTER_BAR, 0, 4096);
        rig_window_write32(&regs, REG_SCRATCH, UINT32_MAX);
        CHECK_EQ(rig_window_read32(&regs, REG_SCRATCH), UINT32_MAX);
        CHECK(!rig_pci_gone(pci));
        CHECK_EQ(rig_pci_failure(pci, NULL), 0);
        model_stop(w.model);
        world_join(&w);
        CHECK_EQ(rig_window_read32(&regs, REG_SCRATCH), UINT32_MAX);
        CHECK_EQ(rig_window_read8(&regs, REG_BYTE), UINT8_MAX);
        CHECK(rig_pci_gone(pci));
        CHECK_EQ(rig_pci_failure(pci, NULL), -ENODEV);
        CHECK_EQ(rig_pci_config_read(pci, 0, 4, &value), -ENODEV);
        CHECK_EQ(rig_pci_reset(pci, 1000000, NULL), -ENODEV);
        rig_window_close(&regs);
        rig_pci_close(pci);
        world_stop(&w);
}

static void one_without_a_socket_or_a_server_is_refused_with_a_sentence(void)
{
        struct rig_pci_options options = world_options(0);
        struct rig_error e = RIG_ERROR_NULL;
        struct rig_pci *pci;
        char path[200];
        int r;

        CHECK_EQ(rig_pci_open_with(&options, "vfio-user:/nowhere/model", &pci, &e), -ENOENT);
        CHECK(strstr(e.text, "/nowhere/model"));
        memset(path, 'x', sizeof(path) - 1);
        path[sizeof(path) - 1] = '\0';
        memcpy(path, "vfio-user:", 10);
        CHECK_EQ(rig_pci_open_with(&options, path, &pci, &e), -EINVAL);
        CHECK_EQ(rig_pci_open_with(&options, "vfio-user:", &pci, &e), -EINVAL);
        CHECK_EQ(rig_pci_open_with(&options, "graphics card", &pci, &e), -EINVAL);
        r = rig_pci_open_with(&options, "ffff:ff:1f.7", &pci, &e);
        CHECK_EQ(r, -ENOENT);
}

static void *hammer(void *own)
{
        const struct rig_window *regs = own;

        for (unsigned i = 0; i < 2000; i++) {
                rig_window_write32(regs, REG_SCRATCH, i);
                CHECK_EQ(rig_window_read32(regs, REG_ID), DEVICE_ID_VALUE);
        }
        return NULL;
}

static void threads_may_access_one_window_at_once(void)
{
        struct model_options o = plain;
        pthread_t threads[3];
        struct rig_window regs;
        struct rig_dma dma;
        struct rig_pci *pci;
        struct world w;

        o.message_dma = o.no_twin = true; /* the way with the most to get wrong */
        world_start(&w, &o);
        pci = world_open(&w, 0);
        CHECK_EQ(rig_pci_set_master(pci, true), 0);
        CHECK_EQ(rig_dma_new(pci, 65536, 0, 0, &dma, NULL), 0);
        regs = window(pci, REGISTER_BAR, 0, 4096);
        for (unsigned i = 0; i < 3; i++)
                CHECK_EQ(pthread_create(&threads[i], NULL, hammer, &regs), 0);
        for (unsigned i = 0; i < 50; i++)
                CHECK_EQ(run(&regs, COMMAND_FILL, dma.ranges[0].address, 65536, i), 0);
        for (unsigned i = 0; i < 3; i++)
                CHECK_EQ(pthread_join(threads[i], NULL), 0);
        CHECK_EQ(((uint32_t *)dma.host)[16383], 49);
        CHECK_EQ(rig_pci_failure(pci, NULL), 0);
        CHECK_EQ(model_faults(w.model, NULL), 0);
        rig_dma_free(&dma);
        rig_window_close(&regs);
        rig_pci_close(pci);
        world_stop(&w);
}

int main(void)
{
        unsigned before = count_fds();

        RUN(what_it_is_is_what_its_configuration_space_says);
        RUN(capabilities_are_found_where_they_lie);
        RUN(registers_of_each_width_are_read_as_they_were_written);
        RUN(copies_give_the_same_mapped_and_trapped_and_combined);
        RUN(a_bar_that_is_mapped_in_part_is_mapped_there);
        RUN(windows_that_do_not_fit_are_refused);
        RUN(dma_goes_both_ways_by_descriptor);
        RUN(dma_goes_both_ways_by_message_on_a_socket_of_its_own);
        RUN(dma_goes_both_ways_by_message_between_answers);
        RUN(memory_of_the_callers_is_mapped_too);
        RUN(a_thousand_mappings_find_place_and_leave_none_behind);
        RUN(interrupts_arrive_on_the_eventfd_of_their_vector);
        RUN(a_reset_leaves_it_as_it_was_opened);
        RUN(closing_turns_mastering_off_and_resets);
        RUN(what_the_table_does_not_have_is_a_fault);
        RUN(one_that_is_gone_is_told_from_one_that_reads_as_ones);
        RUN(one_without_a_socket_or_a_server_is_refused_with_a_sentence);
        RUN(threads_may_access_one_window_at_once);
        CHECK_EQ(count_fds(), before);
        return 0;
}
