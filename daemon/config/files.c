/* SPDX-License-Identifier: ISC */
/*
 * Files of configuration (daemon/config/files.h).
 *
 * Nothing here applies anything, and nothing is remembered from one reading to the next: a reload reads all
 * of it again. An empty file or a link to /dev/null in a folder of higher precedence masks its namesakes
 * because it takes their place and assigns nothing. Only regular files and /dev/null are opened to be read,
 * up to FILE_BYTES: a fifo would make the core wait.
 */
#include "daemon/config/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "daemon/config/ini.h"
#include "daemon/log/log.h"

#define FILE_BYTES (1u << 20)

/* By precedence. */
static const char *const folders[] = {"/etc/rig", "/run/rig", "/usr/local/lib/rig", "/usr/lib/rig"};

struct drop_in {
        char *name, *path;
};

struct reader {
        struct rig_config_read *read;
        const char *path; /* of the file that is being read */
        int error;        /* -ENOMEM on the way */
        struct drop_in *drop_ins;
        size_t n_drop_ins;
};

/* ---------------------------------------------------------------- results */

/* Appends to an array of strings, and consumes the string. NULL, which is no memory, is taken too. */
static void append(struct reader *r, char ***array, size_t *n, char *string)
{
        char **more = string ? realloc(*array, (*n + 1) * sizeof(*more)) : NULL;

        if (!more) {
                free(string);
                r->error = -ENOMEM;
                return;
        }
        *array = more;
        (*array)[(*n)++] = string;
}

static void _printf_(2, 3) complain(struct reader *r, const char *fmt, ...)
{
        char *text;
        va_list ap;
        int n;

        va_start(ap, fmt);
        n = vasprintf(&text, fmt, ap);
        va_end(ap);
        if (n >= 0)
                rig_log_clean(text);
        append(r, &r->read->complaints, &r->read->n_complaints, n < 0 ? NULL : text);
}

/* It is there, and what is in it is not known. */
static void unreadable(struct reader *r, const char *path, int error)
{
        struct rig_config_read *read = r->read;
        const char *why = error == -EINVAL  ? "it is no regular file"
                          : error == -EFBIG ? "it has more than a megabyte"
                                            : strerror(-error);

        complain(r, "%s: it cannot be read: %s", path, why);
        if (!read->unreadable && read->n_complaints)
                read->unreadable = read->complaints[read->n_complaints - 1];
}

static void set_origin(struct reader *r, size_t i, const char *path, unsigned line, bool command)
{
        struct rig_config_origin *o = &r->read->origins[i];

        free(o->path);
        *o = (struct rig_config_origin){
                .path = path ? strdup(path) : NULL, .line = line, .command = command};
        if (path && !o->path)
                r->error = -ENOMEM;
}

struct rig_config_read *rig_config_read_free(struct rig_config_read *read)
{
        if (!read)
                return NULL;
        for (size_t i = 0; i < RIG_CONFIG_KEYS; i++)
                free(read->origins[i].path);
        for (size_t i = 0; i < read->n_complaints; i++)
                free(read->complaints[i]);
        for (size_t i = 0; i < read->n_paths; i++)
                free(read->paths[i]);
        free(read->complaints);
        free(read->paths);
        free(read);
        return NULL;
}

/* ---------------------------------------------------------------- one file */

static bool known_section(void *userdata, const char *name)
{
        return strcmp(name, "Daemon") == 0;
}

static void wrong_line(void *userdata, unsigned line, const char *sentence)
{
        struct reader *r = userdata;

        complain(r, "%s:%u: %s", r->path, line, sentence);
}

static void assigned(void *userdata, unsigned line, const char *key, const char *value)
{
        struct reader *r = userdata;
        struct rig_error e = RIG_ERROR_NULL;
        size_t i;
        int error = rig_config_assign(&r->read->config, key, value, &i, &e);

        if (error < 0)
                wrong_line(r, line, e.text);
        if (i == RIG_CONFIG_KEYS)
                return;
        r->read->wrong[i] = error < 0;
        if (error >= 0)
                set_origin(r, i, r->path, line, false);
}

