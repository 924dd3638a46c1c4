/* SPDX-License-Identifier: ISC */
/*
 * rigctl firmware: which images are pinned, and where each one is. It asks no rigd: it looks where a rigd
 * would, that of the system or, with --user, of the user, with rigd's own finder.
 *
 * `check` reads each image whole, since only its digest tells whether it is the one.
 */
#include "tools/rigctl/firmware.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "firmware/table.h"
#include "tools/rigctl/options.h"
#include "tools/rigctl/table.h"
#include "tools/rigctl/text.h"
#include "tools/rigctl/units.h"
#include "tools/rigctl/words.h"

bool ctl_firmware_wanted(const struct ctl_firmware *f, const struct rig_firmware_image *image)
{
        return !f->vendor || strcmp(f->vendor, image->vendor) == 0;
}

/* Says a sentence that may hold what others chose. */
static int fail_clean(int status, const char *text)
{
        _cleanup_(rig_freep) char *clean = ctl_text_clean(text);

        return ctl_fail(status, "%s", clean);
}

static void add_text(struct ctl_value *map, const char *key, const char *text)
{
        struct ctl_value *value = ctl_value_add(map, key);

        value->kind = CTL_TEXT;
        value->text = ctl_copy(text);
}

/* Appends a map to a list. */
static struct ctl_value *add_map(struct ctl_value *list)
{
        struct ctl_value *map = ctl_value_add(list, NULL);

        map->kind = CTL_MAP;
        return map;
}

static struct ctl_value *add_list(struct ctl_value *map, const char *key)
{
        struct ctl_value *list = ctl_value_add(map, key);

        list->kind = CTL_LIST;
        return list;
}

/* ---------------------------------------------------------------- list */

static struct ctl_value *add_image(struct ctl_value *list, const struct rig_firmware_image *image)
{
        struct ctl_value *map = add_map(list);

        add_text(map, "Name", image->name);
        add_text(map, "Vendor", image->vendor);
        add_text(map, "GPU", image->gpu);
        add_text(map, "Purpose", image->purpose);
        ctl_value_add_number(map, "Bytes", image->bytes);
        add_text(map, "SHA256", image->sha256);
        add_text(map, "Upstream", image->upstream ? image->upstream : image->name);
        add_text(map, "Package", image->package ? image->package->name : "");
        add_text(map, "PackageVersion", image->package ? image->package->version : "");
        add_text(map, "Licence", image->package ? image->package->licence : "");
        return map;
}

static int verb_list(struct ctl_firmware *f)
{
        static const struct ctl_column columns[] = {
                {.name = "IMAGE"},
                {.name = "GPU"},
                {.name = "SIZE", .right = true},
                {.name = "FOR", .extra = 1, .at_least = 16},
                {.name = "SHA-256", .extra = 2},
        };
        _cleanup_(ctl_value_deinit) struct ctl_value list = {.kind = CTL_LIST};
        _cleanup_(ctl_table_deinit) struct ctl_table table = {0};
        size_t n = 0;

        ctl_table_init(&table, columns, RIG_ARRAY_SIZE(columns));
        for (size_t i = 0; i < f->table.n; i++) {
                const struct rig_firmware_image *image = &f->table.images[i];

                if (!ctl_firmware_wanted(f, image))
                        continue;
                n++;
                add_image(&list, image);
                ctl_table_add(&table, ctl_copy(image->name));
                ctl_table_add(&table, ctl_copy(image->gpu));
                ctl_table_add(&table, ctl_bytes(image->bytes));
                ctl_table_add(&table, ctl_copy(image->purpose));
                ctl_table_add(&table, ctl_copy(image->sha256));
        }
        if (ctl_wrote_json(f->ctl, &list))
                return CTL_DONE;
        ctl_table_write(&table, stdout, &f->ctl->screen, f->ctl->legend);
        if (f->ctl->legend)
                printf("\n%zu images.\n", n);
        return CTL_DONE;
}

