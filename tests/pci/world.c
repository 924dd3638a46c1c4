/* SPDX-License-Identifier: ISC */
/* See world.h. A world's socket lies in a directory of its own under TMPDIR or /tmp. */
#include "tests/pci/world.h"

#include <dirent.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

/* Serves the first client; a world that nobody came to is ended by closing its listener. */
static void *serve(void *own)
{
        struct world *w = own;
        int fd = accept4(w->listener, NULL, NULL, SOCK_CLOEXEC);

        w->served = fd < 0 ? -errno : model_serve(w->model, fd);
        return NULL;
}

void world_start(struct world *w, const struct model_options *options)
{
        const char *tmp = getenv("TMPDIR");

        memset(w, 0, sizeof(*w));
        snprintf(w->directory, sizeof(w->directory), "%.40s/rig-pci-XXXXXX", tmp ? tmp : "/tmp");
        CHECK(mkdtemp(w->directory));
        snprintf(w->path, sizeof(w->path), "%s/model", w->directory);
        snprintf(w->where, sizeof(w->where), "vfio-user:%s", w->path);
        CHECK_EQ(model_new(&device_description, options, &w->device, &w->model), 0);
        w->listener = model_listen(w->path);
        CHECK(w->listener >= 0);
        CHECK_EQ(pthread_create(&w->thread, NULL, serve, w), 0);
        w->running = true;
}

void world_join(struct world *w)
{
        if (w->running)
                CHECK_EQ(pthread_join(w->thread, NULL), 0);
        w->running = false;
}

void world_stop(struct world *w)
{
        model_stop(w->model);
        shutdown(w->listener, SHUT_RDWR);
        world_join(w);
        w->model = model_free(w->model);
        rig_close(w->listener);
        unlink(w->path);
        rmdir(w->directory);
}

struct rig_pci_options world_options(uint64_t answer_usec)
{
        struct rig_pci_options options = RIG_PCI_OPTIONS_DEFAULT;

        /* machines that run many tests at once are slow, and nothing here waits for it to pass */
        options.answer_usec = answer_usec ? answer_usec : UINT64_C(60000000);
        return options;
}

struct rig_pci *world_open(struct world *w, uint64_t answer_usec)
{
        struct rig_pci_options options = world_options(answer_usec);
        struct rig_error e = RIG_ERROR_NULL;
        struct rig_pci *pci;
        int r = rig_pci_open_with(&options, w->where, &pci, &e);

        if (r < 0)
                fprintf(stderr, "%s\n", e.text);
        CHECK_EQ(r, 0);
        return pci;
}

unsigned count_fds(void)
{
        DIR *d = opendir("/proc/self/fd");
        unsigned n = 0;

        CHECK(d);
        while (readdir(d))
                n++;
        closedir(d);
        return n;
}

/* ---------------------------------------------------------------- what a driver does */

static int use_windows(struct rig_pci *pci, struct rig_error *e)
{
        struct rig_window regs, memory;
        uint8_t data[64] = {1};
        int r = rig_pci_window(pci, REGISTER_BAR, 0, 4096, RIG_UNCACHED, &regs, e);

        if (r < 0)
                return r;
        r = rig_pci_window(pci, MEMORY_BAR, 0, 4096, RIG_UNCACHED, &memory, e);
        if (r == 0) {
                rig_window_write32(&regs, REG_SCRATCH, 77);
                rig_window_write(&memory, 0, data, sizeof(data));
                if (rig_window_read32(&regs, REG_SCRATCH) != 77) {
                        r = rig_pci_failure(pci, e);
                        if (r == 0)
                                r = rig_error_set(e, -ENODEV, "%s: reading SCRATCH: not what was written",
                                        rig_pci_name(pci));
                }
                rig_window_close(&memory);
        }
        rig_window_close(&regs);
        return r;
}

static int use_dma(struct rig_pci *pci, struct rig_error *e)
{
        struct rig_dma dma;
        int r = rig_dma_new(pci, 8192, 0, 0, &dma, e);

        if (r < 0)
                return r;
        if (rig_pci_set_master(pci, true) < 0)
                r = rig_pci_failure(pci, e);
        memset(dma.host, 1, dma.bytes); /* it is there whatever the model does */
        rig_dma_free(&dma);
        return r;
}

int world_use(struct rig_pci *pci, uint64_t reset_usec, struct rig_error *e)
{
        int fd = eventfd(0, EFD_CLOEXEC), r = use_windows(pci, e);

        if (r == 0)
                r = rig_pci_interrupts(pci, 1, &fd, e);
        if (r == 0)
                r = use_dma(pci, e);
        if (r == 0)
                r = rig_pci_reset(pci, reset_usec, e);
        if (r == 0)
                r = rig_pci_interrupts(pci, 0, NULL, e);
        if (r == 0)
                r = rig_pci_failure(pci, e);
        if (r == 0 && rig_pci_gone(pci))
                r = rig_error_set(e, -ENODEV, "%s: it is gone at the end", rig_pci_name(pci));
        close(fd);
        return r;
}
