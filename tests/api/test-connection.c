/* SPDX-License-Identifier: ISC */
/* Connections: addresses, what a program sees of its rigd, and what a forked child may do. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "tests/api/api.h"

static void address_is_refused_with_a_sentence(void)
{
        struct rig *rig;

        CHECK_RETURNS(-EINVAL, rig_connect("nowhere", &rig));
        CHECK_RETURNS(-EINVAL, rig_connect("private,transport=pigeon", &rig));
        CHECK(strstr(rig_error(), "pigeon"));
        CHECK_RETURNS(-EINVAL, rig_connect("unix:", &rig));
        CHECK_RETURNS(-EINVAL, rig_connect("fd:many", &rig));
        CHECK_RETURNS(-EBADF, rig_connect("fd:1000", &rig));
        CHECK_RETURNS(-ENOENT, rig_connect("unix:/nonexistent/rigd.sock", &rig));
        CHECK_RETURNS(-EINVAL, rig_connect("private", NULL));
}

static void address_of_a_dead_rigd_is_refused(void)
{
        struct sockaddr_un sa = {.sun_family = AF_UNIX, .sun_path = "/tmp/rig-test-dead.sock"};
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        struct rig *rig;

        unlink(sa.sun_path);
        CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0);
        close(fd);
        CHECK_RETURNS(-ECONNREFUSED, rig_connect("unix:/tmp/rig-test-dead.sock", &rig));
        unlink(sa.sun_path);
}

static void address_comes_from_the_environment(void)
{
        struct rig *rig;

        test_rigd_start();
        OK(rig_connect(NULL, &rig));
        OK(rig_sync(rig));
        rig_unref(rig);
        test_rigd_stop();
        setenv("RIG_ADDRESS", "nonsense", 1);
        CHECK_RETURNS(-EINVAL, rig_connect(NULL, &rig));
        unsetenv("RIG_ADDRESS");
}

/* Where the system has no rigd; where it has one, that is the one. */
static void address_is_else_the_users_own(void)
{
        char link[128], folder[] = "/tmp/rig-test-XXXXXX", inner[64], *kept = strdup(getenv("RIG_RIGD"));
        struct rig *rig;

        if (access("/run/rig/rigd.sock", F_OK) == 0)
                return;
        test_rigd_start();
        CHECK(mkdtemp(folder));
        snprintf(inner, sizeof(inner), "%s/rig", folder);
        snprintf(link, sizeof(link), "%s/rigd.sock", inner);
        CHECK(mkdir(inner, 0700) == 0 && symlink(getenv("RIG_ADDRESS") + strlen("unix:"), link) == 0);
        setenv("XDG_RUNTIME_DIR", folder, 1);
        setenv("RIG_RIGD", "/nonexistent/rigd", 1); /* nor is one of its own started */
        unsetenv("RIG_ADDRESS");
        OK(rig_connect(NULL, &rig));
        rig_unref(rig);
        unlink(link);
        CHECK_RETURNS(-ENOEXEC, rig_connect(NULL, &rig));
        unsetenv("XDG_RUNTIME_DIR");
        setenv("RIG_RIGD", kept, 1);
        free(kept);
        rmdir(inner);
        rmdir(folder);
        test_rigd_stop();
}

static void a_program_that_is_turned_away_hears_why(void)
{
        struct rig *rig, *other;

        test_rigd_start_with("ClientsMax=1");
        OK(rig_connect(NULL, &rig));
        for (int i = 0; i < 50; i++) {
                CHECK_RETURNS(-EPROTO, rig_connect(NULL, &other));
                CHECK(strstr(rig_error(), "ClientsMax is 1"));
        }
        rig_unref(rig);
        test_rigd_stop();
}

static void address_fd_is_consumed(void)
{
        int before = test_count_fds(), pair[2];
        struct rig *rig;
        char text[16];

        CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
        snprintf(text, sizeof(text), "fd:%d", pair[0]);
        CHECK_RETURNS(-EINVAL, rig_connect(text, &rig));
        close(pair[1]);
        CHECK(test_count_fds() == before);
}

static void private_rigd_that_is_missing_is_named(void)
{
        const char *rigd = getenv("RIG_RIGD");
        char *kept = strdup(rigd);
        struct rig *rig;

        setenv("RIG_RIGD", "/nonexistent/rigd", 1);
        CHECK_RETURNS(-ENOEXEC, rig_connect("private", &rig));
        CHECK(strstr(rig_error(), "/nonexistent/rigd"));
        setenv("RIG_RIGD", "/dev/null", 1);
        CHECK_RETURNS(-ENOEXEC, rig_connect("private", &rig));
        setenv("RIG_RIGD", kept, 1);
        free(kept);
}