/* ---------------------------------------------------------------- check */

struct check {
        struct ctl_value all, *list;
        struct ctl_table table;
        struct rig_firmware_remarks *remarks; /* an image each */
        size_t n, n_missing;
};

static void add_remarks(struct ctl_value *map, const struct rig_firmware_remarks *remarks)
{
        struct ctl_value *list = add_list(map, "Remarks");

        for (size_t i = 0; i < remarks->n; i++) {
                struct ctl_value *item = add_map(list);

                add_text(item, "Path", remarks->items[i].path);
                add_text(item, "Text", remarks->items[i].why.text);
        }
}

/* Looks for an image and appends what it found. Return: CTL_DONE, also where there is none; CTL_FAILED,
 * said.
 */
static int check_image(struct ctl_firmware *f, struct check *k, const struct rig_firmware_image *image)
{
        _cleanup_(rig_firmware_deinit) struct rig_firmware found = {0};
        struct rig_firmware_remarks *remarks = &k->remarks[k->n];
        struct rig_error e = RIG_ERROR_NULL;
        int r = rig_firmware_find(image, &f->folders, remarks, &found, &e);
        const char *state = r == 0 ? "found" : remarks->n ? "wrong" : "missing";
        struct ctl_value *map;

        if (r < 0 && r != -ENOENT)
                return fail_clean(CTL_FAILED, e.text);
        k->n++;
        k->n_missing += r < 0;
        map = add_image(k->list, image);
        add_text(map, "State", state);
        add_text(map, "Path", r == 0 ? found.path : "");
        add_text(map, "Packing", r == 0 ? rig_firmware_packing_to_string(found.packing) : "");
        add_remarks(map, remarks);
        ctl_table_add(&k->table, ctl_copy(image->name));
        ctl_table_add(&k->table, ctl_copy(image->gpu));
        ctl_table_add(&k->table, ctl_copy(state));
        ctl_table_add(
                &k->table, r == 0 ? ctl_text_clean(found.path) : ctl_printf("SHA-256 %s", image->sha256));
        if (r < 0)
                ctl_table_warn(&k->table);
        return CTL_DONE;
}

/* Below the table: what was in the way, and where was looked. */
static void write_legend(struct ctl_firmware *f, struct check *k)
{
        for (size_t i = 0; i < k->n; i++)
                for (size_t j = 0; j < k->remarks[i].n; j++) {
                        _cleanup_(rig_freep) char *path = ctl_text_clean(k->remarks[i].items[j].path);

                        printf("%s%s: %s\n", i + j ? "" : "\n", path, k->remarks[i].items[j].why.text);
                }
        fputs("\nLooked in", stdout);
        for (size_t i = 0; i < f->folders.n; i++) {
                _cleanup_(rig_freep) char *path = ctl_text_clean(f->folders.paths[i]);

                printf("%s %s", i ? "," : "", path);
        }
        puts(".");
}

/* What of a vendor is not there, and where to get it. */
static void complain(const struct ctl_firmware *f, const struct check *k, const char *vendor)
{
        const struct rig_firmware_package *package = NULL;
        _cleanup_(rig_freep) char *debian = NULL;
        size_t n = 0, n_missing = 0;

        for (size_t i = 0; i < k->list->n; i++) {
                const struct ctl_value *map = &k->list->items[i];
                const char *name = ctl_value_text(map, "Name");

                if (strcmp(ctl_value_text(map, "Vendor"), vendor) != 0)
                        continue;
                n++;
                if (strcmp(ctl_value_text(map, "State"), "found") == 0)
                        continue;
                n_missing++;
                package = package ? package : rig_firmware_image_get(&f->table, name)->package;
        }
        if (n_missing == 0)
                return;
        debian = package ? ctl_printf("Debian has them in %s %s (%s), or ", package->name, package->version,
                                   package->suites)
                         : ctl_copy("");
        ctl_fail(CTL_FAILED, "%s: %zu of %zu images are not there; %sfetch them: rigctl %sfirmware fetch %s",
                vendor, n_missing, n, debian, f->ctl->where == CTL_USER ? "--user " : "", vendor);
}

