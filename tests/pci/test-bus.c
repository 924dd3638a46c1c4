/* SPDX-License-Identifier: ISC */
/*
 * Functions by bus address, in trees of files that look like /sys and /dev: which way leads to one, what is
 * in the way, and as much of the physical way as plain files can play. Kernels do the rest, in a guest.
 *
 * The files' forms are those of Linux, Documentation/ABI/testing/sysfs-bus-pci and kernel_lockdown(7).
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "tests/pci/world.h"

#define BUS    "0000:03:00.0"
#define DEVICE "sys/bus/pci/devices/" BUS

static char root[64];

static const char *path_of(const char *name)
{
        static char path[256];

        snprintf(path, sizeof(path), "%s/%s", root, name);
        return path;
}

static void make_directories(const char *name)
{
        char path[256];

        snprintf(path, sizeof(path), "%s/%s", root, name);
        for (char *p = path + strlen(root) + 1; *p; p++) {
                if (*p != '/')
                        continue;
                *p = '\0';
                CHECK(mkdir(path, 0755) == 0 || errno == EEXIST);
                *p = '/';
        }
}

static void put_file(const char *name, const void *data, size_t bytes)
{
        int fd;

        make_directories(name);
        fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        CHECK(fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes);
        close(fd);
}

static void put_text(const char *name, const char *text)
{
        put_file(name, text, strlen(text));
}

static void put_link(const char *name, const char *target)
{
        make_directories(name);
        unlink(path_of(name));
        CHECK_EQ(symlink(target, path_of(name)), 0);
}

static void remove_tree(const char *path)
{
        char inner[512];
        DIR *d = opendir(path);

        for (const struct dirent *entry; d && (entry = readdir(d));) {
                if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                        continue;
                snprintf(inner, sizeof(inner), "%.250s/%.200s", path, entry->d_name);
                if (entry->d_type == DT_DIR)
                        remove_tree(inner);
                else
                        unlink(inner);
        }
        if (d)
                closedir(d);
        rmdir(path);
}

/* A graphics card of 4096 bytes of configuration space, with a list of one capability. */
static void make_config(uint8_t *config)
{
        memset(config, 0, 4096);
        config[0x00] = 0x02, config[0x01] = 0x10; /* 1002 */
        config[0x02] = 0x50, config[0x03] = 0x75;
        config[0x04] = 0x04; /* a master, as one before left it */
        config[0x06] = 0x10;
        config[0x08] = 0xc0;
        config[0x0b] = 0x03;
        config[0x10] = 0x0c; /* 64 bits, prefetchable */
        config[0x18] = 0x01; /* ports */
        config[0x34] = 0x40;
        config[0x40] = 0x01;
}

