/* SPDX-License-Identifier: ISC */
/*
 * Functions, whatever way leads to them: taking one, its configuration space, its reset, and giving it back.
 *
 * A function that was just taken, or reset, is put into one known state: its memory is decoded, its bus
 * mastering and the interrupts that are a level are off. What the way there does more (saving and restoring
 * addresses, say) it does by itself.
 *
 * An access that fails says so to its caller, or, where accesses return no errors, reads as all ones; the
 * first failure of all is kept with its sentence. Nothing is tried twice.
 *
 * Deliberately not here: what an admin does to a function (detach, attach), and any knowledge of what it is.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/pci/transport.h"

#define VENDOR_ID     0x00u
#define CLASS         0x08u
#define HEADER_TYPE   0x0eu
#define SUBVENDOR_ID  0x2cu
#define BAR_IO        0x1u
#define BAR_TYPE_64   0x4u
#define BAR_TYPE_MASK 0x6u
#define BAR_PREFETCH  0x8u

static const char *const way_names[RIG_PCI_WAY_MAX] = {
        [RIG_PCI_VFIO] = "vfio",
        [RIG_PCI_PHYSICAL] = "physical",
        [RIG_PCI_VFIO_USER] = "vfio-user",
};

const char *rig_pci_way_to_string(enum rig_pci_way way)
{
        return way >= 0 && way < RIG_PCI_WAY_MAX ? way_names[way] : NULL;
}

int rig_pci_init(struct rig_pci *pci, const struct rig_pci_ops *ops, const char *name)
{
        *pci = (struct rig_pci){.ops = ops, .name = strdup(name), .space = rig_dma_space_new()};
        pthread_mutex_init(&pci->failure_lock, NULL);
        if (pci->name && pci->space)
                return 0;
        rig_pci_deinit(pci);
        return -ENOMEM;
}

void rig_pci_deinit(struct rig_pci *pci)
{
        pci->space = rig_dma_space_free(pci->space);
        pthread_mutex_destroy(&pci->failure_lock);
        free(pci->name);
        pci->name = NULL;
}

int rig_pci_note(struct rig_pci *pci, const struct rig_error *e)
{
        pthread_mutex_lock(&pci->failure_lock);
        if (!pci->failure.code)
                pci->failure = *e;
        pthread_mutex_unlock(&pci->failure_lock);
        return e->code;
}

int rig_pci_failure(struct rig_pci *pci, struct rig_error *e)
{
        int r;

        pthread_mutex_lock(&pci->failure_lock);
        r = pci->failure.code;
        if (r && e)
                *e = pci->failure;
        pthread_mutex_unlock(&pci->failure_lock);
        return r;
}

enum rig_pci_way rig_pci_way(const struct rig_pci *pci)
{
        return pci->ops->way;
}

const struct rig_pci_id *rig_pci_id(const struct rig_pci *pci)
{
        return &pci->id;
}

const char *rig_pci_name(const struct rig_pci *pci)
{
        return pci->name;
}

/* ---------------------------------------------------------------- configuration space */

static bool config_outside(const struct rig_pci *pci, uint32_t at, uint32_t bytes)
{
        rig_assert((bytes == 1 || bytes == 2 || bytes == 4) && at % bytes == 0);
        return rig_range_outside(at, bytes, pci->config_bytes);
}

int rig_pci_config_read(struct rig_pci *pci, uint32_t at, uint32_t bytes, uint32_t *ret_value)
{
        struct rig_error e = RIG_ERROR_NULL;
        int r;

        if (config_outside(pci, at, bytes))
                return -ERANGE;
        r = pci->ops->config_read(pci, at, bytes, ret_value, &e);
        return r < 0 ? rig_pci_note(pci, &e) : 0;
}

int rig_pci_config_write(struct rig_pci *pci, uint32_t at, uint32_t bytes, uint32_t value)
{
        struct rig_error e = RIG_ERROR_NULL;
        int r;

        if (config_outside(pci, at, bytes))
                return -ERANGE;
        r = pci->ops->config_write(pci, at, bytes, value, &e);
        return r < 0 ? rig_pci_note(pci, &e) : 0;
}

/* Nobody is told of a failure here: whether the function answers is what is asked. */
bool rig_pci_gone(struct rig_pci *pci)
{
        struct rig_error e = RIG_ERROR_NULL;
        uint32_t vendor;

        return pci->ops->config_read(pci, VENDOR_ID, 2, &vendor, &e) < 0 || vendor == UINT16_MAX;
}

static int read_word(void *own, uint32_t at, uint32_t *ret_value)
{
        return rig_pci_config_read(own, at, 4, ret_value);
}

/* A list of ones is no list: the function may be gone. */
static int list_result(struct rig_pci *pci, int r)
{
        return r == -EPROTO && rig_pci_gone(pci) ? -ENODEV : r;
}