/* The bytes of a file that was opened. */
static int slurp(int fd, char **ret_text, size_t *ret_bytes)
{
        _cleanup_(rig_freep) char *text = malloc(FILE_BYTES + 1);
        size_t n = 0;

        if (!text)
                return -ENOMEM;
        while (n <= FILE_BYTES) {
                ssize_t got = read(fd, text + n, FILE_BYTES + 1 - n);

                if (got < 0)
                        return -errno;
                if (!got)
                        break;
                n += (size_t)got;
        }
        if (n > FILE_BYTES)
                return -EFBIG;
        *ret_text = RIG_STEAL(text);
        *ret_bytes = n;
        return 0;
}

static int load(const char *path, char **ret_text, size_t *ret_bytes)
{
        _cleanup_(rig_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        struct stat st;

        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (S_ISDIR(st.st_mode))
                return -EISDIR;
        if (!S_ISREG(st.st_mode) && !(S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)))
                return -EINVAL;
        return slurp(fd, ret_text, ret_bytes);
}

/* Return: 0, or why it cannot be read, which is not complained about. */
static int read_file(struct reader *r, const char *path)
{
        static const struct rig_ini_ops ops = {
                .assignment = assigned,
                .section = known_section,
                .wrong = wrong_line,
        };
        _cleanup_(rig_freep) char *text = NULL;
        size_t bytes = 0;
        int error = load(path, &text, &bytes);

        if (error < 0)
                return error;
        append(r, &r->read->paths, &r->read->n_paths, strdup(path));
        r->path = path;
        error = rig_ini_parse(text, bytes, &ops, r);
        if (error < 0)
                r->error = error;
        return 0;
}

/* ---------------------------------------------------------------- all of them */

static bool absent(int error)
{
        return error == -ENOENT || error == -ENOTDIR;
}

/* The first one that is there counts, also where it cannot be read. */
static void read_main(struct reader *r, const char *root)
{
        for (size_t i = 0; i < RIG_ARRAY_SIZE(folders); i++) {
                _cleanup_(rig_freep) char *path = NULL;
                int error;

                if (asprintf(&path, "%s%s/rigd.conf", root, folders[i]) < 0) {
                        path = NULL;
                        r->error = -ENOMEM;
                        return;
                }
                error = read_file(r, path);
                if (error < 0 && !absent(error))
                        unreadable(r, path, error);
                if (!absent(error))
                        return;
        }
}

static bool is_drop_in(const struct dirent *d)
{
        size_t n = strlen(d->d_name);

        return d->d_type != DT_DIR && d->d_name[0] != '.' && n > strlen(".conf") &&
               strcmp(d->d_name + n - strlen(".conf"), ".conf") == 0;
}

/* Adds it unless a folder of higher precedence has one of its name. */
static void add_drop_in(struct reader *r, const char *folder, const char *name)
{
        struct drop_in *more, *d;

        for (size_t i = 0; i < r->n_drop_ins; i++)
                if (strcmp(r->drop_ins[i].name, name) == 0)
                        return;
        more = realloc(r->drop_ins, (r->n_drop_ins + 1) * sizeof(*more));
        if (!more) {
                r->error = -ENOMEM;
                return;
        }
        r->drop_ins = more;
        d = &more[r->n_drop_ins++];
        d->name = strdup(name);
        if (asprintf(&d->path, "%s/%s", folder, name) < 0)
                d->path = NULL;
        if (!d->name || !d->path) {
                r->error = -ENOMEM;
                free(d->name);
                free(d->path);
                r->n_drop_ins--;
        }
}