/* A machine with one function that no driver holds. */
static void make_machine(void)
{
        uint8_t config[4096], bar[8192] = {0};
        const char *tmp = getenv("TMPDIR");

        snprintf(root, sizeof(root), "%.40s/rig-bus-XXXXXX", tmp ? tmp : "/tmp");
        CHECK(mkdtemp(root));
        make_config(config);
        put_file(DEVICE "/config", config, sizeof(config));
        put_text(DEVICE "/resource", "0x0000004000000000 0x0000004000001fff 0x000000000014220c\n"
                                     "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
                                     "0x000000000000f000 0x000000000000f0ff 0x0000000000040101\n"
                                     "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
                                     "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
                                     "0x00000000fca00000 0x00000000fca01fff 0x0000000000040200\n"
                                     "0x00000000fcb00000 0x00000000fcb1ffff 0x0000000000046200\n");
        put_file(DEVICE "/resource0", bar, sizeof(bar));
        put_file(DEVICE "/resource0_wc", bar, sizeof(bar));
        put_file(DEVICE "/resource5", bar, sizeof(bar));
        put_text(DEVICE "/reset", "");
        put_text("sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
}

static int open_it(const char *where, struct rig_pci **ret_pci, struct rig_error *e)
{
        struct rig_pci_options o = {.root = root, .answer_usec = 1000000};

        *e = (struct rig_error)RIG_ERROR_NULL;
        return rig_pci_open_with(&o, where, ret_pci, e);
}

/* Opens it, and demands a refusal whose sentence has `words`. */
static void refused(const char *where, int code, const char *words)
{
        struct rig_error e;
        struct rig_pci *pci;
        int r = open_it(where, &pci, &e);

        if (r != code || !strstr(e.text, words))
                fprintf(stderr, "%d: %s\n", r, e.text);
        CHECK_EQ(r, code);
        CHECK(strstr(e.text, words));
        CHECK_EQ(e.code, code);
}

static void end_machine(void)
{
        remove_tree(root);
}

static void set_config(unsigned at, uint8_t value)
{
        int fd = open(path_of(DEVICE "/config"), O_WRONLY | O_CLOEXEC);

        CHECK(fd >= 0 && pwrite(fd, &value, 1, at) == 1);
        close(fd);
}

static void what_is_in_the_way_is_said(void)
{
        make_machine();
        refused("0000:04:00.0", -ENOENT, "no such PCI function");
        refused("graphics", -EINVAL, "0000:03:00.0");
        put_link(DEVICE "/driver", "../../../../bus/pci/drivers/amdgpu");
        refused(BUS, -EBUSY, "amdgpu");
        refused("03:00.0", -EBUSY, "rigctl detach " BUS);
        unlink(path_of(DEVICE "/driver"));
        put_text("sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
        refused(BUS, -EPERM, "locked down");
        unlink(path_of("sys/kernel/security/lockdown"));
        put_text(DEVICE "/iommu_group/type", "DMA-FQ\n");
        refused(BUS, -EBUSY, "IOMMU");
        end_machine();
}

static void a_configuration_space_that_cannot_be_right_is_refused(void)
{
        uint8_t ones[4096];

        make_machine();
        set_config(0x0e, 0x01);
        refused(BUS, -EPROTO, "bridge");
        set_config(0x0e, 0x80); /* of several functions, and of type 0 */
        set_config(0x41, 0x40);
        refused(BUS, -EPROTO, "loops");
        set_config(0x41, 0);
        set_config(0x100, 0x19), set_config(0x103, 0x10);
        refused(BUS, -EPROTO, "capabilities");
        memset(ones, 0xff, sizeof(ones));
        put_file(DEVICE "/config", ones, sizeof(ones));
        refused(BUS, -ENODEV, "all ones");
        put_file(DEVICE "/config", ones, 64);
        refused(BUS, -EPROTO, "256 bytes");
        unlink(path_of(DEVICE "/config"));
        refused(BUS, -ENOENT, "config");
        end_machine();
}

static void a_tree_that_lacks_files_is_refused(void)
{
        make_machine();
        put_text(DEVICE "/resource", "0x0 0x0 0x0\nrubbish\n");
        refused(BUS, -EPROTO, "line 2");
        unlink(path_of(DEVICE "/resource"));
        refused(BUS, -ENOENT, "resource");
        end_machine();
}

static void one_of_vfio_needs_a_group_and_its_files(void)
{
        make_machine();
        put_link(DEVICE "/driver", "../../../../bus/pci/drivers/vfio-pci");
        refused(BUS, -EOPNOTSUPP, "no IOMMU group");
        put_link(DEVICE "/iommu_group", "../../../../kernel/iommu_groups/17");
        refused(BUS, -ENOENT, "/dev/vfio/vfio");
        put_text("dev/vfio/vfio", "");
        refused(BUS, -ENOENT, "/dev/vfio/17");
        put_text("dev/vfio/17", ""); /* a file that is no VFIO */
        refused(BUS, -EOPNOTSUPP, "type 1");
        end_machine();
}

static void one_that_nobody_holds_is_taken_physically(void)
{
        struct rig_window win;
        struct rig_pci_bar bar;
        struct rig_error e;
        struct rig_dma dma;
        struct rig_pci *pci;
        uint32_t value;
        int fd = 0, r;

        make_machine();
        r = open_it("3:0.0", &pci, &e);
        if (r < 0)
                fprintf(stderr, "%s\n", e.text);
        CHECK_EQ(r, 0);
        CHECK(strcmp(rig_pci_name(pci), BUS) == 0);
        CHECK_EQ(rig_pci_way(pci), RIG_PCI_PHYSICAL);
        CHECK(rig_pci_id(pci)->vendor == 0x1002 && rig_pci_id(pci)->device == 0x7550);
        CHECK(rig_pci_id(pci)->class == 0x030000 && rig_pci_id(pci)->revision == 0xc0);
        CHECK_EQ(rig_pci_config_read(pci, 4, 2, &value), 0);
        CHECK_EQ(value, 0x0402); /* decoding, master no more */
        CHECK_EQ(rig_pci_bar(pci, 0, &bar, &e), 0);
        CHECK(bar.bytes == 8192 && bar.prefetchable && bar.mappable);
        CHECK_EQ(rig_pci_bar(pci, 2, &bar, &e), 0);
        CHECK_EQ(bar.bytes, 0); /* ports */
        CHECK_EQ(rig_pci_bar(pci, 5, &bar, &e), 0);
        CHECK(bar.bytes == 8192 && !bar.prefetchable);
        CHECK_EQ(rig_pci_window(pci, 0, 0, 8192, RIG_WRITE_COMBINING, &win, &e), 0);
        rig_window_close(&win);
        CHECK_EQ(rig_pci_window(pci, 5, 4096, 4096, RIG_UNCACHED, &win, &e), 0);
        rig_window_write32(&win, 4, 0x12345678);
        CHECK_EQ(rig_window_read32(&win, 4), 0x12345678);
        rig_window_close(&win);
        CHECK_EQ(rig_pci_interrupts(pci, 1, &fd, &e), -EOPNOTSUPP);
        CHECK_EQ(rig_pci_interrupts(pci, 0, NULL, &e), 0);
        CHECK_EQ(rig_dma_new(pci, 4096, RIG_DMA_AT, 0, &dma, &e), -EOPNOTSUPP);
        CHECK_EQ(rig_dma_new(pci, 4096, 0, 0, &dma, &e), -ENOMEM);
        CHECK(strstr(e.text, "hugetlbfs"));
        CHECK_EQ(rig_dma_map(pci, 0, 0, 4096, 0, 0, &dma, &e), -EOPNOTSUPP);
        CHECK_EQ(rig_pci_reset(pci, 1000000, &e), 0);
        refused(BUS, -EBUSY, "another process");
        CHECK_EQ(rig_pci_set_master(pci, true), 0);
        CHECK_EQ(rig_pci_failure(pci, NULL), 0);
        rig_pci_close(pci);
        CHECK_EQ(open_it(BUS, &pci, &e), 0); /* given back */
        rig_pci_close(pci);
        end_machine();
}

static void memory_of_an_earlier_process_is_kept_until_a_reset(void)
{
        struct rig_error e;
        struct rig_pci *pci;
        struct stat st;

        make_machine();
        put_text("dev/hugepages/rig-" BUS, "");
        unlink(path_of(DEVICE "/reset"));
        refused(BUS, -EOPNOTSUPP, "earlier process");
        CHECK_EQ(stat(path_of("dev/hugepages/rig-" BUS), &st), 0);
        put_text(DEVICE "/reset", "");
        CHECK_EQ(open_it(BUS, &pci, &e), 0);
        CHECK(stat(path_of("dev/hugepages/rig-" BUS), &st) < 0);
        rig_pci_close(pci);
        CHECK_EQ(stat(path_of(DEVICE "/reset"), &st), 0);
        CHECK_EQ(st.st_size, 1); /* it was told to */
        end_machine();
}

static void one_without_a_reset_is_closed_with_its_master_off(void)
{
        struct rig_error e;
        struct rig_pci *pci;
        uint8_t command[2];
        int fd;

        make_machine();
        unlink(path_of(DEVICE "/reset"));
        CHECK_EQ(open_it(BUS, &pci, &e), 0);
        CHECK_EQ(rig_pci_reset(pci, 1000000, &e), -EOPNOTSUPP);
        CHECK_EQ(rig_pci_failure(pci, NULL), 0);
        CHECK_EQ(rig_pci_set_master(pci, true), 0);
        rig_pci_close(pci);
        fd = open(path_of(DEVICE "/config"), O_RDONLY | O_CLOEXEC);
        CHECK(pread(fd, command, 2, 4) == 2 && !(command[0] & 4));
        close(fd);
        end_machine();
}

int main(void)
{
        unsigned before = count_fds();

        RUN(what_is_in_the_way_is_said);
        RUN(a_configuration_space_that_cannot_be_right_is_refused);
        RUN(a_tree_that_lacks_files_is_refused);
        RUN(one_of_vfio_needs_a_group_and_its_files);
        RUN(one_that_nobody_holds_is_taken_physically);
        RUN(memory_of_an_earlier_process_is_kept_until_a_reset);
        RUN(one_without_a_reset_is_closed_with_its_master_off);
        CHECK_EQ(count_fds(), before);
        return 0;
}