int rig_pci_capability(struct rig_pci *pci, uint8_t id, uint32_t *ret_at)
{
        return list_result(pci, rig_pci_capability_find(read_word, pci, pci->config_bytes, id, ret_at));
}

int rig_pci_extended_capability(struct rig_pci *pci, uint16_t id, uint32_t *ret_at)
{
        return list_result(
                pci, rig_pci_extended_capability_find(read_word, pci, pci->config_bytes, id, ret_at));
}

/* ---------------------------------------------------------------- taking it */

/* The sentence of a failure that returned none, from what was kept. */
static int explain(struct rig_pci *pci, int r, const char *step, struct rig_error *e)
{
        if (rig_pci_failure(pci, e) == r)
                return r;
        return rig_error_set(e, r, "%s: %s: %s", pci->name, step, strerror(-r));
}

static int read_id(struct rig_pci *pci, struct rig_error *e)
{
        uint32_t id, class, sub, header;
        int r = rig_pci_config_read(pci, VENDOR_ID, 4, &id);

        if (r == 0)
                r = rig_pci_config_read(pci, CLASS, 4, &class);
        if (r == 0)
                r = rig_pci_config_read(pci, SUBVENDOR_ID, 4, &sub);
        if (r == 0)
                r = rig_pci_config_read(pci, HEADER_TYPE, 1, &header);
        if (r < 0)
                return explain(pci, r, "reading what it is", e);
        if ((uint16_t)id == UINT16_MAX)
                return rig_error_set(
                        e, -ENODEV, "%s does not answer: its vendor reads as all ones", pci->name);
        if ((uint16_t)id == 0)
                return rig_error_set(e, -EPROTO, "%s: its vendor reads as 0, which nobody has", pci->name);
        if ((header & 0x7f) != 0)
                return rig_error_set(e, -EPROTO,
                        "%s: its header is of type %u, a bridge's: only functions with BARs of their own "
                        "are "
                        "taken",
                        pci->name, header & 0x7f);
        pci->id = (struct rig_pci_id){(uint16_t)id, (uint16_t)(id >> 16), (uint16_t)sub,
                (uint16_t)(sub >> 16), class >> 8, (uint8_t) class};
        return 0;
}

/* What the registers of the BARs say of them; their sizes are the way's to know. */
static int read_bars(struct rig_pci *pci, struct rig_error *e)
{
        bool upper = false;

        for (unsigned i = 0; i < RIG_PCI_BARS; i++) {
                struct rig_pci_bar *bar = &pci->bars[i];
                uint32_t value;
                int r = rig_pci_config_read(pci, RIG_PCI_BAR0 + 4 * i, 4, &value);

                if (r < 0)
                        return explain(pci, r, "reading its BARs", e);
                if (upper || value & BAR_IO)
                        *bar = (struct rig_pci_bar){0};
                upper = !upper && !(value & BAR_IO) && (value & BAR_TYPE_MASK) == BAR_TYPE_64;
                bar->prefetchable = bar->bytes && value & BAR_PREFETCH;
        }
        return 0;
}

static int check_lists(struct rig_pci *pci, struct rig_error *e)
{
        int r = rig_pci_capability_find(read_word, pci, pci->config_bytes, RIG_PCI_ANY, NULL);

        if (r == 0)
                r = rig_pci_extended_capability_find(read_word, pci, pci->config_bytes, RIG_PCI_ANY, NULL);
        r = list_result(pci, r);
        if (r == -EPROTO)
                return rig_error_set(e, r,
                        "%s: its list of capabilities loops, overlaps or leaves its configuration space",
                        pci->name);
        return r < 0 ? explain(pci, r, "reading its capabilities", e) : 0;
}

static int set_command(struct rig_pci *pci, uint32_t clear, uint32_t set)
{
        uint32_t command;
        int r = rig_pci_config_read(pci, RIG_PCI_COMMAND, 2, &command);

        if (r < 0)
                return r;
        if (command == UINT16_MAX && rig_pci_gone(pci))
                return -ENODEV;
        return rig_pci_config_write(pci, RIG_PCI_COMMAND, 2, (command & ~clear) | set);
}

/* The known state. */
static int make_quiet(struct rig_pci *pci, struct rig_error *e)
{
        int r = set_command(
                pci, RIG_PCI_COMMAND_MASTER, RIG_PCI_COMMAND_MEMORY | RIG_PCI_COMMAND_INTX_DISABLE);

        return r < 0 ? explain(pci, r, "turning its bus mastering off", e) : 0;
}

static int start(struct rig_pci *pci, struct rig_error *e)
{
        int r = read_id(pci, e);

        if (r == 0)
                r = check_lists(pci, e);
        if (r == 0)
                r = read_bars(pci, e);
        return r == 0 ? make_quiet(pci, e) : r;
}

