/* SPDX-License-Identifier: ISC */
/*
 * A model's life: its memory, what it records, faults that it was told to have, and the program around it.
 * See model.h; what it says on its socket is in model-protocol.c.
 */
#include "tests/models/model.h"

#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "tests/models/model-internal.h"

static const char *const library_faults[] = {"hang", "die", "ones", NULL};

static bool is_among(const char *name, const char *const *names)
{
        for (; names && *names; names++)
                if (strcmp(name, *names) == 0)
                        return true;
        return false;
}

/* "NAME" or "NAME@K". */
static int arm(struct model *m, const char *fault)
{
        const char *at = strchr(fault, '@');
        size_t n = at ? (size_t)(at - fault) : strlen(fault);
        char *end;

        if (n >= sizeof(m->fault_name))
                return -EINVAL;
        memcpy(m->fault_name, fault, n);
        m->fault_at = 1;
        if (at) {
                m->fault_at = strtoull(at + 1, &end, 10);
                if (!m->fault_at || *end)
                        return -EINVAL;
        }
        if (!is_among(m->fault_name, library_faults) && !is_among(m->fault_name, m->description->faults))
                return -EINVAL;
        return 0;
}

static int make_memory(struct model *m)
{
        for (unsigned i = 0; i < MODEL_BARS; i++) {
                void *host;

                if (!m->most_bytes[i])
                        continue;
                m->memory_fd[i] = memfd_create("model-bar", MFD_CLOEXEC | MFD_ALLOW_SEALING);
                if (m->memory_fd[i] < 0 || ftruncate(m->memory_fd[i], (off_t)m->most_bytes[i]) < 0 ||
                        fcntl(m->memory_fd[i], F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
                        return -errno;
                host = mmap(NULL, m->most_bytes[i], PROT_READ | PROT_WRITE, MAP_SHARED, m->memory_fd[i], 0);
                if (host == MAP_FAILED)
                        return -errno;
                m->memory[i] = host;
        }
        return 0;
}

static int start(struct model *m)
{
        int r = config_init(m);

        if (r == 0 && m->options.fault)
                r = arm(m, m->options.fault);
        if (r < 0)
                return r;
        if (m->options.trace) {
                m->trace = fopen(m->options.trace, "we");
                if (!m->trace)
                        return -errno;
        }
        r = make_memory(m);
        if (r == 0 && m->description->ops && m->description->ops->reset)
                m->description->ops->reset(m);
        return r;
}

int model_new(const struct model_description *description, const struct model_options *options, void *own,
        struct model **ret_model)
{
        struct model *m = calloc(1, sizeof(*m));
        int r;

        if (!m)
                return -ENOMEM;
        m->description = description;
        m->options = *options;
        m->own = own;
        m->fd = m->twin = -EBADF;
        pthread_mutex_init(&m->stop_lock, NULL);
        m->queue_end = &m->queue;
        for (unsigned i = 0; i < MODEL_BARS; i++)
                m->memory_fd[i] = -EBADF;
        for (unsigned i = 0; i < MAX_VECTORS; i++)
                m->msi[i] = m->msix[i] = -EBADF;
        r = start(m);
        if (r < 0) {
                model_free(m);
                return r;
        }
        *ret_model = m;
        return 0;
}

struct model *model_free(struct model *m)
{
        if (!m)
                return NULL;
        for (unsigned i = 0; i < MODEL_BARS; i++) {
                if (m->memory[i])
                        munmap(m->memory[i], m->most_bytes[i]);
                rig_close(m->memory_fd[i]);
        }
        free(m->mappings);
        pthread_mutex_destroy(&m->stop_lock);
        if (m->trace)
                fclose(m->trace);
        free(m);
        return NULL;
}

void *model_own(struct model *m)
{
        return m->own;
}

uint8_t *model_memory(struct model *m, unsigned bar)
{
        return m->memory[bar];
}

void model_stop(struct model *m)
{
        pthread_mutex_lock(&m->stop_lock);
        m->stop = true;
        if (m->fd >= 0)
                shutdown(m->fd, SHUT_RDWR);
        pthread_mutex_unlock(&m->stop_lock);
}

/* ---------------------------------------------------------------- what it records */

void model_trace(struct model *m, const char *fmt, ...)
{
        va_list ap;

        if (!m->trace)
                return;
        fprintf(m->trace, "%" PRIu64 " ", rig_now_usec());
        va_start(ap, fmt);
        vfprintf(m->trace, fmt, ap);
        va_end(ap);
        fputc('\n', m->trace);
        fflush(m->trace);
}

void model_fault(struct model *m, const char *fmt, ...)
{
        char text[sizeof(m->first_fault)];
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        if (!m->n_faults++)
                memcpy(m->first_fault, text, sizeof(text));
        fprintf(stderr, "%s: fault: %s\n", m->description->name, text);
        model_trace(m, "fault %s", text);
}

unsigned model_faults(const struct model *m, const char **ret_first)
{
        if (ret_first)
                *ret_first = m->first_fault;
        return m->n_faults;
}

bool model_strikes(struct model *m, const char *name)
{
        return m->fault_at && strcmp(name, m->fault_name) == 0 && ++m->fault_count == m->fault_at;
}

bool model_is_gone(const struct model *m)
{
        return m->gone;
}

unsigned model_resets(const struct model *m)
{
        return m->n_resets;
}

void model_reset(struct model *m)
{
        m->n_resets++;
        model_trace(m, "reset");
        config_reset(m);
        if (m->description->ops && m->description->ops->reset)
                m->description->ops->reset(m);
}

/* ---------------------------------------------------------------- the program */

int model_listen(const char *path)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        _cleanup_(rig_closep) int fd = -EBADF;

        if (strlen(path) >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        memcpy(address.sun_path, path, strlen(path));
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return -errno;
        unlink(path);
        if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 4) < 0)
                return -errno;
        return rig_steal_fd(&fd);
}