static void find_drop_ins(struct reader *r, const char *root)
{
        for (size_t i = 0; i < RIG_ARRAY_SIZE(folders); i++) {
                _cleanup_(rig_freep) char *folder = NULL;
                struct dirent *d;
                DIR *dir;

                if (asprintf(&folder, "%s%s/rigd.conf.d", root, folders[i]) < 0) {
                        folder = NULL;
                        r->error = -ENOMEM;
                        return;
                }
                dir = opendir(folder);
                if (!dir && !absent(-errno))
                        unreadable(r, folder, -errno);
                if (!dir)
                        continue;
                while ((d = readdir(dir)))
                        if (is_drop_in(d))
                                add_drop_in(r, folder, d->d_name);
                closedir(dir);
        }
}

static int by_name(const void *a, const void *b)
{
        return strcmp(((const struct drop_in *)a)->name, ((const struct drop_in *)b)->name);
}

static void read_drop_ins(struct reader *r, const char *root)
{
        find_drop_ins(r, root);
        if (r->n_drop_ins)
                qsort(r->drop_ins, r->n_drop_ins, sizeof(*r->drop_ins), by_name);
        for (size_t i = 0; i < r->n_drop_ins; i++) {
                int error = read_file(r, r->drop_ins[i].path);

                if (error < 0)
                        unreadable(r, r->drop_ins[i].path, error);
                free(r->drop_ins[i].name);
                free(r->drop_ins[i].path);
        }
        free(r->drop_ins);
}

static void read_command(struct reader *r, const struct rig_config_sources *sources)
{
        for (size_t n = 0; n < sources->n_command; n++) {
                int i = rig_config_set(&r->read->config, sources->command[n], NULL);

                rig_assert(i >= 0); /* they were checked when they were given */
                r->read->wrong[i] = false;
                set_origin(r, (size_t)i, NULL, 0, true);
        }
}

int rig_config_read(
        const struct rig_config_sources *sources, struct rig_config_read **ret_read, struct rig_error *e)
{
        _cleanup_(rig_config_read_freep) struct rig_config_read *read = calloc(1, sizeof(*read));
        const char *root = sources->root ? sources->root : "";
        struct reader reader = {.read = read};

        if (!read)
                return rig_error_set(e, -ENOMEM, "there is no memory for its configuration");
        read->config = (struct rig_config)RIG_CONFIG_DEFAULTS;
        if (sources->file) {
                int error = read_file(&reader, sources->file);

                if (error < 0)
                        unreadable(&reader, sources->file, error);
        } else if (!sources->no_files) {
                read_main(&reader, root);
                read_drop_ins(&reader, root);
        }
        read_command(&reader, sources);
        if (reader.error < 0)
                return rig_error_set(e, reader.error, "there is no memory for its configuration");
        *ret_read = RIG_STEAL(read);
        return 0;
}

/* ---------------------------------------------------------------- as a file */

/* A line of a comment; what others named does not end it. */
static void _printf_(2, 3) print_comment(FILE *f, const char *fmt, ...)
{
        char *text;
        va_list ap;
        int n;

        va_start(ap, fmt);
        n = vasprintf(&text, fmt, ap);
        va_end(ap);
        if (n < 0)
                return;
        rig_log_clean(text);
        fprintf(f, "# %s\n", text);
        free(text);
}

static void print_origin(const struct rig_config_origin *o, FILE *f)
{
        if (o->path)
                print_comment(f, "from %s:%u", o->path, o->line);
        else
                print_comment(f, "%s", o->command ? "from the command line" : "default");
}

void rig_config_print(const struct rig_config_read *read, FILE *f)
{
        char value[RIG_CONFIG_VALUE_BYTES];
        const char *key;

        print_comment(
                f, "The configuration that rigd " RIG_VERSION " has here, and where each value comes from.");
        for (size_t i = 0; i < read->n_paths; i++)
                print_comment(f, "read: %s", read->paths[i]);
        fputs("\n[Daemon]\n", f);
        for (size_t i = 0; rig_config_get(&read->config, i, &key, value, sizeof(value)); i++) {
                fputc('\n', f);
                print_comment(f, "%s", rig_config_meaning(i));
                print_origin(&read->origins[i], f);
                fprintf(f, "%s=%s\n", key, value);
        }
}