/* Whether no image before the i-th one is of its vendor. */
static bool first_of_vendor(const struct rig_firmware_table *table, size_t i)
{
        for (size_t j = 0; j < i; j++)
                if (strcmp(table->images[j].vendor, table->images[i].vendor) == 0)
                        return false;
        return true;
}

static int check_all(struct ctl_firmware *f, struct check *k)
{
        int r = CTL_DONE;

        for (size_t i = 0; i < f->table.n && r == CTL_DONE; i++)
                if (ctl_firmware_wanted(f, &f->table.images[i]))
                        r = check_image(f, k, &f->table.images[i]);
        if (r != CTL_DONE)
                return r;
        if (!ctl_wrote_json(f->ctl, &k->all)) {
                ctl_table_write(&k->table, stdout, &f->ctl->screen, f->ctl->legend);
                if (f->ctl->legend)
                        write_legend(f, k);
        }
        for (size_t i = 0; i < f->table.n; i++)
                if (first_of_vendor(&f->table, i))
                        complain(f, k, f->table.images[i].vendor);
        return k->n_missing ? CTL_FAILED : CTL_DONE;
}

static int verb_check(struct ctl_firmware *f)
{
        static const struct ctl_column columns[] = {{"IMAGE"}, {"GPU"}, {"STATE"}, {"FILE", .at_least = 40}};
        struct check k = {.all.kind = CTL_MAP};
        struct ctl_value *folders;
        int r;

        folders = add_list(&k.all, "Folders");
        for (size_t i = 0; i < f->folders.n; i++) {
                struct ctl_value *path = ctl_value_add(folders, NULL);

                path->kind = CTL_TEXT;
                path->text = ctl_copy(f->folders.paths[i]);
        }
        k.list = add_list(&k.all, "Images");
        k.remarks = ctl_grow(NULL, f->table.n + 1, sizeof(*k.remarks));
        memset(k.remarks, 0, (f->table.n + 1) * sizeof(*k.remarks));
        ctl_table_init(&k.table, columns, RIG_ARRAY_SIZE(columns));
        r = check_all(f, &k);
        for (size_t i = 0; i < f->table.n; i++)
                rig_firmware_remarks_deinit(&k.remarks[i]);
        free(k.remarks);
        ctl_table_deinit(&k.table);
        ctl_value_deinit(&k.all);
        return r;
}

/* ---------------------------------------------------------------- the call */

#define LISTING (CTL_BIT(OPT_JSON) | CTL_BIT(OPT_NO_LEGEND))

static const struct {
        const char *name;
        uint32_t options; /* of those that `firmware` admits, the ones it has no use for */
        int (*run)(struct ctl_firmware *f);
} jobs[] = {
        {"list", CTL_BIT(OPT_FROM) | CTL_BIT(OPT_TIME) | CTL_BIT(OPT_PATH), verb_list},
        {"check", CTL_BIT(OPT_FROM) | CTL_BIT(OPT_TIME), verb_check},
        {"fetch", LISTING, ctl_firmware_fetch},
};

static int unknown_job(const char *word)
{
        const char *names[RIG_ARRAY_SIZE(jobs) + 1] = {0};
        _cleanup_(rig_freep) char *clean = ctl_text_clean(word);
        _cleanup_(rig_freep) char *meant = NULL;

        for (size_t i = 0; i < RIG_ARRAY_SIZE(jobs); i++)
                names[i] = jobs[i].name;
        meant = ctl_did_you_mean(word, names, "");
        return ctl_fail(CTL_WRONG, "firmware: \"%s\" is neither list, check nor fetch%s", clean, meant);
}

