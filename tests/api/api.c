/* SPDX-License-Identifier: ISC */
/* The runner of the library's tests. It prints each test's name before it runs, so that a hang says which it
 * was. */
#include "tests/api/api.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

const char *test_name = "before the first test";

static bool chosen(const char *name, int argc, char **argv)
{
        if (argc < 2)
                return true;
        for (int i = 1; i < argc; i++)
                if (strcmp(argv[i], name) == 0)
                        return true;
        return false;
}

int test_count_fds(void)
{
        DIR *d = opendir("/proc/self/fd");
        int n = 0;

        CHECK(d);
        while (readdir(d))
                n++;
        closedir(d);
        return n;
}

struct rig *test_connect(void)
{
        struct rig *rig;

        OK(rig_connect("private", &rig));
        return rig;
}

/* ---------------------------------------------------------------- a shared rigd */

static char folder[] = "/tmp/rig-test-XXXXXX";
static char path[64];
static pid_t rigd;

static int listening_socket(void)
{
        struct sockaddr_un sa = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

        CHECK(fd >= 0 && mkdtemp(folder));
        snprintf(path, sizeof(path), "%s/rigd.sock", folder);
        memcpy(sa.sun_path, path, sizeof(path));
        CHECK(bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 && listen(fd, 64) == 0);
        return fd;
}

void test_rigd_start(void)
{
        test_rigd_start_with("LogLevel=warning");
}

/* It is given its socket, as systemd would, so that nobody has to wait until it is ready. */
void test_rigd_start_with(const char *setting)
{
        int fd = listening_socket();
        char text[80];

        rigd = fork();
        CHECK(rigd >= 0);
        if (rigd == 0) {
                snprintf(text, sizeof(text), "%d", (int)getpid());
                setenv("LISTEN_PID", text, 1);
                setenv("LISTEN_FDS", "1", 1);
                if (dup2(fd, 3) == 3)
                        execl(getenv("RIG_RIGD"), "rigd", "--config", "/dev/null", "--set", setting,
                                (char *)NULL);
                _exit(127);
        }
        close(fd);
        snprintf(text, sizeof(text), "unix:%s", path);
        CHECK(setenv("RIG_ADDRESS", text, 1) == 0);
}

static int end_rigd(int sig)
{
        int status;

        CHECK(kill(rigd, sig) == 0 && waitpid(rigd, &status, 0) == rigd);
        unlink(path);
        rmdir(folder);
        memcpy(folder + sizeof(folder) - 7, "XXXXXX", 6);
        unsetenv("RIG_ADDRESS");
        return status;
}

void test_rigd_stop(void)
{
        int status = end_rigd(SIGTERM);

        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void test_rigd_kill(void)
{
        int status = end_rigd(SIGKILL);

        CHECK(WIFSIGNALED(status));
}

/* ---------------------------------------------------------------- descriptors */

int test_file(const void *data, size_t bytes, int flags)
{
        char name[] = "/tmp/rig-test-XXXXXX";
        int fd = mkstemp(name), as;

        CHECK(fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes);
        as = open(name, flags | O_CLOEXEC);
        CHECK(as >= 0 && unlink(name) == 0);
        close(fd);
        return as;
}

int test_memfd(size_t bytes)
{
        int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        CHECK(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
        CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) == 0);
        return fd;
}

int test_main(const struct test *tests, size_t n, int argc, char **argv)
{
        size_t ran = 0;

        for (size_t i = 0; i < n; i++) {
                if (!chosen(tests[i].name, argc, argv))
                        continue;
                test_name = tests[i].name;
                printf("%s\n", test_name);
                fflush(stdout);
                alarm(TEST_SECONDS);
                tests[i].run();
                ran++;
        }
        alarm(0);
        printf("%zu tests hold\n", ran);
        return ran > 0 ? 0 : 1;
}