/* An executable file that is none: the exec itself fails. */
static void private_rigd_that_cannot_run_is_an_error(void)
{
        char name[] = "/tmp/rig-test-XXXXXX", *kept = strdup(getenv("RIG_RIGD"));
        int fd = mkstemp(name);
        struct rig *rig;

        CHECK(fd >= 0 && write(fd, "\177nothing", 8) == 8 && fchmod(fd, 0700) == 0);
        close(fd);
        setenv("RIG_RIGD", name, 1);
        CHECK_RETURNS(-ENOEXEC, rig_connect("private", &rig));
        CHECK(strstr(rig_error(), name));
        setenv("RIG_RIGD", "/bin/true", 1);
        CHECK_RETURNS(-ECONNRESET, rig_connect("private", &rig));
        setenv("RIG_RIGD", kept, 1);
        unlink(name);
        free(kept);
}

static volatile sig_atomic_t n_sigchld;

static void count_sigchld(int sig)
{
        n_sigchld++;
}

static void private_rigd_is_no_child_of_the_program(void)
{
        struct rig *rig;

        n_sigchld = 0;
        signal(SIGCHLD, count_sigchld);
        rig = test_connect();
        OK(rig_sync(rig));
        rig_unref(rig);
        CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
        CHECK(n_sigchld == 0);
        signal(SIGCHLD, SIG_DFL);
}

static void connection_leaves_no_descriptor(void)
{
        int before = test_count_fds();
        struct rig *rig;
        int fd;

        for (int i = 0; i < 3; i++) {
                rig = test_connect();
                fd = rig_get_fd(rig);
                CHECK(fd >= 0 && fd == rig_get_fd(rig));
                CHECK_RETURNS(0, rig_failed(rig));
                CHECK(rig_ref(rig) == rig);
                CHECK(rig_unref(rig) == NULL);
                CHECK(rig_unref(rig) == NULL);
        }
        CHECK(rig_unref(NULL) == NULL && rig_ref(NULL) == NULL);
        CHECK(test_count_fds() == before);
}

static void adapters_are_listed(void)
{
        struct rig *rig = test_connect();
        struct rig_adapter *adapters;
        bool memory = false, host = false, disk = false;
        int n;

        n = OK(rig_adapter_list(rig, &adapters));
        CHECK(n >= 3);
        for (int i = 0; i < n; i++) {
                CHECK(adapters[i].size == sizeof(adapters[i]));
                CHECK(adapters[i].name[0] && adapters[i].driver[0]);
                memory |= strcmp(adapters[i].driver, "memory") == 0;
                host |= strcmp(adapters[i].name, "host") == 0;
                disk |= strcmp(adapters[i].name, "disk") == 0;
        }
        CHECK(memory && host && disk);
        rig_adapter_list_free(adapters);
        rig_adapter_list_free(NULL);
        rig_unref(rig);
}

static void device_says_its_facts(void)
{
        struct rig_device_facts facts = RIG_DEVICE_FACTS_INIT;
        struct {
                struct rig_device_facts facts;
                uint64_t newer;
        } larger = {.facts = {.size = sizeof(larger)}};
        struct rig *rig = test_connect();
        struct rig_device *m, *host, *disk;

        OK(rig_device_open(rig, "memory:M", &m));
        OK(rig_device_open(rig, "host", &host));
        OK(rig_device_open(rig, "disk", &disk));
        OK(rig_device_get_facts(m, &facts));
        CHECK(facts.flags & RIG_DEVICE_HOST_ADDRESSED && facts.n_queues >= 1);
        CHECK(facts.queues[0] & RIG_RUNS_COPY && facts.size == sizeof(facts) && facts.budget_bytes > 0);
        CHECK_RETURNS(-E2BIG, rig_device_get_facts(m, &larger.facts));
        facts = (struct rig_device_facts){.size = 2 * sizeof(uint32_t)};
        OK(rig_device_get_facts(host, &facts));
        CHECK(facts.flags & RIG_DEVICE_CLIENT_CODE && facts.n_queues == 0);
        CHECK_RETURNS(-EINVAL, rig_device_get_facts(m, &(struct rig_device_facts){0}));
        CHECK(strcmp(rig_device_name(m), "memory:M") == 0);
        CHECK(rig_device_rig(m) == rig);
        CHECK(rig_device_reaches(m, m) == 1 && rig_device_reaches(host, m) == 1);
        CHECK(rig_device_reaches(m, disk) == 0);
        CHECK(rig_device_submitted(m) == 0 && rig_device_signaled(m) == 0);
        CHECK_RETURNS(0, rig_device_lost(m));
        CHECK(rig_device_ref(m) == m && rig_device_unref(m) == NULL && rig_device_unref(NULL) == NULL);
        rig_device_unref(disk);
        rig_device_unref(host);
        rig_device_unref(m);
        rig_unref(rig);
}