/* Whether the table has images of that vendor; says which vendors there are. */
static int check_vendor(const struct ctl_firmware *f, const char *word)
{
        const struct rig_firmware_table *table = &f->table;
        const char **names = ctl_grow(NULL, table->n + 1, sizeof(*names));
        _cleanup_(rig_freep) char *clean = ctl_text_clean(word);
        _cleanup_(rig_freep) char *all = ctl_copy("none");
        size_t n = 0;
        int r = CTL_DONE;

        for (size_t i = 0; i < table->n; i++)
                if (first_of_vendor(table, i)) {
                        _cleanup_(rig_freep) char *before = all;

                        all = n ? ctl_printf("%s, %s", before, table->images[i].vendor)
                                : ctl_copy(table->images[i].vendor);
                        names[n++] = table->images[i].vendor;
                }
        names[n] = NULL;
        for (size_t i = 0; i <= n; i++)
                if (i == n || strcmp(names[i], word) == 0) {
                        _cleanup_(rig_freep) char *meant = ctl_did_you_mean(word, names, "");

                        if (i == n)
                                r = ctl_fail(CTL_WRONG,
                                        "no firmware is pinned of a vendor \"%s\"; there are: %s%s", clean,
                                        all, meant);
                        break;
                }
        free(names);
        return r;
}

/* Reads another table where one is named. */
static int take_table(struct ctl_firmware *f)
{
        _cleanup_(rig_freep) char *text = NULL;
        struct rig_error e = RIG_ERROR_NULL;
        int r;

        f->table = rig_firmware_pinned;
        if (!f->ctl->images)
                return CTL_DONE;
        r = rig_firmware_table_read(f->ctl->images, &f->table, &e);
        if (r == 0)
                return CTL_DONE;
        text = ctl_printf("%s: %s", f->ctl->images, e.text);
        f->table = (struct rig_firmware_table){0};
        return fail_clean(r == -EINVAL || r == -E2BIG ? CTL_WRONG : CTL_FAILED, text);
}

static int take_folders(struct ctl_firmware *f)
{
        _cleanup_(rig_freep) char *paths = ctl_copy(f->ctl->path ? f->ctl->path : "");
        struct rig_error e = RIG_ERROR_NULL;
        char *place = NULL;
        int r = 0;

        for (char *p = strtok_r(paths, ":", &place); p && r == 0; p = strtok_r(NULL, ":", &place))
                r = rig_firmware_folders_add(&f->folders, p, &e);
        if (r == 0)
                r = rig_firmware_folders_add_usual(&f->folders, f->ctl->where == CTL_USER, &e);
        return r == 0 ? CTL_DONE : fail_clean(r == -ENOMEM ? CTL_FAILED : CTL_WRONG, e.text);
}

static int check_options(struct ctl *c, size_t job)
{
        for (int i = 0; i < OPT_MAX; i++)
                if (c->seen & jobs[job].options & CTL_BIT(i))
                        return ctl_fail(CTL_WRONG, "--%s is no option of firmware %s", ctl_option_name(i),
                                jobs[job].name);
        if (c->where == CTL_ADDRESS)
                return ctl_fail(
                        CTL_WRONG, "firmware asks no rigd, so --address names none; there is --user");
        return CTL_DONE;
}

int ctl_verb_firmware(struct ctl *c, char **args)
{
        struct ctl_firmware f = {.ctl = c, .vendor = args[1]};
        size_t job = 0;
        int r;

        while (job < RIG_ARRAY_SIZE(jobs) && strcmp(args[0], jobs[job].name) != 0)
                job++;
        if (job == RIG_ARRAY_SIZE(jobs))
                return unknown_job(args[0]);
        r = check_options(c, job);
        if (r == CTL_DONE)
                r = take_table(&f);
        if (r == CTL_DONE && f.vendor)
                r = check_vendor(&f, f.vendor);
        if (r == CTL_DONE)
                r = take_folders(&f);
        if (r == CTL_DONE)
                r = jobs[job].run(&f);
        rig_firmware_folders_deinit(&f.folders);
        rig_firmware_table_deinit(&f.table);
        return r;
}