static int usage(const char *program)
{
        fprintf(stderr,
                "usage: %s [--trace FILE] [--fault NAME[@K]] [--message-dma] [--no-twin] [--trap]\n"
                "       [--tick USEC] [--once] SOCKET\n",
                program);
        return 2;
}

static int parse(int argc, char **argv, struct model_options *options, bool *ret_once)
{
        static const struct option known[] = {{"trace", required_argument, NULL, 't'},
                {"fault", required_argument, NULL, 'f'}, {"message-dma", no_argument, NULL, 'm'},
                {"no-twin", no_argument, NULL, 'w'}, {"trap", no_argument, NULL, 'x'},
                {"tick", required_argument, NULL, 'k'}, {"once", no_argument, NULL, '1'}, {0}};
        int c;

        while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
                switch (c) {
                case 't':
                        options->trace = optarg;
                        break;
                case 'f':
                        options->fault = optarg;
                        break;
                case 'm':
                        options->message_dma = true;
                        break;
                case 'w':
                        options->no_twin = true;
                        break;
                case 'x':
                        options->trap_all = true;
                        break;
                case 'k':
                        options->tick_usec = strtoll(optarg, NULL, 10);
                        break;
                case '1':
                        *ret_once = true;
                        break;
                default:
                        return -EINVAL;
                }
        }
        return optind + 1 == argc ? 0 : -EINVAL;
}

static int serve_clients(struct model *m, const char *path, bool once)
{
        _cleanup_(rig_closep) int listener = model_listen(path);
        int r = listener;

        while (r >= 0) {
                int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

                if (fd < 0)
                        return -errno;
                r = model_serve(m, fd);
                if (r == -EPROTO || r == -ECONNRESET) /* the client's fault: the next one may do better */
                        r = 0;
                if (once)
                        break;
        }
        return r;
}

int model_main(int argc, char **argv, const struct model_description *description, void *own)
{
        struct model_options options = {.tick_usec = -1};
        struct model *m;
        bool once = false;
        unsigned faults;
        int r = parse(argc, argv, &options, &once);

        if (r < 0)
                return usage(argv[0]);
        r = model_new(description, &options, own, &m);
        if (r < 0) {
                fprintf(stderr, "%s: %s\n", argv[0], strerror(-r));
                return r == -EINVAL ? usage(argv[0]) : 1;
        }
        r = serve_clients(m, argv[optind], once);
        if (r < 0)
                fprintf(stderr, "%s: %s\n", argv[optind], strerror(-r));
        faults = model_faults(m, NULL);
        model_free(m);
        return r < 0 ? 1 : faults ? 3 : 0;
}