/* Which driver of the kernel holds it: its name in `driver`, or "" where none does. */
static int kernel_driver(const char *directory, char *driver, size_t bytes)
{
        char path[512], target[512];
        const char *name;
        ssize_t n;

        snprintf(path, sizeof(path), "%s/driver", directory);
        n = readlink(path, target, sizeof(target) - 1);
        if (n < 0 && errno != ENOENT)
                return -errno;
        target[n < 0 ? 0 : n] = '\0';
        name = strrchr(target, '/');
        snprintf(driver, bytes, "%s", name ? name + 1 : target);
        return 0;
}

static int open_on_bus(const struct rig_pci_options *options, const char *where, struct rig_pci **ret_pci,
        struct rig_error *e)
{
        char name[RIG_PCI_ADDRESS_TEXT_MAX], directory[384], driver[64];
        struct rig_pci_address address;
        struct stat st;
        int r = rig_pci_address_parse(where, &address);

        if (r < 0)
                return rig_error_set(e, r,
                        "%s is no PCI function: that is 0000:03:00.0, or vfio-user:PATH for a model", where);
        rig_pci_address_format(&address, name);
        snprintf(directory, sizeof(directory), "%s/sys/bus/pci/devices/%s", options->root, name);
        if (stat(directory, &st) < 0) {
                r = -errno;
                return rig_error_set(
                        e, r, "%s: %s", name, r == -ENOENT ? "there is no such PCI function" : strerror(-r));
        }
        r = kernel_driver(directory, driver, sizeof(driver));
        if (r < 0)
                return rig_error_set(e, r, "%s: finding its kernel driver: %s", name, strerror(-r));
        if (strcmp(driver, "vfio-pci") == 0)
                return rig_pci_vfio_open(options, &address, name, ret_pci, e);
        if (driver[0])
                return rig_error_set(e, -EBUSY,
                        "%s is held by the kernel's driver %s; `rigctl detach %s` takes it from there", name,
                        driver, name);
        return rig_pci_physical_open(options, &address, name, ret_pci, e);
}

int rig_pci_open_with(const struct rig_pci_options *options, const char *where, struct rig_pci **ret_pci,
        struct rig_error *e)
{
        static const char model[] = "vfio-user:";
        _cleanup_(rig_pci_closep) struct rig_pci *pci = NULL;
        int r;

        if (strncmp(where, model, strlen(model)) == 0)
                r = rig_pci_vfio_user_open(options, where + strlen(model), where, &pci, e);
        else
                r = open_on_bus(options, where, &pci, e);
        if (r == 0)
                r = start(pci, e);
        if (r < 0)
                return r;
        *ret_pci = RIG_STEAL(pci);
        return 0;
}

int rig_pci_open(const char *where, struct rig_pci **ret_pci, struct rig_error *e)
{
        struct rig_pci_options options = RIG_PCI_OPTIONS_DEFAULT;

        return rig_pci_open_with(&options, where, ret_pci, e);
}

/*
 * Master off comes first, so that a function that cannot be reset, or whose reset fails, reaches no memory.
 * What fails here has no one to be told: the way's close ends it anyhow.
 */
struct rig_pci *rig_pci_close(struct rig_pci *pci)
{
        struct rig_error e = RIG_ERROR_NULL;

        if (!pci)
                return NULL;
        if (!rig_pci_gone(pci) && rig_pci_set_master(pci, false) == 0)
                pci->ops->reset(pci, UINT64_C(2000000), &e);
        pci->ops->close(pci);
        return NULL;
}

/* ---------------------------------------------------------------- interrupts, reset, bus mastering */

int rig_pci_bar(struct rig_pci *pci, unsigned bar, struct rig_pci_bar *ret_bar, struct rig_error *e)
{
        if (bar >= RIG_PCI_BARS)
                return rig_error_set(e, -EINVAL, "%s: a function has no BAR %u", pci->name, bar);
        *ret_bar = pci->bars[bar];
        return 0;
}

int rig_pci_interrupts(struct rig_pci *pci, unsigned n, const int *eventfds, struct rig_error *e)
{
        struct rig_error own = RIG_ERROR_NULL;
        int r = pci->ops->interrupts(pci, n, eventfds, &own);

        if (r == 0)
                return 0;
        if (e)
                *e = own;
        return r == -EOPNOTSUPP ? r : rig_pci_note(pci, &own);
}

int rig_pci_reset(struct rig_pci *pci, uint64_t timeout_usec, struct rig_error *e)
{
        struct rig_error own = RIG_ERROR_NULL;
        int r = pci->ops->reset(pci, timeout_usec, &own);

        if (r == 0)
                r = make_quiet(pci, &own);
        if (r == 0)
                return 0;
        if (e)
                *e = own;
        return r == -EOPNOTSUPP ? r : rig_pci_note(pci, &own);
}

int rig_pci_set_master(struct rig_pci *pci, bool on)
{
        return set_command(pci, on ? 0 : RIG_PCI_COMMAND_MASTER, on ? RIG_PCI_COMMAND_MASTER : 0);
}