static void device_of_no_adapter_is_refused(void)
{
        struct rig *rig = test_connect();
        char name[200];
        struct rig_device *device;

        CHECK_RETURNS(-ENOENT, rig_device_open(rig, "abacus:0", &device));
        CHECK(strstr(rig_error(), "abacus"));
        memset(name, 'x', sizeof(name) - 1);
        name[sizeof(name) - 1] = '\0';
        CHECK_RETURNS(-ENOENT, rig_device_open(rig, name, &device));
        CHECK_RETURNS(-EINVAL, rig_device_open(NULL, "memory:M", &device));
        rig_unref(rig);
}

static void devices_end_at_what_the_word_page_holds(void)
{
        struct rig *rig = test_connect();
        struct rig_device *devices[62], *more;

        for (size_t i = 0; i < 62; i++)
                OK(rig_device_open(rig, "memory:M", &devices[i]));
        CHECK_RETURNS(-EDQUOT, rig_device_open(rig, "memory:M", &more));
        rig_device_unref(devices[7]);
        OK(rig_device_open(rig, "memory:M", &devices[7]));
        for (size_t i = 0; i < 62; i++)
                rig_device_unref(devices[i]);
        rig_unref(rig);
}

static void errors_have_texts(void)
{
        CHECK(strcmp(rig_strerror(-ENODEV), "the device is lost") == 0);
        CHECK(strcmp(rig_strerror(ENODEV), "the device is lost") == 0);
        CHECK(rig_strerror(0) && rig_strerror(-100000) && rig_strerror(-EAGAIN)[0]);
        CHECK(rig_error());
}

static int in_child(struct rig *rig, struct rig_device *m, struct rig_buffer *a)
{
        struct rig_buffer *b;
        struct rig *mine;
        char byte;
        int ok;

        ok = rig_sync(rig) == -ECONNRESET && strstr(rig_error(), "fork") != NULL;
        ok = ok && rig_failed(rig) == -ECONNRESET && rig_get_fd(rig) == -ECONNRESET;
        ok = ok && rig_buffer_new(m, 1, 0, &b) == -ECONNRESET &&
             rig_buffer_read(a, 0, &byte, 1) == -ECONNRESET;
        ok = ok && rig_wait(m, 0, 0) == -ECONNRESET && rig_dispatch(rig, 0) == -ECONNRESET;
        rig_buffer_unref(a);
        rig_device_unref(m);
        rig_unref(rig);
        ok = ok && rig_connect("private", &mine) == 0 && rig_sync(mine) == 0;
        rig_unref(ok ? mine : NULL);
        return ok ? 0 : 1;
}

static void child_cannot_use_the_connection_and_can_make_its_own(void)
{
        struct rig *rig = test_connect();
        struct rig_device *m;
        struct rig_buffer *a;
        char byte = 1;
        int status;
        pid_t pid;

        OK(rig_device_open(rig, "memory:M", &m));
        OK(rig_buffer_new(m, 1, RIG_MEMORY_DEVICE, &a));
        pid = fork();
        CHECK(pid >= 0);
        if (pid == 0)
                _exit(in_child(rig, m, a));
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
        /* nothing the child did reached the parent's */
        OK(rig_buffer_read(a, 0, &byte, 1));
        CHECK(byte == 0);
        rig_buffer_unref(a);
        rig_device_unref(m);
        rig_unref(rig);
}

int main(int argc, char **argv)
{
        static const struct test tests[] = {
                TEST(address_is_refused_with_a_sentence),
                TEST(address_of_a_dead_rigd_is_refused),
                TEST(address_comes_from_the_environment),
                TEST(address_is_else_the_users_own),
                TEST(address_fd_is_consumed),
                TEST(a_program_that_is_turned_away_hears_why),
                TEST(private_rigd_that_is_missing_is_named),
                TEST(private_rigd_that_cannot_run_is_an_error),
                TEST(private_rigd_is_no_child_of_the_program),
                TEST(connection_leaves_no_descriptor),
                TEST(adapters_are_listed),
                TEST(device_says_its_facts),
                TEST(device_of_no_adapter_is_refused),
                TEST(devices_end_at_what_the_word_page_holds),
                TEST(errors_have_texts),
                TEST(child_cannot_use_the_connection_and_can_make_its_own),
        };

        return test_main(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
